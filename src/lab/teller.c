/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries out the steps of a lab's story at their times. */
#include "lab/teller.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/keeping.h"
#include "lab/traffic.h"

struct pl_lab_teller {
	const struct pl_lab_topology *t;
	struct pl_lab_wires *wires;
	const int *namespaces;
	uint64_t begin_ns;
	size_t next;
	pid_t *pids; /* by step; 0: none running */
};

int pl_lab_teller_new(struct pl_lab_teller **ret, const struct pl_lab_topology *t,
	struct pl_lab_wires *wires, const int *namespaces, uint64_t now_ns)
{
	struct pl_lab_teller *l;

	*ret = NULL;
	if (t->story.n == 0)
		return 0;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	*l = (struct pl_lab_teller){ .t = t,
		.wires = wires,
		.namespaces = namespaces,
		.begin_ns = now_ns,
		.pids = calloc(t->story.n, sizeof(pid_t)) };
	if (l->pids == NULL) {
		free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void pl_lab_teller_free(struct pl_lab_teller *l)
{
	if (l == NULL)
		return;
	/* The children of each traffic process end with it. */
	for (size_t i = 0; i < l->next; i++) {
		if (l->pids[i] > 0)
			(void)kill(l->pids[i], SIGKILL);
	}
	free(l->pids);
	free(l);
}

void pl_lab_teller_keep(struct pl_lab_teller *l, const struct pl_lab_topology *t)
{
	if (l != NULL)
		l->t = t;
}

/* Writes each line at once, as traffic processes append to the file, too. */
void pl_lab_story_note(const struct pl_lab_story_step *step, const char *what, const char *text)
{
	int fd = open("story", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		dprintf(2, "story: %s\n", strerrordesc_np(errno));
		return;
	}
	dprintf(fd, "%.3fs %s%s%s\n", (double)step->at_ns / 1e9, step->text, what, text);
	close(fd);
}

/* ---- traffic ---- */

static void send_all(const struct pl_lab_teller *l, const struct pl_lab_story_step *step)
{
	struct pl_lab_traffic_account accounts[PL_LAB_SENDERS_MAX + 1] = { { 0 } };
	struct pl_lab_traffic t = step->traffic;
	struct pl_diag diag = { .text = "" };
	struct pl_buf out = { 0 };
	int r;

	pl_lab_reset_signals();
	(void)signal(SIGPIPE, SIG_IGN);
	if (t.duration_ns == 0)
		t.duration_ns = PL_LAB_FOR_EVER_NS;
	r = pl_lab_traffic_run_within(l->t, l->namespaces, &t, accounts, &diag);
	if (r < 0) {
		pl_lab_story_note(step, ": ", diag.text);
		_exit(1);
	}
	pl_lab_traffic_show(l->t, &t, accounts, true, &out);
	if (out.len > 0 && !out.failed)
		out.data[out.len - 1] = '\0'; /* the line's end */
	pl_lab_story_note(step, " ended ", out.failed || out.len == 0 ? "" : out.data);
	_exit(0);
}

static void start(struct pl_lab_teller *l, size_t i)
{
	const struct pl_lab_story_step *step = &l->t->story.steps[i];
	pid_t pid = fork();

	if (pid == 0)
		send_all(l, step);
	if (pid < 0)
		pl_lab_story_note(step, ": ", strerrordesc_np(errno));
	else
		pl_lab_story_note(step, "", "");
	l->pids[i] = pid > 0 ? pid : 0;
}

void pl_lab_teller_ended(struct pl_lab_teller *l, pid_t pid)
{
	for (size_t i = 0; l != NULL && i < l->next; i++) {
		if (l->pids[i] == pid)
			l->pids[i] = 0;
	}
}

/* ---- steps ---- */

static void carry_out(struct pl_lab_teller *l, size_t i)
{
	const struct pl_lab_story_step *step = &l->t->story.steps[i];
	struct pl_diag diag = { .text = "" };
	int r = 0;

	switch (step->kind) {
	case PL_LAB_STORY_IMPAIR:
		r = pl_lab_wires_impair(
			l->wires, step->words[0], step->words + 1, step->n_words - 1, &diag);
		break;
	case PL_LAB_STORY_RESTORE:
		r = pl_lab_wires_restore(l->wires, step->words[0], &diag);
		break;
	case PL_LAB_STORY_TRAFFIC:
		start(l, i);
		return;
	case PL_LAB_STORY_STOP:
		if (l->pids[step->stops] > 0)
			(void)kill(l->pids[step->stops], SIGTERM);
		break;
	}
	if (r < 0 && diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerrordesc_np(-r));
	pl_lab_story_note(step, r < 0 ? ": " : "", r < 0 ? diag.text : "");
}

uint64_t pl_lab_teller_run(struct pl_lab_teller *l, uint64_t now_ns)
{
	const struct pl_lab_story *s;

	if (l == NULL)
		return UINT64_MAX;
	s = &l->t->story;
	while (l->next < s->n && l->begin_ns + s->steps[l->next].at_ns <= now_ns) {
		/* Before carry_out(): pl_lab_teller_ended searches only the steps below l->next. */
		l->next++;
		carry_out(l, l->next - 1);
	}
	return l->next < s->n ? l->begin_ns + s->steps[l->next].at_ns : UINT64_MAX;
}
