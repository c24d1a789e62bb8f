/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_steps.h: the bounds that a quantity's rules set for its values at present, and the
 * values that cause no event. */
#pragma once

#include "core/detect_table.h"
#include "core/detect_units.h"

PL_CORE_INLINE uint64_t pl_core_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Present bounds of the level: the absolute ones, or those that follow from the mean if they are
 * lower. */
PL_CORE_INLINE void pl_core_level_bounds(const struct pl_core_quantity *q,
	const struct pl_core_quantity_rule *rule, int learned, struct pl_core_level_rule *ret)
{
	const uint64_t least = pl_core_in_units(rule->relative_min, q->unit_bytes);
	uint64_t above;

	*ret = rule->level;
	ret->threshold = pl_core_in_units(ret->threshold, q->unit_bytes);
	ret->low = pl_core_in_units(ret->low, q->unit_bytes);
	if (rule->relative == 0 || !learned)
		return;
	above = q->mean + ((uint64_t)q->mean * rule->relative >> 16);
	if (above < least)
		above = least;
	if (above < ret->threshold)
		ret->threshold = above;
	above -= pl_core_distance(above, q->mean) >> 3;
	if (above < ret->low)
		ret->low = above;
}

/* Returns the threshold as an event reports it, in bytes if the unit is known: the configured one
 * exactly, not rounded to units. */
PL_CORE_INLINE uint64_t pl_core_bound_told(const struct pl_core_quantity *q,
	const struct pl_core_quantity_rule *rule, uint64_t threshold)
{
	return threshold == pl_core_in_units(rule->level.threshold, q->unit_bytes)
		       ? rule->level.threshold
		       : pl_core_in_bytes(threshold, q->unit_bytes);
}

/* Bounds of a level for the distance from the mean. */
PL_CORE_INLINE void pl_core_odd_bounds(const struct pl_core_quantity *q,
	const struct pl_core_quantity_rule *rule, struct pl_core_level_rule *ret)
{
	uint64_t times = (uint64_t)q->dev * rule->odd_times >> 4;

	*ret = rule->odd;
	ret->threshold = pl_core_in_units(ret->threshold, q->unit_bytes);
	if (ret->threshold < times)
		ret->threshold = times;
	ret->low = ret->threshold - (ret->threshold >> 3);
}

struct pl_core_range {
	uint64_t lo, hi;
};

PL_CORE_INLINE void pl_core_narrow(struct pl_core_range *range, uint64_t lo, uint64_t hi)
{
	if (lo > range->lo)
		range->lo = lo;
	if (hi < range->hi)
		range->hi = hi;
}

/* True when no hold time of the level runs: then most values leave it as it is. */
PL_CORE_INLINE int pl_core_level_rests(const struct pl_core_level *s)
{
	return s->state == PL_CORE_IDLE || s->state == PL_CORE_RAISED;
}

/* Returns the range of values that leave a resting level as it is: up to its threshold or, while it
 * is raised, above low and up to its maximum. */
PL_CORE_INLINE struct pl_core_range pl_core_level_calm(
	const struct pl_core_level *s, const struct pl_core_level_rule *bounds)
{
	if (s->state == PL_CORE_IDLE)
		return (struct pl_core_range){ 0, bounds->threshold };
	return (struct pl_core_range){ bounds->low + 1, s->max };
}

/* Narrows the range by the distances from the mean that leave the level `odd` as it is: on both
 * sides of the mean or, while it is raised, on the side that the value is on. */
PL_CORE_INLINE void pl_core_odd_calm(struct pl_core_range *range, const struct pl_core_quantity *q,
	const struct pl_core_level_rule *bounds, uint32_t value)
{
	const struct pl_core_range far = pl_core_level_calm(&q->odd, bounds);
	const uint64_t mean = q->mean, lowest = mean > far.hi ? mean - far.hi : 0;

	if (q->odd.state == PL_CORE_IDLE)
		pl_core_narrow(range, lowest, mean + far.hi);
	else if (value > mean)
		pl_core_narrow(range, mean + far.lo, mean + far.hi);
	else
		pl_core_narrow(range, lowest, mean - far.lo);
}

/* Returns the band of values that cause no event after this one, as pl_core_band_set() takes it: lo
 * | span << 32; 0: none. */
PL_CORE_INLINE uint64_t pl_core_band_of(const struct pl_core_quantity *q,
	const struct pl_core_rules *rules, const struct pl_core_quantity_rule *rule,
	unsigned int id, uint32_t value)
{
	struct pl_core_range range = { 0, UINT32_MAX }, calm;
	int learned = q->windows >= rules->learn_windows;
	struct pl_core_level_rule bounds;

	if (!pl_core_level_rests(&q->level) || !pl_core_level_rests(&q->odd))
		return 0;
	pl_core_level_bounds(q, rule, learned, &bounds);
	calm = pl_core_level_calm(&q->level, &bounds);
	pl_core_narrow(&range, calm.lo, calm.hi);
	if (rule->odd_times != 0 && learned) {
		pl_core_odd_bounds(q, rule, &bounds);
		pl_core_odd_calm(&range, q, &bounds, value);
	}
	if (rule->step != 0) {
		uint64_t step = pl_core_in_units(rule->step, q->unit_bytes);

		pl_core_narrow(&range, q->told > step ? q->told - step : 0, q->told + step);
	}
	if (rule->step_relative != 0) {
		uint64_t step = (uint64_t)q->told * rule->step_relative >> 16;

		pl_core_narrow(&range, q->told > step ? q->told - step : 0, q->told + step);
	}
	if (rule->step_shift != 0) {
		uint32_t shift = rule->step_shift & 31;
		uint64_t last = (UINT64_C(1) << shift) - 1;
		uint64_t lo = pl_core_in_bytes(q->told, q->unit_bytes) & ~last;

		/* Rounded inwards: to the first value not below lo, and the last not above lo +
		 * last. */
		if (q->unit_bytes > 1)
			pl_core_narrow(&range, (lo + q->unit_bytes - 1) / q->unit_bytes,
				(lo + last) / q->unit_bytes);
		else
			pl_core_narrow(&range, lo, lo + last);
	}
	if (id == PL_CORE_Q_QUEUE_DEPTH)
		pl_core_narrow(&range, 0, pl_core_in_units(rules->burst_threshold, q->unit_bytes));
	if (range.hi < range.lo)
		return 0;
	range.hi -= range.lo;
	return range.lo | (range.hi < UINT32_MAX ? range.hi + 1 : UINT32_MAX) << 32;
}

PL_CORE_INLINE void pl_core_band_set(struct pl_core_band *band, uint64_t packed)
{
	band->lo = (uint32_t)packed;
	band->span = (uint32_t)(packed >> 32);
}
