/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a running daemon as they come, the stream that pathline tail prints, as a source of a
 * question over flows, or paths, hops, events and values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query.h"
#include "web/client.h"

struct pl_query_daemon {
	const struct pl_query *query;
	struct pl_query_run *run;
	const struct pl_client_args *client; /* but for its URL */
	/* Gives up rights, and opens where rows go; before it is asked. 0, or an exit code. */
	int (*confine)(void *arg);
	uint64_t duration_ns;      /* 0: until SIGINT or SIGTERM */
	void (*turned)(void *arg); /* behind records, and while there are none */
	bool (*full)(void *arg);   /* no more are wanted */
	void *arg;
};

/* http://, https:// or unix:PATH. */
bool pl_query_is_daemon(const char *source);

/* Of a question over records that are no paths, hops, events or values: whether no source is a daemon,
 * or one alone that has all of them, flows; complains. */
bool pl_query_daemon_check(const struct pl_query *query, const char *const *sources, size_t n);

/* Until the end. An exit code; complains. */
int pl_query_daemon_read(const struct pl_query_daemon *d, const char *url);
