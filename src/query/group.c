/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups: adds records to accumulators by key, and finishes groups when a window closes. */
#include <stdlib.h>
#include <string.h>

#include "base/prefetch.h"
#include "query/origin.h"

int pl_query_groups_init(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	struct groups *g = &s->groups;
	uint32_t slots = run->windows.max + 1; /* the last slot is for merged panes */
	int r;

	g->link_offset = stage->key_bytes;
	g->acc_offset = g->link_offset + (uint32_t)sizeof(struct link);
	if (run->windows.spec.kind == W_SESSION) {
		g->acc_offset += (uint32_t)sizeof(struct session);
		if (pl_query_sessions_init(run, s) < 0)
			return -ENOMEM;
	}
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

/* ---- keys ---- */

static bool is_plain(const struct node *node, uint32_t width)
{
	const struct column *c = node->column;

	return node->op == N_COLUMN && c->width == width && c->absent < 0 && c->present == 0 &&
	       c->shift == 0 && c->mask == UINT64_MAX && c->type != PL_QUERY_BOOL;
}

#define COPY_LOOP(bytes)                                                                           \
	for (uint32_t k = 0; k < rows->n; k++)                                                     \
	memcpy(to + (size_t)k * stride, row_at(rows, k) + from, bytes)

static void copy_column(
	uint8_t *to, uint32_t stride, const struct rows *rows, uint32_t from, uint8_t width)
{
	switch (width) {
	case 1:
		COPY_LOOP(1);
		break;
	case 2:
		COPY_LOOP(2);
		break;
	case 4:
		COPY_LOOP(4);
		break;
	case 8:
		COPY_LOOP(8);
		break;
	default:
		COPY_LOOP(16);
		break;
	}
}

bool pl_query_keys_copy(struct pl_query_run *run, const struct node *node, uint8_t width,
	uint32_t offset, uint32_t stride, const struct rows *rows)
{
	if (!is_plain(node, width))
		return false;
	copy_column(run->keys + offset, stride, rows, node->column->offset, width);
	return true;
}

/* Writes the value into the key; an absent value is a bit in the key's first word. */
static void put_key(
	uint8_t *key, const struct key *to, uint32_t number, const struct vector *v, uint32_t k)
{
	uint64_t value = to->node->type == PL_QUERY_BOOL ? v->b[k] : v->u[k];
	uint32_t absent;

	if (v->some_absent && v->absent[k]) {
		memset(key + to->offset, 0, to->width);
		memcpy(&absent, key + 4, 4);
		absent |= 1u << number;
		memcpy(key + 4, &absent, 4);
		return;
	}
	if (to->node->type == PL_QUERY_DOUBLE && v->d[k] == 0)
		value = 0; /* -0 equals 0 */
	if (to->width == 16)
		memcpy(key + to->offset, &v->a[k], 16);
	else
		memcpy(key + to->offset, &value, to->width);
}

void pl_query_keys_make(struct pl_query_run *run, const struct key *of, uint32_t n, uint32_t stride,
	const struct rows *rows, const uint32_t *slots)
{
	uint8_t *keys = run->keys;
	uint32_t end = 8;

	for (uint32_t i = 0; i < n; i++)
		end += of[i].width;
	/* Bytes behind the last key are part of the last word. */
	for (uint32_t k = 0; end < stride && k < rows->n; k++)
		memset(keys + (size_t)k * stride + stride - 8, 0, 8);
	for (uint32_t k = 0; k < rows->n; k++) {
		uint64_t head = slots != NULL ? slots[k] : 0;

		memcpy(keys + (size_t)k * stride, &head, 8);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct key *key = &of[i];

		if (pl_query_keys_copy(run, key->node, key->width, key->offset, stride, rows))
			continue;
		pl_query_eval(&run->eval, key->node, rows, 0);
		for (uint32_t k = 0; k < rows->n; k++)
			put_key(keys + (size_t)k * stride, key, i, &run->eval.vectors[0], k);
	}
}

/* ---- records into groups ---- */

static void leave_out(
	struct pl_query_run *run, const struct stage_run *s, struct rows *rows, uint32_t *slots)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < rows->n; k++) {
		if (run->entries[k] == TABLE_NONE) {
			if (s->stage->n_sources == 0)
				run->windows.panes[slots != NULL ? slots[k] : 0].incomplete = true;
			run->row.incomplete = true;
			run->stats.groups_refused += pl_query_counts_packets(run, rows, k);
			continue;
		}
		run->sel[n] = rows->sel != NULL ? rows->sel[k] : (uint16_t)k;
		run->entries[n] = run->entries[k];
		run->ts[n] = run->ts[k];
		if (slots != NULL)
			slots[n] = slots[k];
		n++;
	}
	rows->sel = run->sel;
	rows->n = n;
}

static void link_entry(struct stage_run *s, uint32_t entry, uint32_t slot)
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

/* Adds rows to accumulators; their entries and times begin at number `from` of the batch. */
static void aggregate(
	struct pl_query_run *run, struct stage_run *s, const struct rows *rows, uint32_t from)
{
	const struct stage *stage = s->stage;

	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		const struct agg *agg = &stage->aggs[i];

		if (agg->kind == AGG_COUNT_DISTINCT) {
			pl_query_distinct_add(run, s, agg, rows, run->entries + from);
			continue;
		}
		if (agg->kind == AGG_FOLD)
			continue;
		if (run->counts != NULL && pl_query_counts_add(run, agg, rows))
			continue;
		if (agg->n_args > 0)
			pl_query_eval(&run->eval, agg->args[0], rows, 0);
		pl_query_agg_add(agg, run->accs, rows->n,
			agg->n_args > 0 ? &run->eval.vectors[0] : NULL, run->ts + from);
	}
	if (stage->n_folds > 0)
		pl_query_folds_add(run, s, rows, run->ts + from, run->entries + from);
}

/* Finds the rows' entries. For a key of one plain column no keys are made, unless the groups are so
 * many that their memory has to be prefetched. */
static void find_entries(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint32_t *slots)
{
	const struct stage *stage = s->stage;

	if (stage->n_keys == 1 && is_plain(stage->keys[0].node, stage->keys[0].width) &&
		!pl_query_table_far(&s->groups.table) && (slots == NULL || run->one_slot)) {
		pl_query_table_add_column(&s->groups.table, slots != NULL ? slots[0] : 0,
			rows->base + stage->keys[0].node->column->offset, rows->stride,
			stage->keys[0].width, rows->sel, rows->n, run->entries);
		return;
	}
	pl_query_keys_make(run, stage->keys, stage->n_keys, stage->key_bytes, rows, slots);
	pl_query_table_add(&s->groups.table, run->keys, rows->n, run->entries);
}

void pl_query_groups_add(
	struct pl_query_run *run, struct stage_run *s, struct rows *rows, uint32_t *slots)
{
	/* A fold's rows come from earlier records, so a fold notes origins step by step. */
	const bool tell = !s->stage->emits;
	bool plain;
	uint32_t none = 0;

	find_entries(run, s, rows, slots);
	for (uint32_t k = 0; k < rows->n; k++)
		none |= run->entries[k] == TABLE_NONE;
	if (none)
		leave_out(run, s, rows, slots);
	plain = tell && !s->headed && run->counts == NULL && pl_query_origins_alike(run, s, rows);
	for (uint32_t k = 0; k < rows->n; k++) {
		uint8_t *at = table_at(&s->groups.table, run->entries[k]);
		struct link *link = (struct link *)(void *)(at + s->groups.link_offset);

		run->accs[k] = at + s->groups.acc_offset;
		if (!link->linked)
			link_entry(s, run->entries[k], slots != NULL ? slots[k] : 0);
		if (plain && run->ts[k] < link->first_ns)
			link->first_ns = run->ts[k];
	}
	if (tell && !plain)
		pl_query_origins_add(run, s, rows, run->ts, run->entries);
	aggregate(run, s, rows, 0);
}

void pl_query_groups_find(struct pl_query_run *run, struct stage_run *s, const struct rows *rows)
{
	pl_query_keys_make(run, s->stage->keys, s->stage->n_keys, s->stage->key_bytes, rows, NULL);
	pl_query_table_add(&s->groups.table, run->keys, rows->n, run->entries);
}

void pl_query_groups_accumulate(
	struct pl_query_run *run, struct stage_run *s, const struct rows *rows, uint32_t from)
{
	for (uint32_t k = 0; k < rows->n; k++)
		run->accs[k] =
			table_at(&s->groups.table, run->entries[from + k]) + s->groups.acc_offset;
	if (!s->stage->emits)
		pl_query_origins_add(run, s, rows, run->ts + from, run->entries + from);
	aggregate(run, s, rows, from);
}

void pl_query_groups_end(struct pl_query_run *run, struct stage_run *s, uint32_t next)
{
	run->closing = true;
	for (; next != 0; next = link_of(s, next - 1)->next)
		pl_query_folds_end(run, s, next - 1);
	if (s->stage->emits)
		pl_query_folds_give(run, s);
	run->closing = false;
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
		link_entry(s, entry, slot);
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
