/* SPDX-License-Identifier: BSD-2-Clause */
/* The correlator by itself: several points, clusters, and records that are missing, late or double. */
#include "base/rng.h"
#include "base/test.h"
#include "mark/correlate.h"

#define MS     UINT64_C(1000000)
#define PERIOD (1000 * MS)
#define BLOCK  UINT64_C(2000000)

static struct {
	struct pl_mark_result results[64];
	uint32_t missing[64][16];
	unsigned int n;
} got;

static void keep(void *arg, const struct pl_mark_result *r)
{
	(void)arg;
	if (got.n == 64)
		return;
	got.results[got.n] = *r;
	for (uint32_t i = 0; i < r->n_missing && i < 16; i++)
		got.missing[got.n][i] = r->missing[i];
	got.n++;
}

static struct pl_mark128 record(uint32_t point, uint64_t block, uint64_t packets, uint64_t mean_ms)
{
	return (struct pl_mark128){ .block = block,
		.period_ns = PERIOD,
		.method = PL_MARK_STEP,
		.mark_flags = PL_MARK_IS_SYNCED,
		.point = point,
		.packets = packets,
		.sum_ns = (int64_t)(packets * mean_ms * MS),
		.proto = 17 };
}

static void put(struct pl_mark_correlator *c, uint32_t point, uint64_t block, uint64_t packets,
	uint64_t mean_ms)
{
	const struct pl_mark128 r = record(point, block, packets, mean_ms);

	pl_mark_correlate(c, &r);
}

static struct pl_mark_correlator *open_with(
	const struct pl_mark_segment *segments, uint32_t n, uint32_t blocks_max)
{
	const struct pl_mark_correlator_config config = { .segments = segments,
		.n_segments = n,
		.blocks_max = blocks_max,
		.patience_ns = 100 * MS,
		.result = keep };
	struct pl_mark_correlator *c = NULL;

	got.n = 0;
	if (pl_mark_correlator_new(&c, &config, NULL) < 0)
		abort();
	return c;
}

static const uint32_t points[] = { 10, 20, 30, 40 };
#define LINK(a, b)                                                                                 \
	{                                                                                          \
		.from = &points[a], .to = &points[b], .n_from = 1, .n_to = 1                       \
	}
static const struct pl_mark_segment path[] = { LINK(0, 1), LINK(1, 2), LINK(0, 2) };

static bool accounts_close(const struct pl_mark_correlator *c)
{
	const struct pl_mark_correlator_stats *s = pl_mark_correlator_stats(c);

	return s->records ==
	       s->taken + s->duplicates + s->late + s->other_points + s->unusable + s->without_room;
}

static void segments(void)
{
	struct pl_mark_correlator *c = open_with(path, 3, 64);

	put(c, 30, BLOCK, 985, 0);
	put(c, 10, BLOCK, 1000, 0);
	eq(got.n, 0, "nothing is told before all have reported");
	put(c, 20, BLOCK, 990, 0);
	eq(got.n, 3, "then at once");
	ok(got.results[0].loss == 10 && got.results[1].loss == 5 && got.results[2].loss == 15,
		"N19: losses of links add up to that of the path");
	put(c, 20, BLOCK, 990, 0);
	put(c, 77, BLOCK, 990, 0);
	eq(got.n, 3, "the same record again changes nothing");
	eq(pl_mark_correlator_stats(c)->duplicates, 1);
	eq(pl_mark_correlator_stats(c)->other_points, 1);
	ok(accounts_close(c), "the accounts close");
	pl_mark_correlator_free(c);
}

/* Points that take no times, and one that changed its block too late. */
static void untimed(void)
{
	struct pl_mark_correlator *c = open_with(path, 1, 64);
	struct pl_mark128 r = record(10, BLOCK, 1000, 20);

	pl_mark_correlate(c, &r);
	r = record(20, BLOCK, 1000, 0);
	r.mark_flags |= PL_MARK_UNTIMED;
	pl_mark_correlate(c, &r);
	ok(got.n == 1 && got.results[0].has == PL_MARK_HAS_LOSS && got.results[0].alarms == 0,
		"where one end has no times there is loss, and no delay");
	put(c, 10, BLOCK + 1, 1000, 0);
	r = record(20, BLOCK + 1, 700, 0);
	r.mark_flags |= PL_MARK_UNTIMED | PL_MARK_LATE_CHANGE;
	pl_mark_correlate(c, &r);
	ok(got.n == 2 && got.results[1].has == 0 &&
			got.results[1].alarms == PL_MARK_ALARM_LATE_CHANGE,
		"a block that was changed too late has no loss, but an alarm");
	pl_mark_correlator_free(c);
}

/* A point that took no times in the block before has no pulse for jitter. */
static void untimed_before(void)
{
	struct pl_mark_correlator *c = open_with(path, 1, 64);

	for (uint64_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < 2; i++) {
			struct pl_mark128 r = record(points[i], BLOCK + k, 10, 0);

			r.method = PL_MARK_DOUBLE;
			r.pulses = 1;
			r.pulse_ns = (int64_t)(i * MS);
			r.mark_flags |= k == 0 && i == 1 ? PL_MARK_UNTIMED : 0;
			pl_mark_correlate(c, &r);
		}
	}
	ok(got.n == 2 && (got.results[0].has & PL_MARK_HAS_DELAY) == 0 &&
			(got.results[1].has & (PL_MARK_HAS_DELAY | PL_MARK_HAS_JITTER)) ==
				PL_MARK_HAS_DELAY,
		"delay of the block with times, and no jitter against the one without");
	pl_mark_correlator_free(c);
}

/* Packets that are outside the guard band belong to another block, or to one two blocks away: of these, too,
 * no number is vouched for. In multiplexed marking they are read as pulses, of which there are several; one
 * more than was sent may be a duplicate, but is in no sum either. */
static void misread(void)
{
	static const struct {
		uint16_t flag;
		uint16_t pulses;
		bool beyond, sound;
	} of[] = { { 0, 1, false, true }, { PL_MARK_IS_BEYOND, 1, true, false },
		{ 0, 1, true, false }, { 0, 1, true, false }, { 0, 1, false, true },
		{ 0, 3, true, false }, { 0, 1, true, false }, { 0, 1, true, false },
		{ 0, 2, false, false }, { 0, 1, false, true }, { 0, 0, false, true } };
	const unsigned int n = sizeof(of) / sizeof(of[0]);
	struct pl_mark_correlator *c = open_with(path, 1, 64);

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < 2; k++) {
			struct pl_mark128 r = record(points[k], BLOCK + i, 10 - k, 0);

			r.method = PL_MARK_MULTIPLEXED;
			r.pulses = k == 1 ? of[i].pulses : 1;
			r.mark_flags |= k == 1 ? of[i].flag : 0;
			pl_mark_correlate(c, &r);
		}
		ok(got.n == i + 1 &&
				((got.results[i].alarms & PL_MARK_ALARM_BEYOND) != 0) ==
					of[i].beyond &&
				pl_mark_result_is_sound(&got.results[i]) == of[i].sound,
			"block %u: flags %u, %u pulses", i, of[i].flag, of[i].pulses);
	}
	pl_mark_correlator_free(c);
}

/* The block behind one of which the marker's record is missing is told first. */
static void beyond_unsent(void)
{
	struct pl_mark_correlator *c = open_with(path, 1, 64);
	struct pl_mark128 r = record(points[1], BLOCK, 10, 0);

	r.mark_flags |= PL_MARK_IS_BEYOND;
	pl_mark_correlate(c, &r);
	for (unsigned int k = 0; k < 2; k++) {
		r = record(points[k], BLOCK + 1, 10 - k, 0);
		pl_mark_correlate(c, &r);
	}
	ok(got.n == 1 && (got.results[0].alarms & PL_MARK_ALARM_BEYOND) != 0 &&
			!pl_mark_result_is_sound(&got.results[0]),
		"a block behind one beyond the guard band that is not told yet");
	pl_mark_correlator_free(c);
}

/* A clock that was set while the block lasted, a table of flows that was full, a block seen in part: there
 * are numbers, and no sum has them. */
static void unsound(void)
{
	static const struct {
		uint16_t flag;
		uint32_t alarm;
	} of[] = { { PL_MARK_IS_STEPPED, PL_MARK_ALARM_STEPPED },
		{ PL_MARK_NO_ROOM, PL_MARK_ALARM_NO_ROOM },
		{ PL_MARK_IS_PARTIAL, PL_MARK_ALARM_PARTIAL },
		{ PL_MARK_IS_BEYOND, PL_MARK_ALARM_BEYOND } };
	struct pl_mark_correlator *c = open_with(path, 1, 64);

	for (unsigned int i = 0; i < 8; i++) {
		for (unsigned int k = 0; k < 2; k++) {
			struct pl_mark128 r = record(points[k], BLOCK + i, 10 - k, 0);

			r.sport = (uint16_t)i;
			r.mark_flags |= k == i / 4 ? of[i % 4].flag : 0;
			pl_mark_correlate(c, &r);
		}
		ok(got.n == i + 1 && got.results[i].alarms == of[i % 4].alarm &&
				!pl_mark_result_is_sound(&got.results[i]),
			"flag %u at point %u: an alarm, and in no sum", of[i % 4].flag, i / 4 + 1);
	}
	pl_mark_correlator_free(c);
}

static void missing(void)
{
	struct pl_mark_correlator *c = open_with(path, 3, 64);

	put(c, 10, BLOCK, 1000, 0);
	put(c, 30, BLOCK, 985, 0);
	pl_mark_correlate_until(c, pl_mark_read_at(PL_MARK_STEP, BLOCK, PERIOD) + 100 * MS);
	eq(got.n, 0, "a block is waited for");
	pl_mark_correlate_until(c, pl_mark_read_at(PL_MARK_STEP, BLOCK, PERIOD) + 100 * MS + 1);
	eq(got.n, 3, "until its deadline");
	ok(got.results[0].has == 0 && got.results[0].alarms == PL_MARK_ALARM_MISSING &&
			got.results[0].n_missing == 1 && got.missing[0][0] == 20,
		"the point that did not report is named, and there is no loss");
	ok(got.results[2].has == (PL_MARK_HAS_LOSS) && got.results[2].loss == 15,
		"what others reported is told");
	put(c, 20, BLOCK, 990, 0);
	eq(pl_mark_correlator_stats(c)->late, 1, "what comes later is late");
	put(c, 20, BLOCK - 1, 990, 0);
	eq(pl_mark_correlator_stats(c)->late, 2, "also of blocks of which nothing had come");
	pl_mark_correlate_until(c, pl_mark_read_at(PL_MARK_STEP, BLOCK + 20, PERIOD));
	put(c, 20, BLOCK, 990, 0);
	eq(pl_mark_correlator_stats(c)->late, 3, "and when the block is forgotten");
	eq(got.n, 3);
	ok(accounts_close(c), "the accounts close");
	pl_mark_correlator_free(c);
}

/* The graph of RFC 9342's appendix, by its clusters. */
static void clusters(void)
{
	static const uint32_t r[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	static const uint32_t first_out[] = { 2, 3, 10 }, second_in[] = { 2, 3 },
			      second_out[] = { 4, 5, 9 }, third_out[] = { 6, 7 },
			      all_out[] = { 6, 7, 8, 9, 10 };
	static const struct pl_mark_segment of[] = {
		{ &r[1], first_out, 1, 3 },
		{ second_in, second_out, 2, 3 },
		{ &r[4], third_out, 1, 2 },
		{ &r[5], &r[8], 1, 1 },
		{ &r[1], all_out, 1, 5 },
	};
	static const uint64_t counts[] = { 0, 1000, 400, 500, 300, 450, 200, 100, 440, 147, 95 };
	static const int64_t losses[] = { 5, 3, 0, 10, 18 };
	struct pl_mark_correlator *c = open_with(of, 5, 64);

	for (uint32_t i = 10; i > 0; i--)
		put(c, i, BLOCK, counts[i], 0);
	eq(got.n, 5);
	for (unsigned int i = 0; i < 5; i++)
		eq(got.results[i].loss, losses[i], "N20: cluster %u", i);
	pl_mark_correlator_free(c);
}

/* A cluster with points at both of its ends, of which all but one did not report: each is named
 * once. */
static void missing_within(void)
{
	static const uint32_t in[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[] = { 2, 3, 4, 5, 6, 7, 8, 9 };
	static const struct pl_mark_segment of[] = { { in, out, 8, 8 } };
	struct pl_mark_correlator *c = open_with(of, 1, 64);

	put(c, 1, BLOCK, 1000, 0);
	pl_mark_correlate_until(c, UINT64_MAX);
	ok(got.n == 1 && got.results[0].alarms == PL_MARK_ALARM_MISSING &&
			got.results[0].n_missing == 8,
		"each missing point once");
	for (uint32_t i = 0; i < 8; i++)
		eq(got.missing[0][i], i + 2);
	pl_mark_correlator_free(c);
}

static void multipoint_delay(void)
{
	static const uint32_t in[] = { 1, 2 }, out[] = { 3, 4 };
	static const struct pl_mark_segment of[] = { { in, out, 2, 2 } };
	struct pl_mark_correlator *c = open_with(of, 1, 64);

	put(c, 1, BLOCK, 600, 100);
	put(c, 2, BLOCK, 400, 120);
	put(c, 3, BLOCK, 500, 112);
	put(c, 4, BLOCK, 500, 118);
	ok(got.n == 1 && (got.results[0].has & PL_MARK_HAS_MEAN) != 0, "a mean of several ends");
	eq(got.results[0].mean_ns, 7 * MS, "N21: 115 - 108 ms");
	ok((got.results[0].has & PL_MARK_HAS_FIRST) == 0, "first packets say nothing there");
	pl_mark_correlator_free(c);
}

static void unequal(void)
{
	struct pl_mark_correlator *c = open_with(path, 1, 64);
	struct pl_mark128 r = record(20, BLOCK, 9, 0);

	put(c, 10, BLOCK, 10, 0);
	r.period_ns = 2 * PERIOD;
	pl_mark_correlate(c, &r);
	ok(got.n == 1 && got.results[0].has == 0 &&
			(got.results[0].alarms & PL_MARK_ALARM_SETTINGS) != 0,
		"points with other periods are not compared");
	put(c, 10, BLOCK + 5, 10, 0);
	r = record(20, BLOCK + 5, 9, 0);
	r.mark_flags |= 3 << 10;
	pl_mark_correlate(c, &r);
	ok(got.n == 2 && got.results[1].loss == 1,
		"a point that does not tell its bit is compared");
	r = record(10, BLOCK + 6, 10, 0);
	r.mark_flags |= 4 << 10;
	pl_mark_correlate(c, &r);
	r = record(20, BLOCK + 6, 9, 0);
	r.mark_flags |= 3 << 10;
	pl_mark_correlate(c, &r);
	ok(got.n == 3 && got.results[2].has == 0 && got.results[2].alarms == PL_MARK_ALARM_SETTINGS,
		"points that have another bit, or count other flows, are not");
	got.n = 1;
	r = record(20, BLOCK + 1, 9, 0);
	r.tai_offset = 37;
	put(c, 10, BLOCK + 1, 10, 0);
	pl_mark_correlate(c, &r);
	ok(got.n == 2 && got.results[1].has == 0 &&
			(got.results[1].alarms & PL_MARK_ALARM_CLOCK_DOMAIN) != 0,
		"nor those of another time scale");
	r = record(20, BLOCK + 2, UINT64_MAX, 0);
	r.sum_ns = INT64_MIN;
	put(c, 10, BLOCK + 2, UINT64_MAX, 0);
	pl_mark_correlate(c, &r);
	ok(got.n == 3 && (got.results[2].has & PL_MARK_HAS_MEAN) == 0,
		"sums that cannot be right make no mean");
	pl_mark_correlator_free(c);
}

/* Records of anything: every one is accounted for, and the memory is bounded. */
static void hostile(void)
{
	struct pl_mark_correlator *c = open_with(path, 3, 16);
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	for (unsigned int i = 0; i < 100000; i++) {
		struct pl_mark128 r = record(points[pl_rng_below(&rng, 4)],
			BLOCK + pl_rng_below(&rng, 20), pl_rng_below(&rng, 10), 0);

		r.sport = (uint16_t)pl_rng_below(&rng, 4);
		if (pl_rng_below(&rng, 10) == 0)
			r.block = pl_rng_u64(&rng);
		if (pl_rng_below(&rng, 10) == 0)
			r.period_ns = pl_rng_u64(&rng) >> pl_rng_below(&rng, 64);
		if (pl_rng_below(&rng, 10) == 0)
			r.method = (uint8_t)pl_rng_below(&rng, 256);
		pl_mark_correlate(c, &r);
		if (pl_rng_below(&rng, 1000) == 0)
			pl_mark_correlate_until(c, (BLOCK + pl_rng_below(&rng, 40)) * PERIOD);
	}
	pl_mark_correlate_until(c, UINT64_MAX);
	ok(accounts_close(c), "whatever comes, the accounts close");
	ok(pl_mark_correlator_stats(c)->pushed_out > 0, "blocks without room push others out");
	ok(pl_mark_correlator_stats(c)->unusable > 0, "what cannot be is left out");
	pl_mark_correlator_free(c);
}

/* Offsets that no meter makes: their differences would not fit. */
static void far_offsets(void)
{
	struct pl_mark_correlator *c = open_with(path, 3, 16);
	struct pl_mark128 r;

	for (unsigned int i = 0; i < 3; i++) {
		r = record(points[i], BLOCK, 10, 0);
		r.method = PL_MARK_DOUBLE;
		r.pulses = 1;
		r.first_ns = r.pulse_ns = i % 2 == 0 ? INT64_MIN : INT64_MAX;
		pl_mark_correlate(c, &r);
	}
	pl_mark_correlate_until(c, UINT64_MAX);
	eq(pl_mark_correlator_stats(c)->unusable, 3, "offsets that cannot be are left out");
	/* A sum that so few packets cannot have, and the largest that they can. */
	for (unsigned int i = 0; i < 3; i++) {
		r = record(points[i], BLOCK, 10, 0);
		r.sum_ns = i == 0   ? INT64_MIN
			   : i == 1 ? -20 * (int64_t)PERIOD - 1
				    : 20 * (int64_t)PERIOD;
		pl_mark_correlate(c, &r);
	}
	eq(pl_mark_correlator_stats(c)->unusable, 5, "and so is their sum");
	pl_mark_correlator_free(c);
}

/* Losses of links are those of the path, whatever the order of the records. */
static void any_order(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0;

	for (unsigned int seed = 1; seed <= 500; seed++) {
		struct pl_mark_correlator *c = open_with(path, 3, 64);
		uint64_t counts[3];
		struct pl_mark128 records[9];

		pl_rng_seed(&rng, seed);
		for (unsigned int i = 0; i < 3; i++) {
			counts[i] = pl_rng_below(&rng, 1000);
			records[i] = records[3 + i] = records[6 + i] =
				record(points[i], BLOCK, counts[i], 0);
		}
		for (unsigned int i = 8; i > 0; i--) {
			const unsigned int k = (unsigned int)pl_rng_below(&rng, i + 1);
			const struct pl_mark128 kept = records[i];

			records[i] = records[k];
			records[k] = kept;
		}
		for (unsigned int i = 0; i < 9; i++)
			pl_mark_correlate(c, &records[i]);
		wrong += got.n != 3 ||
			 got.results[0].loss + got.results[1].loss != got.results[2].loss ||
			 got.results[0].loss != (int64_t)(counts[0] - counts[1]);
		pl_mark_correlator_free(c);
	}
	eq(wrong, 0, "results do not depend on the order of records, nor on copies of them");
}

static void refused(void)
{
	struct pl_mark_correlator *c;
	struct pl_diag diag = { 0 };
	const struct pl_mark_segment none = { .from = points, .n_from = 1 };
	struct pl_mark_correlator_config config = { .result = keep };

	ok(pl_mark_correlator_new(&c, &config, &diag) < 0, "no segment: %s", diag.text);
	config.segments = &none;
	config.n_segments = 1;
	ok(pl_mark_correlator_new(&c, &config, &diag) < 0, "a segment without end: %s", diag.text);
}

static void put_pulse(struct pl_mark_correlator *c, uint32_t point, uint64_t block,
	uint64_t packets, uint32_t pulses, unsigned int flags)
{
	struct pl_mark128 r = record(point, block, packets, 0);

	r.method = PL_MARK_PULSE;
	r.pulses = pulses;
	r.mark_flags |= (uint16_t)flags;
	pl_mark_correlate(c, &r);
}

/* Pulse marking with 1000 packets a block: a meter that was started anew counts from 0, and until the next
 * pulse its count may be larger than before. */
static void restarted(void)
{
	enum { NONE = 4 };
	static const struct {
		uint32_t pulses; /* in the block behind the start; NONE: no record of it */
		unsigned int flags;
		bool sound[2]; /* results of that block and the next */
		const char *what;
	} rows[] = {
		{ 1, PL_MARK_IS_PARTIAL, { false, false }, "with a pulse" },
		{ 0, PL_MARK_IS_PARTIAL, { false, false }, "without" },
		{ 0, PL_MARK_IS_STEPPED, { false, false }, "a clock that was set" },
		{ NONE, 0, { false, false }, "a record that is missing" },
		{ 0, 0, { false, true }, "no restart: a pulse that was lost" },
		{ 1, 0, { true, true }, "no restart" },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t lost = rows[i].sound[1] ? 0 : 1500;
		struct pl_mark_correlator *c = open_with(path, 1, 64);
		unsigned int sound = 0, wrong = 0;

		for (uint64_t k = 0; k < 6; k++) {
			put_pulse(c, 10, BLOCK + k, 1 + 1000 * k, 1, 0);
			if (k < 3)
				put_pulse(c, 20, BLOCK + k, 1 + 1000 * k, 1, 0);
			else if (k > 3)
				put_pulse(c, 20, BLOCK + k, 1 + 1000 * k - lost, 1, 0);
			else if (rows[i].pulses != NONE)
				put_pulse(c, 20, BLOCK + k, 1 + 1000 * k - lost, rows[i].pulses,
					rows[i].flags);
		}
		pl_mark_correlate_until(c, UINT64_MAX);
		for (unsigned int k = 0; k < got.n; k++) {
			const struct pl_mark_result *r = &got.results[k];
			const bool is = pl_mark_result_is_sound(r);

			if (r->block == BLOCK + 3 || r->block == BLOCK + 4)
				wrong += is != rows[i].sound[r->block - BLOCK - 3];
			else
				sound += is;
			wrong += is && r->loss != 0;
		}
		eq(wrong, 0, "a meter in pulse marking, restarted: %s", rows[i].what);
		eq(sound, 3, "blocks before, and those behind");
		pl_mark_correlator_free(c);
	}
}

int main(void)
{
	segments();
	restarted();
	untimed();
	untimed_before();
	unsound();
	misread();
	beyond_unsent();
	missing();
	clusters();
	missing_within();
	multipoint_delay();
	unequal();
	hostile();
	far_offsets();
	any_order();
	refused();
	return pl_test_done();
}
