/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in user space, one thread. The correlator: block records in memory, 128 bytes
 * each, of 1 k and 64 k flows at two points and at five, block after block, of each flow its points
 * behind each other in a scramble of the flows; the results of a block (two points: one; five: four
 * links and the path) are summed. The least program has the flow's number from the benchmark: a line
 * for each flow and block with a counter per point, whose differences it takes when all have come. It
 * knows no flow, no time, no missing point. The engine of a meter: packets of so many flows, against
 * adding to one known line. The observer of QUIC: short headers of 1 k connections, against a line
 * each with the packets and the edges of the spin bit.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "mark/correlate.h"
#include "mark/meter.h"
#include "mark/observer.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

enum { FLOWS_MAX = 1 << 16, POINTS_MAX = 5, BATCH = 4096, QUIC_BYTES = 64 };

#define PERIOD_NS UINT64_C(1000000000)
#define ZERO      UINT64_C(1700000000)

struct line {
	uint64_t counts[POINTS_MAX], packets, bytes, n;
};

struct correlate_bench {
	struct pl_mark128 *records; /* of one block, in the order that they come */
	struct line *lines;
	struct pl_mark_correlator *correlator;
	struct pl_mark_meter *meter;
	struct pl_observer *observer;
	uint32_t flows, points;
	/* Of the subject, and of the ceiling: each goes on where it was. */
	struct place {
		uint32_t at;
		uint64_t block, now_ns;
	} place[2];
	uint64_t lost, results, read;
};

static uint32_t flow_of(const struct correlate_bench *b, uint32_t i)
{
	assert(b->flows > 0);
	return i * 2654435761u % b->flows;
}

static struct pl_addr address_of(uint32_t flow)
{
	const uint32_t v4 = __builtin_bswap32(0x0a000000u + flow);

	return pl_addr_v4((const uint8_t *)&v4);
}

static void fill(struct correlate_bench *b)
{
	for (uint32_t i = 0; i < b->flows; i++) {
		for (uint32_t point = 0; point < b->points; point++)
			b->records[i * b->points + point] = (struct pl_mark128){
				.src = address_of(flow_of(b, i)),
				.dst = address_of(1),
				.sport = 1000,
				.dport = 443,
				.proto = 17,
				.method = PL_MARK_DOUBLE,
				.mark_flags = PL_MARK_IS_SYNCED,
				.period_ns = PERIOD_NS,
				.packets = 1000 - point,
				.bytes = 1000000,
				.sum_ns = 500000000000 + point * INT64_C(1000000),
				.first_ns = 1000 + point,
				.pulse_ns = 500000000 + point,
				.pulses = 1,
				.point = point + 1,
			};
	}
	b->place[0] = b->place[1] = (struct place){ .block = ZERO, .now_ns = ZERO * PERIOD_NS };
}

/* The next record, whose block goes on when all flows have had theirs. */
static struct pl_mark128 *turn(struct correlate_bench *b, struct place *p)
{
	struct pl_mark128 *r = &b->records[p->at];

	r->block = p->block;
	if (++p->at == b->flows * b->points) {
		p->at = 0;
		p->block++;
	}
	return r;
}

/* The next packet: the number of its flow in the order that flows come; ns later. */
static uint32_t next(const struct correlate_bench *b, struct place *p, uint64_t ns)
{
	const uint32_t at = p->at;

	p->at = at + 1 < b->flows ? at + 1 : 0;
	p->now_ns += ns;
	return at;
}

static void correlate(struct correlate_bench *b)
{
	struct place *p = &b->place[0];
	const uint64_t block = p->block;

	for (unsigned int i = 0; i < BATCH; i++)
		pl_mark_correlate(b->correlator, turn(b, p));
	if (p->block != block)
		pl_mark_correlate_until(
			b->correlator, pl_mark_read_at(PL_MARK_STEP, block, PERIOD_NS));
}

static void subtract(struct correlate_bench *b)
{
	struct place *p = &b->place[1];

	for (unsigned int i = 0; i < BATCH; i++) {
		const uint32_t at = p->at;
		const struct pl_mark128 *r = turn(b, p);
		struct line *line = &b->lines[flow_of(b, at / b->points)];

		line->counts[r->point - 1] = r->packets;
		if (++line->n % b->points != 0)
			continue;
		for (uint32_t point = 0; point + 1 < b->points; point++)
			b->lost += line->counts[point] - line->counts[point + 1];
	}
}

static void add_result(void *arg, const struct pl_mark_result *result)
{
	struct correlate_bench *b = arg;

	b->lost += (uint64_t)result->loss;
	b->results++;
}

/* ---- the engine of a meter ---- */

static struct pl_mark_flow key_of(const struct correlate_bench *b, uint32_t i)
{
	return (struct pl_mark_flow){ .src = address_of(flow_of(b, i)),
		.dst = address_of(1),
		.sport = 1000,
		.dport = 443,
		.proto = 17 };
}

/* A packet each 100 ns. */
static void meter(struct correlate_bench *b)
{
	struct place *p = &b->place[0];

	for (unsigned int i = 0; i < BATCH; i++) {
		const struct pl_mark_flow key = key_of(b, next(b, p, 100));

		pl_mark_meter_count(b->meter, &key, p->now_ns,
			(unsigned int)(p->now_ns / PERIOD_NS & 1), 1, 1000);
	}
}

static void count_line(struct correlate_bench *b)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		struct line *line = &b->lines[flow_of(b, next(b, &b->place[1], 100))];

		line->packets++;
		line->bytes += 1000;
	}
}

static void add_record(void *arg, const struct pl_mark128 *record)
{
	struct correlate_bench *b = arg;

	b->read += record->packets;
}

/* ---- the observer ---- */

/* A packet each microsecond: the spin bit of a connection of 1 k changes each 32 packets. */
static uint8_t byte_of(const struct place *p)
{
	return (uint8_t)(0x40 | ((p->now_ns / 32768000 & 1) != 0 ? 0x20 : 0));
}

static void observe(struct correlate_bench *b)
{
	struct place *p = &b->place[0];
	uint8_t packet[QUIC_BYTES] = { 0 };

	for (unsigned int i = 0; i < BATCH; i++) {
		const struct pl_mark_flow key = key_of(b, next(b, p, 1000));

		packet[0] = byte_of(p);
		(void)pl_observer_take(
			b->observer, &key, p->now_ns, 0, pl_cursor(packet, sizeof(packet)), 0);
	}
}

static void count_edges(struct correlate_bench *b)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		struct place *p = &b->place[1];
		struct line *line = &b->lines[flow_of(b, next(b, p, 1000))];
		const uint8_t byte = byte_of(p);

		line->packets++;
		line->n += line->counts[0] != byte;
		line->counts[0] = byte;
	}
}

/* ---- cases ---- */

static int timed(struct correlate_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*step)(struct correlate_bench *b))
{
	const uint64_t start = pl_cpu_thread_ns();

	ret->items = 0;
	do {
		step(b);
		ret->items += BATCH;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

#define STEP(name, step)                                                                           \
	static int name(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)                \
	{                                                                                          \
		return timed(arg, budget_ns, ret, step);                                           \
	}
STEP(correlating, correlate)
STEP(subtracting, subtract)
STEP(metering, meter)
STEP(counting, count_line)
STEP(observing, observe)
STEP(counting_edges, count_edges)
#undef STEP

static int open_correlator(struct correlate_bench *b)
{
	static const uint32_t points[] = { 1, 2, 3, 4, 5 };
	struct pl_mark_segment segments[POINTS_MAX];
	struct pl_mark_correlator_config config = {
		.segments = segments, .blocks_max = 4 * b->flows, .result = add_result, .arg = b
	};

	for (uint32_t i = 0; i + 1 < b->points; i++)
		segments[config.n_segments++] =
			(struct pl_mark_segment){ &points[i], &points[i + 1], 1, 1 };
	if (b->points > 2)
		segments[config.n_segments++] =
			(struct pl_mark_segment){ &points[0], &points[b->points - 1], 1, 1 };
	return pl_mark_correlator_new(&b->correlator, &config, NULL);
}

static int open_meter(struct correlate_bench *b)
{
	const struct pl_mark_meter_config config = {
		.point = { .point = 1, .method = PL_MARK_STEP, .period_ns = PERIOD_NS },
		.guard_ns = 100000000,
		.flows_max = b->flows,
		.record = add_record,
		.arg = b
	};

	return pl_mark_meter_new(&b->meter, &config, NULL);
}

static int open_observer(struct correlate_bench *b)
{
	const struct pl_observer_config config = {
		.efm = { .masks = { 0x20 }, .threshold = PL_EFM_THRESHOLD }, .flows_max = b->flows
	};

	return pl_observer_new(&b->observer, &config, NULL);
}

static int one(struct pl_bench_ctx *ctx, struct correlate_bench *b,
	int (*open)(struct correlate_bench *b), const struct pl_bench_case *like, uint32_t flows,
	uint32_t points)
{
	struct pl_bench_case c = *like;
	int r;

	b->flows = flows;
	b->points = points;
	fill(b);
	memset(b->lines, 0, FLOWS_MAX * sizeof(*b->lines));
	c.arg = b;
	c.warm_items = 3 * (uint64_t)flows * points;
	r = open(b);
	if (r < 0)
		pl_complain("benchmark %s: %s", c.name, strerror(-r));
	else
		r = pl_bench_compare(ctx, &c);
	pl_mark_correlator_free(b->correlator);
	pl_mark_meter_free(b->meter);
	pl_observer_free(b->observer);
	b->correlator = NULL;
	b->meter = NULL;
	b->observer = NULL;
	return r;
}

static int run_all(struct pl_bench_ctx *ctx, struct correlate_bench *b)
{
	static const struct {
		const char *name;
		uint32_t flows, points;
	} correlators[] = { { "correlate/1k-flows", 1024, 2 }, { "correlate/64k-flows", 65536, 2 },
		{ "correlate/64k-flows-5-points", 65536, 5 } };
	struct pl_bench_case c = { .ceiling_name = "differences of known lines",
		.subject = correlating,
		.ceiling = subtracting };
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < 3; i++) {
		c.name = correlators[i].name;
		r = one(ctx, b, open_correlator, &c, correlators[i].flows, correlators[i].points);
	}
	c = (struct pl_bench_case){
		.ceiling_name = "one known line", .subject = metering, .ceiling = counting
	};
	for (unsigned int i = 0; r == 0 && i < 2; i++) {
		c.name = i == 0 ? "correlate/meter-1k-flows" : "correlate/meter-64k-flows";
		r = one(ctx, b, open_meter, &c, i == 0 ? 1024 : 65536, 1);
	}
	c = (struct pl_bench_case){ .name = "correlate/observer-1k",
		.ceiling_name = "edges of known lines",
		.subject = observing,
		.ceiling = counting_edges };
	return r == 0 ? one(ctx, b, open_observer, &c, 1024, 1) : r;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct correlate_bench b = { .flows = 0 };
	int r = -ENOMEM;

	b.records = calloc((size_t)FLOWS_MAX * POINTS_MAX, sizeof(*b.records));
	b.lines = calloc(FLOWS_MAX, sizeof(*b.lines));
	if (b.records != NULL && b.lines != NULL)
		r = run_all(ctx, &b);
	else
		pl_complain("benchmark correlate: %s", strerror(ENOMEM));
	free(b.records);
	free(b.lines);
	return r;
}

const struct pl_bench pl_bench_correlate = {
	.name = "correlate",
	.summary = "block records to loss and delay, the engine of a meter, the observer of QUIC",
	.run = run,
};
