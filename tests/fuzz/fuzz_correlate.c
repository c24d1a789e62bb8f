/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A correlator and block records of any bytes. First byte: how many points are in a row, and whether
 * the last segment has several ends; second: room for blocks, and patience; then pieces: a byte that says
 * what comes. 128 bytes are a record as they are; 12 bytes are one of few flows, blocks and points,
 * with wrong fields now and then; or it is a step of time. Every record is counted once, results have
 * the numbers that they say they have, every block is told once.
 */
#include "fuzz.h"
#include "mark/correlate.h"
#include "record/packet.h"
#include "wire/cursor.h"

#define POINTS    5u
#define PERIOD_NS UINT64_C(1000000000)
#define ZERO      UINT64_C(1700000000)

struct sums {
	const struct pl_mark_segment *segments;
	uint32_t n_segments;
	uint64_t results;
};

static void told(void *arg, const struct pl_mark_result *r)
{
	struct sums *s = arg;
	struct pl_seg192 record;

	s->results++;
	must(r->segment < s->n_segments);
	must(r->block > 0 && r->period_ns >= PL_MARK_PERIOD_MIN_NS);
	must(r->n_missing <= s->segments[r->segment].n_from + s->segments[r->segment].n_to);
	must((r->n_missing > 0) == ((r->alarms & PL_MARK_ALARM_MISSING) != 0));
	if ((r->alarms & (PL_MARK_ALARM_MISSING | PL_MARK_ALARM_CLOCK_DOMAIN |
				 PL_MARK_ALARM_SETTINGS)) != 0)
		must(r->has == 0);
	if ((r->has & PL_MARK_HAS_LOSS) != 0)
		must((uint64_t)r->loss == r->sent - r->received);
	if ((r->has & PL_MARK_HAS_LOSS) != 0 && r->loss < 0)
		must((r->alarms & PL_MARK_ALARM_NEGATIVE) != 0);
	if ((r->has & (PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST)) != 0)
		must(r->sent == r->received && r->sent > 0);
	must((r->has & PL_MARK_HAS_JITTER) == 0 || (r->has & PL_MARK_HAS_DELAY) != 0);
	if ((r->has & PL_MARK_HAS_DELAY) != 0)
		must((r->alarms & PL_MARK_ALARM_PULSES) == 0);
	pl_mark_segment_record(&record, r, &s->segments[r->segment]);
}

/* d: 12 bytes. */
static struct pl_mark128 record_of(const uint8_t *d)
{
	static const uint64_t counts[] = { 0, 1, 100, 101, 1000, UINT32_MAX, UINT64_MAX / 2,
		UINT64_MAX };
	static const int64_t offsets[] = { 0, 1, 1000000, -1000000, 499999999, 2000000000,
		INT64_MAX, INT64_MIN };
	struct pl_mark128 r = { .period_ns = PERIOD_NS, .method = 1 + d[0] % 4 };

	r.src.b[15] = d[1] & 3;
	r.point = d[2] % (POINTS + 2);
	r.block = ZERO + d[3] % 8;
	r.packets = counts[d[4] & 7];
	r.bytes = counts[d[4] >> 4 & 7];
	r.sum_ns = offsets[d[5] & 7];
	r.first_ns = offsets[d[5] >> 4 & 7];
	r.pulse_ns = offsets[d[6] & 7];
	r.pulses = d[6] >> 4 & 3;
	r.late = d[7] & 3;
	r.early = d[7] >> 2 & 3;
	r.mark_flags = (uint16_t)(d[8] | d[9] << 8);
	r.tai_offset = (d[10] & 1) != 0 ? 37 : 0;
	r.clock_error_ns = (d[10] & 2) != 0 ? UINT32_MAX : 1000;
	r.period_ns = (d[10] & 0x30) == 0x30 ? counts[d[11] & 7] : PERIOD_NS;
	r.block = (d[10] & 0xc0) == 0xc0 ? counts[d[11] >> 3 & 7] : r.block;
	return r;
}

static void feed(struct pl_mark_correlator *c, struct pl_cursor in)
{
	while (pl_cursor_left(&in) > 0) {
		const uint8_t what = pl_get_u8(&in);
		const uint8_t *d;
		struct pl_mark128 r;

		if ((what & 3) == 3) {
			pl_mark_correlate_until(c, (ZERO + (what >> 2)) * PERIOD_NS);
			continue;
		}
		if ((what & 3) == 2) {
			d = pl_cursor_take(&in, sizeof(r));
			if (d == NULL)
				break;
			memcpy(&r, d, sizeof(r));
		} else {
			d = pl_cursor_take(&in, 12);
			if (d == NULL)
				break;
			r = record_of(d);
		}
		pl_mark_correlate(c, &r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t points[] = { 1, 2, 3, 4, 5 };
	struct pl_mark_segment segments[POINTS];
	struct sums sums = { .segments = segments };
	struct pl_mark_correlator_config config = {
		.segments = segments, .result = told, .arg = &sums
	};
	const struct pl_mark_correlator_stats *s;
	struct pl_mark_correlator *c = NULL;

	if (size < 2)
		return 0;
	for (uint32_t i = 0; i <= data[0] % (POINTS - 1); i++)
		segments[sums.n_segments++] =
			(struct pl_mark_segment){ &points[i], &points[i + 1], 1, 1 };
	if ((data[0] & 0x80) != 0)
		segments[sums.n_segments++] =
			(struct pl_mark_segment){ &points[0], &points[1], 1, 1 + data[0] / 8 % 4 };
	config.n_segments = sums.n_segments;
	config.blocks_max = 1u << (data[1] & 7);
	config.patience_ns = (data[1] >> 3 & 7) * PERIOD_NS / 4;
	config.clock_ns = (data[1] & 0x40) != 0 ? 1000000 : 0;
	must(pl_mark_correlator_new(&c, &config, NULL) == 0);
	s = pl_mark_correlator_stats(c);
	feed(c, pl_cursor(data + 2, size - 2));
	must(s->records == s->taken + s->duplicates + s->late + s->other_points + s->unusable +
				   s->without_room);
	pl_mark_correlate_until(c, UINT64_MAX);
	must(s->results == sums.results && s->results <= s->blocks * sums.n_segments);
	must(s->blocks <= s->taken && s->incomplete <= s->blocks && s->pushed_out <= s->blocks);
	pl_mark_correlator_free(c);
	return 0;
}
