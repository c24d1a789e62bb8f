/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A benchmark and its ceiling. An absolute figure means little on a shared machine, so every
 * measured thing names a ceiling, the fastest its job could possibly be done here, and both are run
 * interleaved (ceiling, subject, ceiling, subject, …). The result is the median of the ratios of
 * neighbours; rates are medians too. A benchmark is one NAME.c with a `const struct pl_bench
 * pl_bench_NAME` and one word in benches.def; its run() prepares input and calls pl_bench_compare
 * for each thing it measures.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pl_bench_ctx;

/* What one run did. Items are what the figure counts (packets, reports); ns by the monotonic clock,
 * for the part that is to be measured only. */
struct pl_bench_sample {
	uint64_t items;
	uint64_t ns;
};

/* Runs for about budget_ns and says what it did. 0, or negative errno after pl_complain. */
typedef int pl_bench_fn(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret);

struct pl_bench_case {
	const char *name;         /* "decode-int/v2.1-3-hops": benchmark, slash, variant */
	const char *ceiling_name; /* what the ceiling does: "parse only"; NULL with ceiling */
	pl_bench_fn *subject;
	pl_bench_fn *ceiling; /* NULL: no ratio is given */
	void *arg;
	/* The subject handles so many items, in a first run or several, before it is measured: so
	 * that tables hold what they will hold. */
	uint64_t warm_items;
	/* what the subject's runs lost where nothing may be: said with the result; or NULL */
	const uint64_t *lost;
	/* The figures depend on how far two processors are from each other, which floats on virtual
	 * machines: pairs count only when the ping-pong before, between and after agrees (to a
	 * third), and others are made up for, up to three times as many and until PL_BENCH_PATIENCE
	 * is over. */
	bool crosses_cores;
	/* What counts is by how much the subject takes longer than the ceiling, for each item. */
	bool adds;
};

/* Whether the case, by its whole name, is to be measured: for benchmarks whose cases take time to
 * prepare. */
bool pl_bench_wanted(const struct pl_bench_ctx *ctx, const char *name);

/* Says why a case that is wanted is not measured: what it compares with is not there. */
void pl_bench_leave_out(struct pl_bench_ctx *ctx, const char *name, const char *why);

/* Measures the case, if it is wanted, and prints one result. 0, or the negative errno of a run. A
 * case of which too few pairs counted has no result: pl_bench_run names it in the end. */
int pl_bench_compare(struct pl_bench_ctx *ctx, const struct pl_bench_case *c);

/* --size: how much input to make where the benchmark makes input; `fallback` when it was not
 * given. */
uint64_t pl_bench_size_bytes(const struct pl_bench_ctx *ctx, uint64_t fallback);

/* The program pathline, for benchmarks of whole processes; "pathline" on the PATH when this one was
 * not started by it. */
const char *pl_bench_program(void);

/* --broker: HOST:PORT of Kafka; NULL: none was given. */
const char *pl_bench_broker(const struct pl_bench_ctx *ctx);

/* --records and --question: a file of records, pkt64 or dns64, or both with a comma between, and what is
 * asked of them; NULL: not given. */
const char *pl_bench_records(const struct pl_bench_ctx *ctx);
const char *pl_bench_question(const struct pl_bench_ctx *ctx);

/* How often, and for how long each time: for benchmarks that pl_bench_compare does not fit. */
unsigned int pl_bench_pairs(const struct pl_bench_ctx *ctx);
uint64_t pl_bench_run_ns(const struct pl_bench_ctx *ctx);

/* Times that something took, one by one. */
struct pl_bench_times {
	const char *name;
	uint64_t *ns; /* n of them; sorted by pl_bench_times */
	uint32_t n;
	uint32_t lost;       /* that never came to an end */
	double load_rate;    /* per second meanwhile; 0: idle */
	const char *load_of; /* what those are: "pages" */
};

/* Prints median, 99th percentile and the longest, if they are wanted. -ENODATA, said, for fewer
 * than 100. */
int pl_bench_times(struct pl_bench_ctx *ctx, const struct pl_bench_times *times);

struct pl_bench {
	const char *name;                     /* "decode-int" */
	const char *summary;                  /* what is measured, against what */
	int (*run)(struct pl_bench_ctx *ctx); /* 0 or negative errno, said with pl_complain */
};

#define PL_BENCH(id) extern const struct pl_bench pl_bench_##id;
#include "tests/bench/benches.def"
#undef PL_BENCH
