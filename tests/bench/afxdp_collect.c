/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collection as the daemon's worker does it: reports of 3 hops out of an AF_XDP port, decoded, into
 * the state of flows and nodes, detection included; against R2, a loop that only touches and
 * recycles the same frames (bench_afxdp.h).
 *
 *   frames    detection without records (tests/bpf/frames.h)
 *   records   decoder and detector
 *   worker    the same and aggregates, as a worker has them
 *   least     in their place a loop that knows one form of report, has a table of flows and an
 *             array of nodes, and counts: what of the distance to R2 is not theirs
 *
 * Each flow is another source address; the generator takes them at random. Decoder, tables and port
 * are those of the case, kept from run to run, so that what is measured is their steady state.
 *
 * self-clocked: NAPI behind the sender on its processor, the worker alone on the other. Frames that
 * the XDP program passed on in the measured time and that did not arrive are counted: there must be
 * none, but when other jobs keep the worker from its processor for as long as its ring of 16384
 * lasts. Its ceiling is R2 in the same arrangement.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/prefetch.h"
#include "decode/decode.h"
#include "detect/aggregate.h"
#include "netio/port.h"
#include "tests/bench/afxdp.h"
#include "tests/bench/least.h"
#include "tests/bpf/frames.h"

#define HOPS     3
#define BITMAP   0xfc00 /* node, ports, latency, queue, both times: 24 bytes a hop */
#define ROWS_MAX (1u << 20)
#define TICK_NS  UINT64_C(100000000)
#define WARM_TIMES                                                                                 \
	8 /* reports per flow before the first measured one: 1 flow of 3000 is then still new */

enum way { FRAMES, RECORDS, WORKER, LEAST };

struct collect_case {
	const char *name;
	uint32_t flows; /* a power of two */
	enum way way;
	bool self_clocked;
};

#define LEAST_GROUP 32
#define LARGE_PAGE  (2u << 20)

struct least_flow {
	_Alignas(64) uint64_t key[2]; /* addresses; ports */
	uint64_t packets, last_ns;
};

struct collect_bench {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	const struct collect_case *c;
	struct pl_decode *decode;
	struct pl_detect *detect;
	struct pl_aggregate *aggregate;
	struct pl_direct direct;
	struct pl_frames_counters counters;
	struct pl_record_batch records;
	struct pl_event_batch events;
	struct least_flow *flows; /* four times as many as there are */
	struct pl_least_node *nodes;
	uint64_t refused, ticked_ns;
	uint8_t frame[PL_LIVE_FRAME_MAX];
	struct pl_live_field fields[2];
	uint8_t (*rows)[PL_LIVE_ROW_BYTES];
	bool settled[PL_BATCH_MAX];
	struct pl_batch batch;
};

static void discard_events(struct pl_event_batch *events, void *arg)
{
	(void)arg;
	events->n = 0;
}

/* ---- what a worker does with a batch ---- */

static void records_out(struct pl_record_batch *records, void *arg)
{
	struct collect_bench *b = arg;

	if (b->c->way == WORKER)
		pl_aggregate_batch(b->aggregate, records);
	pl_detect_batch(b->detect, records, b->ticked_ns, &b->events);
	pl_record_batch_clear(records);
}

static struct least_flow *least_expect(struct collect_bench *b, const uint8_t *p)
{
	struct least_flow *flow;
	uint64_t addrs;

	memcpy(&addrs, p + PL_WIRE_REPORT_SRC, sizeof(addrs));
	flow = &b->flows[(addrs * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (4 * b->c->flows - 1)];
	pl_prefetch_write(flow);
	return flow;
}

static bool least_report(struct collect_bench *b, struct least_flow *flow, const uint8_t *p,
	uint32_t len, uint64_t now_ns)
{
	uint64_t key[2] = { 0 };

	if (len < PL_LEAST_BYTES || !pl_least_form(p))
		return false;
	memcpy(key, p + PL_WIRE_REPORT_SRC, 12);
	while (flow->packets != 0 && (flow->key[0] != key[0] || flow->key[1] != key[1]))
		flow = flow + 1 < b->flows + 4 * (size_t)b->c->flows ? flow + 1 : b->flows;
	memcpy(flow->key, key, sizeof(key));
	flow->packets++;
	flow->last_ns = now_ns;
	for (const uint8_t *h = p + PL_LEAST_STACK; h < p + PL_LEAST_BYTES; h += PL_LEAST_BLOCK)
		pl_least_step(&b->nodes[pl_frame_be32(h) & (PL_LEAST_NODES - 1)], h);
	return true;
}

static void least(struct collect_bench *b, uint64_t now_ns)
{
	struct least_flow *flows[LEAST_GROUP];

	for (uint32_t at = 0; at < b->batch.n; at += LEAST_GROUP) {
		const uint32_t n = b->batch.n - at < LEAST_GROUP ? b->batch.n - at : LEAST_GROUP;
		const struct pl_packet *pkts = &b->batch.pkts[at];

		for (uint32_t i = 0; i < n; i++)
			flows[i] = least_expect(b, pkts[i].data);
		for (uint32_t i = 0; i < n; i++)
			b->refused += !least_report(b, flows[i], pkts[i].data, pkts[i].len, now_ns);
	}
}

static void digest(struct collect_bench *b, uint64_t now_ns)
{
	const struct pl_outcome *o;

	if (b->c->way == LEAST) {
		least(b, now_ns);
		return;
	}
	if (b->c->way == FRAMES) {
		pl_detect_frames(b->detect, &b->direct, &b->batch, now_ns, b->settled, &b->counters,
			&b->events);
		return;
	}
	pl_decode_batch(b->decode, &b->batch, &b->records);
	o = pl_decode_outcomes(b->decode);
	for (uint32_t i = 0; i < b->batch.n; i++)
		b->refused += o[i].verdict != PL_V_OK;
	records_out(&b->records, b);
}

static int take(struct pl_afxdp_bench *wire, void *receiver)
{
	struct collect_bench *b = (struct collect_bench *)wire;
	struct pl_port *port = receiver;
	int n = pl_port_recv(port, &b->batch, 10, NULL);
	uint64_t now_ns;

	/* The carrier came: news for a daemon. */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n;
	now_ns = pl_clock_mono_ns();
	if (now_ns - b->ticked_ns >= TICK_NS) {
		pl_detect_tick(b->detect, now_ns, pl_clock_real_ns(), &b->events);
		pl_aggregate_tick(b->aggregate, now_ns);
		b->ticked_ns = now_ns;
	}
	digest(b, now_ns);
	pl_port_release(port, &b->batch);
	return n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct collect_bench *b = arg;
	int r = pl_afxdp_measure_port(&b->wire, PL_AFXDP_URI, take, budget_ns, ret);

	/* A figure for reports that were refused would mean nothing. */
	if (r == 0 && (b->refused > 0 || b->counters.settled != b->counters.packets)) {
		pl_complain("benchmark %s: not every report was understood", b->c->name);
		r = -EBADMSG;
	}
	return r;
}

/* ---- the case ---- */

static void set_live(struct collect_bench *b, uint32_t frame_bytes)
{
	b->fields[0] = (struct pl_live_field){
		.offset = PL_WIRE_REPORT_SEQ, .len = 4, .kind = PL_LIVE_COUNT
	};
	b->fields[1] = (struct pl_live_field){
		.offset = PL_WIRE_REPORT_SRC, .len = 4, .kind = PL_LIVE_ROW
	};
	for (uint32_t i = 0; i < b->c->flows; i++) {
		const uint32_t src = __builtin_bswap32(0x0a000000 | i);

		memset(b->rows[i], 0, PL_LIVE_ROW_BYTES);
		memcpy(b->rows[i], &src, sizeof(src));
	}
	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = frame_bytes,
		.restore_bytes = 48,
		.fields = b->fields,
		.nfields = 2,
		.rows = (const uint8_t(*)[PL_LIVE_ROW_BYTES])b->rows,
		.nrows = b->c->flows };
}

static int make_least(struct collect_bench *b)
{
	const size_t bytes = 4 * (size_t)b->c->flows * sizeof(*b->flows);

	if (b->c->way != LEAST)
		return 0;
	b->flows = aligned_alloc(LARGE_PAGE, bytes);
	b->nodes = calloc(PL_LEAST_NODES, sizeof(*b->nodes));
	if (b->flows == NULL || b->nodes == NULL)
		return -ENOMEM;
	(void)madvise(b->flows, bytes, MADV_HUGEPAGE);
	memset(b->flows, 0, bytes);
	return 0;
}

static int begin(struct collect_bench *b)
{
	const struct pl_decode_options decode = { 0 };
	const struct pl_aggregate_options aggregate = { 0 };
	struct pl_detect_options detect;
	int r;

	pl_detect_defaults(&detect);
	detect.max_flows = 2 * b->c->flows;
	b->refused = b->wire.lost = 0;
	b->counters = (struct pl_frames_counters){ 0 };
	b->wire.self_clocked = b->c->self_clocked;
	b->wire.mark = pl_afxdp_mark_lost;
	r = pl_wire_report(b->frame, sizeof(b->frame), HOPS, BITMAP, PL_DIALECT_SPEC, b->wire.name);
	if (r < 0)
		return r;
	set_live(b, (uint32_t)r);
	r = make_least(b);
	if (r == 0)
		r = pl_decode_new(&b->decode, &decode);
	if (r == 0)
		r = pl_direct_init(&b->direct, &decode);
	if (r == 0)
		r = pl_detect_new(&b->detect, &detect);
	if (r == 0)
		r = pl_aggregate_new(&b->aggregate, &aggregate);
	if (r < 0)
		pl_complain("benchmark %s: %s", b->c->name, strerror(-r));
	return r;
}

static void end(struct collect_bench *b)
{
	pl_decode_free(b->decode);
	pl_direct_done(&b->direct);
	pl_detect_free(b->detect);
	pl_aggregate_free(b->aggregate);
	free(b->flows);
	free(b->nodes);
	b->flows = NULL;
	b->nodes = NULL;
	b->decode = NULL;
	b->detect = NULL;
	b->aggregate = NULL;
}

static const struct collect_case cases[] = {
	{ "afxdp-collect/frames-64k-flows", 1 << 16, FRAMES, false },
	{ "afxdp-collect/frames-1M-flows", 1 << 20, FRAMES, false },
	{ "afxdp-collect/records-64k-flows", 1 << 16, RECORDS, false },
	{ "afxdp-collect/records-1M-flows", 1 << 20, RECORDS, false },
	{ "afxdp-collect/worker-64k-flows", 1 << 16, WORKER, false },
	{ "afxdp-collect/least-64k-flows", 1 << 16, LEAST, false },
	{ "afxdp-collect/least-1M-flows", 1 << 20, LEAST, false },
	{ "afxdp-collect/self-clocked", 1 << 16, WORKER, true },
};

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct collect_bench *b = (struct collect_bench *)wire;
	const struct collect_case *c = &cases[i];
	const struct pl_bench_case compared = { .name = c->name,
		.ceiling_name = c->self_clocked ? "R2, self-clocked" : "R2: touch and recycle",
		.subject = subject,
		.ceiling = pl_afxdp_bare,
		.arg = b,
		.warm_items = (uint64_t)WARM_TIMES * c->flows,
		.lost = c->self_clocked ? &b->wire.lost : NULL,
		.crosses_cores = true };
	int r;

	b->c = c;
	r = begin(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &compared);
	end(b);
	return r;
}

static int new_bench(struct collect_bench **ret)
{
	struct collect_bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return -ENOMEM;
	*ret = b;
	b->rows = calloc(ROWS_MAX, sizeof(b->rows[0]));
	if (b->rows == NULL || pl_event_batch_init(&b->events, 4096) < 0 ||
		pl_record_batch_init(&b->records, 512, 4096) < 0)
		return -ENOMEM;
	b->events.flush = discard_events;
	b->records.flush = records_out;
	b->records.flush_arg = b;
	return 0;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct collect_bench *b = NULL;
	int r = new_bench(&b);

	if (r < 0)
		pl_complain("benchmark afxdp-collect: %s", strerror(-r));
	if (r == 0)
		r = pl_afxdp_run(
			ctx, &b->wire, "afxdp-collect", one, sizeof(cases) / sizeof(cases[0]));
	if (b != NULL) {
		pl_event_batch_done(&b->events);
		pl_record_batch_done(&b->records);
		free(b->rows);
		free(b);
	}
	return r;
}

const struct pl_bench pl_bench_afxdp_collect = {
	.name = "afxdp-collect",
	.summary =
		"reports of an AF_XDP port decoded and detected on, against a loop that only takes them (root)",
	.run = run,
};
