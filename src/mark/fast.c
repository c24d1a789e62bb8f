/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the time at which a record comes with the time at which its block is read. */
#include "mark/correlate_state.h"

/* Returns the time at which a point reads the block of its record. */
static uint64_t read_at(const struct pl_mark_correlator *c, const struct pl_mark128 *r)
{
	const uint64_t offset = c->config.utc ? r->tai_offset * UINT64_C(1000000000) : 0,
		       at = pl_mark_read_at(r->method, r->block, r->period_ns);

	return at > offset ? at - offset : 0;
}

uint64_t pl_mark_deadline(const struct pl_mark_correlator *c, const struct pl_mark128 *r)
{
	const uint64_t at = read_at(c, r);

	return at > UINT64_MAX - c->config.patience_ns ? UINT64_MAX : at + c->config.patience_ns;
}

bool pl_mark_is_ahead(const struct pl_mark_correlator *c, const struct pl_mark128 *r)
{
	const uint64_t ahead = c->config.ahead_ns;

	return ahead != 0 && c->until_ns < UINT64_MAX - ahead &&
	       pl_mark_deadline(c, r) > c->until_ns + ahead;
}

/* A point that ends sends its last blocks before they are over, as partial ones. */
void pl_mark_note_fast(struct pl_mark_correlator *c, uint32_t point, const struct pl_mark128 *r)
{
	const uint64_t at = read_at(c, r);
	struct fast *f = &c->fast[point];

	if (c->config.ahead_ns == 0 || (r->mark_flags & PL_MARK_IS_PARTIAL) != 0 ||
		at <= c->until_ns || at - c->until_ns <= r->period_ns / 2)
		return;
	if (f->to == 0 || r->block < f->from || r->block > f->to + FAST_PAUSE)
		f->from = r->block;
	if (r->block > f->to)
		f->to = r->block;
}

bool pl_mark_is_fast(
	const struct pl_mark_correlator *c, uint64_t block, const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct fast *f = &c->fast[points[i]];

		if (f->to != 0 && block >= f->from && block <= f->to + FAST_BLOCKS)
			return true;
	}
	return false;
}
