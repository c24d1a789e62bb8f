/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a lab's commands for state and account, and prints both. */
#include "lab/said.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "dta/account.h"
#include "lab/control.h"

#define ANSWER_NS UINT64_C(2000000000)
#define PAUSE_MS  20
/* Bytes at the end of a log in which the last account is sought: an account has 4 KB. */
#define TAIL      (256 << 10)

bool pl_lab_has_sayings(const struct pl_lab_found *f)
{
	for (unsigned int i = 0; i < f->topology.n_commands; i++) {
		if (f->topology.commands[i].name != NULL)
			return f->tier != PL_LAB_SIMULATED;
	}
	return false;
}

void pl_lab_sayings_done(struct pl_lab_sayings *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		free(s->all[i].account);
	*s = (struct pl_lab_sayings){ .n = 0 };
}

/* ---- accounts ---- */

static bool is_account(const char *line)
{
	return line[0] == '{' || strstr(line, " packets (") != NULL;
}

/* Returns the offset of the last account in the log, -1: none; sets *ret to its text, to be freed,
 * unless ret is NULL. */
static off_t find_account(const struct pl_lab_found *f, const char *name, char **ret)
{
	char path[PL_LAB_FOLDER_MAX + PL_LAB_NAME_MAX + 8], *text = malloc(TAIL + 1), *at, *end;
	off_t from, found = -1;
	struct stat st;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.log", f->folder, name);
	fd = text == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	from = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > TAIL ? st.st_size - TAIL : 0;
	if (fd >= 0)
		n = pread(fd, text, TAIL, from);
	if (fd >= 0)
		close(fd);
	if (n > 0) {
		text[n] = '\0';
		/* The first line of the tail may be cut. */
		at = from > 0 ? strchr(text, '\n') : text;
		at = at != NULL && from > 0 ? at + 1 : at;
		for (; at != NULL && (end = strchr(at, '\n')) != NULL; at = end + 1) {
			*end = '\0';
			if (!is_account(at))
				continue;
			found = from + (at - text);
			if (ret != NULL) {
				free(*ret);
				*ret = strdup(at);
			}
		}
	}
	free(text);
	return found;
}

/* ---- asking ---- */

/* Parses "NAME PID STATE". */
static int read_line(const struct pl_lab_found *f, char *line, struct pl_lab_said *ret)
{
	char *name = strsep(&line, " "), *pid = strsep(&line, " ");

	if (name == NULL || pid == NULL || line == NULL)
		return -EBADMSG;
	*ret = (struct pl_lab_said){ .of = pl_lab_find_command(&f->topology, name),
		.pid = atoi(pid) };
	snprintf(ret->state, sizeof(ret->state), "%s", line);
	return ret->of == NULL ? -EBADMSG : 0;
}

static int request(const struct pl_lab_found *f, const char *what, struct pl_lab_sayings *ret,
	struct pl_diag *diag)
{
	const char *const words[] = { "commands", what };
	struct pl_buf text = { 0 };
	char *at, *line;
	int r = pl_lab_ask(f, words, 2, &text, diag);

	*ret = (struct pl_lab_sayings){ .n = 0 };
	at = r == 0 ? text.data : NULL;
	while (r == 0 && (line = strsep(&at, "\n")) != NULL) {
		if (line[0] == '\0')
			continue;
		r = ret->n == PL_LAB_RUN_MAX ? -E2BIG : read_line(f, line, &ret->all[ret->n]);
		if (r == 0)
			ret->n++;
		else
			pl_diag_set(diag, "lab '%s' gives an answer that is none", f->name);
	}
	pl_buf_done(&text);
	return r;
}

static void take_accounts(const struct pl_lab_found *f, struct pl_lab_sayings *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->all[i].of->account)
			(void)find_account(f, s->all[i].of->name, &s->all[i].account);
	}
}

/* Returns true when every running command with an account has printed a new one; the others get the
 * state "silent". */
static bool have_answered(
	const struct pl_lab_found *f, struct pl_lab_sayings *s, const off_t *before, unsigned int n)
{
	bool all = true;

	for (unsigned int i = 0; i < s->n && i < n; i++) {
		struct pl_lab_said *p = &s->all[i];

		if (!p->of->account || p->pid == 0 ||
			find_account(f, p->of->name, NULL) != before[i])
			continue;
		snprintf(p->state, sizeof(p->state), "silent");
		all = false;
	}
	return all;
}

int pl_lab_sayings_ask(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag)
{
	const struct pl_lab_topology *t = &f->topology;
	const uint64_t until_ns = pl_clock_mono_ns() + ANSWER_NS;
	off_t before[PL_LAB_RUN_MAX]; /* in the order of the answer's lines */
	unsigned int n = 0;
	int r;

	for (unsigned int i = 0; i < t->n_commands && n < PL_LAB_RUN_MAX; i++) {
		if (t->commands[i].name != NULL)
			before[n++] = find_account(f, t->commands[i].name, NULL);
	}
	/* A command that has just started may miss the signal, so it is sent again. */
	while ((r = request(f, "ask", ret, diag)) == 0) {
		(void)poll(NULL, 0, PAUSE_MS);
		if (have_answered(f, ret, before, n) || pl_clock_mono_ns() > until_ns)
			break;
	}
	if (r == 0)
		take_accounts(f, ret);
	return r;
}

int pl_lab_sayings_finish(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag)
{
	int r = request(f, "finish", ret, diag);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < ret->n; i++) {
		if (ret->all[i].pid != 0)
			r = 1;
	}
	if (r == 0)
		take_accounts(f, ret);
	return r;
}

/* ---- said ---- */

/* Prints a short form of the account, "-" for none. */
static void put_account(const char *text, struct pl_buf *out)
{
	struct pl_dta_account t = { 0 }, c = { 0 }, g = { 0 };
	uint64_t made = 0;

	if (text != NULL)
		pl_dta_account_generator(&g, text, &made);
	if (text == NULL)
		pl_buf_chr(out, '-');
	else if (g.have_generated)
		pl_buf_printf(out, "%" PRIu64 " reports sent", made);
	else if (pl_dta_account_translator(&t, text, NULL) == 0)
		pl_buf_printf(out,
			"%" PRIu64 " reports: %" PRIu64 " accepted, %" PRIu64
			" duplicates, %" PRIu64 " unreadable, %" PRIu64 " refused; %" PRIu64
			" operations: %" PRIu64 " done, %" PRIu64 " lost",
			t.reports, t.accepted, t.duplicates, t.unreadable, t.refused, t.operations,
			t.done, t.lost + t.full + t.down + t.outside);
	else if (pl_dta_account_collector(&c, text, NULL) == 0)
		pl_buf_printf(out, "%" PRIu64 " operations executed", c.executed);
	else
		pl_buf_str(out, text);
	pl_buf_chr(out, '\n');
}

void pl_lab_sayings_text(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_buf *out)
{
	pl_buf_printf(
		out, "\n%-12s %-12s %8s %-12s %s\n", "COMMAND", "NODE", "PID", "STATE", "ACCOUNT");
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_lab_said *p = &s->all[i];
		char pid[16] = "-";

		if (p->pid != 0)
			snprintf(pid, sizeof(pid), "%d", p->pid);
		pl_buf_printf(out, "%-12s %-12s %8s %-12s ", p->of->name,
			f->topology.nodes[p->of->node].name, pid, p->state);
		put_account(p->account, out);
	}
}

/* Writes the account as the command printed it, where that is JSON. */
static void json_account(struct pl_json *j, const char *text)
{
	struct pl_dta_account a = { 0 };
	uint64_t made;

	if (text == NULL) {
		pl_json_null(j);
	} else if (pl_dta_account_translator(&a, text, NULL) == 0 ||
		   pl_dta_account_collector(&a, text, NULL) == 0) {
		pl_json_raw(j, text, strlen(text));
	} else {
		pl_dta_account_generator(&a, text, &made);
		pl_json_object(j);
		if (a.have_generated)
			pl_json_number(j, "sent", made);
		pl_json_object_end(j);
	}
}

void pl_lab_sayings_json(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_json *j)
{
	pl_json_key(j, "commands");
	pl_json_array(j);
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_lab_said *p = &s->all[i];

		pl_json_object(j);
		pl_json_text(j, "name", p->of->name);
		pl_json_text(j, "node", f->topology.nodes[p->of->node].name);
		pl_json_key(j, "pid");
		if (p->pid != 0)
			pl_json_i64(j, p->pid);
		else
			pl_json_null(j);
		pl_json_text(j, "state", p->state);
		pl_json_key(j, "account");
		json_account(j, p->account);
		pl_json_object_end(j);
	}
	pl_json_array_end(j);
}
