/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether detection costs more when there are more flows: reports of 3 hops of so many flows, in a
 * fixed scramble (kernel: drawn at random), over one table with room for two million; against the
 * same over the same table with reports of one flow only. What is lost is what caches lose.
 *
 *   user    frames in memory through tests/bpf/frames.h, by processor time
 *   kernel  test runs of the program of detect/kernel.h, one frame, which a program before it makes
 *           the next flow's. That program and the test run's own cost are in both sides:
 *           flows/kernel-empty has them alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "bpf/filter.h"
#include "detect/kernel.h"
#include "tests/bench/cpu.h"
#include "tests/bench/turn.h"
#include "tests/bench/wire.h"
#include "tests/bpf/frames.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

enum { FLOWS_MAX = 1 << 21, FRAMES = PL_BATCH_MAX, FRAME_ROOM = 512 };

struct flows_bench {
	uint32_t flows, next;
	uint8_t frame[FRAME_ROOM];
	uint32_t frame_bytes;
	/* user */
	struct pl_detect *detect;
	struct pl_direct direct;
	struct pl_frames_counters counters;
	struct pl_event_batch events;
	uint8_t (*frames)[FRAME_ROOM];
	bool settled[FRAMES];
	struct pl_batch batch;
	/* kernel */
	struct pl_kernel *kernel;
	struct pl_bpf_bench *bare;
};

static void discard(struct pl_event_batch *events, void *arg)
{
	(void)arg;
	events->n = 0;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

/* ---- in user space ---- */

static void turn(struct flows_bench *b, uint32_t flows)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint32_t n = b->next++;

		put32(b->frames[i] + PL_WIRE_REPORT_SEQ, n);
		put32(b->frames[i] + PL_WIRE_REPORT_SRC,
			0x0a000000 | (uint32_t)(n * UINT64_C(2654435761) % flows));
	}
}

static int user(
	struct flows_bench *b, uint32_t flows, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	while (ret->ns < budget_ns) {
		uint64_t start;

		turn(b, flows);
		start = pl_cpu_thread_ns();
		pl_detect_frames(b->detect, &b->direct, &b->batch, now_ns, b->settled, &b->counters,
			&b->events);
		ret->ns += pl_cpu_thread_ns() - start;
		ret->items += FRAMES;
	}
	/* A figure for reports that were handed on would mean nothing. */
	return b->counters.settled == b->counters.packets ? 0 : -EBADMSG;
}

static int user_flows(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return user(arg, ((struct flows_bench *)arg)->flows, budget_ns, ret);
}

static int user_one(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return user(arg, 1, budget_ns, ret);
}

static int begin_user(struct flows_bench *b)
{
	struct pl_detect_options options;
	const struct pl_decode_options decode = { 0 };
	int r;

	b->frames = calloc(FRAMES, FRAME_ROOM);
	if (b->frames == NULL || pl_event_batch_init(&b->events, 4096) < 0)
		return -ENOMEM;
	b->events.flush = discard;
	b->batch.n = FRAMES;
	for (uint32_t i = 0; i < FRAMES; i++) {
		memcpy(b->frames[i], b->frame, b->frame_bytes);
		b->batch.pkts[i] = (struct pl_packet){ .data = b->frames[i],
			.len = b->frame_bytes,
			.wire_len = b->frame_bytes,
			.link = PL_LINK_ETHERNET };
	}
	pl_detect_defaults(&options);
	options.max_flows = FLOWS_MAX;
	r = pl_direct_init(&b->direct, &decode);
	return r < 0 ? r : pl_detect_new(&b->detect, &options);
}

/* ---- in the kernel ---- */

static int kernel(struct flows_bench *b, int prog_fd, uint32_t flows, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	const struct pl_turn turn = {
		.bare = b->bare, .frame = b->frame, .frame_bytes = b->frame_bytes, .flows = flows
	};

	return pl_turn_run(&turn, prog_fd, budget_ns, ret);
}

static int detector(
	struct flows_bench *b, uint32_t flows, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_kernel_counters before, after;
	int r = pl_kernel_counters(b->kernel, &before);

	if (r == 0)
		r = kernel(b, pl_kernel_program(b->kernel)->prog_fd, flows, budget_ns, ret);
	if (r == 0)
		r = pl_kernel_counters(b->kernel, &after);
	if (r == 0 && after.settled - before.settled < ret->items) {
		pl_complain("benchmark flows: the kernel did not settle every report");
		r = -EBADMSG;
	}
	return r;
}

static int kernel_flows(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return detector(arg, ((struct flows_bench *)arg)->flows, budget_ns, ret);
}

static int kernel_one(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return detector(arg, 1, budget_ns, ret);
}

static int kernel_empty(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct flows_bench *b = arg;

	return kernel(b, bpf_program__fd(b->bare->progs.pl_bench_empty), 1, budget_ns, ret);
}

static int begin_kernel(struct flows_bench *b)
{
	const struct pl_decode_options decode = { .any_port = true };
	struct pl_detect_options options;
	struct pl_core_rules rules;
	const struct pl_kernel_options kernel_options = {
		.rules = &rules, .decode = &decode, .events_bytes = 1 << 20
	};
	struct pl_filter_rules filter = { .any_vlan = 1 };
	uint32_t entries[PL_CORE_T_MAX];
	struct pl_diag diag = { .text = "" };
	int r;

	pl_detect_defaults(&options);
	options.max_flows = FLOWS_MAX;
	r = pl_detect_rules(&rules, &options);
	if (r < 0)
		return r;
	pl_detect_entries(&options, entries);
	pl_detect_geometry(&rules, entries);
	b->bare = pl_bpf_bench__open_and_load();
	r = b->bare == NULL ? -EPERM : pl_kernel_open(&b->kernel, &kernel_options, &diag);
	if (r < 0) {
		pl_complain("benchmark flows: %s",
			diag.text[0] != '\0' ? diag.text : "kernel programs do not load");
		return r;
	}
	pl_filter_rules_add_port(&filter, 32766);
	pl_filter_set(pl_kernel_program(b->kernel)->filter, &filter);
	pl_kernel_time(b->kernel, pl_clock_mono_ns(), pl_clock_real_ns());
	return 0;
}

/* ---- both ---- */

static const uint32_t numbers[] = { 1, 5000, 85000, 1000000 };
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int cases(struct pl_bench_ctx *ctx, struct flows_bench *b, const char *const names[NUMBERS],
	pl_bench_fn *subject, pl_bench_fn *one)
{
	int r = 0;

	for (size_t i = 0; i < NUMBERS && r == 0; i++) {
		const struct pl_bench_case c = { .name = names[i],
			.ceiling_name = "the same with one flow",
			.subject = subject,
			.ceiling = one,
			.arg = b,
			.warm_items = 2 * (uint64_t)numbers[i] };

		b->flows = numbers[i];
		r = pl_bench_compare(ctx, &c);
	}
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const char *const in_user[] = { "flows/user-1", "flows/user-5k", "flows/user-85k",
		"flows/user-1M" };
	static const char *const in_kernel[] = { "flows/kernel-1", "flows/kernel-5k",
		"flows/kernel-85k", "flows/kernel-1M" };
	struct flows_bench *b = calloc(1, sizeof(*b));
	const struct pl_bench_case empty = {
		.name = "flows/kernel-empty", .subject = kernel_empty, .arg = b
	};
	int r = b == NULL
			? -ENOMEM
			: pl_wire_report(b->frame, FRAME_ROOM, 3, 0xfc00, PL_DIALECT_SPEC, "flows");

	if (r > 0) {
		b->frame_bytes = (uint32_t)r;
		r = begin_user(b);
	}
	if (r == 0)
		r = cases(ctx, b, in_user, user_flows, user_one);
	if (r == 0)
		r = begin_kernel(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &empty);
	if (r == 0)
		r = cases(ctx, b, in_kernel, kernel_flows, kernel_one);
	if (b != NULL) {
		pl_kernel_close(b->kernel);
		pl_bpf_bench__destroy(b->bare);
		pl_detect_free(b->detect);
		pl_direct_done(&b->direct);
		pl_event_batch_done(&b->events);
		free(b->frames);
		free(b);
	}
	return r;
}

const struct pl_bench pl_bench_flows = {
	.name = "flows",
	.summary =
		"detection with one flow and up to a million in one table, in user space and kernel (root)",
	.run = run,
};
