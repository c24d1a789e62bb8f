/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of a stage by their keys: of each pane, those merged, and those finished when a window
 * closes. */
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"

int pl_query_groups_init(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	struct groups *g = &s->groups;
	uint32_t slots = run->windows.max + 1; /* the last slot is for merged panes */
	int r;

	g->link_offset = stage->key_bytes;
	g->acc_offset = g->link_offset + (uint32_t)sizeof(struct link);
	if (run->windows.spec.kind == W_SESSION)
		g->acc_offset += (uint32_t)sizeof(struct session);
	r = pl_query_table_init(&g->table, run->config.max_groups, stage->key_bytes,
		g->acc_offset + stage->acc_bytes, run->config.seed);
	g->heads = calloc(slots, sizeof(*g->heads));
	g->tails = calloc(slots, sizeof(*g->tails));
	g->distinct = calloc(stage->n_aggs + 1, sizeof(*g->distinct));
	if (r < 0 || g->heads == NULL || g->tails == NULL || g->distinct == NULL)
		return -ENOMEM;
	run->bytes += pl_query_table_bytes(&g->table) + 2 * (uint64_t)slots * sizeof(*g->heads);
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		if (stage->aggs[i].kind == AGG_COUNT_DISTINCT &&
			pl_query_distinct_init(run, s, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

void pl_query_groups_done(struct stage_run *s)
{
	struct groups *g = &s->groups;

	for (uint32_t i = 0; g->distinct != NULL && i < s->stage->n_aggs; i++)
		pl_query_table_done(&g->distinct[i]);
	pl_query_table_done(&g->table);
	free(g->distinct);
	free(g->due);
	free(g->heads);
	free(g->tails);
}

void pl_query_groups_link(struct stage_run *s, uint32_t entry, uint32_t slot)
{
	struct groups *g = &s->groups;

	link_of(s, entry)->linked = 1;
	link_of(s, entry)->first_ns = PL_QUERY_NO_TIME;
	if (g->heads[slot] == 0)
		g->heads[slot] = entry + 1;
	else
		link_of(s, g->tails[slot] - 1)->next = entry + 1;
	g->tails[slot] = entry + 1;
}

void pl_query_groups_find(struct pl_query_run *run, struct stage_run *s, const struct rows *rows)
{
	pl_query_keys_make(run, s->stage->keys, s->stage->n_keys, s->stage->key_bytes, rows, NULL);
	pl_query_table_add(&s->groups.table, run->keys, rows->n, run->entries);
}

/* ---- panes ---- */

void pl_query_groups_unite(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into)
{
	const struct table *t = &s->groups.table;

	pl_query_origin_unite(run, s, from, into);
	for (uint32_t i = 0; i < s->stage->n_aggs; i++) {
		const struct agg *agg = &s->stage->aggs[i];

		if (agg->kind == AGG_COUNT_DISTINCT)
			pl_query_distinct_merge(run, s, agg, from, into);
		else
			pl_query_agg_merge(agg, table_at(t, into) + s->groups.acc_offset,
				table_at(t, from) + s->groups.acc_offset);
	}
}

uint32_t pl_query_groups_enter(struct pl_query_run *run, struct stage_run *s, uint32_t slot)
{
	uint32_t entry;

	pl_query_table_add(&s->groups.table, run->keys, 1, &entry);
	if (entry == TABLE_NONE) {
		run->stats.groups_refused++;
		run->row.incomplete = true;
	} else if (!link_of(s, entry)->linked) {
		pl_query_groups_link(s, entry, slot);
	}
	return entry;
}

uint32_t pl_query_groups_next(const struct stage_run *s, uint32_t entry)
{
	return link_of(s, entry - 1)->next;
}

void pl_query_groups_merge(
	struct pl_query_run *run, struct stage_run *s, uint32_t from, uint32_t into)
{
	const struct stage *stage = s->stage;
	const struct table *t = &s->groups.table;

	for (uint32_t entry = s->groups.heads[from]; entry != 0;
		entry = link_of(s, entry - 1)->next) {
		uint32_t to;

		memcpy(run->keys, table_at(t, entry - 1), stage->key_bytes);
		memcpy(run->keys, &into, sizeof(into));
		to = pl_query_groups_enter(run, s, into);
		if (to == TABLE_NONE)
			continue;
		pl_query_groups_unite(run, s, entry - 1, to);
	}
}

static void drop_sets(struct stage_run *s, const uint32_t *entries, uint32_t n)
{
	for (uint32_t i = 0; i < s->stage->n_aggs; i++) {
		if (s->stage->aggs[i].kind == AGG_COUNT_DISTINCT)
			pl_query_distinct_drop(s, &s->stage->aggs[i], entries, n);
	}
}

void pl_query_groups_clear(struct stage_run *s, uint32_t entry)
{
	drop_sets(s, &entry, 1);
	link_of(s, entry)->first_ns = PL_QUERY_NO_TIME;
	link_of(s, entry)->exp = 0;
	memset(table_at(&s->groups.table, entry) + s->groups.acc_offset, 0, s->stage->acc_bytes);
}

void pl_query_groups_remove(struct stage_run *s, uint32_t entry)
{
	drop_sets(s, &entry, 1);
	pl_query_table_remove(&s->groups.table, entry);
}

void pl_query_groups_drop(struct stage_run *s, uint32_t slot)
{
	struct groups *g = &s->groups;
	uint32_t next = g->heads[slot], entries[DROP_AT_ONCE];

	while (next != 0) {
		uint32_t n = 0;

		for (; next != 0 && n < DROP_AT_ONCE; next = link_of(s, next - 1)->next)
			entries[n++] = next - 1;
		drop_sets(s, entries, n);
		pl_query_table_remove_all(&g->table, entries, n);
	}
	g->heads[slot] = g->tails[slot] = 0;
}

/* ---- finished groups ---- */

void pl_query_groups_finish_one(
	struct pl_query_run *run, struct stage_run *s, uint32_t entry, uint32_t row)
{
	const struct stage *stage = s->stage;
	const uint8_t *at = table_at(&s->groups.table, entry);
	uint8_t *to = run->cells + (size_t)row * stage->groups.size;
	struct pl_query_item *items = run->items + (size_t)row * run->lists * LIST_MAX;
	uint64_t absent = 0;
	uint32_t head;

	memset(to, 0, stage->groups.size);
	memcpy(&head, at + 4, sizeof(head));
	for (uint32_t i = 0; i < stage->n_keys; i++)
		memcpy(to + ROW_HEAD + (size_t)i * CELL_BYTES, at + stage->keys[i].offset,
			stage->keys[i].width);
	absent = head;
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		uint32_t column = stage->n_keys + i;

		if (!pl_query_agg_result(&stage->aggs[i], at + s->groups.acc_offset,
			    to + ROW_HEAD + (size_t)column * CELL_BYTES, items, &run->stats.absent))
			absent |= (uint64_t)1 << column;
		if (stage->aggs[i].type == PL_QUERY_LIST)
			items += LIST_MAX;
	}
	memcpy(to, &absent, sizeof(absent));
	row_set_origin(to, pl_query_origin_of(run, s, entry));
}

uint32_t pl_query_groups_finish(struct pl_query_run *run, struct stage_run *s, uint32_t *next)
{
	uint32_t n = 0;

	while (*next != 0 && n < PL_QUERY_BATCH) {
		run->entries[n] = *next - 1;
		pl_query_groups_finish_one(run, s, *next - 1, n);
		*next = link_of(s, *next - 1)->next;
		n++;
	}
	return n;
}
