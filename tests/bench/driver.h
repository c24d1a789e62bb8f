/* SPDX-License-Identifier: BSD-2-Clause */
/* How benchmarks are started: what `pathline bench` fills in and calls. Benchmarks themselves see
 * bench.h only. */
#pragma once

#include "base/buf.h"
#include "tests/bench/bench.h"

#define PL_BENCH_PAIRS_MIN        5 /* fewer say nothing about spread */
#define PL_BENCH_PAIRS_MAX        1000
/* How long a case whose pairs may not count is measured: so many times as long as its pairs, and so
 * many seconds. */
#define PL_BENCH_PATIENCE_TIMES   3
#define PL_BENCH_PATIENCE_SECONDS 30

struct pl_bench_ctx {
	uint64_t budget_ns;             /* of one run */
	uint64_t size_bytes;            /* of the input to make; 0: as the benchmark thinks best */
	const char *broker;             /* HOST:PORT of Kafka; NULL: benchmarks bring their own */
	const char *records, *question; /* of query/asked; NULL: it is left out */
	unsigned int pairs;
	bool jsonl; /* results as JSON lines, not as a table */

	/* The driver's own: the one case to measure, by its whole name (NULL: all), how many were
	 * measured, and whether the table has its head. */
	const char *only;
	unsigned int cases;
	struct pl_buf lacking; /* names of cases without a result, ", " between them */
	bool header_done;

	bool lacked; /* set once a case of any benchmark had no result */
};

/* By its name, or by that of one of its cases ("udp/queue"); NULL when there is none. */
const struct pl_bench *pl_bench_find(const char *name);

/* The name of a benchmark that is nearest to a mistyped one; NULL when none is near. */
const char *pl_bench_nearest(const char *name);

/* Prints names and summaries. */
void pl_bench_list(void);

/* Runs a benchmark, or one case of it, by a name that pl_bench_find knows. 0 or negative errno,
 * said with pl_complain. Cases without a result, because the processors moved, are no error: they are
 * said too, and ctx->lacked is set. */
int pl_bench_run(struct pl_bench_ctx *ctx, const char *name);

/* Runs each benchmark, whatever became of the one before. 0 or the first negative errno. */
int pl_bench_run_all(struct pl_bench_ctx *ctx);
