/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path for the tests: a marker, a network that loses, delays and copies packets, meters behind
 * it, and the correlator. Records and results are kept by block, from -8 on; block 0 is even.
 */
#pragma once

#include "base/test.h"
#include "mark/correlate.h"
#include "mark/meter.h"

#define US          UINT64_C(1000)
#define MS          UINT64_C(1000000)
#define PERIOD      (1000 * MS)
#define ZERO        UINT64_C(1000000) /* number of what the tests call block 0 */
#define BEFORE      8
#define BLOCKS      24
#define PACKETS_MAX 24000

struct test_packet {
	uint64_t sent_ns;
	uint64_t delay_ns;
	bool lost;
	uint8_t copies; /* beside the packet itself */
	uint8_t flip;   /* bits that are inverted behind the marker */
	uint8_t bits;
};

struct test_arrival {
	uint64_t at_ns;
	uint32_t order;
	uint8_t bits;
};

struct test_path {
	uint8_t method;
	uint64_t guard_ns, clock_ns;
	int64_t offset_ns; /* clock of the meter less that of the marker */
	uint16_t tai_offset[2];
	struct test_packet packets[PACKETS_MAX];
	uint32_t n;
	struct test_arrival arrivals[PACKETS_MAX];

	struct pl_mark_correlator *correlator;
	struct pl_mark_meter *meters[2];
	uint64_t pulsed;
	struct pl_mark128 records[2][BLOCKS];
	struct pl_mark_result results[BLOCKS];
	bool has[BLOCKS];
};

/* Marking and counting by the engine itself, unless a test sets another form. */
struct test_form {
	void (*begin)(struct test_path *p);
	/* Counts a packet sent at that time at point 1, and returns its bits. */
	unsigned int (*send)(struct test_path *p, uint64_t time_ns);
	/* Counts a packet at point 2, at a time by that point's clock. */
	void (*arrive)(struct test_path *p, uint64_t time_ns, unsigned int bits);
	/* Makes both points read the blocks up to that time. */
	void (*end)(struct test_path *p, uint64_t time_ns);
};

static const uint32_t test_points[] = { 1, 2 };

static unsigned int test_place(uint64_t block)
{
	const uint64_t at = block + BEFORE - ZERO;

	return at < BLOCKS ? (unsigned int)at : BLOCKS - 1;
}

static void test_record(void *arg, const struct pl_mark128 *record)
{
	struct test_path *p = arg;

	p->records[record->point - 1][test_place(record->block)] = *record;
	pl_mark_correlate(p->correlator, record);
}

static void test_result(void *arg, const struct pl_mark_result *result)
{
	struct test_path *p = arg;

	p->results[test_place(result->block)] = *result;
	p->has[test_place(result->block)] = true;
}

static int test_compare(const void *a, const void *b)
{
	const struct test_arrival *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static uint32_t test_arrivals(struct test_path *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct test_packet *k = &p->packets[i];

		if (k->lost)
			continue;
		for (unsigned int copy = 0; copy <= k->copies && n < PACKETS_MAX; copy++, n++)
			p->arrivals[n] = (struct test_arrival){ .at_ns = k->sent_ns + k->delay_ns +
									 (uint64_t)p->offset_ns,
				.order = n,
				.bits = k->bits };
	}
	qsort(p->arrivals, n, sizeof(p->arrivals[0]), test_compare);
	return n;
}

static struct pl_mark_meter *test_meter(struct test_path *p, uint32_t point)
{
	const struct pl_mark_meter_config config = {
		.point = { .point = point,
			.method = p->method,
			.period_ns = PERIOD,
			.flags = PL_MARK_IS_SYNCED,
			.tai_offset = p->tai_offset[point - 1] },
		.guard_ns = p->guard_ns,
		.flows_max = 16, /* memory of the usual size takes longer than the test */
		.record = test_record,
		.arg = p,
	};
	struct pl_mark_meter *m = NULL;

	if (pl_mark_meter_new(&m, &config, NULL) < 0)
		abort();
	return m;
}

/* ---- the engine itself ---- */

static const struct pl_mark_flow test_flow_key = { .proto = 17, .sport = 1000, .dport = 2000 };

static void test_own_begin(struct test_path *p)
{
	p->pulsed = 0;
	p->meters[0] = test_meter(p, 1);
	p->meters[1] = test_meter(p, 2);
}

static unsigned int test_own_send(struct test_path *p, uint64_t time_ns)
{
	const unsigned int bits = pl_mark_send(&p->pulsed, p->method, PERIOD, p->guard_ns, time_ns);

	pl_mark_meter_count(p->meters[0], &test_flow_key, time_ns, bits, 1, 100);
	return bits;
}

static void test_own_arrive(struct test_path *p, uint64_t time_ns, unsigned int bits)
{
	pl_mark_meter_count(p->meters[1], &test_flow_key, time_ns, bits, 1, 100);
}

/* Reads all blocks of both points; blocks without packets are reported, too. */
static void test_own_end(struct test_path *p, uint64_t time_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		pl_mark_meter_until(p->meters[i], time_ns);
		pl_mark_meter_finish(p->meters[i]);
		pl_mark_meter_free(p->meters[i]);
	}
}

__attribute__((unused)) static const struct test_form test_own_form = { test_own_begin,
	test_own_send, test_own_arrive, test_own_end };
static const struct test_form *test_form = &test_own_form;

/* Sends the packets, whose sending times ascend, through the path and correlates the records. */
__attribute__((unused)) static void test_run(struct test_path *p)
{
	const struct pl_mark_segment segment = {
		.from = &test_points[0], .to = &test_points[1], .n_from = 1, .n_to = 1
	};
	const struct pl_mark_correlator_config config = { .segments = &segment,
		.n_segments = 1,
		.clock_ns = p->clock_ns,
		.blocks_max = 64,
		.result = test_result,
		.arg = p };
	const uint64_t last = p->packets[p->n - 1].sent_ns;
	uint32_t arrivals;

	memset(p->records, 0, sizeof(p->records));
	memset(p->results, 0, sizeof(p->results));
	memset(p->has, 0, sizeof(p->has));
	if (pl_mark_correlator_new(&p->correlator, &config, NULL) < 0)
		abort();
	test_form->begin(p);
	for (uint32_t i = 0; i < p->n; i++)
		p->packets[i].bits =
			(uint8_t)(test_form->send(p, p->packets[i].sent_ns) ^ p->packets[i].flip);
	arrivals = test_arrivals(p);
	for (uint32_t i = 0; i < arrivals; i++)
		test_form->arrive(p, p->arrivals[i].at_ns, p->arrivals[i].bits);
	test_form->end(p, last + 5 * PERIOD);
	pl_mark_correlate_until(p->correlator, UINT64_MAX);
	pl_mark_correlator_free(p->correlator);
	p->correlator = NULL;
}
