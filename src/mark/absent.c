/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides whether a point that reported a block without some flow saw no packet of the flow, or
 * whether its record was lost on the way. */
#include "mark/correlate_state.h"

static struct seen *seen_at(const struct pl_mark_correlator *c, uint32_t point, uint64_t block)
{
	return &c->seen[(size_t)point * SEEN_BLOCKS + block % SEEN_BLOCKS];
}

/* Stores that a record of a block came. The first block of a point is torn: it may have begun
 * before the collector listened. When the point's TAI offset changes, the record replaces any
 * other, because blocks of two clocks that are seconds apart cannot be compared. */
void pl_mark_note_seen(struct pl_mark_correlator *c, uint32_t point, const struct pl_addr *source,
	const struct pl_mark128 *record)
{
	struct seen *s = seen_at(c, point, record->block);
	const bool other = s->block != 0 && s->record.tai_offset != record->tai_offset;
	bool first = true;

	if (s->block >= record->block && !other)
		return;
	for (uint32_t i = 0; i < SEEN_BLOCKS; i++)
		first &= seen_at(c, point, i)->block == 0;
	*s = (struct seen){ .block = record->block,
		.torn = first || other || c->gaps[point],
		.source = *source,
		.record = *record };
	c->gaps[point] = false;
}

void pl_mark_correlate_gap(struct pl_mark_correlator *c, const struct pl_addr *sender)
{
	const struct pl_addr source = pl_addr_source(sender);

	for (uint32_t i = 0; c->config.absent && i < c->n_points; i++) {
		for (uint32_t k = 0; k < SEEN_BLOCKS; k++) {
			struct seen *s = seen_at(c, i, k);

			if (s->block == 0 || !pl_addr_equal(&s->source, &source))
				continue;
			s->torn = true;
			c->gaps[i] = true;
		}
	}
}

void pl_mark_correlate_torn(struct pl_mark_correlator *c, uint32_t point, uint64_t block)
{
	const uint32_t place = pl_mark_place_of_point(c, point);

	if (!c->config.absent || place == UINT32_MAX)
		return;
	for (uint32_t back = 0; back < 2; back++) {
		struct seen *s = seen_at(c, place, block - back);

		if (s->block == block - back)
			s->torn = true;
	}
}

bool pl_mark_is_absent(
	const struct pl_mark_correlator *c, const struct block *b, uint32_t place, bool early)
{
	const struct seen *s, *next;

	if (!c->config.absent)
		return false;
	s = seen_at(c, place, b->block);
	next = seen_at(c, place, b->block + 1);
	if (s->block != b->block || s->torn || s->record.period_ns != b->period_ns)
		return false;
	return early || (next->block == b->block + 1 && !next->torn);
}

bool pl_mark_postpone(struct pl_mark_correlator *c, struct block *b)
{
	bool worth = false;

	if (b->postponed || !c->config.absent)
		return false;
	pl_mark_gather(c, b, c->at_point);
	for (uint32_t i = 0; !worth && i < c->n_points; i++)
		worth = c->at_point[i] == NULL && pl_mark_is_absent(c, b, i, true) &&
			!pl_mark_is_absent(c, b, i, false);
	if (!worth || b->end_ns > UINT64_MAX - b->period_ns)
		return false;
	b->postponed = true;
	b->deadline_ns += b->period_ns;
	b->end_ns += b->period_ns;
	c->postponed++;
	return true;
}

uint32_t pl_mark_correlator_postponed(const struct pl_mark_correlator *c)
{
	return c->postponed;
}
