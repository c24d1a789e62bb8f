/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Alternate marking's arithmetic of time (RFC 9341): the block of a marked packet, the packet that
 * becomes the pulse, limits of clocks and delays. For the kernel programs, the switch and user
 * space alike: no state, no clock, no signed division.
 *
 * Times are nanoseconds since the epoch of the clock that all points share (TAI), far from 0; a
 * period is 1 µs at least. Block k lasts from k * period on and has the colour k mod 2. A meter
 * counts a packet in the block of its colour whose centre is nearest. It never looks for changes of
 * colour: lost and idle blocks cannot derail it.
 */
#pragma once

#include <stdbool.h>

#include "record/packet.h"

#define PL_MARK_PERIOD_MIN_NS 1000u
#define PL_MARK_PERIOD_MAX_NS UINT64_C(3600000000000)

/* Timing of a packet at a meter. */
enum pl_mark_what {
	PL_MARK_ON_TIME, /* the meter's clock is in the packet's block */
	PL_MARK_LATE,    /* the meter's clock is in the next block */
	PL_MARK_EARLY,   /* the meter's clock is in the block before */
};

struct pl_mark_seen {
	uint64_t block;
	int64_t offset_ns; /* time from the start of that block: negative when early */
	uint8_t what;      /* enum pl_mark_what */
	uint8_t pulse;     /* 1: the packet is the pulse of the block */
};

static inline uint64_t pl_mark_block(uint64_t time_ns, uint64_t period_ns)
{
	return time_ns / period_ns;
}

static inline struct pl_mark_seen pl_mark_seen_at(
	uint64_t time_ns, uint64_t period_ns, uint64_t block, uint8_t what, uint8_t pulse)
{
	return (struct pl_mark_seen){ .block = block,
		.offset_ns = (int64_t)(time_ns - block * period_ns),
		.what = what,
		.pulse = pulse };
}

/* Reads step marking, and the colour bit of double marking. Right while delay and clock difference
 * are together within [-period/2, period/2). */
static inline struct pl_mark_seen pl_mark_see_step(
	uint64_t time_ns, uint64_t period_ns, unsigned int colour, unsigned int pulse)
{
	const uint64_t block = time_ns / period_ns;
	const uint64_t into = time_ns - block * period_ns;

	if ((block & 1) == (colour & 1))
		return pl_mark_seen_at(
			time_ns, period_ns, block, PL_MARK_ON_TIME, (uint8_t)(pulse & 1));
	if (into < period_ns / 2)
		return pl_mark_seen_at(
			time_ns, period_ns, block - 1, PL_MARK_LATE, (uint8_t)(pulse & 1));
	return pl_mark_seen_at(time_ns, period_ns, block + 1, PL_MARK_EARLY, (uint8_t)(pulse & 1));
}

/* Reads colours of several bits: the block's number modulo 2^bits (compact draft). Right while
 * delay and clock difference are together within half of 2^bits - 1 periods; with one bit the same
 * as step marking. */
static inline struct pl_mark_seen pl_mark_see_cyclic(
	uint64_t time_ns, uint64_t period_ns, unsigned int colour, unsigned int bits)
{
	const uint64_t cycle = (uint64_t)1 << bits, block = time_ns / period_ns;
	const uint64_t into = time_ns - block * period_ns;
	const uint64_t ahead = (colour - block) & (cycle - 1);

	if (ahead == 0)
		return pl_mark_seen_at(time_ns, period_ns, block, PL_MARK_ON_TIME, 0);
	if (ahead > cycle / 2 || (ahead == cycle / 2 && into < period_ns / 2))
		return pl_mark_seen_at(
			time_ns, period_ns, block - (cycle - ahead), PL_MARK_LATE, 0);
	return pl_mark_seen_at(time_ns, period_ns, block + ahead, PL_MARK_EARLY, 0);
}

/* ---- time-multiplexed parsing ---- */

/*
 * The full period of two blocks has 8 slots. The upper bit of a slot's number is the colour in
 * force, the lower two are the quarter of the block. In the first and last quarter the bit is the
 * colour; in the middle half, where the marker inverts one packet, a bit that differs is the pulse.
 * Right while delay and clocks are within (-period/4, period/4).
 */
#define PL_MARK_SLOTS 8u

enum pl_mark_action {
	PL_MARK_COUNT,          /* count in the block of the meter's clock */
	PL_MARK_COUNT_PULSE,    /* count there; the packet is the pulse */
	PL_MARK_COUNT_PREVIOUS, /* count in the previous block: late */
	PL_MARK_COUNT_NEXT,     /* count in the next block: early */
};

/* Actions by [slot][bit]; tables of a switch hold them, too. */
#define PL_MARK_SLOT_TABLE                                                                         \
	{                                                                                          \
		{ PL_MARK_COUNT, PL_MARK_COUNT_PREVIOUS }, { PL_MARK_COUNT, PL_MARK_COUNT_PULSE }, \
			{ PL_MARK_COUNT, PL_MARK_COUNT_PULSE },                                    \
			{ PL_MARK_COUNT, PL_MARK_COUNT_NEXT },                                     \
			{ PL_MARK_COUNT_PREVIOUS, PL_MARK_COUNT },                                 \
			{ PL_MARK_COUNT_PULSE, PL_MARK_COUNT },                                    \
			{ PL_MARK_COUNT_PULSE, PL_MARK_COUNT },                                    \
			{ PL_MARK_COUNT_NEXT, PL_MARK_COUNT },                                     \
	}

static inline unsigned int pl_mark_slot(uint64_t time_ns, uint64_t period_ns)
{
	const uint64_t block = time_ns / period_ns;
	const uint64_t into = time_ns - block * period_ns;

	return (unsigned int)((block & 1) << 2 | into * 4 / period_ns);
}

/* Computes the action of the table: a kernel program needs no memory for it. A test compares the
 * two. */
static inline unsigned int pl_mark_slot_action(unsigned int slot, unsigned int bit)
{
	const unsigned int quarter = slot & 3;

	if ((slot >> 2 & 1) == (bit & 1))
		return PL_MARK_COUNT;
	return quarter == 0   ? PL_MARK_COUNT_PREVIOUS
	       : quarter == 3 ? PL_MARK_COUNT_NEXT
			      : PL_MARK_COUNT_PULSE;
}

static inline struct pl_mark_seen pl_mark_see_multiplexed(
	uint64_t time_ns, uint64_t period_ns, unsigned int bit)
{
	const uint64_t block = time_ns / period_ns;

	switch (pl_mark_slot_action(pl_mark_slot(time_ns, period_ns), bit)) {
	case PL_MARK_COUNT_PREVIOUS:
		return pl_mark_seen_at(time_ns, period_ns, block - 1, PL_MARK_LATE, 0);
	case PL_MARK_COUNT_NEXT:
		return pl_mark_seen_at(time_ns, period_ns, block + 1, PL_MARK_EARLY, 0);
	case PL_MARK_COUNT_PULSE:
		return pl_mark_seen_at(time_ns, period_ns, block, PL_MARK_ON_TIME, 1);
	default:
		return pl_mark_seen_at(time_ns, period_ns, block, PL_MARK_ON_TIME, 0);
	}
}

/* Reads a pulse of pulse marking, which is sent in the first half of its block; other packets carry
 * no mark. Right while delay and clock difference are together within [-period/4, period/4). */
static inline struct pl_mark_seen pl_mark_see_pulse(uint64_t time_ns, uint64_t period_ns)
{
	const uint64_t own = time_ns / period_ns;
	const uint64_t block = (time_ns + period_ns / 4) / period_ns;

	return pl_mark_seen_at(
		time_ns, period_ns, block, block == own ? PL_MARK_ON_TIME : PL_MARK_EARLY, 1);
}

/* ---- the marker ---- */

/* Times within a block, [from, to), in which the first packet becomes the pulse. */
struct pl_mark_window {
	uint64_t from_ns, to_ns;
};

/* Returns the window of the pulse: from the middle of the block on, so that delay and clocks have
 * room on both sides; in pulse marking from its beginning. Empty when the method has no pulses. */
static inline struct pl_mark_window pl_mark_pulse_window(
	unsigned int method, uint64_t period_ns, uint64_t guard_ns)
{
	struct pl_mark_window w = { 0, 0 };

	if (method == PL_MARK_PULSE) {
		w.to_ns = period_ns / 2;
	} else if (method == PL_MARK_DOUBLE) {
		w.from_ns = period_ns / 2;
		w.to_ns = guard_ns < period_ns / 2 ? period_ns - guard_ns : w.from_ns;
	} else if (method == PL_MARK_MULTIPLEXED) {
		w.from_ns = period_ns / 2;
		w.to_ns = guard_ns < period_ns / 4 ? period_ns / 4 * 3 - guard_ns : w.from_ns;
	}
	return w;
}

/* Returns the bits of a packet of the block: bit 0 is the colour bit, bit 1 the second bit of
 * double and of cyclic marking. pulse: the packet is the first in the window of its block. */
static inline unsigned int pl_mark_bits(unsigned int method, uint64_t block, unsigned int pulse)
{
	const unsigned int colour = (unsigned int)(block & 1);

	switch (method) {
	case PL_MARK_PULSE:
		return pulse & 1;
	case PL_MARK_DOUBLE:
		return colour | (pulse & 1) << 1;
	case PL_MARK_MULTIPLEXED:
		return colour ^ (pulse & 1);
	case PL_MARK_CYCLIC:
		return (unsigned int)(block & 3);
	default:
		return colour;
	}
}

/* Reads the bits of a packet at a meter, as pl_mark_bits() numbers them. In pulse marking only for
 * packets with the bit set. */
static inline struct pl_mark_seen pl_mark_see(
	unsigned int method, uint64_t time_ns, uint64_t period_ns, unsigned int bits)
{
	switch (method) {
	case PL_MARK_PULSE:
		return pl_mark_see_pulse(time_ns, period_ns);
	case PL_MARK_DOUBLE:
		return pl_mark_see_step(time_ns, period_ns, bits, bits >> 1);
	case PL_MARK_MULTIPLEXED:
		return pl_mark_see_multiplexed(time_ns, period_ns, bits);
	case PL_MARK_CYCLIC:
		return pl_mark_see_cyclic(time_ns, period_ns, bits, 2);
	default:
		return pl_mark_see_step(time_ns, period_ns, bits, 0);
	}
}

/* Reads the bits without a division, for a time into_ns behind the start of the block. In pulse
 * marking a packet without the bit counts in the block of the clock. A test compares the two. */
static inline struct pl_mark_seen pl_mark_see_in(unsigned int method, uint64_t block,
	uint64_t into_ns, uint64_t period_ns, unsigned int bits)
{
	struct pl_mark_seen seen = {
		.block = block, .offset_ns = (int64_t)into_ns, .what = PL_MARK_ON_TIME
	};
	const bool other = ((block ^ bits) & 1) != 0;
	bool late = other && into_ns < period_ns / 2, early = other && !late;
	uint64_t away = 1; /* blocks */

	if (method == PL_MARK_PULSE) {
		late = false;
		early = (bits & 1) != 0 && into_ns >= period_ns - period_ns / 4;
		seen.pulse = bits & 1;
	} else if (method == PL_MARK_DOUBLE) {
		seen.pulse = bits >> 1 & 1;
	} else if (method == PL_MARK_MULTIPLEXED) {
		late = other && 4 * into_ns < period_ns;
		early = other && 4 * into_ns >= 3 * period_ns;
		seen.pulse = other && !late && !early;
	} else if (method == PL_MARK_CYCLIC) {
		const unsigned int ahead = (bits - (unsigned int)block) & 3;

		late = ahead == 3 || (ahead == 2 && into_ns < period_ns / 2);
		early = ahead != 0 && !late;
		away = ahead == 2 ? 2 : 1;
	}
	if (late) {
		seen.what = PL_MARK_LATE;
		seen.block -= away;
		seen.offset_ns += (int64_t)(away * period_ns);
	} else if (early) {
		seen.what = PL_MARK_EARLY;
		seen.block += away;
		seen.offset_ns -= (int64_t)(away * period_ns);
	}
	return seen;
}

/* ---- the guard band ---- */

/* Values for the guard band, known to the operator. */
struct pl_mark_spread {
	uint64_t clock_ns;     /* A: largest difference of two points' clocks */
	uint64_t delay_ns;     /* mean delay from the marker to the last meter */
	uint64_t deviation_ns; /* its standard deviation */
};

/* Returns the guard band: d = A + mean + 3 deviations (RFC 9341 5); UINT64_MAX when that
 * overflows. */
static inline uint64_t pl_mark_guard(const struct pl_mark_spread *s)
{
	const uint64_t limit = UINT64_MAX / 8;

	if (s->clock_ns > limit || s->delay_ns > limit || s->deviation_ns > limit)
		return UINT64_MAX;
	return s->clock_ns + s->delay_ns + 3 * s->deviation_ns;
}

/* Returns the limit below which the guard band must be: half a period (RFC 9341 5); a quarter in
 * multiplexed and pulse marking; one and a half in cyclic marking. */
static inline uint64_t pl_mark_guard_limit(unsigned int method, uint64_t period_ns)
{
	if (method == PL_MARK_CYCLIC)
		return period_ns + period_ns / 2;
	return method == PL_MARK_MULTIPLEXED || method == PL_MARK_PULSE ? period_ns / 4
									: period_ns / 2;
}

/* Returns 1 when a packet stands outside the guard band around its block: clocks or delays differ
 * by more than the guard band allows, and results near it may be wrong. */
static inline unsigned int pl_mark_is_beyond(
	const struct pl_mark_seen *seen, uint64_t period_ns, uint64_t guard_ns)
{
	if (seen->what == PL_MARK_LATE)
		return (uint64_t)seen->offset_ns - period_ns > guard_ns;
	return seen->what == PL_MARK_EARLY && (uint64_t)-seen->offset_ns > guard_ns;
}

/* Returns the most blocks between a packet's block and that of the meter's clock. */
static inline uint64_t pl_mark_reach(unsigned int method)
{
	return method == PL_MARK_CYCLIC ? 2 : 1;
}

/* Returns the time at which a block is at rest and is read: (k + 1.5) periods for block k (RFC 9341
 * 3.1), in cyclic marking (k + 2.5). */
static inline uint64_t pl_mark_read_at(unsigned int method, uint64_t block, uint64_t period_ns)
{
	return (block + pl_mark_reach(method)) * period_ns + period_ns / 2;
}
