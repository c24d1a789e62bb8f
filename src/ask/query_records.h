/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths, hops and events for a question: out of histories and captures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "query/query.h"

struct pl_query_records {
	const struct pl_query *query;
	struct pl_query_run *run;
	const struct pl_decode_options *decode; /* of captures */
	bool (*full)(void *arg);                /* no more are wanted */
	void (*turned)(void *arg);              /* behind a batch of records */
	void *arg;
};

/* True when the question reads one of these streams, or values. */
bool pl_query_reads_records(const struct pl_query *query);

/* *ret: the sources are live, so that pl_query_reports_service has their records. 0, or an exit
 * code: they do not go together, or with the question; complains. */
int pl_query_records_live(
	const struct pl_query *query, const char *const *sources, size_t n, bool *ret);

/* How many partitions a run needs for n sources that are not live. */
uint32_t pl_query_records_partitions(size_t n);

/* Reads sources that are not live, in the order of the times of their records, each into a partition
 * of its own. An exit code; complains. */
int pl_query_records_read(
	const struct pl_query_records *records, const char *const *sources, size_t n);
