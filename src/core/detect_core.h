/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of detection, over integers: they read no clock, use no memory but the state passed in,
 * and have no loop and no division. User space (detect/events.c) and the kernel program compile the
 * same source, so both report the same events for the same values and times. Time is 64 bits of
 * nanoseconds; should it go back, intervals that would be negative count as zero.
 *
 * Each of these states begins with all zeros.
 */
#pragma once

#include <stdint.h>

static inline uint64_t pl_core_elapsed(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* --- a level with hysteresis and hold times --------------------------------------------------- */

struct pl_core_level_rule {
	uint64_t threshold;     /* begins above it */
	uint64_t low;           /* ends at or below it; not above threshold */
	uint64_t begin_hold_ns; /* time above before it begins */
	uint64_t end_hold_ns;   /* time at or below low before it ends */
};

enum pl_core_level_state {
	PL_CORE_IDLE,
	PL_CORE_RISING, /* above the threshold, not long enough yet */
	PL_CORE_RAISED,
	PL_CORE_FALLING, /* below the bound, not long enough yet */
};

struct pl_core_level {
	uint64_t max;      /* largest value since it rose */
	uint64_t begun_ns; /* time at which it rose */
	/* time it fell to low; begun_ns while it is above; UINT64_MAX when it was dropped above */
	uint64_t since_ns;
	uint32_t state;  /* enum pl_core_level_state */
	uint32_t silent; /* its begin was not reported, so its end is not either */
};

enum pl_core_change { PL_CORE_NONE, PL_CORE_BEGIN, PL_CORE_END };

/* Moves the state; true when this side did it. When two sides (the packet path and the tick) come
 * to the same end at once, only one of them reports it. */
static inline int pl_core_level_move(struct pl_core_level *s, uint32_t from, uint32_t to)
{
	return __sync_val_compare_and_swap(&s->state, from, to) == from;
}

/* Steps a level because time passed without a new value. */
static inline uint32_t pl_core_level_wait(
	struct pl_core_level *s, const struct pl_core_level_rule *rule, uint64_t now_ns)
{
	if (s->state != PL_CORE_FALLING || pl_core_elapsed(now_ns, s->since_ns) < rule->end_hold_ns)
		return PL_CORE_NONE;
	return pl_core_level_move(s, PL_CORE_FALLING, PL_CORE_IDLE) ? PL_CORE_END : PL_CORE_NONE;
}

/* Returns the time that an ended level was above, without the hold time after it. */
static inline uint64_t pl_core_level_lasted(const struct pl_core_level *s, uint64_t now_ns)
{
	return pl_core_elapsed(s->since_ns != UINT64_MAX ? s->since_ns : now_ns, s->begun_ns);
}

/* Drops a level whose key was not seen for too long; returns PL_CORE_END if it was raised. */
static inline uint32_t pl_core_level_drop(struct pl_core_level *s)
{
	uint32_t state = s->state;

	if (state == PL_CORE_IDLE || !pl_core_level_move(s, state, PL_CORE_IDLE))
		return PL_CORE_NONE;
	if (state == PL_CORE_RAISED)
		s->since_ns = UINT64_MAX;
	return state == PL_CORE_RISING ? PL_CORE_NONE : PL_CORE_END;
}

static inline uint32_t pl_core_level_step(struct pl_core_level *s,
	const struct pl_core_level_rule *rule, uint64_t value, uint64_t now_ns)
{
	if (s->state == PL_CORE_IDLE || s->state == PL_CORE_RISING) {
		if (value <= rule->threshold) {
			s->state = PL_CORE_IDLE;
			return PL_CORE_NONE;
		}
		if (s->state == PL_CORE_IDLE) {
			s->state = PL_CORE_RISING;
			s->since_ns = now_ns;
			s->begun_ns = now_ns;
			s->max = 0;
		}
		if (value > s->max)
			s->max = value;
		if (pl_core_elapsed(now_ns, s->since_ns) < rule->begin_hold_ns)
			return PL_CORE_NONE;
		return pl_core_level_move(s, PL_CORE_RISING, PL_CORE_RAISED) ? PL_CORE_BEGIN
									     : PL_CORE_NONE;
	}
	if (value > s->max)
		s->max = value;
	if (value > rule->low) {
		s->state = PL_CORE_RAISED;
		s->since_ns = s->begun_ns;
		return PL_CORE_NONE;
	}
	if (s->state == PL_CORE_RAISED) {
		s->state = PL_CORE_FALLING;
		s->since_ns = now_ns;
	}
	return pl_core_level_wait(s, rule, now_ns);
}

/* --- a limit of events per key ---------------------------------------------------------------- */

struct pl_core_limit_rule {
	uint64_t interval_ns; /* one event per interval … */
	uint64_t burst_ns;    /* … after (burst - 1) intervals' worth at once */
};

/* The generic cell rate algorithm (ITU-T I.371): due_ns is the theoretical arrival time. */
static inline int pl_core_limit_pass(
	uint64_t *due_ns, const struct pl_core_limit_rule *rule, uint64_t now_ns)
{
	uint64_t due = *due_ns > now_ns ? *due_ns : now_ns;

	if (due - now_ns > rule->burst_ns)
		return 0;
	*due_ns = due + rule->interval_ns;
	return 1;
}

/* --- a flow's path ---------------------------------------------------------------------------- */

enum pl_core_path { PL_CORE_PATH_SAME, PL_CORE_PATH_FIRST, PL_CORE_PATH_CHANGED };

/* Records the path of a flow. known: the state holds a path. After idle_ns without a packet the
 * flow counts as new. */
static inline uint32_t pl_core_path_step(uint64_t *path_id, uint64_t *seen_ns, int known,
	uint64_t now_path_id, uint64_t idle_ns, uint64_t now_ns)
{
	uint64_t idle = pl_core_elapsed(now_ns, *seen_ns);
	uint64_t old = *path_id;

	*path_id = now_path_id;
	*seen_ns = now_ns;
	if (!known || idle > idle_ns)
		return PL_CORE_PATH_FIRST;
	return old == now_path_id ? PL_CORE_PATH_SAME : PL_CORE_PATH_CHANGED;
}

/* --- jitter ----------------------------------------------------------------------------------- */

/* Mean distance between a delay and the one before, each weighing a sixteenth, in sixteenths (RFC
 * 3550 A.8). */
struct pl_core_jitter {
	uint64_t sixteenths;
	uint64_t last; /* delay + 1; 0: none yet */
};

static inline void pl_core_jitter_step(struct pl_core_jitter *j, uint32_t delay)
{
	const uint64_t now = (uint64_t)delay + 1, last = j->last;

	if (last != 0)
		j->sixteenths +=
			(now > last ? now - last : last - now) - ((j->sixteenths + 8) >> 4);
	j->last = now;
}

/* --- a total that grows, and may be corrected downwards --------------------------------------- */

/* Returns how far `total` grew above the mark; a mark above the total is lowered to it. */
static inline uint64_t pl_core_growth(uint64_t *mark, uint64_t total)
{
	if (*mark > total)
		*mark = total;
	return total - *mark;
}
