/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns in which kernel program and user space update the tables of a receive queue: one word for
 * each queue, taken by compare-and-swap.
 *
 *   PL_TURN_FREE      nobody's
 *   PL_TURN_PROGRAM   the kernel program's, for one report
 *   PL_TURN_USER      user space's, for a few reports that were escalated, or for one set that it
 *                     ticks
 *   PL_TURN_WAITED    likewise, and the program waits: it is let in before user space takes its
 *                     next turn
 *   PL_TURN_CATCHING  likewise, and reports that came meanwhile wait in the ring of frames
 *   PL_TURN_BEHIND    nobody's, but such reports wait: it is user space's next
 *
 * The program checks a bounded number of times for its turn, or not at all when the thread of
 * user space was interrupted on this very processor. When user space still has the turn (its thread
 * may have lost its processor), the program makes it CATCHING. It escalates this report, and all
 * that follow, without waiting, so that the ring has the reports in order, until user space has
 * processed them all (detect/kernel_detect.h). Only when more than half of the ring is full, the
 * program processes new reports although older ones wait: the order is then lost, but no report.
 *
 * So each key has one state, which only one of the two updates at a time.
 */
#pragma once

#include <stdint.h>

enum pl_turn_holder {
	PL_TURN_FREE,
	PL_TURN_PROGRAM,
	PL_TURN_USER,
	PL_TURN_WAITED,
	PL_TURN_CATCHING,
	PL_TURN_BEHIND
};

struct pl_core_turn {
	uint32_t holder;    /* enum pl_turn_holder */
	uint32_t processor; /* processor on which user space took it last, or was just before */
	uint32_t zero[14];
};

_Static_assert(sizeof(struct pl_core_turn) == 64, "a cache line for each queue");

/* Swaps the holder if it is `from`, and returns the previous one: `from` when the swap was made. */
static inline uint32_t pl_core_turn_swap(struct pl_core_turn *turn, uint32_t from, uint32_t to)
{
	return __sync_val_compare_and_swap(&turn->holder, from, to);
}
