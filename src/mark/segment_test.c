/* SPDX-License-Identifier: BSD-2-Clause */
/* Results as records: what is absent is absent, in the record, in JSON and in a row. */
#include "base/buf.h"
#include "base/test.h"
#include "mark/correlate.h"
#include "record/clickhouse.h"
#include "record/json.h"
#include "record/record_file.h"

#define SECOND UINT64_C(1000000000)

static const uint32_t points[] = { 10, 20, 30 };
static const struct pl_mark_segment link_of = { &points[0], &points[1], 1, 1 },
				    cluster = { &points[0], &points[1], 1, 2 };

static struct pl_seg192 of(const struct pl_mark_result *r, const struct pl_mark_segment *s)
{
	struct pl_seg192 record;

	memset(&record, 0xa5, sizeof(record));
	pl_mark_segment_record(&record, r, s);
	return record;
}

static void whole(void)
{
	const struct pl_mark_result r = { .flow = { .sport = 1000, .dport = 2000, .proto = 17 },
		.block = 1000037,
		.period_ns = SECOND,
		.method = PL_MARK_DOUBLE,
		.segment = 4,
		.tai_offset = 37,
		.has = PL_MARK_HAS_LOSS | PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST |
		       PL_MARK_HAS_JITTER,
		.alarms = PL_MARK_ALARM_NEGATIVE | PL_MARK_ALARM_UNSYNCED,
		.sent = 1000,
		.received = 1003,
		.loss = -3,
		.delay_ns = -5,
		.mean_ns = 7,
		.first_ns = 0,
		.jitter_ns = -11,
		.clock_error_ns = 0,
		.late = UINT64_C(1) << 33,
		.early = 2,
		.pulses_sent = 1,
		.pulses_received = 3 };
	const struct pl_seg192 s = of(&r, &link_of);

	eq(s.ts_ns, 1000000 * SECOND, "TAI is ahead of UTC");
	eq(s.has, PL_SEG_HAS_loss | PL_SEG_HAS_delay_ns | PL_SEG_HAS_mean_ns | PL_SEG_HAS_first_ns |
			  PL_SEG_HAS_jitter_ns | PL_SEG_HAS_loss_ppb | PL_SEG_HAS_clock_error_ns);
	ok(s.loss == -3 && s.loss_ppb == -3000000, "loss keeps its sign");
	ok(s.delay_ns == -5 && s.mean_ns == 7 && s.first_ns == 0 && s.jitter_ns == -11);
	eq(s.segment, 5, "counted from 1");
	ok(s.from_point == 10 && s.to_point == 20 && s.from_count == 1 && s.to_count == 1);
	ok(s.late == UINT32_MAX && s.early == 2, "what does not fit stays at its largest");
	eq(s.alarms, PL_MARK_ALARM_NEGATIVE | PL_MARK_ALARM_UNSYNCED);
	ok(s.missing_count == 0 && s.pulses_sent == 1 && s.pulses_received == 3);
}

/* Nothing was sent: a loss of 0, but no ratio. A point is missing: no loss at all. */
static void absent(void)
{
	const uint32_t missing[] = { 20, 30 };
	struct pl_mark_result r = { .flow = { .has_flow_id = 1, .flow_id = 77 },
		.block = 5,
		.period_ns = SECOND,
		.method = PL_MARK_STEP,
		.has = PL_MARK_HAS_LOSS,
		.clock_error_ns = UINT64_MAX };
	struct pl_seg192 s = of(&r, &cluster);
	struct pl_buf text;

	eq(s.has, PL_SEG_HAS_loss | PL_SEG_HAS_flow_id, "idle: loss, no ratio, no clock error");
	eq(s.to_count, 2);
	pl_buf_init(&text);
	pl_flat_json(&text, PL_FLAT_SEG192, &s);
	pl_buf_chr(&text, '\0');
	ok(strstr(text.data, "\"loss\":0") != NULL && strstr(text.data, "\"flow_id\":77") != NULL &&
			strstr(text.data, "loss_ppb") == NULL &&
			strstr(text.data, "delay_ns") == NULL &&
			strstr(text.data, "\"since\"") == NULL,
		"no key of an absent value: %s", text.data);
	pl_buf_done(&text);

	r.has = 0;
	r.missing = missing;
	r.n_missing = 2;
	r.alarms = PL_MARK_ALARM_MISSING;
	s = of(&r, &cluster);
	eq(s.has, PL_SEG_HAS_flow_id | PL_SEG_HAS_missing_point);
	ok(s.missing_point == 20 && s.missing_count == 2, "the first of two");
	ok(s.sent == 0 && s.loss == 0 && s.delay_ns == 0 && s.clock_error_ns == 0,
		"absent fields are zeros");
}

static void pulse(void)
{
	struct pl_mark_result r = { .block = 9,
		.period_ns = SECOND,
		.method = PL_MARK_PULSE,
		.since = 7,
		.has = PL_MARK_HAS_LOSS,
		.sent = UINT64_MAX / 2,
		.loss = INT64_MIN };
	struct pl_seg192 s = of(&r, &link_of);

	ok((s.has & PL_SEG_HAS_since) != 0 && s.since == 7);
	ok(s.loss_ppb == -1000000000, "%" PRId64, s.loss_ppb);
	r.sent = 1;
	s = of(&r, &link_of);
	ok(s.loss_ppb == INT64_MIN, "and no overflow");
}

/* The columns in front of a file fit what readers keep of its beginning. */
static void header(void)
{
	struct pl_buf out;

	pl_buf_init(&out);
	pl_clickhouse_header(&out, PL_FLAT_SEG192);
	ok(out.len <= PL_CLICKHOUSE_HEADER_MAX, "%zu bytes", out.len);
	pl_buf_done(&out);
	eq(pl_flat(PL_FLAT_SEG192)->size, 192);
	streq(pl_flat(PL_FLAT_SEG192)->stream, "segments");
}

int main(void)
{
	whole();
	absent();
	pulse();
	header();
	return pl_test_done();
}
