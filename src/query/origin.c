/* SPDX-License-Identifier: BSD-2-Clause */
/* Origins of groups and rows: the earliest time of their records, and their observation points
 * (struct pl_query_row). */
#include "query/origin.h"

#include <stddef.h>
#include <string.h>

#include "core/tap_counts.h"

static int32_t obs_of_stream(unsigned int kind)
{
	switch (kind) {
	case PL_FLAT_PKT64:
	case PL_FLAT_PKT96:
		return offsetof(struct pl_pkt64, obs);
	case PL_FLAT_FLOW128:
	case PL_FLAT_FLOW288:
		return offsetof(struct pl_flow128, obs);
	default:
		return NO_POINT;
	}
}

void pl_query_origins_init(struct stage_run *s)
{
	s->headed = s->stage->n_sources > 0 || s->stage->kind == PL_QUERY_STREAMS;
	s->obs_at = s->headed ? NO_POINT : obs_of_stream(s->stage->kind);
}

uint32_t pl_query_origin_bit(struct pl_query_run *run, uint16_t point)
{
	struct points *p = &run->points;

	if (p->bit_of[point] == 0 && p->n == PL_QUERY_EXP_MAX)
		return PL_QUERY_EXP_OTHERS;
	if (p->bit_of[point] == 0) {
		p->of_bit[p->n++] = point;
		p->bit_of[point] = (uint8_t)p->n;
	}
	return 1u << (p->bit_of[point] - 1);
}

uint32_t pl_query_origin_bit_of(
	struct pl_query_run *run, const struct stage_run *s, const uint8_t *record)
{
	uint16_t obs;

	if (s->obs_at == NO_POINT)
		return 0;
	memcpy(&obs, record + s->obs_at, sizeof(obs));
	return pl_query_origin_bit(run, obs & PL_OBS_POINT_MASK);
}

/* ---- of groups ---- */

/* Returns the points of a group. While all records are of the first point, groups store none. */
static uint32_t exp_of(
	const struct pl_query_run *run, const struct stage_run *s, const struct link *link)
{
	if (link->exp != 0 || s->obs_at == NO_POINT || link->first_ns == PL_QUERY_NO_TIME)
		return link->exp;
	return run->points.n > 0;
}

bool pl_query_origins_alike(
	struct pl_query_run *run, const struct stage_run *s, const struct rows *rows)
{
	uint16_t first, obs, differ = 0;

	if (s->obs_at == NO_POINT || rows->n == 0)
		return true;
	memcpy(&first, row_at(rows, 0) + s->obs_at, sizeof(first));
	for (uint32_t k = 0; k < rows->n; k++) {
		memcpy(&obs, row_at(rows, k) + s->obs_at, sizeof(obs));
		differ |= obs ^ first;
	}
	(void)pl_query_origin_bit(run, first & PL_OBS_POINT_MASK);
	return (differ & PL_OBS_POINT_MASK) == 0 && run->points.n == 1;
}

void pl_query_origin_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	uint32_t k, uint64_t ts, uint32_t entry)
{
	struct link *link = link_of(s, entry);
	struct row_origin o = { ts, 0 };
	uint32_t before;

	if (s->headed)
		o = row_origin(row_at(rows, k));
	else
		o.exp = pl_query_origin_bit_of(run, s, row_at(rows, k));
	if (run->counts != NULL)
		o.first_ns = pl_query_counts_first(run, rows, k);
	before = exp_of(run, s, link);
	link->exp = (before | (uint32_t)o.exp) & EXP_ALL;
	link->first_ns = o.first_ns < link->first_ns ? o.first_ns : link->first_ns;
}

void pl_query_origins_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint64_t *ts, const uint32_t *entries)
{
	for (uint32_t k = 0; k < rows->n; k++)
		pl_query_origin_add(run, s, rows, k, ts[k], entries[k]);
}

void pl_query_origin_unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into)
{
	const struct row_origin o = pl_query_origin_of(run, s, from);

	pl_query_origin_put(run, s, into, o);
}

void pl_query_origin_put(
	const struct pl_query_run *run, struct stage_run *s, uint32_t into, struct row_origin o)
{
	struct link *link = link_of(s, into);

	link->exp = (exp_of(run, s, link) | (uint32_t)o.exp) & EXP_ALL;
	link->first_ns = o.first_ns < link->first_ns ? o.first_ns : link->first_ns;
}

struct row_origin pl_query_origin_of(
	const struct pl_query_run *run, const struct stage_run *s, uint32_t entry)
{
	const struct link *link = link_of(s, entry);

	return (struct row_origin){ link->first_ns, exp_of(run, s, link) };
}

/* ---- of rows ---- */

void pl_query_origins_copy(const struct rows *rows, uint8_t *to, uint32_t size)
{
	for (uint32_t k = 0; k < rows->n; k++)
		row_set_origin(to + (size_t)k * size, row_origin(row_at(rows, k)));
}

void pl_query_origins_of_records(struct pl_query_run *run, const struct stage_run *s,
	const struct rows *rows, uint8_t *to, uint32_t size)
{
	for (uint32_t k = 0; k < rows->n; k++) {
		const uint8_t *record = row_at(rows, k);
		struct row_origin o = { .exp = pl_query_origin_bit_of(run, s, record) };

		memcpy(&o.first_ns, record + s->stage->time->offset, sizeof(o.first_ns));
		row_set_origin(to + (size_t)k * size, o);
	}
}

struct row_origin pl_query_origin_join(struct row_origin a, struct row_origin b)
{
	return (struct row_origin){ a.first_ns < b.first_ns ? a.first_ns : b.first_ns,
		a.exp | b.exp };
}

/* Lists the points in ascending order; most rows have the same points as the row before. */
void pl_query_origin_tell(struct pl_query_run *run, struct pl_query_row *row, const uint8_t *data)
{
	const struct row_origin o = row_origin(data);
	struct points *p = &run->points;

	row->first_ns = o.first_ns;
	if (o.exp != p->told) {
		p->told = (uint32_t)o.exp;
		p->n_told = 0;
		for (uint32_t i = 0; i < p->n; i++) {
			uint32_t at = p->n_told;

			if ((o.exp >> i & 1) == 0)
				continue;
			for (; at > 0 && p->list[at - 1] > p->of_bit[i]; at--)
				p->list[at] = p->list[at - 1];
			p->list[at] = p->of_bit[i];
			p->n_told++;
		}
	}
	row->exp = p->list;
	row->n_exp = p->n_told;
	row->exp_more = (o.exp & PL_QUERY_EXP_OTHERS) != 0;
}
