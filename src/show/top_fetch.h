/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests tables from a daemon, or a history, in a thread of its own, so that a slow answer does
 * not delay the keys. The owner sets the request and its interval, and takes the answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "service/top_history.h"
#include "web/client.h"

struct pl_top_answer {
	json_t *status, *table; /* NULL after an error; owned by the taker */
	unsigned int question;  /* number of the request that it answers */
	int code;               /* exit code; 0 when good */
	struct pl_diag diag;
};
void pl_top_answer_done(struct pl_top_answer *answer);

/* A daemon or a history; the other one is NULL. */
struct pl_top_source {
	struct pl_client *client;
	struct pl_top_history *history;
};
void pl_top_source_done(struct pl_top_source *source);

struct pl_top_fetch;

/* Starts the thread, which owns the source, also on failure. -errno. */
int pl_top_fetch_new(
	struct pl_top_fetch **ret, const struct pl_top_source *source, uint64_t interval_ns);
void pl_top_fetch_free(struct pl_top_fetch *fetch);

/* Requests this path from now on, and at once. Returns the request's number. */
unsigned int pl_top_fetch_ask(struct pl_top_fetch *fetch, const char *path);
void pl_top_fetch_set_interval(struct pl_top_fetch *fetch, uint64_t interval_ns);

/* Takes the newest answer; returns false when there is no new one. */
bool pl_top_fetch_take(struct pl_top_fetch *fetch, struct pl_top_answer *ret);

/* Requests both documents in this thread, and waits for them. */
void pl_top_fetch_once(
	const struct pl_top_source *source, const char *path, struct pl_top_answer *ret);
