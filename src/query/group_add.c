/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds records to the accumulators of their groups. */
#include "query/origin.h"

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

	if (stage->n_keys == 1 &&
		pl_query_key_is_plain(stage->keys[0].node, stage->keys[0].width) &&
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
			pl_query_groups_link(s, run->entries[k], slots != NULL ? slots[k] : 0);
		if (plain && run->ts[k] < link->first_ns)
			link->first_ns = run->ts[k];
	}
	if (tell && !plain)
		pl_query_origins_add(run, s, rows, run->ts, run->entries);
	aggregate(run, s, rows, 0);
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
