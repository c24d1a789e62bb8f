/* SPDX-License-Identifier: BSD-2-Clause */
/* User space's side of the turns by which a queue's tables are stepped (bpf/turn.h). One thread takes those of a program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "bpf/turn.h"

#define PL_TURN_LOOKS 1000 /* before the thread sleeps: the program steps one report at a time */

static inline uint32_t pl_core_turn_holder(const struct pl_core_turn *turn)
{
	return __atomic_load_n(&turn->holder, __ATOMIC_ACQUIRE);
}

/* Waits until the tables are user space's. */
static inline void pl_core_turn_take(struct pl_core_turn *turn)
{
	for (unsigned int looks = 1;; looks++) {
		const uint32_t holder = pl_core_turn_holder(turn);

		if (holder == PL_TURN_BEHIND)
			return; /* it kept them */
		if (holder == PL_TURN_FREE &&
			pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_USER) == PL_TURN_FREE)
			return;
		/* The processor of whoever has them may have been taken from this machine. */
		if (looks % PL_TURN_LOOKS == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

/* Gives them back, unless reports wait that came meanwhile: then it keeps them until pl_core_turn_caught_up. */
static inline void pl_core_turn_give(struct pl_core_turn *turn)
{
	(void)pl_core_turn_swap(turn, PL_TURN_USER, PL_TURN_FREE);
}

static inline bool pl_core_turn_behind(const struct pl_core_turn *turn)
{
	return pl_core_turn_holder(turn) == PL_TURN_BEHIND;
}

static inline void pl_core_turn_caught_up(struct pl_core_turn *turn)
{
	(void)pl_core_turn_swap(turn, PL_TURN_BEHIND, PL_TURN_FREE);
}
