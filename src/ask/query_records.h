/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads paths, hops and events from histories and captures for a question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "query/query.h"

struct pl_query_records {
	const struct pl_query *query;
	struct pl_query_run *run;
	const struct pl_decode_options *decode; /* for captures */
	bool (*full)(void *arg);                /* no more are wanted */
	void (*turned)(void *arg);              /* called after a batch of records */
	void *arg;
};

/* Returns true when the question reads one of these streams, or values. */
bool pl_query_reads_records(const struct pl_query *query);

/* Checks the sources. *ret: they are live, and pl_query_reports_service reads them. Returns 0, or
 * an exit code when they cannot be combined, or do not suit the question; prints errors. */
int pl_query_records_live(
	const struct pl_query *query, const char *const *sources, size_t n, bool *ret);

/* Returns the partitions that a run needs for n sources that are not live. */
uint32_t pl_query_records_partitions(size_t n);

/* Reads sources that are not live, in the order of their records' times, each into a partition of
 * its own. Returns an exit code; prints errors. */
int pl_query_records_read(
	const struct pl_query_records *records, const char *const *sources, size_t n);
