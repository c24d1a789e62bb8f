/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the result of one block and segment: the valid values, and why others are absent.
 * Offsets are from the start of the same block at every point, so their differences are delays. */
#include <stdlib.h>

#include "mark/correlate_state.h"

struct sum {
	uint64_t packets, late, early;
	__int128 offsets_ns;
	uint32_t pulses, reported;
	bool sums_fit;
	bool timed; /* all points measured times */
};

static bool has_pulses(unsigned int method)
{
	return method == PL_MARK_DOUBLE || method == PL_MARK_MULTIPLEXED || method == PL_MARK_PULSE;
}

static uint32_t alarms_of(uint16_t flags)
{
	return ((flags & PL_MARK_IS_PARTIAL) != 0 ? PL_MARK_ALARM_PARTIAL : 0u) |
	       ((flags & PL_MARK_NO_ROOM) != 0 ? PL_MARK_ALARM_NO_ROOM : 0u) |
	       ((flags & PL_MARK_IS_BEYOND) != 0 ? PL_MARK_ALARM_BEYOND : 0u) |
	       ((flags & PL_MARK_IS_STEPPED) != 0 ? PL_MARK_ALARM_STEPPED : 0u) |
	       ((flags & PL_MARK_IS_SYNCED) == 0 ? PL_MARK_ALARM_UNSYNCED : 0u) |
	       ((flags & PL_MARK_IN_USE) != 0 ? PL_MARK_ALARM_IN_USE : 0u) |
	       ((flags & PL_MARK_LATE_CHANGE) != 0 ? PL_MARK_ALARM_LATE_CHANGE : 0u);
}

/* True when the records differ in method or period, or both have bits of their terms (place of the
 * mark, parts of a flow) and these differ. */
static bool differ(const struct pl_mark128 *a, const struct pl_mark128 *b)
{
	const unsigned int told = a->mark_flags & PL_MARK_TERMS_MASK,
			   other = b->mark_flags & PL_MARK_TERMS_MASK;

	return a->method != b->method || a->period_ns != b->period_ns ||
	       (told != 0 && other != 0 && told != other);
}

/* Names a point once, though a cluster may have it at both ends: c->missing has room for each
 * point. */
static void add_missing(
	const struct pl_mark_correlator *c, struct pl_mark_result *result, uint32_t point)
{
	for (uint32_t i = 0; i < result->n_missing; i++) {
		if (c->missing[i] == point)
			return;
	}
	c->missing[result->n_missing++] = point;
}

/* Sums the records of the points at one end of the segment, and sets alarms; settings are compared
 * with those of the first record. */
static struct sum add_end(const struct pl_mark_correlator *c, struct pl_mark_result *result,
	const struct pl_mark128 **first, const struct pl_mark128 *const *at_point,
	const uint32_t *points, uint32_t n)
{
	struct sum sum = { .sums_fit = true, .timed = true };

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_mark128 *r = at_point[points[i]];

		if (r == NULL) {
			add_missing(c, result, c->points[points[i]]);
			continue;
		}
		if (*first == NULL)
			*first = r;
		if (differ(r, *first))
			result->alarms |= PL_MARK_ALARM_SETTINGS;
		if (r->tai_offset != (*first)->tai_offset)
			result->alarms |= PL_MARK_ALARM_CLOCK_DOMAIN;
		result->alarms |= alarms_of(r->mark_flags);
		sum.reported++;
		sum.timed &= (r->mark_flags & PL_MARK_UNTIMED) == 0;
		sum.packets += r->packets;
		sum.offsets_ns += r->sum_ns;
		/* The sum of offsets fits, because each is below three periods. */
		sum.sums_fit &=
			r->packets == 0 || 3 * r->period_ns <= (uint64_t)INT64_MAX / r->packets;
		sum.late += r->late;
		sum.early += r->early;
		sum.pulses += r->pulses;
		result->clock_error_ns =
			r->clock_error_ns == UINT32_MAX || result->clock_error_ns == UINT64_MAX
				? UINT64_MAX
				: result->clock_error_ns + r->clock_error_ns;
	}
	return sum;
}

/* Returns true for a delay that is possible: it is negative by no more than the difference of the
 * clocks. Otherwise sets the alarm clock-fault. */
static bool is_delay(const struct pl_mark_correlator *c, struct pl_mark_result *result, int64_t ns)
{
	const uint64_t error =
		c->config.clock_ns != 0 ? c->config.clock_ns : result->clock_error_ns;

	if (ns >= 0 || (error != UINT64_MAX && -(uint64_t)ns <= error))
		return true;
	result->alarms |= PL_MARK_ALARM_CLOCK_FAULT;
	return false;
}

static bool one_pulse(const struct pl_mark128 *a, const struct pl_mark128 *b)
{
	return a != NULL && b != NULL && a->pulses == 1 && b->pulses == 1 &&
	       ((a->mark_flags | b->mark_flags) & PL_MARK_UNTIMED) == 0;
}

static void compare_pulses(const struct pl_mark_correlator *c, struct pl_mark_result *ret,
	const struct pl_mark128 *from, const struct pl_mark128 *to)
{
	const int64_t delay = to->pulse_ns - from->pulse_ns;

	if (!one_pulse(from, to)) {
		/* No packet was sent in the pulse's window, or the pulse is among the lost. */
		if ((from->pulses == 0 && to->pulses == 0) ||
			(from->pulses == 1 && to->pulses == 0 && ret->loss > 0))
			return;
		ret->alarms |= PL_MARK_ALARM_PULSES;
		return;
	}
	if (is_delay(c, ret, delay)) {
		ret->has |= PL_MARK_HAS_DELAY;
		ret->delay_ns = delay;
	}
}

/* Adds the jitter: the delay less that of the block before, if that has one. */
static void add_jitter(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, const struct segment *s)
{
	const struct block *before = pl_mark_block_before(c, b, 1);
	const struct pl_mark128 *from, *to;

	if ((ret->has & PL_MARK_HAS_DELAY) == 0 || before == NULL)
		return;
	pl_mark_gather(c, before, c->at_point);
	from = c->at_point[s->from[0]];
	to = c->at_point[s->to[0]];
	if (!one_pulse(from, to) || from->tai_offset != to->tai_offset)
		return;
	ret->has |= PL_MARK_HAS_JITTER;
	ret->jitter_ns = ret->delay_ns - (to->pulse_ns - from->pulse_ns);
}

/* Alarms of a block that the count runs through. A point without a record may have been restarted: idle
 * flows are reported for longer than blocks are looked back. */
static uint32_t alarms_between(const struct pl_mark128 *r)
{
	return r == NULL ? PL_MARK_ALARM_PARTIAL : alarms_of(r->mark_flags);
}

/* Pulse marking: counts the packets between this pulse and the last earlier one that both ends
 * saw. */
static void count_between(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, const struct segment *s, const struct pl_mark128 *from,
	const struct pl_mark128 *to)
{
	const struct pl_mark128 now[2] = { *from, *to };
	uint32_t alarms = 0;

	if (!one_pulse(&now[0], &now[1])) {
		ret->alarms |= PL_MARK_ALARM_PULSES;
		return;
	}
	for (uint64_t back = 1; back <= PULSE_LOOK_BACK; back++) {
		const struct block *before = pl_mark_block_before(c, b, back);

		if (before != NULL)
			pl_mark_gather(c, before, c->at_point);
		from = before != NULL ? c->at_point[s->from[0]] : NULL;
		to = before != NULL ? c->at_point[s->to[0]] : NULL;
		alarms |= alarms_between(from) | alarms_between(to);
		if (!one_pulse(from, to))
			continue;
		ret->alarms |= alarms;
		/* A meter that was restarted counts from 0 again. */
		if (from->packets > now[0].packets || to->packets > now[1].packets) {
			ret->alarms |= PL_MARK_ALARM_PARTIAL;
			return;
		}
		ret->since = before->block;
		ret->sent = now[0].packets - from->packets;
		ret->received = now[1].packets - to->packets;
		ret->loss = (int64_t)(ret->sent - ret->received);
		ret->has |= PL_MARK_HAS_LOSS;
		return;
	}
}

static void add_first(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct pl_mark128 *from, const struct pl_mark128 *to)
{
	const int64_t delay = to->first_ns - from->first_ns;

	if (ret->loss != 0 || from->packets == 0 || !is_delay(c, ret, delay))
		return;
	ret->has |= PL_MARK_HAS_FIRST;
	ret->first_ns = delay;
}

static void add_mean(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct sum *in, const struct sum *out)
{
	int64_t mean;

	if (ret->loss != 0 || in->packets == 0 || !in->sums_fit || !out->sums_fit)
		return;
	mean = (int64_t)((out->offsets_ns - in->offsets_ns) / (__int128)in->packets);
	if (!is_delay(c, ret, mean))
		return;
	ret->has |= PL_MARK_HAS_MEAN;
	ret->mean_ns = mean;
}

/* Multiplexed marking: packets of another block whose bit is read as the pulse. More pulses than were
 * sent, but for one that was duplicated, come from clocks or delays beyond the limit. */
static bool are_misread(unsigned int method, uint32_t sent, uint32_t received)
{
	return method == PL_MARK_MULTIPLEXED && received > sent + 1;
}

/* Adds the pulses of these points' records in c->at_point, and returns their flags. */
static uint16_t add_flags(const struct pl_mark_correlator *c, const uint32_t *points, uint32_t n,
	uint32_t *ret_pulses)
{
	uint16_t flags = 0;

	*ret_pulses = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_mark128 *r = c->at_point[points[i]];

		flags |= r != NULL ? r->mark_flags : 0;
		*ret_pulses += r != NULL ? r->pulses : 0;
	}
	return flags;
}

/* True when packets stood outside the guard band in one of the two blocks before: a packet that is late
 * there by more than half a period is counted here. */
static bool was_beyond(const struct pl_mark_correlator *c, const struct block *b,
	const struct segment *s, unsigned int method)
{
	for (uint64_t back = 1; back <= 2 && b->block <= c->beyond_block + 2; back++) {
		const struct block *before = pl_mark_block_before(c, b, back);
		uint32_t sent, received;
		uint16_t flags;

		if (before == NULL)
			continue;
		pl_mark_gather(c, before, c->at_point);
		flags = add_flags(c, s->from, s->n_from, &sent) |
			add_flags(c, s->to, s->n_to, &received);
		if ((flags & PL_MARK_IS_BEYOND) != 0 || are_misread(method, sent, received))
			return true;
	}
	return false;
}

static void add_numbers(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, const struct segment *s, const struct sum *in, const struct sum *out)
{
	const struct pl_mark128 *from = c->at_point[s->from[0]], *to = c->at_point[s->to[0]];
	const bool link = s->n_from == 1 && s->n_to == 1, timed = in->timed && out->timed;

	if (ret->method == PL_MARK_PULSE) {
		if (!link)
			return;
		if (one_pulse(from, to))
			compare_pulses(c, ret, from, to);
		count_between(ret, c, b, s, from, to);
	} else {
		ret->sent = in->packets;
		ret->received = out->packets;
		ret->loss = (int64_t)(in->packets - out->packets);
		ret->has |= PL_MARK_HAS_LOSS;
		if (timed)
			add_mean(ret, c, in, out);
		if (link && timed && has_pulses(ret->method))
			compare_pulses(c, ret, from, to);
		if (link && timed)
			add_first(ret, c, from, to);
	}
	if (ret->loss < 0)
		ret->alarms |= PL_MARK_ALARM_NEGATIVE;
	if (are_misread(ret->method, in->pulses, out->pulses) || was_beyond(c, b, s, ret->method))
		ret->alarms |= PL_MARK_ALARM_BEYOND;
	/* If a packet was outside the guard band, or a clock was set, it is unknown to which block
	 * the mean and the first packet belong. */
	if ((ret->alarms & (PL_MARK_ALARM_BEYOND | PL_MARK_ALARM_STEPPED)) != 0)
		ret->has &= (uint32_t) ~(PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST);
	/* The same holds for the pulse, because its bit is interpreted by the time. */
	if ((ret->alarms & PL_MARK_ALARM_BEYOND) != 0 && ret->method == PL_MARK_MULTIPLEXED)
		ret->has &= (uint32_t)~PL_MARK_HAS_DELAY;
	if (link)
		add_jitter(ret, c, b, s);
}

static void note_domains(const struct pl_mark_correlator *c, struct pl_mark_result *ret,
	const struct pl_mark128 *first, const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t tai = c->tai[points[i]];

		if (tai != 0 && tai != first->tai_offset + 1u)
			ret->alarms |= PL_MARK_ALARM_CLOCK_DOMAIN;
	}
}

static bool is_seen(const struct pl_mark_correlator *c, const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (c->at_point[points[i]] != NULL)
			return true;
	}
	return false;
}

/* Makes records without packets for points that saw none of the flow. */
static void fill_absent(const struct pl_mark_correlator *c, const struct block *b,
	const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = points[i];
		const struct seen *s;
		struct pl_mark128 *zero;

		if (c->at_point[at] != NULL || !pl_mark_is_absent(c, b, at, false))
			continue;
		s = &c->seen[(size_t)at * SEEN_BLOCKS + b->block % SEEN_BLOCKS];
		zero = &c->zeros[at];
		*zero = (struct pl_mark128){ .block = b->block,
			.period_ns = b->period_ns,
			.method = s->record.method,
			/* NO_ROOM stays: the point may have had no room for the flow. */
			.mark_flags =
				s->record.mark_flags &
				(PL_MARK_IS_MARKER | PL_MARK_IS_SYNCED | PL_MARK_IS_PARTIAL |
					PL_MARK_NO_ROOM | PL_MARK_IS_STEPPED | PL_MARK_UNTIMED |
					PL_MARK_LATE_CHANGE | PL_MARK_TERMS_MASK),
			.point = s->record.point,
			.clock_error_ns = s->record.clock_error_ns,
			.tai_offset = s->record.tai_offset };
		c->at_point[at] = zero;
	}
}

bool pl_mark_evaluate(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, uint32_t segment)
{
	const struct segment *s = &c->segments[segment];
	const struct pl_mark128 *first = NULL;
	struct sum in, out;
	bool fast;

	*ret = (struct pl_mark_result){ .flow = b->flow,
		.block = b->block,
		.period_ns = b->period_ns,
		.segment = segment,
		.missing = c->missing };
	pl_mark_gather(c, b, c->at_point);
	if (!is_seen(c, s->from, s->n_from) && !is_seen(c, s->to, s->n_to))
		return false;
	ret->unsent = !is_seen(c, s->from, s->n_from);
	fill_absent(c, b, s->from, s->n_from);
	fill_absent(c, b, s->to, s->n_to);
	in = add_end(c, ret, &first, c->at_point, s->from, s->n_from);
	out = add_end(c, ret, &first, c->at_point, s->to, s->n_to);
	if (first == NULL)
		return false;
	/* Points that are seconds apart have no block in common. */
	note_domains(c, ret, first, s->from, s->n_from);
	note_domains(c, ret, first, s->to, s->n_to);
	fast = pl_mark_is_fast(c, b->block, s->from, s->n_from) ||
	       pl_mark_is_fast(c, b->block, s->to, s->n_to);
	if (fast)
		ret->alarms |= PL_MARK_ALARM_CLOCK_FAULT;
	ret->method = first->method;
	ret->tai_offset = first->tai_offset;
	ret->late = out.late;
	ret->early = out.early;
	ret->pulses_sent = in.pulses;
	ret->pulses_received = out.pulses;
	if (ret->n_missing > 0)
		ret->alarms |= PL_MARK_ALARM_MISSING;
	if (!fast &&
		(ret->alarms & (PL_MARK_ALARM_MISSING | PL_MARK_ALARM_CLOCK_DOMAIN |
				       PL_MARK_ALARM_SETTINGS | PL_MARK_ALARM_LATE_CHANGE)) == 0)
		add_numbers(ret, c, b, s, &in, &out);
	return true;
}
