/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and block records as a collector reads them: each value under its element, and no number that
 * is not known. */
#include "ipfix/marks.h"

#include "ipfix/test_reader.h"

#define PEN   64512u
#define START UINT64_C(1700000000500000000)

static uint32_t told; /* records, by the writer */

static void take_marks(void *arg, const uint8_t *m, uint32_t bytes, uint32_t records)
{
	told += records;
	take(arg, m, bytes, 0);
}

static struct pl_ipfix_sets *begun(enum pl_ipfix_time time)
{
	const struct pl_ipfix_sets_options o = {
		.domain = 9, .time = time, .pen = PEN, .send = take_marks
	};
	struct pl_ipfix_sets *x = NULL;

	memset(&got, 0, sizeof(got));
	told = 0;
	if (pl_ipfix_marks_new(&x, &o) < 0)
		abort();
	return x;
}

static struct pl_seg192 a_segment(void)
{
	return (struct pl_seg192){ .ts_ns = START,
		.src = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 2 }),
		.sport = 1234,
		.dport = 80,
		.proto = 6,
		.method = PL_MARK_DOUBLE,
		.tai_offset = 37,
		.block = 3400000001,
		.period_ns = 500000000,
		.has = PL_SEG_HAS_loss | PL_SEG_HAS_loss_ppb | PL_SEG_HAS_delay_ns |
		       PL_SEG_HAS_mean_ns | PL_SEG_HAS_first_ns | PL_SEG_HAS_jitter_ns |
		       PL_SEG_HAS_since | PL_SEG_HAS_clock_error_ns | PL_SEG_HAS_flow_id |
		       PL_SEG_HAS_missing_point,
		.alarms = 8,
		.segment = 3,
		.from_point = 11,
		.to_point = 12,
		.from_count = 2,
		.to_count = 4,
		.missing_count = 5,
		.missing_point = 13,
		.flow_id = 0xabcde,
		.late = 14,
		.early = 15,
		.pulses_sent = 1,
		.pulses_received = 6,
		.sent = 1000,
		.received = 1007,
		.loss = -7,
		.delay_ns = -5,
		.mean_ns = 20001,
		.first_ns = 20002,
		.jitter_ns = -20003,
		.loss_ppb = -7000000,
		.since = 3400000000,
		.clock_error_ns = 5000 };
}

struct want {
	uint32_t pen;
	uint16_t id;
	uint64_t value;
};

static const struct want wanted[] = { { 0, 152, START / 1000000 },
	{ 0, 153, (START + 500000000) / 1000000 }, { 0, 8, 0x0a000001 }, { 0, 12, 0x0a000002 },
	{ 0, 7, 1234 }, { 0, 11, 80 }, { 0, 4, 6 }, { PEN, 201, 0xabcde }, { PEN, 202, 3400000001 },
	{ PEN, 203, 500000000 }, { PEN, 204, 3 }, { PEN, 205, 37 }, { PEN, 206, 5000 },
	{ PEN, 207, 14 }, { PEN, 208, 15 }, { PEN, 221, 3 }, { PEN, 222, 11 }, { PEN, 223, 12 },
	{ PEN, 224, 2 }, { PEN, 225, 4 }, { PEN, 226, 5 }, { PEN, 227, 13 }, { PEN, 228, 8 },
	{ PEN, 229, 1 }, { PEN, 230, 6 }, { PEN, 231, 1000 }, { PEN, 232, 1007 },
	{ PEN, 233, (uint64_t)-7 }, { PEN, 234, (uint64_t)-7000000 }, { PEN, 235, (uint64_t)-5 },
	{ PEN, 236, 20001 }, { PEN, 237, 20002 }, { PEN, 238, (uint64_t)-20003 },
	{ PEN, 239, 3400000000 } };

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

static void whole(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	const struct pl_seg192 s = a_segment();

	eq(pl_ipfix_marks_segment(x, &s, 1001), true);
	eq(pl_ipfix_sets_waiting(x), 1);
	pl_ipfix_sets_flush(x, 1002);
	eq(told, 1, "a message of one result");
	eq(got.n, 1, "which is a data record");
	eq(got.malformed + got.wrong_sequence, 0, "well formed, in sequence");
	ok(got.domain == 9 && got.export_s == 1002, "domain and time of the export");
	for (size_t i = 0; i < WANTED; i++)
		value(&got.rows[0], wanted[i].pen, wanted[i].id, wanted[i].value, "element");
	eq(got.rows[0].n, WANTED, "and no other value");
	pl_ipfix_sets_free(x);
}

/* Without each of the optional numbers, alone. */
static void absent(void)
{
	static const struct {
		uint32_t has;
		uint16_t id, n;
	} values[] = { { PL_SEG_HAS_loss, 231, 3 }, { PL_SEG_HAS_loss_ppb, 234, 1 },
		{ PL_SEG_HAS_delay_ns, 235, 1 }, { PL_SEG_HAS_mean_ns, 236, 1 },
		{ PL_SEG_HAS_first_ns, 237, 1 }, { PL_SEG_HAS_jitter_ns, 238, 1 },
		{ PL_SEG_HAS_since, 239, 1 }, { PL_SEG_HAS_clock_error_ns, 206, 1 },
		{ PL_SEG_HAS_flow_id, 201, 1 }, { PL_SEG_HAS_missing_point, 227, 1 } };
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	const size_t n = sizeof(values) / sizeof(values[0]);

	for (size_t i = 0; i < n; i++) {
		struct pl_seg192 s = a_segment();

		s.has &= ~values[i].has;
		(void)pl_ipfix_marks_segment(x, &s, 1001);
	}
	pl_ipfix_sets_flush(x, 1001);
	eq(got.n, n);
	for (size_t i = 0; i < n; i++) {
		for (uint16_t k = 0; k < values[i].n; k++)
			ok(!has(&got.rows[i], PEN, (uint16_t)(values[i].id + k)),
				"element %u is not there", values[i].id + k);
		eq(got.rows[i].n, WANTED - values[i].n, "and all others are");
	}
	pl_ipfix_sets_free(x);
}

/* Counted by hosts, or all together; of IPv6; without ports. */
static void flows(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_NANOSECONDS);
	struct pl_seg192 s = a_segment();

	s.sport = s.dport = 0;
	s.proto = 0;
	(void)pl_ipfix_marks_segment(x, &s, 1001);
	s.src = s.dst = (struct pl_addr){ .b = { 0 } };
	(void)pl_ipfix_marks_segment(x, &s, 1001);
	s.dst.b[0] = 0x20;
	s.proto = 58;
	(void)pl_ipfix_marks_segment(x, &s, 1001);
	s.proto = 17;
	(void)pl_ipfix_marks_segment(x, &s, 1001);
	pl_ipfix_sets_flush(x, 1001);
	eq(got.n, 4);
	ok(has(&got.rows[0], 0, 8) && !has(&got.rows[0], 0, 4) && !has(&got.rows[0], 0, 7),
		"of hosts: addresses alone");
	ok(!has(&got.rows[1], 0, 8) && !has(&got.rows[1], 0, 27) && !has(&got.rows[1], 0, 4),
		"of all packets: not even these");
	ok(has(&got.rows[2], 0, 27) && has(&got.rows[2], 0, 4) && !has(&got.rows[2], 0, 7),
		"ICMP has no ports");
	ok(has(&got.rows[3], 0, 28) && has(&got.rows[3], 0, 7), "UDP has, also 0");
	ok(has(&got.rows[3], 0, 156) && has(&got.rows[3], 0, 157) && !has(&got.rows[3], 0, 152),
		"time=ns");
	pl_ipfix_sets_free(x);
}

static struct pl_mark128 a_point(void)
{
	return (struct pl_mark128){ .ts_ns = START,
		.src = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 2 }),
		.sport = 1234,
		.dport = 80,
		.proto = 6,
		.method = PL_MARK_DOUBLE,
		.mark_flags = PL_MARK_IS_MARKER,
		.block = 3400000001,
		.period_ns = 500000000,
		.packets = 10,
		.bytes = 1000,
		.sum_ns = -3,
		.first_ns = -4,
		.pulse_ns = 5,
		.point = 77,
		.clock_error_ns = 6,
		.pulses = 1 };
}

static void points(void)
{
	static const struct want of_point[] = { { 0, 138, 77 }, { 0, 2, 10 }, { 0, 1, 1000 },
		{ PEN, 251, 1 }, { PEN, 252, 1 }, { PEN, 253, (uint64_t)-3 },
		{ PEN, 254, (uint64_t)-4 }, { PEN, 255, 5 }, { PEN, 206, 6 } };
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	struct pl_mark128 m = a_point();

	(void)pl_ipfix_marks_point(x, &m, 1001);
	m.mark_flags |= PL_MARK_UNTIMED;
	(void)pl_ipfix_marks_point(x, &m, 1001);
	m = a_point();
	m.packets = m.bytes = 0;
	m.sum_ns = m.first_ns = m.pulse_ns = 0;
	m.pulses = 0;
	m.clock_error_ns = UINT32_MAX;
	(void)pl_ipfix_marks_point(x, &m, 1001);
	m = a_point();
	m.method = PL_MARK_PULSE;
	(void)pl_ipfix_marks_point(x, &m, 1001);
	pl_ipfix_sets_flush(x, 1001);
	eq(got.n, 4);
	for (size_t i = 0; i < sizeof(of_point) / sizeof(of_point[0]); i++)
		value(&got.rows[0], of_point[i].pen, of_point[i].id, of_point[i].value, "element");
	ok(!has(&got.rows[1], PEN, 253) && !has(&got.rows[1], PEN, 254) &&
			!has(&got.rows[1], PEN, 255) && has(&got.rows[1], 0, 2),
		"a point without times has none");
	ok(has(&got.rows[2], 0, 2) && !has(&got.rows[2], PEN, 254) &&
			!has(&got.rows[2], PEN, 255) && !has(&got.rows[2], PEN, 206),
		"no packet, no first one; a clock whose error is not known has none");
	ok(!has(&got.rows[3], 0, 2) && has(&got.rows[3], 0, 86) && has(&got.rows[3], 0, 85) &&
			!has(&got.rows[3], PEN, 253),
		"method pulse counts on");
	eq(got.malformed + got.wrong_sequence, 0);
	pl_ipfix_sets_free(x);
}

/* Templates again over UDP, and too many sets of values. */
static void templates(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	struct pl_seg192 s = a_segment();
	unsigned int put = 0, before;

	(void)pl_ipfix_marks_segment(x, &s, 1001);
	pl_ipfix_sets_renew(x, 1001);
	before = got.template_sets;
	(void)pl_ipfix_marks_segment(x, &s, 1001);
	pl_ipfix_sets_flush(x, 1001);
	ok(got.template_sets == before + 1 && got.n == 2, "a template is sent again");
	for (uint32_t i = 0; i < 256; i++) {
		s.has = i;
		put += pl_ipfix_marks_segment(x, &s, 1001);
	}
	eq(put, PL_IPFIX_SETS_MAX - 1,
		"as many sets of values as there are templates, with the first");
	pl_ipfix_sets_free(x);
	pl_ipfix_sets_free(NULL);
}

int main(void)
{
	whole();
	absent();
	flows();
	points();
	templates();
	return pl_test_done();
}
