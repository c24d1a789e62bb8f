/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of user space to update a queue's tables (core/turn.h). One thread takes the turns for a
 * program. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/turn.h"

#define PL_TURN_LOOKS 1000 /* checks before sleeping: the program's turn lasts for one report */

static inline uint32_t pl_core_turn_holder(const struct pl_core_turn *turn)
{
	return __atomic_load_n(&turn->holder, __ATOMIC_ACQUIRE);
}

/* Waits for the turn and takes it. */
static inline void pl_core_turn_take(struct pl_core_turn *turn)
{
	const int processor = sched_getcpu();

	__atomic_store_n(&turn->processor, (uint32_t)processor, __ATOMIC_RELAXED);
	for (unsigned int looks = 1;; looks++) {
		const uint32_t holder = pl_core_turn_holder(turn);

		if (holder == PL_TURN_FREE &&
			pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_USER) == PL_TURN_FREE)
			return;
		if (holder == PL_TURN_BEHIND &&
			pl_core_turn_swap(turn, PL_TURN_BEHIND, PL_TURN_CATCHING) == PL_TURN_BEHIND)
			return;
		/* The holder's processor may have been taken from this machine. */
		if (looks % PL_TURN_LOOKS == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

/* Gives the turn back, first of all to a program that waits. When reports came that wait to be
 * stepped, the program leaves the tables alone until pl_core_turn_caught_up. */
static inline void pl_core_turn_give(struct pl_core_turn *turn)
{
	if (pl_core_turn_swap(turn, PL_TURN_USER, PL_TURN_FREE) == PL_TURN_USER)
		return;
	if (pl_core_turn_swap(turn, PL_TURN_WAITED, PL_TURN_FREE) != PL_TURN_WAITED) {
		(void)pl_core_turn_swap(turn, PL_TURN_CATCHING, PL_TURN_BEHIND);
		return;
	}
	for (unsigned int looks = 0; looks < PL_TURN_LOOKS; looks++) {
		if (pl_core_turn_holder(turn) != PL_TURN_FREE)
			return;
	}
}

static inline bool pl_core_turn_behind(const struct pl_core_turn *turn)
{
	return pl_core_turn_holder(turn) == PL_TURN_BEHIND;
}

static inline void pl_core_turn_caught_up(struct pl_core_turn *turn)
{
	(void)pl_core_turn_swap(turn, PL_TURN_BEHIND, PL_TURN_FREE);
}
