/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the daemon, or a history, in a thread of its own, so that a slow answer does not hold up the
 * keys. The owner names the request and its interval, and takes the answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "service/top_history.h"
#include "web/client.h"

struct pl_top_answer {
	json_t *status, *table; /* NULL when it failed; the taker's */
	unsigned int question;  /* number of the question it answers */
	int code;               /* exit code; 0 when good */
	struct pl_diag diag;
};
void pl_top_answer_done(struct pl_top_answer *answer);

/* A daemon or a history that is asked; the other one is NULL. */
struct pl_top_source {
	struct pl_client *client;
	struct pl_top_history *history;
};
void pl_top_source_done(struct pl_top_source *source);

struct pl_top_fetch;

/* Takes the source over, also on failure. -errno. */
int pl_top_fetch_new(
	struct pl_top_fetch **ret, const struct pl_top_source *source, uint64_t interval_ns);
void pl_top_fetch_free(struct pl_top_fetch *fetch);

/* Asks path from now on, at once. Returns the question's number. */
unsigned int pl_top_fetch_ask(struct pl_top_fetch *fetch, const char *path);
void pl_top_fetch_set_interval(struct pl_top_fetch *fetch, uint64_t interval_ns);

/* The newest answer, once; false when there is no new one. */
bool pl_top_fetch_take(struct pl_top_fetch *fetch, struct pl_top_answer *ret);

/* Both documents, now, in this thread. */
void pl_top_fetch_once(
	const struct pl_top_source *source, const char *path, struct pl_top_answer *ret);
