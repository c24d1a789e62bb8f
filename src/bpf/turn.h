/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose turn it is to step the tables of a receive queue: one word for each queue, taken by compare-and-swap.
 *
 *   PL_TURN_FREE      nobody's
 *   PL_TURN_PROGRAM   the kernel program's, for one report
 *   PL_TURN_USER      user space's, for a few reports that were handed up, or for one set that it ticks
 *   PL_TURN_BEHIND    user space's, until it has stepped all that waits in the ring of frames
 *
 * The program waits for its turn for a bounded number of looks. When user space still has it (its thread may have lost the
 * processor), the program makes USER BEHIND and hands its report up; it hands up all that follows without waiting, so that
 * the ring has the reports in their order. User space ends its turn by a swap from USER to FREE, which fails when there is
 * something behind; then it keeps the turn until the ring is empty (detect/kernel_detect.h). So each key has one state,
 * stepped by one side at a time, and no report passes another one for longer than the ring is drained after (200 us).
 */
#pragma once

#include <stdint.h>

enum pl_core_turn_holder { PL_TURN_FREE, PL_TURN_PROGRAM, PL_TURN_USER, PL_TURN_BEHIND };

struct pl_core_turn {
	uint32_t holder; /* enum pl_core_turn_holder */
	uint32_t zero[15];
};

_Static_assert(sizeof(struct pl_core_turn) == 64, "a cache line for each queue");

static inline uint32_t pl_core_turn_swap(struct pl_core_turn *turn, uint32_t from, uint32_t to)
{
	return __sync_val_compare_and_swap(&turn->holder, from, to);
}
