/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from a running daemon as they come, by the stream of pathline tail, for a question
 * over paths, hops, events and values, and records of taps and marking domains: packets, flows, dns,
 * drops, marks and segments. One stream has all kinds that the question reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query.h"
#include "web/client.h"

struct pl_query_daemon {
	const struct pl_query *query;
	struct pl_query_run *run;
	const struct pl_client_args *client; /* without the URL */
	/* Gives up privileges, and opens the output of rows; called before the daemon is asked.
	 * Returns 0, or an exit code. */
	int (*confine)(void *arg);
	uint64_t duration_ns;      /* 0: until SIGINT or SIGTERM */
	void (*turned)(void *arg); /* called after records, and while there are none */
	bool (*full)(void *arg);   /* no more are wanted */
	void *arg;
};

/* Returns true for http://, https:// or unix:PATH. */
bool pl_query_is_daemon(const char *source);

/* Returns true when no source is a daemon, or the only one is and has the question's kinds; else
 * prints the error. */
bool pl_query_daemon_check(const struct pl_query *query, const char *const *sources, size_t n);

/* Reads until the end, and prints errors. Returns an exit code. */
int pl_query_daemon_read(const struct pl_query_daemon *d, const char *url);
