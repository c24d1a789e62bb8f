/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: increments of a key are summed up for a while, then added to a cell of each row. Keys
 * are told apart by their hash, as in the store: keys of the same hash have the same cells, so they
 * may share a sum.
 */
#include <errno.h>
#include <stdlib.h>

#include "dta/translator_state.h"

#define ROWS_DEFAULT  4096u
#define MERGE_DEFAULT 64u

static int counters_init(struct pl_translator *t, struct store *s, struct pl_diag *diag)
{
	struct counters_state *c = &s->counters;
	int r = pl_counters_init(&c->geometry, &s->config.params, NULL);

	(void)diag;
	if (r < 0)
		return r;
	if (s->config.merge_max == 0)
		s->config.merge_max = MERGE_DEFAULT;
	if (s->config.cache_rows == 0)
		s->config.cache_rows = ROWS_DEFAULT;
	r = pl_translator_cache(t, &c->cache, s->config.cache_rows);
	c->sums = pl_translator_alloc(t, (size_t)c->cache.sets * PL_CACHE_WAYS, sizeof(*c->sums));
	return c->sums == NULL ? -ENOMEM : r;
}

static void counters_done(struct store *s)
{
	pl_cache_done(&s->counters.cache);
	free(s->counters.sums);
}

static int counters_check(const struct store *s, struct intake *in)
{
	const struct pl_dta_report *r = in->report;

	/* Fewer rows than queries read would make answers too low. */
	if (r->copies != 0 && r->copies != s->counters.geometry.rows)
		return PL_REFUSED_COUNT_OF_COPIES;
	if (s->config.filter.on && r->increment <= s->config.filter.above)
		return PL_REFUSED_FILTERED;
	in->key = pl_key_carried(&s->counters.geometry.hashing, r->key, r->key_bytes);
	in->spread = in->key.h;
	return TAKEN;
}

/* `wake`: the last addition wakes the collector. */
static void add(
	struct pl_translator *t, struct store *s, struct pl_key key, struct sum sum, bool wake)
{
	const struct pl_counters *g = &s->counters.geometry;
	int collector = pl_translator_choose(t, s, key.h);
	unsigned int row = 0;
	struct pl_op *op;

	do {
		op = pl_translator_add(t, s, collector, pl_counters_offset(g, key, row), sum.sum);
	} while (++row < g->rows);
	if (wake)
		pl_translator_wake(t, op, pl_op_imm(PL_COUNTERS, op->offset / 8));
	t->count.increments_merged += sum.n;
	t->count.additions++;
}

static void let_go(struct pl_translator *t, struct store *s, uint32_t row, bool wake)
{
	struct counters_state *c = &s->counters;

	add(t, s, (struct pl_key){ c->cache.hash[row] }, c->sums[row], wake);
	t->held.increments -= c->sums[row].n;
	pl_ages_stop(&c->cache.ages, row);
}

static bool counters_take(struct pl_translator *t, struct store *s, const struct intake *in)
{
	struct counters_state *c = &s->counters;
	const struct pl_dta_report *r = in->report;
	bool found, taken;
	uint32_t row;

	if (s->config.merge_max == 1) {
		add(t, s, in->key, (struct sum){ r->increment, 1 }, r->immediate);
		return true;
	}
	row = pl_cache_find(&c->cache, in->key.h, &found, &taken);
	/* One addition has 64 bits at most: a larger sum is written as two. */
	if (taken || (found && r->increment > UINT64_MAX - c->sums[row].sum)) {
		let_go(t, s, row, false);
		t->count.increments_evicted += taken;
		found = false;
	}
	if (!found) {
		pl_cache_take(&c->cache, row, in->key.h, in->now_ns);
		c->sums[row] = (struct sum){ 0, 0 };
	}
	c->sums[row].sum += r->increment;
	c->sums[row].n++;
	t->held.increments++;
	if (r->immediate || c->sums[row].n >= s->config.merge_max)
		let_go(t, s, row, r->immediate);
	return true;
}

static uint64_t counters_due(const struct store *s)
{
	return pl_ages_due_ns(&s->counters.cache.ages, s->config.flush_ns);
}

static void counters_tick(struct pl_translator *t, struct store *s, uint64_t now_ns, bool all)
{
	const struct pl_ages *ages = &s->counters.cache.ages;

	while (ages->oldest != PL_AGES_NONE && (all || counters_due(s) <= now_ns))
		let_go(t, s, ages->oldest, false);
}

const struct primitive pl_translate_counters = {
	.init = counters_init,
	.done = counters_done,
	.check = counters_check,
	.take = counters_take,
	.tick = counters_tick,
	.due = counters_due,
};
