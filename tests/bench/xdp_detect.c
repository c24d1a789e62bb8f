/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the kernel.
 *
 * Test runs: the kernel runs the program over one report again and again (BPF_PROG_TEST_RUN),
 * beside a program that does nothing: the difference is what a report costs, all in cache. The
 * forms of reports are those that exporters of INTCollector's kind send. 64k-flows: the report is
 * that of a flow drawn at random; raised: the queue of every hop is above its threshold, and stays
 * there; sums: counts, sums and histograms of queues, links and paths are kept. least-run: reports of node ids, against the least program that follows exporters' numbers
 * and flows' paths (bench/least.h).
 *
 * Over a veth pair: live frames, the receiver's NAPI on a processor of its own. The ceiling R1 is a
 * program that reads every line of the frame and drops it. Reports settled, or frames dropped, per
 * second of the processor's time that NAPI took: by the wall clock the sender and other jobs would
 * be in it. least: a program in the detector's place that knows one form of report and has an entry
 * for each node (an array's by its number, a hash table's by its key), nothing else: what of the
 * distance to R1 is not the detector's.
 *
 * events: every report is an event (a queue's depth that moved), against a bare loop that puts as
 * many bytes into a ring; both are drained every 200 us. And one report in a hundred, against none.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "bpf/filter.h"
#include "detect/kernel.h"
#include "tests/bench/cpu.h"
#include "tests/bench/least.h"
#include "tests/bench/turn.h"
#include "tests/bench/wire.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define WARM_UP_NS UINT64_C(150000000)
#define PACE_NS    200000
#define WARM_TIMES                                                                                 \
	8 /* reports per flow before the first measured one: of 3000 flows one is still new then */
#define ROWS_MAX   (1u << 20)
#define PAYLOAD    42 /* of the frame: the report */
#define INNER_IP   (PAYLOAD + 16 + 14)
#define WIRE_DEPTH 5 /* of every queue, in pl_wire_report */
#define STACK      (INNER_IP + 20 + 8 + 4 + 8)

struct detect_case {
	const char *name;
	unsigned int hops;
	uint16_t bitmap;     /* of INT v1.0 */
	uint32_t flows;      /* a power of two; rows of the generator's table */
	uint32_t nodes;      /* keys: 0, as the model has them; else so many node ids, at random */
	unsigned int events; /* one row in so many has a deep queue; 1: each, alternating */
	bool least;
	enum pl_dialect dialect;
	bool sums;
	bool raised; /* every queue is above its threshold */
};

struct detect_bench {
	struct pl_wire wire;
	struct detect_case c;
	uint8_t frame[PL_LIVE_FRAME_MAX];
	uint32_t frame_bytes;
	uint8_t (*rows)[PL_LIVE_ROW_BYTES];
	struct pl_event_batch events;
	struct pl_kernel
		*kernel; /* of the case: to verify it again for each run would take seconds */
	struct pl_bpf_bench *bare;
	cpu_set_t allowed;
	bool wired;
	bool quiet; /* the case without its events */
};

static struct pl_core_rules rules_of(const struct detect_case *c)
{
	struct pl_core_rules r = {
		.flow_idle_ns = UINT64_C(60000000000),
		.idle_ns = UINT64_C(5000000000),
		.forget_ns = UINT64_C(600000000000),
		.loss_hold_ns = UINT64_C(1000000000),
		.learn_window_ns = UINT64_C(1000000000),
		.burst_threshold = PL_CORE_NO_THRESHOLD,
		.sequence_gap_max = 65536,
		.on = 1u << PL_EVENT_PATH_CHANGE | 1u << PL_EVENT_REPORT_LOSS |
		      1u << PL_EVENT_PACKET_DROP,
		.watch = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH,
	};
	/* Four times as many places as there are keys. */
	uint32_t places = c->nodes > 1024 ? c->nodes / 2 : 512;

	for (unsigned int i = 0; i < PL_CORE_SECRETS; i++)
		r.secret[i] = (2 * i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		r.mask[i] = 511;
	r.mask[PL_CORE_T_place] = places - 1;
	r.mask[PL_CORE_T_flow] = (c->flows > 2048 ? c->flows / 2 : 1024) - 1;
	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++)
		r.q[i].level.threshold = PL_CORE_NO_THRESHOLD;
	r.q[PL_CORE_Q_HOP_LATENCY] = (struct pl_core_quantity_rule){ .on = 1,
		.level = { .threshold = 1000000, .low = 900000, .end_hold_ns = 10000000 } };
	r.q[PL_CORE_Q_QUEUE_DEPTH] = (struct pl_core_quantity_rule){ .on = 1,
		.level = { .threshold = 1000000, .low = 900000, .end_hold_ns = 10000000 },
		.step = c->events != 0 ? 1000 : 0 };
	if (c->raised) {
		r.q[PL_CORE_Q_QUEUE_DEPTH].level.threshold = WIRE_DEPTH - 1;
		r.q[PL_CORE_Q_QUEUE_DEPTH].level.low = WIRE_DEPTH / 2;
	}
	if (c->sums) {
		r.flags = PL_CORE_KEEP_AGGREGATES | PL_CORE_KEEP_PLACES;
		r.watch = ((1u << PL_CORE_Q_MAX) - 1) & ~(1u << PL_CORE_Q_FLOW_LATENCY);
	}
	/* No limit of events: they are what is measured. */
	return r;
}

/* One report of the case as a frame. */
static int make_frame(struct detect_bench *b)
{
	int r = pl_wire_report(
		b->frame, sizeof(b->frame), b->c.hops, b->c.bitmap, b->c.dialect, "xdp-detect");

	b->frame_bytes = r > 0 ? (uint32_t)r : 0;
	return r < 0 ? r : 0;
}

static int open_kernel(struct detect_bench *b, struct pl_kernel **ret)
{
	const struct pl_decode_options decode = { .any_port = true };
	const struct pl_core_rules rules = rules_of(&b->c);
	const struct pl_kernel_options options = {
		.rules = &rules, .decode = &decode, .events_bytes = 16 << 20
	};
	struct pl_filter_rules filter = { .any_vlan = 1 };
	struct pl_diag diag = { .text = "" };
	int r = pl_kernel_open(ret, &options, &diag);

	if (r < 0) {
		pl_complain("benchmark xdp-detect: %s", diag.text);
		return r;
	}
	pl_filter_rules_add_port(&filter, 32766);
	pl_filter_set(pl_kernel_program(*ret)->filter, &filter);
	pl_kernel_time(*ret, pl_clock_mono_ns(), pl_clock_real_ns());
	/* Nobody reads what is escalated here, a layout not seen before among it. */
	(void)pl_kernel_learn(*ret,
		&(struct pl_packet){ .data = b->frame,
			.len = b->frame_bytes,
			.wire_len = b->frame_bytes,
			.link = PL_LINK_ETHERNET },
		&(struct pl_addr){ { 0 } });
	return 0;
}

static int drain_bench(struct detect_bench *b, void *of, uint64_t *ret_items);

/* ---- test runs ---- */

static int test_run(int fd, struct detect_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct pl_turn turn = { .bare = b->bare,
		.frame = b->frame,
		.frame_bytes = b->frame_bytes,
		.flows = b->c.flows > 1 ? b->c.flows : 0 };

	return pl_turn_run(&turn, fd, budget_ns, ret);
}

static int test_subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	const int fd = pl_kernel_program(b->kernel)->prog_fd;
	struct pl_kernel_counters before = { 0 }, after = { 0 };
	struct pl_bench_sample warm = { 0 };
	int r = test_run(fd, b, 1, &warm);

	if (r == 0)
		r = pl_kernel_counters(b->kernel, &before);
	if (r == 0)
		r = test_run(fd, b, budget_ns, ret);
	if (r == 0)
		r = pl_kernel_counters(b->kernel, &after);
	if (r == 0 && after.settled - before.settled < ret->items) {
		pl_complain("benchmark xdp-detect: not every report was settled");
		r = -EIO;
	}
	if (r == 0 && b->c.raised && after.core.raised - after.core.ended != b->c.hops) {
		pl_complain("benchmark xdp-detect: not every queue was raised");
		r = -EIO;
	}
	return r;
}

/* The least for reports of node ids, each of which it has to have taken. */
static int test_least(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	uint64_t before, after;
	int r = drain_bench(b, b->bare, &before);

	if (r == 0)
		r = test_run(bpf_program__fd(b->bare->progs.pl_bench_least_ids), b, budget_ns, ret);
	if (r == 0)
		r = drain_bench(b, b->bare, &after);
	if (r == 0 && after - before < ret->items) {
		pl_complain("benchmark xdp-detect: the least did not take every report");
		r = -EIO;
	}
	return r;
}

static int test_empty(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;

	return test_run(bpf_program__fd(b->bare->progs.pl_bench_empty), b, budget_ns, ret);
}

/* ---- over a veth pair ---- */

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

/* Flows differ in their source address; nodes and depths as the case wants them. A flow keeps its
 * path. */
static uint32_t make_rows(struct detect_bench *b)
{
	uint32_t n = b->c.flows > 65536                    ? b->c.flows
		     : b->c.nodes != 0 || b->c.events != 0 ? 65536
							   : b->c.flows;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *row = b->rows[i];

		memset(row, 0, PL_LIVE_ROW_BYTES);
		put32(row, 0x0a000000 | (i & (b->c.flows - 1)));
		for (uint32_t h = 0; h < b->c.hops && h < 6; h++)
			put32(row + 4 + 4 * h,
				mix(i * 6 + h) % (b->c.nodes != 0 ? b->c.nodes : 1) + 1);
		put32(row + 28, !b->quiet && b->c.events != 0 && i % b->c.events == 0
					? (b->c.events == 1 && i % 2 == 0 ? 5 : 50000)
					: 5);
	}
	return n;
}

static int make_live(struct detect_bench *b, struct pl_live **ret)
{
	struct pl_live_field fields[PL_LIVE_FIELDS_MAX] = {
		{ .offset = PAYLOAD + 8, .len = 4, .kind = PL_LIVE_COUNT },
		{ .offset = INNER_IP + 12, .len = 4, .kind = PL_LIVE_ROW },
	};
	struct pl_live_cfg cfg = { .ifindex = b->wire.ifindex[PL_WIRE_SENDER],
		.frame = b->frame,
		.frame_bytes = b->frame_bytes,
		.restore_bytes = 48,
		.fields = fields,
		.nfields = 2,
		.rows = (const uint8_t(*)[PL_LIVE_ROW_BYTES])b->rows };
	const uint32_t block = 4 * (uint32_t)__builtin_popcount(b->c.bitmap);
	struct pl_diag diag = { .text = "" };
	int r;

	cfg.nrows = make_rows(b);
	for (uint32_t h = 0; b->c.nodes != 0 && h < b->c.hops; h++)
		fields[cfg.nfields++] =
			(struct pl_live_field){ .offset = (uint16_t)(STACK + h * block),
				.len = 4,
				.kind = PL_LIVE_ROW,
				.at = (uint16_t)(4 + 4 * h) };
	/* The newest hop's queue word: behind node, ports and latency. */
	if (b->c.events != 0)
		fields[cfg.nfields++] = (struct pl_live_field){
			.offset = STACK + 12, .len = 4, .kind = PL_LIVE_ROW, .at = 28
		};
	r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);
	if (r == 0)
		r = pl_live_new(ret, &cfg, &diag);
	if (r < 0)
		pl_complain("benchmark xdp-detect: %s", diag.text);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

/* What is drained, and how many items there were. */
typedef int drain_fn(struct detect_bench *b, void *of, uint64_t *ret_items);

static int measure(struct detect_bench *b, int prog_fd, drain_fn *drain, void *of,
	uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_diag diag = { .text = "" };
	uint64_t start, now, first = 0, last = 0;
	struct pl_live *live = NULL;
	struct pl_xdp *xdp = NULL;
	int r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME, prog_fd, PL_XDP_NATIVE, NULL, &diag), s;

	if (r < 0) {
		pl_complain("benchmark xdp-detect: %s", diag.text);
		return r;
	}
	r = make_live(b, &live);
	if (r == 0)
		r = pl_wire_threaded_napi(&b->wire, true, 0);
	if (r == 0)
		r = pl_live_start(live, 1, 0);
	(void)pl_cpu_pin(1);
	start = now = pl_clock_mono_ns();
	while (r == 0 && now - start < WARM_UP_NS + budget_ns) {
		nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL);
		r = drain(b, of, &last);
		now = pl_clock_mono_ns();
		if (first == 0 && now - start >= WARM_UP_NS) {
			first = last;
			ret->ns = pl_wire_napi_cpu_ns();
		}
	}
	ret->ns = pl_wire_napi_cpu_ns() - ret->ns;
	ret->items = last - first;
	s = live == NULL ? 0 : pl_live_stop(live);
	pl_live_free(live);
	(void)sched_setaffinity(0, sizeof(b->allowed), &b->allowed);
	(void)pl_wire_threaded_napi(&b->wire, false, 0);
	pl_xdp_detach(xdp);
	return r < 0 ? r : s;
}

static int drain_kernel(struct detect_bench *b, void *of, uint64_t *ret_items)
{
	struct pl_kernel_counters c;
	int r;

	pl_kernel_time(of, pl_clock_mono_ns(), pl_clock_real_ns());
	b->events.n = 0;
	(void)pl_kernel_events(of, &b->events);
	r = pl_kernel_counters(of, &c);
	*ret_items = b->c.events == 1 ? c.core.events[PL_EVENT_QUEUE_DEPTH] : c.settled;
	return r;
}

static int drain_bench(struct detect_bench *b, void *of, uint64_t *ret_items)
{
	struct pl_bpf_bench *skel = of;
	uint64_t per_cpu[256] = { 0 };
	const uint32_t zero = 0;

	(void)b;
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.pl_bench_frames), &zero, per_cpu) < 0)
		return -errno;
	*ret_items = 0;
	for (int i = 0; i < 256; i++)
		*ret_items += per_cpu[i];
	return 0;
}

static int taken(void *arg, void *data, size_t size)
{
	struct pl_event_batch *batch = arg;

	if (batch->n == batch->cap)
		batch->n = 0;
	memcpy(&batch->events[batch->n++], data,
		size < sizeof(struct pl_event) ? size : sizeof(struct pl_event));
	return 0;
}

struct bare_ring {
	struct pl_bpf_bench *skel;
	struct ring_buffer *ring;
};

static int drain_ring(struct detect_bench *b, void *of, uint64_t *ret_items)
{
	struct bare_ring *bare = of;

	(void)ring_buffer__consume(bare->ring);
	return drain_bench(b, bare->skel, ret_items);
}

static void flush(struct pl_event_batch *batch, void *arg)
{
	(void)arg;
	batch->n = 0;
}

static int wire_subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;

	return measure(
		b, pl_kernel_program(b->kernel)->prog_fd, drain_kernel, b->kernel, budget_ns, ret);
}

static int fill_keys(struct detect_bench *b)
{
	static const struct pl_least_node empty;
	const int keys = bpf_map__fd(b->bare->maps.pl_bench_keys);

	for (uint32_t node = 1; node <= b->c.nodes; node++) {
		if (bpf_map_update_elem(keys, &node, &empty, BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

/* In the detector's place. */
static int wire_least(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	const struct bpf_program *prog = b->c.nodes != 0 ? b->bare->progs.pl_bench_least_keys
							 : b->bare->progs.pl_bench_least;

	return measure(b, bpf_program__fd(prog), drain_bench, b->bare, budget_ns, ret);
}

static int wire_lines(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;

	return measure(b, bpf_program__fd(b->bare->progs.pl_bench_lines), drain_bench, b->bare,
		budget_ns, ret);
}

/* The same reports, none of which is an event. */
static int wire_quiet(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	int r;

	b->quiet = true;
	r = wire_subject(arg, budget_ns, ret);
	b->quiet = false;
	return r;
}

static int wire_ring(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	struct bare_ring bare = { .skel = b->bare };
	int r;

	bare.ring = ring_buffer__new(
		bpf_map__fd(bare.skel->maps.pl_bench_ring), taken, &b->events, NULL);
	r = bare.ring == NULL ? -ENOMEM
			      : measure(b, bpf_program__fd(bare.skel->progs.pl_bench_event),
					drain_ring, &bare, budget_ns, ret);
	ring_buffer__free(bare.ring);
	return r;
}

static int begin(struct detect_bench *b, bool wire)
{
	struct pl_diag diag = { .text = "" };
	int r;

	b->rows = calloc(ROWS_MAX, sizeof(b->rows[0]));
	if (b->rows == NULL || pl_event_batch_init(&b->events, 65536) < 0)
		return -ENOMEM;
	b->events.flush = flush;
	b->bare = pl_bpf_bench__open_and_load();
	if (b->bare == NULL) {
		pl_complain("benchmark xdp-detect: the programs to compare with do not load");
		return -EPERM;
	}
	if (!wire)
		return 0;
	r = pl_wire_open(&b->wire, 1, &diag);
	if (r < 0) {
		pl_complain("benchmark xdp-detect: %s", diag.text);
		return r;
	}
	b->wired = true;
	sched_getaffinity(0, sizeof(b->allowed), &b->allowed);
	return pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
}

static void end(struct detect_bench *b)
{
	if (b->wired) {
		(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
		pl_wire_close(&b->wire);
	}
	pl_bpf_bench__destroy(b->bare);
	pl_event_batch_done(&b->events);
	free(b->rows);
	free(b);
}

static int run_cases(struct pl_bench_ctx *ctx, const struct detect_case *cases, size_t n, bool wire,
	pl_bench_fn *subject, pl_bench_fn *ceiling, const char *ceiling_name)
{
	struct detect_bench *b = calloc(1, sizeof(*b));
	struct pl_bench_case c = {
		.ceiling_name = ceiling_name, .ceiling = ceiling, .arg = b, .crosses_cores = wire
	};
	int r;

	if (b == NULL)
		return -ENOMEM;
	if (wire && pl_cpu_count() < 2) {
		pl_complain("benchmark xdp-detect: the wire needs two processors");
		free(b);
		return 0;
	}
	r = begin(b, wire);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!pl_bench_wanted(ctx, cases[i].name))
			continue;
		b->c = cases[i];
		c.name = cases[i].name;
		c.warm_items = (uint64_t)WARM_TIMES * cases[i].flows;
		c.subject = cases[i].least ? wire_least : subject;
		r = make_frame(b);
		if (r == 0)
			r = cases[i].least ? fill_keys(b) : open_kernel(b, &b->kernel);
		if (r == 0)
			r = pl_bench_compare(ctx, &c);
		pl_kernel_close(b->kernel);
		b->kernel = NULL;
	}
	end(b);
	return r;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct form {
	const char *name;
	uint16_t bitmap;
	enum pl_dialect dialect;
} forms[] = {
	{ "ids", 0x8000, PL_DIALECT_SPEC },
	{ "fc00", 0xfc00, PL_DIALECT_SPEC },
	{ "fd00", 0xfd00, PL_DIALECT_SPEC },
	{ "f000", 0xf000, PL_DIALECT_SPEC },
	{ "b000", 0xb000, PL_DIALECT_SPEC },
	{ "all", 0xff00, PL_DIALECT_SPEC },
	{ "all-intcollector", 0xff00, PL_DIALECT_INTCOLLECTOR },
};

static const struct {
	const char *name;
	uint32_t flows;
	bool sums, raised;
} loads[] = { { "", 1, false, false }, { "-64k-flows", 65536, false, false },
	{ "-raised", 1, false, true }, { "-sums", 1, true, false },
	{ "-64k-flows-sums", 65536, true, false } };

#define HOPS 2 /* counts of hops */

/* Test runs of every form, of 3 hops and of 6, with one flow and many, with raised queues where there
 * are queues, with sums and without. */
static int run_forms(struct pl_bench_ctx *ctx)
{
	static struct detect_case cases[COUNT(forms) * HOPS * COUNT(loads)];
	static char names[COUNT(cases)][64];
	size_t n = 0;

	for (size_t l = 0; l < COUNT(loads); l++) {
		for (size_t f = 0; f < COUNT(forms) * HOPS; f++) {
			const struct form *form = &forms[f / HOPS];
			const unsigned int hops = f % HOPS == 0 ? 3 : 6;

			if (loads[l].raised && form->bitmap == 0x8000)
				continue;
			snprintf(names[n], sizeof(names[n]), "xdp-detect/run-%u-hops-%s%s", hops,
				form->name, loads[l].name);
			cases[n] = (struct detect_case){ .name = names[n],
				.hops = hops,
				.bitmap = form->bitmap,
				.dialect = form->dialect,
				.flows = loads[l].flows,
				.sums = loads[l].sums,
				.raised = loads[l].raised };
			n++;
		}
	}
	return run_cases(
		ctx, cases, n, false, test_subject, test_empty, "a program that does nothing");
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct detect_case over_wire[] = {
		{ .name = "xdp-detect/3-hops-1-flow", .hops = 3, .bitmap = 0xfc00, .flows = 1 },
		{ .name = "xdp-detect/3-hops-4k-flows",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 4096 },
		{ .name = "xdp-detect/3-hops-64k-flows",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 65536 },
		{ .name = "xdp-detect/3-hops-1M-flows",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 1 << 20 },
		{ .name = "xdp-detect/3-hops-64k-keys",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 65536,
			.nodes = 65536 },
		{ .name = "xdp-detect/least",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 1,
			.least = true },
		{ .name = "xdp-detect/least-64k-keys",
			.hops = 3,
			.bitmap = 0xfc00,
			.flows = 65536,
			.nodes = 65536,
			.least = true },
	};
	static const struct detect_case ids[] = {
		{ .name = "xdp-detect/least-run-3-hops-ids",
			.hops = 3,
			.bitmap = 0x8000,
			.flows = 1 },
		{ .name = "xdp-detect/least-run-6-hops-ids",
			.hops = 6,
			.bitmap = 0x8000,
			.flows = 1 },
		{ .name = "xdp-detect/least-run-3-hops-ids-64k-flows",
			.hops = 3,
			.bitmap = 0x8000,
			.flows = 65536 },
	};
	int r = run_forms(ctx);

	if (r == 0)
		r = run_cases(ctx, ids, COUNT(ids), false, test_subject, test_least,
			"the least program for reports of ids");
	return r != 0 ? r
		      : run_cases(ctx, over_wire, COUNT(over_wire), true, wire_subject, wire_lines,
				"R1: every line read, then dropped");
}

static int run_events(struct pl_bench_ctx *ctx)
{
	static const struct detect_case each[] = { { .name = "events/every-report",
		.hops = 1,
		.bitmap = 0xfc00,
		.flows = 1,
		.events = 1 } };
	static const struct detect_case some[] = { { .name = "events/1-in-100",
		.hops = 3,
		.bitmap = 0xfc00,
		.flows = 1,
		.events = 200 } };
	int r = run_cases(
		ctx, each, 1, true, wire_subject, wire_ring, "R5: a ring filled and drained");

	return r != 0 ? r
		      : run_cases(ctx, some, 1, true, wire_subject, wire_quiet,
				"the same without events");
}

const struct pl_bench pl_bench_xdp_detect = {
	.name = "xdp-detect",
	.summary = "reports settled in the kernel, against programs that do less (root)",
	.run = run,
};

const struct pl_bench pl_bench_events = {
	.name = "events",
	.summary = "events from the kernel's detector to user space, against a bare ring (root)",
	.run = run_events,
};
