/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The highest ordinary priority for benchmarks whose figures are by the clock on the wall: other
 * jobs would be in them. Takes rights; without them nothing changes.
 */
#pragma once

#define PL_BENCH_PRIORITY (-20)

/* What was before. */
struct pl_bench_priority {
	int thread, group;
};

/* Of the calling thread and those that it starts from then on. */
void pl_bench_raise(struct pl_bench_priority *ret_before);
void pl_bench_restore(const struct pl_bench_priority *before);
