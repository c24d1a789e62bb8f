/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers questions about waiting records: their positions in the input, to begin again after them,
 * their times, and where some were left out. */
#include "query/pairs_room.h"

bool pl_query_pairs_oldest(const struct stage_run *s, uint64_t *ret)
{
	bool some = false;

	*ret = UINT64_MAX;
	for (unsigned int i = 0; i < PLACES; i++) {
		const struct place *place = &s->pairs->places[i];

		if (!place->used)
			continue;
		*ret = place->position < *ret ? place->position : *ret;
		some = true;
	}
	return some;
}

int64_t pl_query_pairs_watermark(const struct stage_run *s)
{
	const struct pair_room *room = s->pairs;

	return room->watermark > room->resumed ? room->watermark : room->resumed;
}

void pl_query_pairs_resume(struct stage_run *s, int64_t watermark)
{
	s->pairs->resumed = watermark;
}

void pl_query_pairs_restart(struct stage_run *s, int64_t watermark)
{
	s->pairs->watermark = watermark;
}

int64_t pl_query_pairs_last(const struct stage_run *s)
{
	const struct side *left = &s->pairs->sides[0];
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < left->n; i++)
		last = left->due[i].ts > last ? left->due[i].ts : last;
	return last;
}

bool pl_query_pairs_incomplete(const struct stage_run *s, int64_t start, int64_t end)
{
	if (s->pairs == NULL)
		return false;
	/* Without windows the only window is [0, 0). */
	if (start == 0 && end == 0)
		return s->pairs->refused.n > 0;
	return pl_query_losses_within(&s->pairs->refused, start, end);
}
