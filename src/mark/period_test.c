/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks, slots, windows and the guard band. */
#include "base/diag.h"
#include "base/rng.h"
#include "base/test.h"
#include "mark/guard.h"
#include "mark/record.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* The block of the colour whose centre is nearest, found by looking at all near ones; the earlier
 * one where two are as near. */
static uint64_t nearest(uint64_t time, uint64_t period, unsigned int colour, unsigned int bits)
{
	const uint64_t near = time / period, cycle = UINT64_C(1) << bits;
	uint64_t best = 0, least = UINT64_MAX;

	for (uint64_t k = near - 2 * cycle; k <= near + 2 * cycle; k++) {
		const uint64_t twice = 2 * k * period + period; /* twice its centre */
		const uint64_t apart = 2 * time > twice ? 2 * time - twice : twice - 2 * time;

		/* Half-open: a time as far from both belongs to the later one. */
		if (k % cycle == colour && apart <= least) {
			least = apart;
			best = k;
		}
	}
	return best;
}

static void blocks(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0, wrong_cyclic = 0, wrong_offsets = 0;

	pl_rng_seed(&rng, 16);
	for (unsigned int i = 0; i < 200000; i++) {
		const uint64_t period = 1000 + 2 * pl_rng_below(&rng, 50000);
		const uint64_t time = 1000000000 + pl_rng_below(&rng, 1000000000);
		const unsigned int bits = 1 + (unsigned int)pl_rng_below(&rng, 4);
		const unsigned int colour = (unsigned int)pl_rng_below(&rng, 1u << bits);
		const struct pl_mark_seen one = pl_mark_see_step(time, period, colour & 1, 0);
		const struct pl_mark_seen many = pl_mark_see_cyclic(time, period, colour, bits);

		wrong += one.block != nearest(time, period, colour & 1, 1);
		wrong_cyclic += many.block != nearest(time, period, colour, bits);
		wrong_offsets += (int64_t)time - (int64_t)(many.block * period) != many.offset_ns;
	}
	eq(wrong, 0, "a packet is of the block of its colour whose centre is nearest");
	eq(wrong_cyclic, 0, "with colours of several bits, too");
	eq(wrong_offsets, 0, "offsets are from the start of that block");
	eq(pl_mark_see_step(10 * S + 499 * MS, S, 1, 0).block, 9, "just before the middle");
	eq(pl_mark_see_step(10 * S + 500 * MS, S, 1, 0).block, 11, "in the middle");
	eq(pl_mark_see_step(10 * S + 500 * MS, S, 1, 0).offset_ns, -500 * (int64_t)MS);
}

/* Comparing gives what dividing gives, of every method. */
static void by_comparing(void)
{
	static const unsigned int methods[] = { PL_MARK_STEP, PL_MARK_PULSE, PL_MARK_DOUBLE,
		PL_MARK_MULTIPLEXED, PL_MARK_CYCLIC };
	struct pl_rng rng;
	unsigned int wrong = 0;

	pl_rng_seed(&rng, 9341);
	for (unsigned int i = 0; i < 200000; i++) {
		const uint64_t period = 1000 + pl_rng_below(&rng, i % 2 == 0 ? 9 : 50000);
		const uint64_t time = 1000000000 + pl_rng_below(&rng, 1000000000);
		const unsigned int method = methods[i % 5];
		const bool two = method == PL_MARK_DOUBLE || method == PL_MARK_CYCLIC;
		const unsigned int bits =
			method == PL_MARK_PULSE ? 1 : (unsigned int)pl_rng_below(&rng, two ? 4 : 2);
		const struct pl_mark_seen a = pl_mark_see(method, time, period, bits),
					  b = pl_mark_see_in(method, time / period, time % period,
						  period, bits);

		wrong += a.block != b.block || a.offset_ns != b.offset_ns || a.what != b.what ||
			 a.pulse != b.pulse;
	}
	eq(wrong, 0, "comparing gives what dividing gives");
}

static void slots(void)
{
	static const uint8_t table[PL_MARK_SLOTS][2] = PL_MARK_SLOT_TABLE;
	unsigned int wrong = 0;

	for (unsigned int slot = 0; slot < PL_MARK_SLOTS; slot++) {
		for (unsigned int bit = 0; bit < 2; bit++)
			wrong += pl_mark_slot_action(slot, bit) != table[slot][bit];
		eq(pl_mark_slot(100 * S + slot * 250 * MS, S), slot, "slot %u", slot);
	}
	eq(wrong, 0, "the table and the arithmetic agree");
	/* Ternary entries with the time a quarter later: pulses are 01* with bit 1 and 11* with 0. */
	for (unsigned int slot = 0; slot < PL_MARK_SLOTS; slot++) {
		const unsigned int later = (slot + 1) & 7;

		for (unsigned int bit = 0; bit < 2; bit++)
			wrong += (table[slot][bit] == PL_MARK_COUNT_PULSE) !=
				 ((later & 6) == (bit != 0 ? 2 : 6));
	}
	eq(wrong, 0, "two ternary entries find all pulses");
}

static void guards(void)
{
	static const struct {
		unsigned int method;
		uint64_t period, clock, delay, deviation, guard;
		bool good;
	} rows[] = {
		{ PL_MARK_STEP, S, MS, 10 * MS, 2 * MS, 17 * MS, true },
		{ PL_MARK_MULTIPLEXED, S, MS, 10 * MS, 2 * MS, 17 * MS, true },
		{ PL_MARK_STEP, S, 100 * MS, 50 * MS, 20 * MS, 210 * MS, true },
		{ PL_MARK_MULTIPLEXED, S, 100 * MS, 50 * MS, 20 * MS, 210 * MS, true },
		{ PL_MARK_DOUBLE, 10 * S, S, 100 * MS, 50 * MS, 1250 * MS, true },
		{ PL_MARK_STEP, 100 * MS, MS, 20 * MS, 5 * MS, 36 * MS, true },
		{ PL_MARK_MULTIPLEXED, 100 * MS, MS, 20 * MS, 5 * MS, 36 * MS, false },
		{ PL_MARK_STEP, S, 500 * MS, 0, 0, 500 * MS, false },
		{ PL_MARK_STEP, S, 500 * MS - 1, 0, 0, 500 * MS - 1, true },
		{ PL_MARK_MULTIPLEXED, S, 250 * MS, 0, 0, 250 * MS, false },
		{ PL_MARK_CYCLIC, S, 1500 * MS, 0, 0, 1500 * MS, false },
		{ PL_MARK_CYCLIC, S, 1400 * MS, 39 * MS, 20 * MS, 1499 * MS, true },
		{ PL_MARK_STEP, S, UINT64_MAX, 0, 0, UINT64_MAX, false },
		{ PL_MARK_STEP, 999, 0, 0, 0, 0, false },
		{ PL_MARK_STEP, 2 * PL_MARK_PERIOD_MAX_NS, 0, 0, 0, 0, false },
	};
	struct pl_diag diag;
	uint64_t guard;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pl_mark_spread spread = { rows[i].clock, rows[i].delay,
			rows[i].deviation };
		const int r =
			pl_mark_guard_check(&guard, rows[i].method, rows[i].period, &spread, &diag);

		ok((r == 0) == rows[i].good, "row %u", i);
		eq(guard, rows[i].guard);
	}
	(void)pl_mark_guard_check(&guard, PL_MARK_MULTIPLEXED, 100 * MS,
		&(const struct pl_mark_spread){ MS, 20 * MS, 5 * MS }, &diag);
	streq(diag.text,
		"the guard band is 0.036 s (clocks 0.001 + delay 0.02 + 3 x deviation 0.005) and must be below 0.025 s, a quarter of the period: take a period above 0.144 s, or clocks that are closer");
	eq(pl_mark_pulse_window(PL_MARK_MULTIPLEXED, S, 17 * MS).to_ns, 733 * MS);
	eq(pl_mark_pulse_window(PL_MARK_MULTIPLEXED, 100 * MS, 36 * MS).to_ns, 50 * MS, "none");
	eq(pl_mark_read_at(PL_MARK_STEP, 7, S), 8500 * MS);
	eq(pl_mark_read_at(PL_MARK_CYCLIC, 7, S), 9500 * MS,
		"a packet may be a block further away");
}

static bool same_cell(const struct pl_mark_cell *a, const struct pl_mark_cell *b)
{
	return a->packets == b->packets && a->bytes == b->bytes && a->sum_ns == b->sum_ns &&
	       a->first_ns == b->first_ns && a->late == b->late && a->early == b->early &&
	       a->beyond == b->beyond && a->pulses == b->pulses && a->pulse_ns == b->pulse_ns;
}

/* Whichever processors get the packets of a block, and in whatever order their cells are added: the sum
 * is what one of them would have counted. */
static void processors(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0;

	pl_rng_seed(&rng, 34);
	for (unsigned int i = 0; i < 2000; i++) {
		const uint32_t n = (uint32_t)pl_rng_below(&rng, 100), from = n % 4;
		struct pl_mark_cell one = { .block = 8 }, sum = one, each[4] = { { .block = 8 } };

		for (uint32_t k = 0; k < n; k++) {
			const uint64_t time = 7 * S + 600 * MS + pl_rng_below(&rng, 1800 * MS);
			const unsigned int pulse = pl_rng_below(&rng, 50) == 0;
			const struct pl_mark_seen at = pl_mark_see_step(time, S, 0, pulse);
			struct pl_mark_cell *own = &each[pl_rng_below(&rng, 4)];

			pl_mark_cell_count(&one, &at, 1 + k % 3, 100, S, 300 * MS);
			pl_mark_cell_count(own, &at, 1 + k % 3, 100, S, 300 * MS);
			if (!pulse)
				continue;
			pl_mark_cell_pulse(&one, &at);
			pl_mark_cell_pulse(own, &at);
		}
		for (uint32_t k = 0; k < 4; k++)
			pl_mark_cell_add(&sum, &each[(from + k) % 4]);
		wrong += !same_cell(&sum, &one);
	}
	eq(wrong, 0, "counts do not depend on which processor had a packet");
}

static void cells(void)
{
	struct pl_mark_cell a = {
		.block = 8, .packets = 2, .sum_ns = -5, .first_ns = 3, .late = 1
	};
	const struct pl_mark_cell b = { .block = 8,
		.packets = 3,
		.sum_ns = 7,
		.first_ns = -2,
		.pulses = 1,
		.pulse_ns = 4,
		.beyond = 1 };
	const struct pl_mark_cell other = { .block = 12, .packets = 100 };
	const struct pl_mark_point point = { .point = 5,
		.method = PL_MARK_DOUBLE,
		.period_ns = S,
		.flags = PL_MARK_IS_MARKER,
		.tai_offset = 37,
		.clock_error_ns = UINT64_MAX };
	const struct pl_mark_point without = {
		.method = PL_MARK_STEP, .period_ns = S, .flags = PL_MARK_UNTIMED
	};
	const struct pl_mark_flow flow = { .proto = 6, .flow_id = 9 };
	struct pl_mark128 record;

	pl_mark_cell_add(&a, &b);
	pl_mark_cell_add(&a, &other);
	ok(a.packets == 5 && a.sum_ns == 2 && a.first_ns == -2 && a.pulse_ns == 4 && a.late == 1,
		"cells of the same block are added");
	pl_mark_record(&record, &point, &flow, 1000, &a);
	ok(record.packets == 0 && record.sum_ns == 0 && record.block == 1000,
		"a cell of another block is one without packets");
	eq(record.ts_ns, 963 * S, "the start of the block in UTC");
	a.pulses = 70000;
	pl_mark_record(&record, &point, &flow, 8, &a);
	eq(record.pulses, 65535);
	eq(record.flow_id, 0, "without the flag there is no id");
	eq(record.mark_flags, PL_MARK_IS_MARKER | PL_MARK_IS_BEYOND);
	eq(record.clock_error_ns, UINT32_MAX);
	pl_mark_record(&record, &without, &flow, 8, &a);
	ok(record.packets == 5 && record.mark_flags == (PL_MARK_UNTIMED | PL_MARK_IS_BEYOND) &&
			record.sum_ns == 0 && record.first_ns == 0 && record.pulse_ns == 0,
		"a point without times has none in its records");
}

int main(void)
{
	blocks();
	by_comparing();
	slots();
	guards();
	cells();
	processors();
	return pl_test_done();
}
