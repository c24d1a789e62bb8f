/* SPDX-License-Identifier: BSD-2-Clause */
/* Has switches read their files again, and waits until they have. */
#include "lab/reload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/local_socket.h"
#include "dataplane/program.h"
#include "lab/change.h"

#define READ_NS    UINT64_C(10000000000)
#define PATIENCE_S 1
#define ANSWER_MAX (1 << 20)

/* How often a switch has read its file again, and how often it refused it. */
struct reads {
	unsigned long long done, refused;
};

/* ---- asking a switch ---- */

static bool read_number(const char *text, const char *key, unsigned long long *ret)
{
	const char *at = strstr(text, key);

	if (at == NULL)
		return false;
	*ret = strtoull(at + strlen(key), NULL, 10);
	return true;
}

static int ask(const char *node, struct pl_buf *ret)
{
	static const char request[] = "{\"do\":\"account\"}\n";
	char path[PL_LAB_NAME_MAX + sizeof(".sock")], bytes[4096];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s.sock", node);
	fd = pl_local_connect(path, SOCK_STREAM, PATIENCE_S);
	if (fd < 0)
		return fd;
	ret->limit = ANSWER_MAX;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
		while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
			pl_buf_add(ret, bytes, (size_t)n);
			if (bytes[n - 1] == '\n' || ret->failed)
				break;
		}
	}
	close(fd);
	return n > 0 && !ret->failed ? 0 : -EIO;
}

static int count_reads(const char *node, struct reads *ret)
{
	struct pl_buf text = { 0 };
	int r = ask(node, &text);

	if (r == 0 && (!read_number(text.data, "\"reloads\":", &ret->done) ||
			      !read_number(text.data, "\"reloads_refused\":", &ret->refused)))
		r = -EBADMSG;
	pl_buf_done(&text);
	return r;
}

/* ---- one switch ---- */

/* Files of switches stand in both plans in the same order. */
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

/* Up to the one that refused, as it was. What cannot be undone is in the log. */
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
