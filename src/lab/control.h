/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a lab that is up is asked and changed: the socket `control` in its folder, which its owner
 * alone can reach. One request, one answer, each a message: words with a zero byte behind each.
 *
 *   truth                       the answer is "" and a descriptor of the text; the same is in
 *                               the lab's folder truth then, as records
 *   impair LINK KEY=VALUE…      "" or what was wrong
 *   commands ask|finish         "" and a descriptor of a line for each command that has a name:
 *                               NAME PID STATE (commands.h)
 *   apply FILE                  the lab becomes what this file in its folder says, which goes: "" and a
 *                               descriptor of a line for each thing that was changed (change.h)
 *   traffic KIND RATE SIZE DURATION ON OFF FROM… TO
 *                               of a simulated lab: "" and a descriptor of the number of the first
 *                               flow and the simulated time at which it ends; numbers in bits per
 *                               second, bytes, ns, and of nodes
 *   flows FIRST N               of a simulated lab: the same of the simulated time that it is, and of
 *                               accounts of flows
 */
#pragma once

#include "base/buf.h"
#include "lab/state.h"
#include "lab/truth_books.h"

#define PL_LAB_REQUEST_MAX 4096
#define PL_LAB_CLIENTS_MAX 8

/* Words behind the first; what is answered is added to `out`. Negative errno with diag. */
typedef int pl_lab_control_fn(void *arg, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);

/* What a lab does when it is asked; NULL: it cannot. */
struct pl_lab_control_ops {
	void (*truth)(void *arg, struct pl_lab_truth_books *ret);
	/* Negative errno with diag. */
	int (*impair)(void *arg, const char *link, const char *const *words, unsigned int n,
		struct pl_diag *diag);
	pl_lab_control_fn *apply, *commands, *traffic, *flows;
	void *arg;
};

/* The keeper's end. */
struct pl_lab_control {
	int listener;
	int clients[PL_LAB_CLIENTS_MAX]; /* -1: free; who has not asked yet */
	struct pl_lab_control_ops ops;
};

struct pollfd;

/* Makes it closed: it may be closed again, and is nothing to wait for. */
void pl_lab_control_init(struct pl_lab_control *c);
/* One that was made closed, in the current folder. Negative errno. */
int pl_lab_control_open(struct pl_lab_control *c, const struct pl_lab_control_ops *ops);
void pl_lab_control_close(struct pl_lab_control *c);
/* What to wait for: 1 + PL_LAB_CLIENTS_MAX entries. Then what came is answered, without waiting for
 * anybody. When there is no room for a client, the one that has not asked for longest is closed. */
void pl_lab_control_wait(const struct pl_lab_control *c, struct pollfd *ret);
void pl_lab_control_serve(struct pl_lab_control *c, const struct pollfd *fds);

/* The other end. Words as above; the text, if there is one, is added to `out`. -EINVAL with diag:
 * what was answered. */
int pl_lab_ask(const struct pl_lab_found *f, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);
