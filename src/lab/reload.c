/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes switches read their files again, and waits until they have. */
#include "lab/reload.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/local_socket.h"
#include "dataplane/program.h"
#include "lab/change.h"

#define READ_NS    UINT64_C(10000000000)
#define PATIENCE_S 1
#define ANSWER_MAX (1 << 20)

/* A switch's counts of reloads, and of reloads that it refused. */
struct reads {
	uint64_t done, refused;
};

/* ---- asking a switch ---- */

/* Takes the numbers out of a switch's account, a JSON object. */
static int read_account(const struct pl_buf *text, struct reads *ret)
{
	json_t *answer = json_loadb(text->data, text->len, 0, NULL);
	const json_t *account = json_object_get(answer, "account");
	const json_t *done = json_object_get(account, "reloads");
	const json_t *refused = json_object_get(account, "reloads_refused");
	const int r = json_is_integer(done) && json_is_integer(refused) ? 0 : -EBADMSG;

	if (r == 0) {
		ret->done = (uint64_t)json_integer_value(done);
		ret->refused = (uint64_t)json_integer_value(refused);
	}
	json_decref(answer);
	return r;
}

static int count_reads(const char *node, struct reads *ret)
{
	struct pl_buf request = { 0 }, answer = { .limit = ANSWER_MAX };
	char path[PL_LAB_NAME_MAX + sizeof(".sock")];
	int r;

	snprintf(path, sizeof(path), "%s.sock", node);
	pl_buf_str(&request, "{\"do\":\"account\"}");
	r = request.failed ? -ENOMEM : pl_local_ask(path, &request, PATIENCE_S, &answer);
	if (r == 0)
		r = read_account(&answer, ret);
	pl_buf_done(&request);
	pl_buf_done(&answer);
	return r;
}

/* ---- one switch ---- */

/* Returns the next FILE step of a switch, or NULL. Both plans have them in the same order. */
static const struct pl_lab_step *next_file(const struct pl_lab_plan *p, size_t *at)
{
	for (; *at < p->n; ++*at) {
		const struct pl_lab_step *s = &p->steps[*at];

		if (s->kind == PL_LAB_FILE && p->t->nodes[s->node].kind == PL_LAB_SWITCH)
			return &p->steps[(*at)++];
	}
	return NULL;
}

static struct pl_lab_running *switch_of(const struct pl_lab_reload *r, unsigned int node)
{
	for (unsigned int i = 0; i < r->commands->n; i++) {
		struct pl_lab_running *c = &r->commands->all[i];

		if (c->of == NULL && c->node == node)
			return c->pid != 0 ? c : NULL;
	}
	return NULL;
}

static int wait_until_read(
	const struct pl_lab_reload *r, const char *name, struct reads before, struct pl_diag *diag)
{
	const uint64_t until_ns = pl_clock_mono_ns() + READ_NS;
	struct reads now = before;

	while (pl_clock_mono_ns() < until_ns) {
		if (count_reads(name, &now) == 0 && now.done != before.done)
			return 0;
		if (now.refused != before.refused) {
			pl_diag_set(
				diag, "switch '%s' refuses its file: %s.log says why", name, name);
			return -EINVAL;
		}
		if (!r->commands->wait(r->commands->arg))
			return -ECANCELED;
	}
	pl_diag_set(diag, "switch '%s' has not read its file within ten seconds", name);
	return -ETIMEDOUT;
}

static int reload(const struct pl_lab_reload *r, const struct pl_lab_step *s, struct pl_diag *diag)
{
	const char *name = r->want->t->nodes[s->node].name;
	const struct pl_lab_running *running = switch_of(r, s->node);
	struct reads before = { 0 };
	int error = running == NULL ? -ESRCH : count_reads(name, &before);

	if (error == 0)
		error = pl_file_replace(s->file, s->text, strlen(s->text), 0600);
	if (error == 0 && kill(running->pid, SIGHUP) < 0)
		error = -errno;
	if (error < 0) {
		pl_diag_set(diag, "switch '%s' cannot be given another file: %s", name,
			strerrordesc_np(-error));
		return error;
	}
	return wait_until_read(r, name, before, diag);
}

/* ---- all ---- */

static int check_file(const struct pl_lab_step *s, struct pl_diag *diag)
{
	struct pl_dp_program program;
	int r = pl_dp_program_parse(&program, s->file, s->text, strlen(s->text), diag);

	if (r < 0)
		return r;
	r = pl_dp_program_check(&program, diag);
	pl_dp_program_done(&program);
	return r;
}

int pl_lab_reload_check(const struct pl_lab_reload *r, struct pl_diag *diag)
{
	const struct pl_lab_step *is, *s;
	size_t i = 0, k = 0;
	int error = 0;

	while (error == 0 && (s = next_file(r->want, &i)) != NULL &&
		(is = next_file(r->was, &k)) != NULL) {
		if (strcmp(s->text, is->text) == 0)
			continue;
		error = check_file(s, diag);
		if (error == 0 && switch_of(r, s->node) == NULL) {
			pl_diag_set(diag, "switch '%s' has ended, and would have to change",
				r->want->t->nodes[s->node].name);
			error = -ESRCH;
		}
	}
	return error;
}

/* Restores the old files of the changed switches up to `last`, the one that failed. Logs what
 * cannot be restored. */
static void undo(const struct pl_lab_reload *r, const struct pl_lab_step *last)
{
	const struct pl_lab_step *is, *s;
	size_t i = 0, k = 0;

	while ((s = next_file(r->want, &i)) != NULL && (is = next_file(r->was, &k)) != NULL) {
		struct pl_diag diag = { .text = "" };

		if (strcmp(s->text, is->text) != 0 && reload(r, is, &diag) < 0)
			dprintf(2, "undoing: %s\n", diag.text);
		if (s == last)
			return;
	}
}

int pl_lab_reload_run(const struct pl_lab_reload *r, struct pl_buf *out, struct pl_diag *diag)
{
	const struct pl_lab_step *is, *s;
	size_t i = 0, k = 0;

	while ((s = next_file(r->want, &i)) != NULL && (is = next_file(r->was, &k)) != NULL) {
		int error;

		if (strcmp(s->text, is->text) == 0)
			continue;
		error = reload(r, s, diag);
		if (error < 0) {
			undo(r, s);
			return error;
		}
		pl_lab_change_tell(out, "switch", "changed", r->want->t->nodes[s->node].name);
	}
	return 0;
}
