/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates once they are counted: aged, copied, merged, read. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "detect/aggregate_state.h"

#define SWEEP_PARTS 16

static uint64_t *cell_seen(enum pl_agg_table table, const void *cell)
{
	static const size_t at[PL_AGG_TABLE_MAX] = {
		[PL_AGG_QUEUES] = offsetof(struct pl_agg_queue, seen_ns),
		[PL_AGG_PORTS] = offsetof(struct pl_agg_port, seen_ns),
		[PL_AGG_LINKS] = offsetof(struct pl_agg_link, seen_ns),
		[PL_AGG_PATHS] = offsetof(struct pl_agg_path, seen_ns),
	};

	return (uint64_t *)(void *)((uintptr_t)cell + at[table]);
}

static uint64_t cell_seen_ns(enum pl_agg_table table, const void *cell)
{
	return *cell_seen(table, cell);
}

static uint64_t cell_readings(enum pl_agg_table table, const void *cell)
{
	switch (table) {
	case PL_AGG_QUEUES:
		return ((const struct pl_agg_queue *)cell)->packets;
	case PL_AGG_PORTS:
		return ((const struct pl_agg_port *)cell)->packets;
	case PL_AGG_LINKS:
		return ((const struct pl_agg_link *)cell)->reports;
	default:
		return ((const struct pl_agg_path *)cell)->reports;
	}
}

static struct pl_agg_owner *owner_of(enum pl_agg_table table, const void *cell)
{
	static const size_t at[PL_AGG_TABLE_MAX] = {
		[PL_AGG_QUEUES] = offsetof(struct pl_agg_queue, owner),
		[PL_AGG_PORTS] = offsetof(struct pl_agg_port, owner),
		[PL_AGG_LINKS] = offsetof(struct pl_agg_link, owner),
		[PL_AGG_PATHS] = offsetof(struct pl_agg_path, owner),
	};

	return (struct pl_agg_owner *)(void *)((uintptr_t)cell + at[table]);
}

static void drop_cell(struct pl_aggregate *agg, enum pl_agg_table table, uint32_t cell)
{
	pl_shares_give(&agg->shares[table],
		owner_of(table, pl_cells_at(&agg->tables[table], cell))->share);
	pl_cells_remove(&agg->tables[table], cell);
}

static void sweep(struct pl_aggregate *agg, enum pl_agg_table table)
{
	struct pl_cells *t = &agg->tables[table];
	uint32_t n = t->high / SWEEP_PARTS + 1;

	for (; n > 0 && t->high > 0; n--) {
		uint32_t i = t->sweep < t->high ? t->sweep : 0;

		t->sweep = i + 1;
		if (pl_cells_live(t, i) && agg->now_ns - cell_seen_ns(table, pl_cells_at(t, i)) >
						   agg->options.idle_ns) {
			drop_cell(agg, table, i);
			agg->totals.aged[table]++;
		}
	}
}

void pl_aggregate_tick(struct pl_aggregate *agg, uint64_t now_ns)
{
	if (now_ns > agg->now_ns) {
		agg->now_ns = now_ns;
		agg->slot = now_ns / agg->options.slot_ns;
	}
	agg->may_want = WANTED_PER_SECOND;
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		sweep(agg, t);
}

void pl_aggregate_copy(struct pl_aggregate *dst, const struct pl_aggregate *src)
{
	assert(memcmp(&dst->options, &src->options, sizeof(src->options)) == 0);
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		pl_cells_copy(&dst->tables[t], &src->tables[t]);
		pl_shares_copy(&dst->shares[t], &src->shares[t]);
	}
	dst->totals = src->totals;
	dst->now_ns = src->now_ns;
	dst->slot = src->slot;
	dst->seed = src->seed;
	dst->epoch++;
}

void pl_aggregate_reset(struct pl_aggregate *agg)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		pl_cells_clear(&agg->tables[t]);
		pl_shares_clear(&agg->shares[t]);
	}
	agg->epoch++;
	agg->totals = (struct pl_agg_totals){ 0 };
}

void pl_slot_max_advance(struct pl_slot_max *m, uint64_t slot)
{
	if (m->slot == slot)
		return;
	assert(slot > m->slot);
	m->has_previous = m->has_current && slot - m->slot == 1;
	m->previous = m->has_previous ? m->current : 0;
	m->has_current = false;
	m->current = 0;
	m->slot = slot;
}

/* --- merging ---------------------------------------------------------------------------------- */

static void slot_max_merge(struct pl_slot_max *into, const struct pl_slot_max *from)
{
	struct pl_slot_max f = *from;
	uint64_t slot = f.slot > into->slot ? f.slot : into->slot;

	pl_slot_max_advance(into, slot);
	pl_slot_max_advance(&f, slot);
	if (f.has_current && (!into->has_current || f.current > into->current)) {
		into->current = f.current;
		into->has_current = true;
	}
	if (f.has_previous && (!into->has_previous || f.previous > into->previous)) {
		into->previous = f.previous;
		into->has_previous = true;
	}
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void jitter_merge(struct pl_agg_jitter *into, const struct pl_agg_jitter *from)
{
	if (from->at.last != 0 && from->ts_ns >= into->ts_ns)
		*into = *from;
}

bool pl_agg_jitter(const struct pl_agg_jitter *j, const struct pl_hist *delays, double *ret_ns)
{
	*ret_ns = (double)j->at.sixteenths / 16;
	return j->at.last != 0 && pl_hist_count(delays) > 1;
}

bool pl_agg_variation(const struct pl_hist *delays, double share, uint64_t *ret_ns)
{
	uint64_t least, most;

	*ret_ns = 0;
	if (pl_hist_count(delays) == 0)
		return false;
	least = pl_hist_quantile(delays, 0);
	most = pl_hist_quantile(delays, share);
	if (most == UINT64_MAX)
		return false;
	*ret_ns = most - least;
	return true;
}

static void queue_merge(struct pl_agg_queue *into, const struct pl_agg_queue *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->packets += from->packets;
	if (from->has_depth && (!into->has_depth || from->last_ts_ns > into->last_ts_ns)) {
		into->last_depth = from->last_depth;
		into->last_ts_ns = from->last_ts_ns;
		into->has_depth = true;
	}
	slot_max_merge(&into->depth_max, &from->depth_max);
	pl_hist_merge(&into->depth, &from->depth);
	jitter_merge(&into->jitter, &from->jitter);
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->depth_gate, &into->depth_exemplars, &from->depth_gate,
		&from->depth_exemplars);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void port_merge(struct pl_agg_port *into, const struct pl_agg_port *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->packets += from->packets;
	if (from->has_util && (!into->has_util || from->last_ts_ns > into->last_ts_ns)) {
		into->last_util = from->last_util;
		into->last_ts_ns = from->last_ts_ns;
		into->has_util = true;
	}
	slot_max_merge(&into->util_max, &from->util_max);
}

static void link_merge(struct pl_agg_link *into, const struct pl_agg_link *from)
{
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->reports += from->reports;
	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		into->clock[i] += from->clock[i];
	jitter_merge(&into->jitter, &from->jitter);
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void path_merge(struct pl_agg_path *into, const struct pl_agg_path *from)
{
	if (into->reports == 0) {
		into->hop_count = from->hop_count;
		memcpy(into->steps, from->steps, sizeof(into->steps));
	}
	into->seen_ns = later(into->seen_ns, from->seen_ns);
	into->reports += from->reports;
	into->last_ts_ns = later(into->last_ts_ns, from->last_ts_ns);
	pl_hist_merge(&into->latency, &from->latency);
	pl_exemplar_merge(&into->latency_gate, &into->latency_exemplars, &from->latency_gate,
		&from->latency_exemplars);
}

static void cell_merge(enum pl_agg_table table, void *into, const void *from)
{
	switch (table) {
	case PL_AGG_QUEUES:
		queue_merge(into, from);
		break;
	case PL_AGG_PORTS:
		port_merge(into, from);
		break;
	case PL_AGG_LINKS:
		link_merge(into, from);
		break;
	default:
		path_merge(into, from);
		break;
	}
}

static uint64_t cell_hash(uint64_t seed, enum pl_agg_table table, const void *cell)
{
	uint64_t w[4];

	switch (table) {
	case PL_AGG_LINKS:
		memcpy(w, cell, sizeof(struct pl_link_key));
		return link_hash(seed, w);
	case PL_AGG_PATHS:
		return path_hash(seed, ((const struct pl_path_key *)cell)->path_id);
	default:
		memcpy(w, cell, sizeof(struct pl_queue_key));
		return queue_hash(seed, w);
	}
}

/* --- cells for new keys ----------------------------------------------------------------------- */

/* Arguments of a choice. */
struct choice {
	enum pl_agg_table table;
	uint64_t now_ns, idle_ns;
};

static struct pl_share_entry entry_of(const void *arg, const void *cell)
{
	const struct choice *c = arg;
	const uint64_t seen_ns = cell_seen_ns(c->table, cell);

	return (struct pl_share_entry){ .share = owner_of(c->table, cell)->share,
		.seen_ns = seen_ns,
		.idle = c->now_ns > seen_ns && c->now_ns - seen_ns > c->idle_ns };
}

/* Takes a cell from a source that has more than this one would have with one more; its counts go
 * into the overflow cell. */
static bool displace(
	struct pl_aggregate *agg, enum pl_agg_table table, const struct pl_addr *source)
{
	struct pl_cells *t = &agg->tables[table];
	const struct choice choice = {
		.table = table, .now_ns = agg->now_ns, .idle_ns = agg->options.idle_ns
	};
	uint32_t victim = pl_shares_choose(&agg->shares[table], t, &agg->hand[table],
		pl_shares_held(&agg->shares[table], source), false, entry_of, &choice);

	if (victim == PL_CELL_NONE)
		return false;
	cell_merge(table, pl_cells_at(t, t->cap), pl_cells_at(t, victim));
	drop_cell(agg, table, victim);
	agg->totals.displaced[table]++;
	return true;
}

static size_t key_bytes(enum pl_agg_table table)
{
	return table == PL_AGG_LINKS ? sizeof(struct pl_link_key) : 16;
}

/* PL_CELL_NONE: there is no room. */
static uint32_t insert(struct pl_aggregate *agg, enum pl_agg_table table, uint64_t hash,
	const void *key, const struct pl_addr *source)
{
	uint32_t cell = pl_cells_insert(&agg->tables[table], hash, key, key_bytes(table));
	struct pl_agg_owner *owner;

	if (cell == PL_CELL_NONE)
		return PL_CELL_NONE;
	owner = owner_of(table, pl_cells_at(&agg->tables[table], cell));
	owner->source = *source;
	owner->share = pl_shares_take(&agg->shares[table], source);
	return cell;
}

/* A source with as many cells as every source could have need not search for a source with more. */
static bool has_share(const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t held)
{
	const uint32_t sources = pl_cells_count(&agg->shares[table].cells) + (held == 0);

	return (uint64_t)held * sources >= agg->tables[table].cap;
}

uint32_t pl_aggregate_make(struct pl_aggregate *agg, enum pl_agg_table table, uint64_t hash,
	const void *key, size_t key_len, const struct pl_addr *source)
{
	uint32_t cell = insert(agg, table, hash, key, source);
	struct wanted *w;

	assert(key_len == key_bytes(table));
	if (cell != PL_CELL_NONE)
		return cell;
	agg->totals.overflow[table]++;
	if (agg->n_wanted < WANTED_MAX && agg->may_want > 0 &&
		!has_share(agg, table, pl_shares_held(&agg->shares[table], source))) {
		w = &agg->wanted[agg->n_wanted++];
		*w = (struct wanted){ .hash = hash, .source = *source, .table = table };
		memcpy(w->key, key, key_len);
		agg->may_want--;
	}
	return agg->tables[table].cap;
}

void pl_aggregate_grant(struct pl_aggregate *agg)
{
	for (unsigned int i = 0; i < agg->n_wanted; i++) {
		const struct wanted *w = &agg->wanted[i];
		uint32_t cell =
			pl_cells_find(&agg->tables[w->table], w->hash, w->key, key_bytes(w->table));

		/* The same key may be in the list twice. */
		if (cell != PL_CELL_NONE || !displace(agg, w->table, &w->source))
			continue;
		cell = insert(agg, w->table, w->hash, w->key, &w->source);
		/* The cell has no reading yet, but one is about to come. */
		*cell_seen(w->table, pl_cells_at(&agg->tables[w->table], cell)) = agg->now_ns;
	}
	agg->n_wanted = 0;
}

/* Returns the cell into which a cell of another aggregate is merged. */
static uint32_t cell_for(struct pl_aggregate *agg, enum pl_agg_table table, const void *cell)
{
	const struct pl_addr *source = &owner_of(table, cell)->source;
	const uint64_t hash = cell_hash(agg->seed, table, cell);
	uint32_t i = pl_cells_find(&agg->tables[table], hash, cell, key_bytes(table));

	if (i == PL_CELL_NONE)
		i = insert(agg, table, hash, cell, source);
	if (i == PL_CELL_NONE && displace(agg, table, source))
		i = insert(agg, table, hash, cell, source);
	if (i != PL_CELL_NONE)
		return i;
	agg->totals.overflow[table] += cell_readings(table, cell);
	return agg->tables[table].cap;
}

void pl_aggregate_add(struct pl_aggregate *agg, enum pl_agg_table table, const void *cell)
{
	uint32_t i = cell_for(agg, table, cell);

	cell_merge(table, pl_cells_at(&agg->tables[table], i), cell);
}

void pl_aggregate_merge(struct pl_aggregate *into, const struct pl_aggregate *from)
{
	assert(into->options.slot_ns == from->options.slot_ns);
	/* Ages are by the later of both. */
	into->now_ns = later(into->now_ns, from->now_ns);
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		const void *cell;
		uint32_t pos = 0;

		while ((cell = pl_cells_next(&from->tables[t], &pos)) != NULL) {
			uint32_t i = cell_for(into, t, cell);

			cell_merge(t, pl_cells_at(&into->tables[t], i), cell);
		}
		cell_merge(t, pl_cells_at(&into->tables[t], into->tables[t].cap),
			pl_cells_at(&from->tables[t], from->tables[t].cap));
		into->totals.overflow[t] += from->totals.overflow[t];
		into->totals.aged[t] += from->totals.aged[t];
		into->totals.displaced[t] += from->totals.displaced[t];
	}
	into->totals.unproven += from->totals.unproven;
	into->totals.reports += from->totals.reports;
	into->totals.copies += from->totals.copies;
	into->totals.hops += from->totals.hops;
	into->totals.reports_without_path += from->totals.reports_without_path;
	into->totals.hops_without_node += from->totals.hops_without_node;
	into->slot = later(into->slot, from->slot);
}

const void *pl_aggregate_find(
	const struct pl_aggregate *agg, enum pl_agg_table table, const void *key)
{
	const struct pl_cells *t = &agg->tables[table];
	size_t key_len = table == PL_AGG_LINKS ? sizeof(struct pl_link_key) : 16;
	uint32_t cell = pl_cells_find(t, cell_hash(agg->seed, table, key), key, key_len);

	return cell != PL_CELL_NONE ? pl_cells_at(t, cell) : NULL;
}

/* --- a sum that does not fall ------------------------------------------------------------------ */

void pl_aggregate_expire(struct pl_aggregate *sum)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		const struct pl_cells *c = &sum->tables[t];

		for (uint32_t i = 0; i < c->high; i++) {
			const uint64_t seen_ns = cell_seen_ns(t, pl_cells_at(c, i));

			if (pl_cells_live(c, i) && sum->now_ns > seen_ns &&
				sum->now_ns - seen_ns > sum->options.idle_ns)
				drop_cell(sum, t, i);
		}
	}
}

void pl_aggregate_note_seen(struct pl_aggregate *copy, const struct pl_aggregate *sum)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		const void *cell, *all;
		uint32_t pos = 0;

		while ((cell = pl_cells_next(&copy->tables[t], &pos)) != NULL) {
			all = pl_aggregate_find(sum, t, cell);
			if (all != NULL)
				*cell_seen(t, cell) =
					later(cell_seen_ns(t, cell), cell_seen_ns(t, all));
		}
	}
}

void pl_aggregate_heed(struct pl_aggregate *agg, const struct pl_aggregate *copy)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		const struct pl_cells *to = &agg->tables[t], *from = &copy->tables[t];

		/* A cell that was removed since then, and made again, may have another key. */
		for (uint32_t i = 0; i < from->high && i < to->high; i++) {
			const uint64_t seen_ns = cell_seen_ns(t, pl_cells_at(from, i));
			void *cell = pl_cells_at(to, i);

			/* Never ahead of the aggregate's own time: ages would wrap. */
			if (pl_cells_live(to, i) && to->hashes[i] == from->hashes[i])
				*cell_seen(t, cell) = later(cell_seen_ns(t, cell),
					seen_ns < agg->now_ns ? seen_ns : agg->now_ns);
		}
	}
}

/* --- reading ---------------------------------------------------------------------------------- */

bool pl_aggregate_max(const struct pl_aggregate *agg, const struct pl_slot_max *max, uint32_t *ret)
{
	struct pl_slot_max m = *max;

	if (agg->slot > m.slot)
		pl_slot_max_advance(&m, agg->slot);
	if (!m.has_current && !m.has_previous)
		return false;
	*ret = m.current > m.previous ? m.current : m.previous; /* an absent one is 0 */
	return true;
}

const struct pl_agg_queue *pl_aggregate_queue(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_QUEUES], pos);
}

const struct pl_agg_port *pl_aggregate_port(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_PORTS], pos);
}

const struct pl_agg_link *pl_aggregate_link(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_LINKS], pos);
}

const struct pl_agg_path *pl_aggregate_path(const struct pl_aggregate *agg, uint32_t *pos)
{
	return pl_cells_next(&agg->tables[PL_AGG_PATHS], pos);
}

static const void *overflow_cell(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return pl_cells_at(&agg->tables[table], agg->tables[table].cap);
}

const struct pl_agg_queue *pl_aggregate_queue_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_QUEUES);
}

const struct pl_agg_port *pl_aggregate_port_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_PORTS);
}

const struct pl_agg_link *pl_aggregate_link_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_LINKS);
}

const struct pl_agg_path *pl_aggregate_path_overflow(const struct pl_aggregate *agg)
{
	return overflow_cell(agg, PL_AGG_PATHS);
}

uint32_t pl_aggregate_count(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return pl_cells_count(&agg->tables[table]);
}

uint32_t pl_aggregate_limit(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	return agg->tables[table].cap;
}

const struct pl_agg_totals *pl_aggregate_totals(const struct pl_aggregate *agg)
{
	return &agg->totals;
}

const char *pl_agg_table_name(enum pl_agg_table table)
{
	static const char *const names[PL_AGG_TABLE_MAX] = { "queues", "ports", "links", "paths" };

	assert(table < PL_AGG_TABLE_MAX);
	return names[table];
}

uint64_t pl_aggregate_slot(const struct pl_aggregate *agg)
{
	return agg->slot;
}
