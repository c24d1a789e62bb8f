/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap in the kernel, on an interface of the wire of benchmarks.
 *
 * Test runs: the kernel runs the tap's program over one frame again and again, in turn with a
 * program that only lets it pass: the difference is what a packet costs its host, all in cache. The
 * ring is emptied between the calls, outside the measured time.
 *
 *   xdp-udp, xdp-tcp   a record of every packet; TCP with timestamps
 *   xdp-8-rules        the same, behind eight rules of which none matches
 *   xdp-skip           a rule leaves the packet out
 *   tc-udp, tc-skip    the same by traffic control
 *   xdp-count, tc-count  packets of a flow counted by 5-tuple and second, as a question that groups
 *                      has it (lang/push_counts.h), in the place of records
 *
 * ring: a record of every packet and the ring emptied by pl_tap_kernel_recv, both counted, against
 * R5: a ring that is filled without looking at the frame, and emptied. consumer: the emptying alone.
 *
 * live: frames over the veth pair that go up to the network stack (which has no address and drops
 * them), with the tap and with a program that only counts them. Processor time of NAPI and of
 * whoever empties the ring.
 *
 * stream-tc, stream-xdp: see bench/tap_stream.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "lang/lang.h"
#include "lang/push_counts.h"
#include "netio/xdp.h"
#include "tap/kernel.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/frames.h"
#include "tests/bench/tap_stream.h"
#include "tests/bench/turn.h"
#include "tests/bench/wire.h"
#include "wire/layers.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define REPEAT         5000 /* whose records the ring holds */
#define WARM_UP_NS     UINT64_C(100000000)
#define FRAMES_WAIT_NS UINT64_C(2000000000)
#define PACE_NS        200000
#define FRAME_MAX      512
#define R5_BYTES       128

struct tap_case {
	const char *name, *uri;
	const char *rule; /* so many of it; NULL: none */
	uint32_t rules;
	uint8_t proto;
	enum { RECORDED, SKIPPED, COUNTED } fate; /* of every packet */
};

static const char counting[] =
	"SELECT src, dst, sport, dport, proto, count(*) AS n, sum(wire_len) AS b "
	"FROM packets TUMBLE(ts, 1s) GROUP BY src, dst, sport, dport, proto";

struct tap_bench {
	const struct tap_case *c;
	struct pl_wire wire;
	bool wired;
	struct pl_bpf_bench *bare;
	struct pl_tap_kernel *tap;
	struct ring_buffer *ring; /* of R5 */
	int fd;                   /* of the tap's program */
	uint8_t frame[FRAME_MAX];
	uint32_t frame_bytes;
	struct pl_pkt96 records[PL_TAP_KERNEL_BATCH];
	uint8_t copy[R5_BYTES];
	uint64_t sink;
};

/* ---- the tap ---- */

static int make_plan(struct pl_tap_count_plan *ret, struct pl_diag *diag)
{
	struct pl_query *query = NULL;
	const char *why;
	int r = pl_query_parse(&query, counting, diag);

	if (r < 0)
		return r;
	why = pl_query_push_counts(query, false, ret);
	pl_query_free(query);
	if (why == NULL)
		return 0;
	pl_diag_set(diag, "not counted in the kernel: %s", why);
	return -EINVAL;
}

static int open_tap(struct tap_bench *b)
{
	struct pl_tap_rules rules = { 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_tap_count_plan plan;
	const bool counts = b->c->fate == COUNTED;
	int r = counts ? make_plan(&plan, &diag) : 0;

	for (uint32_t i = 0; r == 0 && i < b->c->rules; i++)
		r = pl_tap_rules_add(&rules, b->c->rule, &diag);
	if (r == 0)
		r = pl_tap_kernel_open(&b->tap, b->c->uri,
			&(struct pl_tap_kernel_options){
				.rules = &rules, .plan = counts ? &plan : NULL },
			&diag);
	if (r < 0) {
		pl_complain("benchmark %s: %s", b->c->name, diag.text);
		return r;
	}
	b->fd = pl_tap_kernel_program(b->tap);
	return b->fd < 0 ? b->fd : 0;
}

static void close_tap(struct tap_bench *b)
{
	pl_tap_kernel_close(b->tap);
	b->tap = NULL;
}

/* How many records came out of the ring. */
static int64_t empty_tap(struct tap_bench *b)
{
	struct pl_diag diag = { .text = "" };
	int64_t records = 0;
	int n;

	while ((n = pl_tap_kernel_recv(b->tap, b->records, &diag)) > 0) {
		records += n;
		b->sink += b->records[n - 1].flow_hash;
	}
	return n < 0 && n != -EAGAIN ? n : records;
}

/* Those of the packets so far that had the fate of the case. */
static uint64_t counted(const struct tap_bench *b)
{
	struct pl_tap_kernel_counts counts;

	pl_tap_kernel_counts(b->tap, &counts);
	return b->c->fate == SKIPPED   ? counts.skipped
	       : b->c->fate == COUNTED ? counts.counted
				       : counts.records;
}

/* ---- test runs ---- */

/* Calls of a millisecond, of which the quickest counts, as in bench/turn.c. */
static int run_program(
	struct tap_bench *b, int fd, bool tap, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t start = pl_clock_mono_ns(), before = tap ? counted(b) : 0;
	uint32_t least_ns = UINT32_MAX, ns = UINT32_MAX;

	do {
		int r = pl_turn_call(fd, b->frame, b->frame_bytes, REPEAT, &ns);

		if (r == 0 && tap)
			r = empty_tap(b) < 0 ? -EIO : 0;
		if (r < 0)
			return r;
		ret->items += REPEAT;
		least_ns = ns < least_ns ? ns : least_ns;
	} while (pl_clock_mono_ns() - start < budget_ns);
	ret->ns = (least_ns > 0 ? least_ns : 1) * ret->items;
	if (tap && counted(b) - before != ret->items) {
		pl_complain("benchmark %s: the tap did not count every packet", b->c->name);
		return -EIO;
	}
	return 0;
}

static int run_tap(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;

	return run_program(b, b->fd, true, budget_ns, ret);
}

static int run_pass(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;
	const bool tc = strncmp(b->c->uri, "tc:", 3) == 0;

	return run_program(b,
		bpf_program__fd(tc ? b->bare->progs.pl_bench_next_program
				   : b->bare->progs.pl_bench_pass_only),
		false, budget_ns, ret);
}

/* ---- the ring ---- */

static int take(void *arg, void *data, size_t size)
{
	struct tap_bench *b = arg;

	memcpy(b->copy, data, size < R5_BYTES ? size : R5_BYTES);
	b->sink += b->copy[0];
	return 0;
}

static int64_t empty_bare(struct tap_bench *b)
{
	return ring_buffer__consume(b->ring);
}

static int fill_and_empty(struct tap_bench *b, int fd, int64_t (*empty)(struct tap_bench *b),
	bool filling, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t start = pl_clock_mono_ns();

	do {
		uint32_t ns = 0;
		uint64_t began;
		int64_t n;
		int r = pl_turn_call(fd, b->frame, b->frame_bytes, REPEAT, &ns);

		if (r < 0)
			return r;
		began = pl_cpu_thread_ns();
		n = empty(b);
		if (n < 0)
			return (int)n;
		if (n != REPEAT) {
			pl_complain("benchmark %s: %d records of %d came out of the ring",
				b->c->name, (int)n, REPEAT);
			return -EIO;
		}
		ret->ns += pl_cpu_thread_ns() - began + (filling ? (uint64_t)ns * REPEAT : 0);
		ret->items += REPEAT;
	} while (pl_clock_mono_ns() - start < budget_ns);
	return 0;
}

static int ring_tap(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;

	return fill_and_empty(b, b->fd, empty_tap, true, budget_ns, ret);
}

static int ring_bare(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;

	return fill_and_empty(b, bpf_program__fd(b->bare->progs.pl_bench_event), empty_bare, true,
		budget_ns, ret);
}

static int consume_tap(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;

	return fill_and_empty(b, b->fd, empty_tap, false, budget_ns, ret);
}

static int consume_bare(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;

	return fill_and_empty(b, bpf_program__fd(b->bare->progs.pl_bench_event), empty_bare, false,
		budget_ns, ret);
}

/* ---- live ---- */

static int make_live(struct tap_bench *b, struct pl_live **ret)
{
	const struct pl_live_cfg cfg = { .ifindex = b->wire.ifindex[PL_WIRE_SENDER],
		.frame = b->frame,
		.frame_bytes = b->frame_bytes,
		.restore_bytes = 48 };
	struct pl_diag diag = { .text = "" };
	int r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);

	if (r == 0)
		r = pl_live_new(ret, &cfg, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", b->c->name, diag.text);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static uint64_t spent_ns(void)
{
	return pl_wire_napi_cpu_ns() + pl_cpu_thread_ns();
}

/* Frames that the program on the interface counted, and the processor's time. */
static int measure_live(
	struct tap_bench *b, bool tap, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	uint64_t start, now, spent = 0, warm_ns = 0;
	struct pl_live *live = NULL;
	cpu_set_t allowed;
	int r = make_live(b, &live), s;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	if (r == 0)
		r = pl_wire_threaded_napi(&b->wire, true, 0);
	if (r == 0)
		r = pl_live_start(live, 1, 0);
	(void)pl_cpu_pin(1);
	start = now = pl_clock_mono_ns();
	/* However short: from a look behind the warm-up to a later one that finds frames. */
	while (r == 0 &&
		(warm_ns == 0 || now - warm_ns < budget_ns ||
			(now - warm_ns < FRAMES_WAIT_NS &&
				(tap ? counted(b)
				     : pl_wire_counted(bpf_map__fd(
					       b->bare->maps.pl_bench_frames))) == ret->items))) {
		nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL);
		if (tap && empty_tap(b) < 0)
			r = -EIO;
		now = pl_clock_mono_ns();
		if (warm_ns == 0 && now - start >= WARM_UP_NS) {
			warm_ns = now;
			ret->items =
				tap ? counted(b)
				    : pl_wire_counted(bpf_map__fd(b->bare->maps.pl_bench_frames));
			spent = spent_ns();
		}
	}
	ret->ns = spent_ns() - spent;
	ret->items =
		(tap ? counted(b) : pl_wire_counted(bpf_map__fd(b->bare->maps.pl_bench_frames))) -
		ret->items;
	s = live == NULL ? 0 : pl_live_stop(live);
	pl_live_free(live);
	(void)sched_setaffinity(0, sizeof(allowed), &allowed);
	(void)pl_wire_threaded_napi(&b->wire, false, 0);
	return r < 0 ? r : s;
}

static int live_tap(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;
	int r = open_tap(b);

	if (r == 0)
		r = measure_live(b, true, budget_ns, ret);
	close_tap(b);
	return r;
}

static int live_pass(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct tap_bench *b = arg;
	struct pl_diag diag = { .text = "" };
	struct pl_xdp *xdp = NULL;
	int r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME,
		bpf_program__fd(b->bare->progs.pl_bench_pass), PL_XDP_NATIVE, NULL, &diag);

	if (r < 0)
		pl_complain("benchmark %s: %s", b->c->name, diag.text);
	else
		r = measure_live(b, false, budget_ns, ret);
	pl_xdp_detach(xdp);
	return r;
}

/* ---- cases ---- */

#define XDP "xdp:" PL_WIRE_RECEIVER_NAME "?mode=native"
#define TC  "tc:" PL_WIRE_RECEIVER_NAME "?dir=in"

static const struct tap_case test_runs[] = {
	{ "tap/xdp-udp", XDP, .proto = PL_IP_UDP },
	{ "tap/xdp-tcp", XDP, .proto = PL_IP_TCP },
	{ "tap/xdp-8-rules", XDP, "skip src=203.0.113.1", 8, PL_IP_UDP },
	{ "tap/xdp-skip", XDP, "skip", 1, PL_IP_UDP, SKIPPED },
	{ "tap/tc-udp", TC, .proto = PL_IP_UDP },
	{ "tap/tc-skip", TC, "skip", 1, PL_IP_UDP, SKIPPED },
	{ "tap/xdp-count", XDP, .proto = PL_IP_UDP, .fate = COUNTED },
	{ "tap/tc-count", TC, .proto = PL_IP_UDP, .fate = COUNTED },
};
static const struct tap_case ring = { "tap/ring", XDP, .proto = PL_IP_UDP };
static const struct tap_case consumer = { "tap/consumer", XDP, .proto = PL_IP_UDP };
static const struct tap_case live = { "tap/live", XDP, .proto = PL_IP_UDP };

static int one(struct pl_bench_ctx *ctx, struct tap_bench *b, const struct tap_case *c,
	const struct pl_bench_case *how)
{
	struct pl_bench_case bench = *how;
	const bool opens_itself = how->subject == live_tap;
	int r = 0;

	if (!pl_bench_wanted(ctx, c->name))
		return 0;
	bench.name = c->name;
	bench.arg = b;
	b->c = c;
	b->frame_bytes = pl_frames_make(b->frame, sizeof(b->frame), 1, c->proto);
	if (!opens_itself)
		r = open_tap(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &bench);
	close_tap(b);
	return r;
}

static int run_cases(struct pl_bench_ctx *ctx, struct tap_bench *b)
{
	const struct pl_bench_case added = { .subject = run_tap,
		.ceiling = run_pass,
		.ceiling_name = "a program that lets it pass",
		.adds = true };
	const struct pl_bench_case filled = { .subject = ring_tap,
		.ceiling = ring_bare,
		.ceiling_name = "R5: a ring filled and drained" };
	const struct pl_bench_case emptied = { .subject = consume_tap,
		.ceiling = consume_bare,
		.ceiling_name = "R5: the draining alone" };
	const struct pl_bench_case alive = { .subject = live_tap,
		.ceiling = live_pass,
		.ceiling_name = "a program that lets them pass",
		.crosses_cores = true,
		.adds = true };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(test_runs) / sizeof(test_runs[0]); i++)
		r = one(ctx, b, &test_runs[i], &added);
	if (r == 0)
		r = one(ctx, b, &ring, &filled);
	if (r == 0)
		r = one(ctx, b, &consumer, &emptied);
	if (r == 0 && pl_cpu_count() < 2)
		pl_complain("benchmark tap: what crosses the wire needs two processors");
	else if (r == 0)
		r = one(ctx, b, &live, &alive);
	if (r == 0 && pl_cpu_count() >= 2)
		r = pl_tap_stream_run(ctx, &b->wire);
	return r;
}

static int begin(struct tap_bench *b)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_wire_open(&b->wire, 1, &diag);

	if (r < 0) {
		pl_complain("benchmark tap: %s", diag.text);
		return r;
	}
	b->wired = true;
	b->bare = pl_bpf_bench__open_and_load();
	if (b->bare != NULL)
		b->ring = ring_buffer__new(bpf_map__fd(b->bare->maps.pl_bench_ring), take, b, NULL);
	if (b->ring == NULL) {
		pl_complain("benchmark tap: the programs to compare with do not load");
		return -EPERM;
	}
	return pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
}

static int run(struct pl_bench_ctx *ctx)
{
	struct tap_bench *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = begin(b);
	if (r == 0)
		r = run_cases(ctx, b);
	ring_buffer__free(b->ring);
	pl_bpf_bench__destroy(b->bare);
	if (b->wired) {
		(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
		pl_wire_close(&b->wire);
	}
	free(b);
	return r;
}

const struct pl_bench pl_bench_tap = {
	.name = "tap",
	.summary = "what the tap in the kernel adds to a packet, and its ring (root)",
	.run = run,
};
