/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tick: the present block as a word that user space keeps and kernel programs read, so that they
 * need no clock. A tick is the number of the block and, in its two lower bits, the present part of
 * it. A meter needs the parts: by the halves it finds the nearest block of a colour, by the others
 * the packets outside the guard band.
 *
 * The word changes when its process runs, so each change is a little late. Up to
 * pl_mark_tick_slack() the guard band covers that. Blocks in which the word was older than that
 * have no known counts, and their records say so (PL_MARK_LATE_CHANGE).
 */
#pragma once

#include <stdint.h>

/* Parts of a block: the guard band behind the begin, the rest of the first half, the second half,
 * the guard band before the end. */
#define PL_MARK_TICK_PARTS 4u

/* Returns the longest acceptable delay of the word: an eighth of the period. */
static inline uint64_t pl_mark_tick_slack(uint64_t period_ns)
{
	return period_ns / 8;
}

/* Returns the start of a part, from the start of its block on; it is also the offset that packets
 * of the part get. guard_ns: less than half of the period. */
static inline uint64_t pl_mark_tick_offset(uint64_t tick, uint64_t period_ns, uint64_t guard_ns)
{
	switch (tick % PL_MARK_TICK_PARTS) {
	case 0:
		return 0;
	case 1:
		return guard_ns + 1;
	case 2:
		return period_ns / 2;
	default:
		return period_ns - guard_ns;
	}
}

static inline uint64_t pl_mark_tick_block(uint64_t tick)
{
	return tick / PL_MARK_TICK_PARTS;
}

#ifndef __bpf__

static inline uint64_t pl_mark_tick_at(uint64_t time_ns, uint64_t period_ns, uint64_t guard_ns)
{
	const uint64_t block = time_ns / period_ns, into = time_ns - block * period_ns;
	uint64_t tick = block * PL_MARK_TICK_PARTS + PL_MARK_TICK_PARTS - 1;

	while (pl_mark_tick_offset(tick, period_ns, guard_ns) > into)
		tick--;
	return tick;
}

static inline uint64_t pl_mark_tick_begin(uint64_t tick, uint64_t period_ns, uint64_t guard_ns)
{
	return pl_mark_tick_block(tick) * period_ns +
	       pl_mark_tick_offset(tick, period_ns, guard_ns);
}

#endif
