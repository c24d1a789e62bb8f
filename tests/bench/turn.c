/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a kernel program over frames by BPF_PROG_TEST_RUN, and times it. */
#include "tests/bench/turn.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bpf/filter.h"
#include "tests/bench/least.h"
#include "tests/bench/wire.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define REPEAT    5000
#define CALLS_MAX 8192 /* of one run */
#define REPEAT_MANY                                                                                \
	20000 /* of many flows: what a flow finds in the caches is what the others left */

int pl_turn_call(
	int prog_fd, const uint8_t *frame, uint32_t frame_bytes, int repeat, uint32_t *ret_ns)
{
	struct bpf_test_run_opts o = {
		.sz = sizeof(o), .data_in = frame, .data_size_in = frame_bytes, .repeat = repeat
	};

	if (bpf_prog_test_run_opts(prog_fd, &o) < 0)
		return -errno;
	*ret_ns = o.duration;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Calls of about a millisecond, of which the median counts: other jobs of the machine come into
 * some of them. */
static int same_frame(
	const struct pl_turn *t, int fd, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t start = pl_clock_mono_ns();
	static uint32_t ns[CALLS_MAX];
	uint32_t n = 0;

	do {
		int r = pl_turn_call(fd, t->frame, t->frame_bytes, REPEAT, &ns[n]);

		if (r < 0)
			return r;
		n++;
	} while (n < CALLS_MAX && pl_clock_mono_ns() - start < budget_ns);
	qsort(ns, n, sizeof(ns[0]), compare_u32);
	ret->items = (uint64_t)n * REPEAT;
	ret->ns = ns[n / 2] * ret->items;
	return 0;
}

/* Two calls: to begin one costs milliseconds, so the second one is as long as the budget. */
static int drawn(const struct pl_turn *t, int fd, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const int turn = bpf_program__fd(t->tc      ? t->bare->progs.pl_bench_turn_tc
					 : t->frags ? t->bare->progs.pl_bench_turn_frags
						    : t->bare->progs.pl_bench_turn);
	const int then = bpf_map__fd(t->tc      ? t->bare->maps.pl_bench_then_tc
				     : t->frags ? t->bare->maps.pl_bench_then_frags
						: t->bare->maps.pl_bench_then);
	const uint32_t zero = 0;
	uint64_t repeat = REPEAT_MANY;
	uint32_t ns = 0;

	t->bare->bss->pl_bench_seq_at = t->seq_at != 0 ? t->seq_at : PL_WIRE_REPORT_SEQ;
	t->bare->bss->pl_bench_src_at = t->src_at != 0 ? t->src_at : PL_WIRE_REPORT_SRC;
	t->bare->data->pl_bench_flows = t->flows;
	if (bpf_map_update_elem(then, &zero, &fd, BPF_ANY) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		int r = pl_turn_call(turn, t->frame, t->frame_bytes, (int)repeat, &ns);

		if (r < 0)
			return r;
		ret->items = repeat;
		ret->ns = ns * repeat;
		repeat = budget_ns / (ns > 0 ? ns : 1);
		if (repeat < REPEAT_MANY)
			repeat = REPEAT_MANY;
	}
	return 0;
}

int pl_turn_run(const struct pl_turn *t, int fd, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return t->flows > 0 ? drawn(t, fd, budget_ns, ret) : same_frame(t, fd, budget_ns, ret);
}
