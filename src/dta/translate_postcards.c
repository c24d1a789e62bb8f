/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Postcards: the hops of a flow are gathered until its path is complete: at the path's length in
 * its postcards, or at the store's longest path. A path is also written when a hop comes again with
 * another value: that hop is of the flow's next packet, and hops of two packets are not a path. The
 * same hop with the same value is a repeat.
 *
 * Uncertain hops are not written: hops behind a missing one, and, unless `partial` is set, a path
 * that is shorter than its postcards say. Without a length a short path may be complete, and is
 * written.
 */
#include <errno.h>
#include <stdlib.h>

#include "dta/translator_state.h"

#define ROWS_DEFAULT 32768u

static int postcards_init(struct pl_translator *t, struct store *s, struct pl_diag *diag)
{
	struct postcards_state *p = &s->postcards;
	size_t rows;
	int r = pl_postcards_init(&p->geometry, &s->config.params, NULL);

	(void)diag;
	if (r < 0)
		return r;
	if (s->config.cache_rows == 0)
		s->config.cache_rows = ROWS_DEFAULT;
	r = pl_translator_cache(t, &p->cache, s->config.cache_rows);
	rows = (size_t)p->cache.sets * PL_CACHE_WAYS;
	p->rows = pl_translator_alloc(t, rows, sizeof(*p->rows));
	p->values = pl_translator_alloc(t, rows * p->geometry.hops, sizeof(*p->values));
	return p->rows == NULL || p->values == NULL ? -ENOMEM : r;
}

static void postcards_done(struct store *s)
{
	pl_cache_done(&s->postcards.cache);
	free(s->postcards.rows);
	free(s->postcards.values);
}

static int postcards_check(const struct store *s, struct intake *in)
{
	const struct pl_postcards *g = &s->postcards.geometry;
	const struct pl_dta_report *r = in->report;

	if (r->copies != 0 && r->copies != g->copies)
		return PL_REFUSED_COUNT_OF_COPIES;
	if (r->hop == 0 || r->hop > g->hops || r->path_length > g->hops)
		return PL_REFUSED_HOPS;
	if (r->value == PL_POSTCARD_BLANK)
		return PL_REFUSED_BLANK;
	/* Published form: the key in network order, as it came. */
	in->key = pl_postcards_key(g, r->key, r->key_bytes);
	in->spread = in->key.h;
	return TAKEN;
}

static uint32_t first_bits(unsigned int n)
{
	return (uint32_t)((UINT64_C(1) << n) - 1);
}

/* Writes the first n hops to all copies. */
static void write_path(struct pl_translator *t, struct store *s, struct pl_key key,
	const uint32_t *values, unsigned int n, bool wake)
{
	const struct pl_postcards *g = &s->postcards.geometry;
	int collector = pl_translator_choose(t, s, key.h);
	uint8_t *image = pl_translator_room(t, g->chunk_bytes);
	unsigned int copy = 0;
	struct pl_op *op;

	(void)pl_postcards_image(g, key, values, n, image);
	do {
		op = pl_translator_write(
			t, s, collector, pl_postcards_offset(g, key, copy), image, g->write_bytes);
	} while (++copy < g->copies);
	if (wake)
		pl_translator_wake(t, op, pl_op_imm(PL_POSTCARDS, op->offset / g->chunk_bytes));
	t->count.paths_written++;
}

static bool sum_passes(const struct store *s, const uint32_t *values, unsigned int n)
{
	uint64_t sum = 0;

	if (!s->config.filter.on)
		return true;
	for (unsigned int i = 0; i < n; i++)
		sum += values[i];
	return sum > s->config.filter.above;
}

/* Removes the path from its row, written or not; `why` counts it. */
static void let_go(struct pl_translator *t, struct store *s, uint32_t i, uint64_t *why)
{
	struct postcards_state *p = &s->postcards;
	const struct path_row *row = &p->rows[i];
	const uint32_t *values = &p->values[(size_t)i * p->geometry.hops];
	unsigned int told = (unsigned int)__builtin_popcount(row->have);
	unsigned int n = (unsigned int)__builtin_ctzll(~(uint64_t)row->have);
	uint64_t *unwritten = NULL;

	if (n == 0)
		unwritten = &t->count.paths_without_head;
	else if (n < row->length && !s->config.partial)
		unwritten = &t->count.paths_short;
	else if (!sum_passes(s, values, n))
		unwritten = &t->count.paths_filtered;
	(*why)++;
	if (unwritten != NULL) {
		(*unwritten)++;
		n = 0;
	} else {
		write_path(t, s, (struct pl_key){ p->cache.hash[i] }, values, n, row->immediate);
	}
	t->count.postcards_written += n;
	t->count.postcards_left_out += told - n;
	t->held.postcards -= told;
	pl_ages_stop(&p->cache.ages, i);
}

/* Returns true when the postcard can be of the same path. */
static bool agrees(
	const struct path_row *row, const uint32_t *values, const struct pl_dta_report *r)
{
	if ((row->have >> (r->hop - 1) & 1) != 0 && values[r->hop - 1] != r->value)
		return false;
	if (row->length != 0 && r->hop > row->length)
		return false;
	if (r->path_length == 0)
		return true;
	return (row->length == 0 || row->length == r->path_length) &&
	       (row->have & ~first_bits(r->path_length)) == 0;
}

static bool postcards_take(struct pl_translator *t, struct store *s, const struct intake *in)
{
	struct postcards_state *p = &s->postcards;
	const struct pl_dta_report *r = in->report;
	bool found, taken;
	uint32_t i = pl_cache_find(&p->cache, in->key.h, &found, &taken);
	uint32_t *values = &p->values[(size_t)i * p->geometry.hops];
	struct path_row *row = &p->rows[i];

	if (taken) {
		let_go(t, s, i, &t->count.paths_evicted);
	} else if (found && !agrees(row, values, r)) {
		let_go(t, s, i, &t->count.paths_displaced);
		found = false;
	}
	if (!found)
		*row = (struct path_row){ 0 };
	else if ((row->have >> (r->hop - 1) & 1) != 0)
		t->count.postcards_repeated++;
	if ((row->have >> (r->hop - 1) & 1) == 0)
		t->held.postcards++;
	pl_cache_take(&p->cache, i, in->key.h, in->now_ns);
	row->have |= UINT32_C(1) << (r->hop - 1);
	row->immediate = row->immediate || r->immediate;
	if (r->path_length != 0)
		row->length = r->path_length;
	values[r->hop - 1] = r->value;
	if (row->have == first_bits(row->length != 0 ? row->length : p->geometry.hops))
		let_go(t, s, i, &t->count.paths_complete);
	return true;
}

static uint64_t postcards_due(const struct store *s)
{
	return pl_ages_due_ns(&s->postcards.cache.ages, s->config.flush_ns);
}

static void postcards_tick(struct pl_translator *t, struct store *s, uint64_t now_ns, bool all)
{
	const struct pl_ages *ages = &s->postcards.cache.ages;

	while (ages->oldest != PL_AGES_NONE && (all || postcards_due(s) <= now_ns))
		let_go(t, s, ages->oldest, &t->count.paths_idle);
}

const struct primitive pl_translate_postcards = {
	.init = postcards_init,
	.done = postcards_done,
	.check = postcards_check,
	.take = postcards_take,
	.tick = postcards_tick,
	.due = postcards_due,
};
