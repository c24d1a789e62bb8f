/* SPDX-License-Identifier: BSD-2-Clause */
/* Detects that the clock of blocks was set since the last check, by comparison with the monotonic
 * clock. */
#pragma once

#include <stdbool.h>

#include "bpf/mark_kernel.h"

/* Clocks that differ by more between two looks, plus 1/1000 of the time between, were set. A time
 * daemon slews by half of that at most. */
#define PL_MARK_STEP_NS 1000000

struct pl_mark_step {
	bool is;
	int64_t moved_ns; /* positive: ahead */
	/* Blocks up to this one may have counts of both times. */
	uint64_t last;
	uint64_t next; /* next block to be read; goes back when the clock is set back */
};

/* next: the next block that would be read. */
static inline struct pl_mark_step pl_mark_look_at_clock(struct pl_mark_watch *w, uint64_t mono_ns,
	uint64_t tai_ns, uint64_t period_ns, uint64_t next)
{
	const uint64_t block = tai_ns / period_ns;
	const int64_t ahead = (int64_t)(tai_ns - mono_ns), moved = ahead - w->ahead_ns,
		      most = PL_MARK_STEP_NS + (int64_t)((mono_ns - w->turn_ns) / 1000);
	struct pl_mark_step step = { .moved_ns = moved, .last = block + 1, .next = next };

	step.is = w->turn_ns != 0 && (moved > most || -moved > most);
	if (step.is && next > block + 1)
		step.next = block;
	w->ahead_ns = ahead;
	w->turn_ns = mono_ns;
	return step;
}
