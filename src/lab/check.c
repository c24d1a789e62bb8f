/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the results of a lab's commands. */
#include "lab/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dta/account.h"
#include "lab/keeping.h"
#include "lab/up.h"

/* Bytes kept of a check's output. */
#define SAID_MAX (64 << 10)

struct checked {
	const struct pl_lab_said *of;
	char *said;
	int code;
};

struct result {
	struct checked all[PL_LAB_RUN_MAX];
	unsigned int n;
	struct pl_dta_account account;
	bool joined; /* a translator gave its account: the accounts can be joined */
	bool right;
};

/* ---- commands that check ---- */

struct shell {
	const char *text;
	int out;
};

static int run_shell(void *arg)
{
	const struct shell *s = arg;

	if (dup2(s->out, 1) < 0 || dup2(s->out, 2) < 0)
		return 126;
	execl("/bin/sh", "sh", "-c", s->text, (char *)NULL);
	return 127;
}

/* Returns the contents of a memfd, up to SAID_MAX bytes, to be freed; NULL without memory. */
static char *read_all(int fd)
{
	struct stat st;
	char *text = calloc(1, SAID_MAX + 1);

	if (text == NULL || fstat(fd, &st) < 0 || pread(fd, text, SAID_MAX, 0) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int check_one(const struct pl_lab_found *f, struct checked *c, struct pl_diag *diag)
{
	const struct pl_lab_command *of = c->of->of;
	struct shell s = { .text = of->check, .out = memfd_create("check", MFD_CLOEXEC) };
	int r = s.out < 0 ? -errno : pl_lab_call(f, of->node, run_shell, &s, diag);

	if (r >= 0) {
		c->code = r;
		c->said = read_all(s.out);
		r = c->said == NULL ? -ENOMEM : 0;
	}
	if (s.out >= 0)
		close(s.out);
	return r;
}

static int check_all(const struct pl_lab_found *f, const struct pl_lab_sayings *s,
	struct result *res, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; i < s->n && r == 0; i++) {
		if (s->all[i].of->check == NULL)
			continue;
		res->all[res->n] = (struct checked){ .of = &s->all[i] };
		r = check_one(f, &res->all[res->n], diag);
		res->right = res->right && res->all[res->n].code == 0;
		res->n++;
	}
	return r;
}

/* ---- accounts ---- */

/* Adds one command's account. Returns false when it is missing or cannot be parsed. */
static bool join_account(struct pl_dta_account *a, const char *text, bool *ret_translator)
{
	const uint64_t generated = a->generated;
	uint64_t made;

	if (text == NULL)
		return false;
	if (text[0] != '{') {
		pl_dta_account_generator(a, text, &made);
		return a->generated != generated || made == 0;
	}
	if (pl_dta_account_translator(&(struct pl_dta_account){ 0 }, text, NULL) == 0) {
		*ret_translator = true;
		return pl_dta_account_translator(a, text, NULL) == 0;
	}
	return pl_dta_account_collector(a, text, NULL) == 0;
}

static void join_accounts(const struct pl_lab_sayings *s, struct result *res)
{
	bool good = true;

	for (unsigned int i = 0; i < s->n; i++) {
		if (s->all[i].of->account)
			good &= join_account(&res->account, s->all[i].account, &res->joined);
	}
	if (!res->joined)
		return;
	pl_dta_account_close(&res->account);
	res->account.closed = res->account.closed && good;
	res->right = res->right && res->account.closed;
}

static bool ended_well(const struct pl_lab_said *s)
{
	return strcmp(s->state, "exit code 0") == 0;
}

/* ---- said ---- */

static void put_text(const struct pl_lab_sayings *s, const struct result *res, struct pl_buf *out)
{
	for (unsigned int i = 0; i < res->n; i++) {
		const struct checked *c = &res->all[i];
		char *rest = c->said, *line;

		while ((line = strsep(&rest, "\n")) != NULL) {
			if (line[0] != '\0')
				pl_buf_printf(out, "%-12s %s\n", c->of->of->name, line);
		}
		if (c->code != 0)
			pl_buf_printf(out, "%-12s check ended with exit code %d\n", c->of->of->name,
				c->code);
	}
	for (unsigned int i = 0; i < s->n; i++) {
		if (!ended_well(&s->all[i]))
			pl_buf_printf(
				out, "%-12s ended with %s\n", s->all[i].of->name, s->all[i].state);
	}
	if (res->joined) {
		pl_buf_chr(out, '\n');
		pl_dta_account_text(&res->account, out);
	}
}

static void put_json(const struct pl_lab_found *f, const struct pl_lab_sayings *s,
	const struct result *res, struct pl_buf *out)
{
	struct pl_json object, *j = &object;

	pl_json_init(j, out);
	pl_json_object(j);
	pl_json_text(j, "lab", f->name);
	pl_json_key(j, "right");
	pl_json_bool(j, res->right);
	pl_json_key(j, "checks");
	pl_json_array(j);
	for (unsigned int i = 0; i < res->n; i++) {
		const struct checked *c = &res->all[i];

		pl_json_object(j);
		pl_json_text(j, "name", c->of->of->name);
		pl_json_number(j, "exit_code", (uint64_t)c->code);
		pl_json_text(j, "said", c->said);
		pl_json_object_end(j);
	}
	pl_json_array_end(j);
	pl_lab_sayings_json(f, s, j);
	if (res->joined) {
		pl_json_key(j, "account");
		pl_dta_account_json(&res->account, j);
	}
	pl_json_object_end(j);
	pl_buf_chr(out, '\n');
}

int pl_lab_check(const struct pl_lab_found *f, const struct pl_lab_sayings *s, bool json,
	struct pl_buf *out, struct pl_diag *diag)
{
	struct result *res = calloc(1, sizeof(*res));
	int r = res == NULL ? -ENOMEM : chdir(f->folder) < 0 ? -errno : 0;

	if (r == 0) {
		pl_lab_lead_path();
		res->right = true;
		for (unsigned int i = 0; i < s->n; i++)
			res->right = res->right && ended_well(&s->all[i]);
		r = check_all(f, s, res, diag);
	}
	if (r == 0) {
		join_accounts(s, res);
		if (json)
			put_json(f, s, res, out);
		else
			put_text(s, res, out);
		r = res->right;
	}
	for (unsigned int i = 0; res != NULL && i < res->n; i++)
		free(res->all[i].said);
	free(res);
	return r;
}
