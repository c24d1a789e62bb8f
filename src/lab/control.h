/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a running lab, through the socket `control` in its folder, which only its owner can
 * reach. One request and one answer, each a message; each word of a request ends with a zero byte.
 *
 * An answer is the text of an error, or "", with a descriptor of a text where one is named below.
 *
 *   truth                       text: the truth as JSON; the folder `truth` gets it as records
 *   impair LINK KEY=VALUE…      changes a link; no text
 *   commands ask|finish         text: a line for each named command, NAME PID STATE (commands.h)
 *   apply FILE                  changes the lab to match FILE in its folder, which is removed;
 *                               text: a line for each change (change.h)
 *   traffic KIND RATE SIZE DURATION ON OFF FROM… TO
 *                               simulated lab: starts traffic, in bits per second, bytes, ns and
 *                               numbers of nodes; text: number of the first flow, and simulated
 *                               time of the end
 *   flows FIRST N               simulated lab; text: simulated time, then a line of counters for
 *                               each of N flows
 */
#pragma once

#include "base/buf.h"
#include "lab/state.h"
#include "lab/truth_account.h"

#define PL_LAB_REQUEST_MAX 4096
#define PL_LAB_CLIENTS_MAX 8

/* Serves a request; words: without the first. The answer is added to `out`. Negative errno with
 * diag. */
typedef int pl_lab_control_fn(void *arg, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);

/* Functions that serve requests; NULL: not in this lab. */
struct pl_lab_control_ops {
	void (*truth)(void *arg, struct pl_lab_truth_account *ret);
	/* Returns 0 or negative errno with diag. */
	int (*impair)(void *arg, const char *link, const char *const *words, unsigned int n,
		struct pl_diag *diag);
	pl_lab_control_fn *apply, *commands, *traffic, *flows;
	void *arg;
};

/* The socket's end in the keeper. */
struct pl_lab_control {
	int listener;
	int clients[PL_LAB_CLIENTS_MAX]; /* silent so far, the oldest first; -1: free */
	struct pl_lab_control_ops ops;
};

struct pollfd;

/* Marks it closed: it may then be closed, and waiting for it is harmless. */
void pl_lab_control_init(struct pl_lab_control *c);
/* Opens one after pl_lab_control_init, in the current folder. Negative errno; close it also
 * then. */
int pl_lab_control_open(struct pl_lab_control *c, const struct pl_lab_control_ops *ops);
void pl_lab_control_close(struct pl_lab_control *c);
/* Sets the 1 + PL_LAB_CLIENTS_MAX entries to poll. pl_lab_control_serve then answers what came,
 * without blocking. When there is no room for a client, the one that has been silent longest is
 * closed. */
void pl_lab_control_wait(const struct pl_lab_control *c, struct pollfd *ret);
void pl_lab_control_serve(struct pl_lab_control *c, const struct pollfd *fds);

/* Sends a request, words as above, and adds the text of the answer, if any, to `out`. -EINVAL with
 * diag: the lab refused it; other errors with diag too. */
int pl_lab_ask(const struct pl_lab_found *f, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);
