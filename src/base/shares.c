/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the entries of a shared table by sender, and picks the entry to replace. */
#include "base/shares.h"

#include <assert.h>

#include "base/hash.h"

int pl_shares_init(struct pl_shares *s, uint32_t entries)
{
	s->seed = pl_hash_seed();
	return pl_cells_init(&s->cells, entries, sizeof(struct pl_share));
}

void pl_shares_done(struct pl_shares *s)
{
	pl_cells_done(&s->cells);
}

uint64_t pl_shares_memory(uint32_t entries)
{
	return pl_cells_memory(entries, sizeof(struct pl_share));
}

void pl_shares_clear(struct pl_shares *s)
{
	pl_cells_clear(&s->cells);
}

void pl_shares_copy(struct pl_shares *dst, const struct pl_shares *src)
{
	pl_cells_copy(&dst->cells, &src->cells);
	dst->seed = src->seed;
}

static uint64_t hash_of(const struct pl_shares *s, const struct pl_addr *source)
{
	return pl_hash(source, sizeof(*source), s->seed);
}

uint32_t pl_shares_take(struct pl_shares *s, const struct pl_addr *source)
{
	const uint64_t hash = hash_of(s, source);
	uint32_t cell = pl_cells_find(&s->cells, hash, source, sizeof(*source));

	if (cell == PL_CELL_NONE)
		cell = pl_cells_insert(&s->cells, hash, source, sizeof(*source));
	assert(cell != PL_CELL_NONE);
	((struct pl_share *)pl_cells_at(&s->cells, cell))->held++;
	return cell;
}

void pl_shares_give(struct pl_shares *s, uint32_t share)
{
	struct pl_share *x = pl_cells_at(&s->cells, share);

	assert(x->held > 0);
	if (--x->held == 0)
		pl_cells_remove(&s->cells, share);
}

uint32_t pl_shares_held(const struct pl_shares *s, const struct pl_addr *source)
{
	uint32_t cell = pl_cells_find(&s->cells, hash_of(s, source), source, sizeof(*source));

	return cell == PL_CELL_NONE ? 0 : pl_shares_at(s, cell)->held;
}

struct candidate {
	uint32_t cell, held;
	struct pl_share_entry entry;
};

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
	if (a->entry.idle != b->entry.idle)
		return a->entry.idle;
	if (a->held != b->held)
		return a->held > b->held;
	return a->entry.seen_ns < b->entry.seen_ns;
}

uint32_t pl_shares_choose(const struct pl_shares *s, const struct pl_cells *table, uint32_t *hand,
	uint32_t held, bool always,
	struct pl_share_entry (*entry)(const void *arg, const void *cell), const void *arg)
{
	struct candidate best = { .cell = PL_CELL_NONE };

	for (uint32_t i = 0; i < PL_SHARES_LOOK && i < table->high; i++) {
		struct candidate c = { .cell = *hand < table->high ? *hand : 0 };

		*hand = c.cell + 1;
		if (!pl_cells_live(table, c.cell))
			continue;
		c.entry = entry(arg, pl_cells_at(table, c.cell));
		c.held = pl_shares_at(s, c.entry.share)->held;
		if (!c.entry.idle && !always && c.held <= held + 1)
			continue;
		if (best.cell == PL_CELL_NONE || goes_before(&c, &best))
			best = c;
	}
	return best.cell;
}
