/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a query: records go into its stages, and windows close stage by stage. */
#include "query/origin.h"

#include <stddef.h>
#include <string.h>

/* ---- records ---- */

/* Returns true when a time has a window; a time too far ahead was counted when it came. */
static bool is_time(struct pl_query_run *run, uint64_t ts)
{
	run->stats.bad_time += ts > PL_QUERY_TIME_MAX;
	return ts <= PL_QUERY_TIME_MAX &&
	       (run->windows.spec.kind == W_NONE || (int64_t)ts <= run->windows.latest);
}

/* Counts the times from `from` on that are in the pane that begins there. */
static uint64_t length_of(const struct pl_query_run *run, int64_t from)
{
	const struct windows *w = &run->windows;

	if (w->spec.kind == W_NONE)
		return (uint64_t)PL_QUERY_TIME_MAX + 1;
	return (uint64_t)(w->latest - from < w->pane_ns ? w->latest - from + 1 : w->pane_ns);
}

/* Returns true when all records are in the pane of the first one, as in most batches; their times
 * and slots are set. */
static bool assign_alike(
	struct pl_query_run *run, const struct stage *stage, const struct rows *rows)
{
	const uint32_t offset = stage->time->offset;
	uint64_t ts, from, length, beyond = 0;
	uint32_t slot;

	memcpy(&ts, row_at(rows, 0) + offset, sizeof(ts));
	if (ts > PL_QUERY_TIME_MAX ||
		(run->windows.spec.kind != W_NONE && (int64_t)ts > run->windows.latest))
		return false;
	slot = pl_query_windows_slot(&run->windows, (int64_t)ts);
	if (slot >= SLOT_FULL)
		return false;
	from = run->windows.spec.kind != W_NONE ? (uint64_t)run->windows.panes[slot].start : 0;
	length = length_of(run, (int64_t)from);
	for (uint32_t k = 0; k < rows->n; k++) {
		memcpy(&ts, row_at(rows, k) + offset, sizeof(ts));
		run->ts[k] = ts;
		beyond |= ts - from >= length;
	}
	for (uint32_t k = 0; k < rows->n; k++)
		run->slots[k] = slot;
	return beyond == 0;
}

/* Leaves out records without a window. Returns the number of those that stay. Most records are in
 * the pane of the one before, which is tested first: a division for each would cost more than all
 * the rest. */
static uint32_t assign(struct pl_query_run *run, const struct stage *stage, struct rows *rows)
{
	const uint32_t offset = stage->time->offset;
	uint64_t from = 1, length = 0;
	uint32_t n = 0, slot = 0;

	run->one_slot = assign_alike(run, stage, rows);
	if (run->one_slot)
		return rows->n;
	for (uint32_t k = 0; k < rows->n; k++) {
		uint64_t ts;

		memcpy(&ts, row_at(rows, k) + offset, sizeof(ts));
		run->sel[n] = rows->sel != NULL ? rows->sel[k] : (uint16_t)k;
		run->ts[n] = ts;
		if (ts - from < length) {
			run->slots[n++] = slot;
			continue;
		}
		if (!is_time(run, ts))
			continue;
		slot = pl_query_windows_slot(&run->windows, (int64_t)ts);
		length = 0;
		run->stats.late += slot == SLOT_LATE;
		run->late_told +=
			slot == SLOT_LATE && pl_query_windows_resumed(&run->windows, (int64_t)ts);
		run->stats.windows_refused += slot == SLOT_FULL;
		if (slot == SLOT_FULL)
			lacks_room(&run->eval, (int64_t)ts);
		if (slot >= SLOT_FULL)
			continue;
		from = run->windows.spec.kind != W_NONE ? (uint64_t)run->windows.panes[slot].start
							: 0;
		length = length_of(run, (int64_t)from);
		run->slots[n++] = slot;
	}
	/* With all rows there is no selection. */
	if (rows->sel != NULL || n < rows->n)
		rows->sel = run->sel;
	rows->n = n;
	return n;
}

/* Reads times for SESSION windows, whose sessions are found later. */
static uint32_t assign_times(struct pl_query_run *run, const struct stage *stage, struct rows *rows)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < rows->n; k++) {
		memcpy(&run->ts[n], row_at(rows, k) + stage->time->offset, sizeof(run->ts[n]));
		run->sel[n] = rows->sel != NULL ? rows->sel[k] : (uint16_t)k;
		n += is_time(run, run->ts[n]);
	}
	rows->sel = run->sel;
	rows->n = n;
	return n;
}

static struct pl_query_row window_of(
	struct pl_query_run *run, const struct stage_run *s, uint32_t entry)
{
	struct pl_query_row row = { .late = late_since(run) };
	uint32_t slot;

	if (run->windows.spec.kind == W_SESSION) {
		pl_query_session_window(run, s, entry, &row);
		return row;
	}
	memcpy(&slot, table_at(&s->groups.table, entry), sizeof(slot));
	row.incomplete = run->windows.panes[slot].incomplete;
	row.windowed = run->windows.spec.kind != W_NONE;
	if (row.windowed)
		pl_query_windows_of_slot(&run->windows, slot, &row.start_ns, &row.end_ns);
	row.incomplete =
		row.incomplete || window_lacks(run, row.start_ns, row.end_ns) ||
		(s->pairs != NULL && pl_query_pairs_incomplete(s, row.start_ns, row.end_ns));
	return row;
}

/* Gives groups for which the condition has become true, each once. */
static void first_crossings(struct pl_query_run *run, struct stage_run *s, uint32_t n)
{
	const struct stage *stage = s->stage;
	struct rows rows = { run->cells, stage->groups.size, 0, NULL };
	uint32_t kept;

	for (uint32_t k = 0; k < n; k++) {
		struct link *link = link_of(s, run->entries[k]);

		if (link->fired || link->in_batch)
			continue;
		link->in_batch = 1;
		run->entries[rows.n] = run->entries[k];
		pl_query_groups_finish_one(run, s, run->entries[k], rows.n++);
	}
	for (uint32_t k = 0; k < rows.n; k++)
		link_of(s, run->entries[k])->in_batch = 0;
	kept = pl_query_filter(&run->eval, stage->having, &rows, run->sel);
	rows.sel = run->sel;
	rows.n = kept;
	pl_query_rows_make(run, stage->items, stage->n_items, &rows, run->out_cells);
	pl_query_origins_copy(&rows, run->out_cells, stage->out.size);
	for (uint32_t k = 0; k < kept; k++) {
		const uint32_t entry = run->entries[run->sel[k]];

		link_of(s, entry)->fired = 1;
		run->row = window_of(run, s, entry);
		s->limit_left = UINT64_MAX;
		pl_query_rows_give(run, s, run->out_cells + (size_t)k * stage->out.size, 1);
	}
}

void pl_query_run_scan(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *records, uint32_t n)
{
	const struct stage *stage = s->stage;
	const uint64_t no_text = run->eval.no_text;
	struct rows rows = { records, stage->input.size, n, NULL };

	at_times_of(run, stage);
	for (uint32_t i = 0; i < stage->n_where && rows.n > 0; i++) {
		rows.n = pl_query_filter(&run->eval, stage->where[i], &rows, run->sel);
		rows.sel = run->sel;
	}
	if (stage->kind != PL_QUERY_STREAMS)
		run->stats.passed += rows.n;
	if (rows.n == 0)
		return;
	if (s->pairs_of != NULL) {
		pl_query_pairs_add(
			run, s->pairs_of, stage != s->pairs_of->stage->pairs->sides[0], &rows);
		return;
	}
	if (run->records != NULL) {
		pl_query_rows_whole(run, s, &rows);
		return;
	}
	if (!stage->grouped) {
		pl_query_rows_make(run, stage->items, stage->n_items, &rows, run->out_cells);
		if (s->headed)
			pl_query_origins_copy(&rows, run->out_cells, stage->out.size);
		else
			pl_query_origins_of_records(run, s, &rows, run->out_cells, stage->out.size);
		for (uint32_t k = 0; s->zip_of != NULL && k < rows.n; k++)
			pl_query_zip_add(run, s, rows.sel != NULL ? rows.sel[k] : k,
				run->eval.no_text > no_text,
				run->out_cells + (size_t)k * stage->out.size);
		if (s->zip_of != NULL)
			return;
		run->row = (struct pl_query_row){ .incomplete = run->pairs_incomplete ||
								run->eval.no_text > no_text };
		pl_query_rows_give(run, s, run->out_cells, rows.n);
		return;
	}
	if (run->windows.spec.kind == W_SESSION) {
		rows.n = assign_times(run, stage, &rows);
		rows.n = rows.n > 0 ? pl_query_sessions_add(run, s, &rows) : 0;
	} else if (assign(run, stage, &rows) > 0) {
		pl_query_groups_add(run, s, &rows, run->slots);
	}
	if (rows.n == 0)
		return;
	if (stage->emit_first && run->partial == NULL)
		first_crossings(run, s, rows.n);
}

/* ---- windows ---- */

/* Makes rows of the result from finished groups. */
static void give_groups(struct pl_query_run *run, struct stage_run *s, uint32_t next)
{
	const struct stage *stage = s->stage;
	uint32_t n;

	if (stage->n_folds > 0)
		pl_query_groups_end(run, s, next);
	if (stage->emits)
		return;
	while ((n = pl_query_groups_finish(run, s, &next)) > 0) {
		struct rows rows = { run->cells, stage->groups.size, n, NULL };

		if (stage->having != NULL) {
			rows.n = pl_query_filter(&run->eval, stage->having, &rows, run->sel);
			rows.sel = run->sel;
		}
		pl_query_rows_make(run, stage->items, stage->n_items, &rows, run->out_cells);
		pl_query_origins_copy(&rows, run->out_cells, stage->out.size);
		pl_query_rows_give(run, s, run->out_cells, rows.n);
	}
}

static bool within(const struct pl_query_run *run, uint32_t slot)
{
	const struct pane *pane = &run->windows.panes[slot];

	return pane->open && (!run->row.windowed || (pane->start >= run->row.start_ns &&
							    pane->start < run->row.end_ns));
}

static void close_scan(struct pl_query_run *run, struct stage_run *s, bool merging)
{
	const uint32_t joined = run->windows.max;
	uint32_t from = joined;

	if (!s->stage->grouped)
		return;
	for (uint32_t slot = 0; !merging && slot < run->windows.max; slot++) {
		if (!within(run, slot))
			continue;
		from = slot;
		if (s->stage->emits)
			pl_query_folds_kept(run, s, slot);
		if (run->windows.spec.kind == W_HOP)
			pl_query_groups_merge(run, s, slot, joined);
	}
	if (run->windows.spec.kind == W_HOP)
		from = joined;
	if (run->partial != NULL)
		pl_query_partial_give(run, s, s->groups.heads[from]);
	else
		give_groups(run, s, s->groups.heads[from]);
	if (from == joined)
		pl_query_groups_drop(s, joined);
}

/* Feeds rows of sub-queries to this stage as records. */
static void close_sources(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	const struct row_list *list = pl_query_join_rows(run, s);

	for (uint32_t at = 0; at < list->n; at += PL_QUERY_BATCH) {
		uint32_t n = list->n - at < PL_QUERY_BATCH ? list->n - at : PL_QUERY_BATCH;
		struct rows rows = { list->data + (size_t)at * list->size, list->size, n, NULL };

		for (uint32_t i = 0; i < stage->n_where && rows.n > 0; i++) {
			rows.n = pl_query_filter(&run->eval, stage->where[i], &rows, run->sel);
			rows.sel = run->sel;
		}
		if (rows.n == 0)
			continue;
		if (stage->grouped) {
			pl_query_groups_add(run, s, &rows, NULL);
		} else {
			pl_query_rows_make(
				run, stage->items, stage->n_items, &rows, run->out_cells);
			pl_query_origins_copy(&rows, run->out_cells, stage->out.size);
			pl_query_rows_give(run, s, run->out_cells, rows.n);
		}
	}
	if (stage->grouped) {
		give_groups(run, s, s->groups.heads[0]);
		pl_query_groups_drop(s, 0);
	}
}

static void drop_pane(void *arg, uint32_t slot)
{
	struct pl_query_run *run = arg;

	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		struct stage_run *s = &run->stages[i];

		if (s->stage->n_sources == 0 && s->stage->grouped)
			pl_query_groups_drop(s, slot);
	}
}

void pl_query_run_stages(struct pl_query_run *run, bool merging)
{
	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		struct stage_run *s = &run->stages[i];

		s->out.n = 0;
		if (s->stage->grouped || s->stage->n_sources > 0)
			s->limit_left = s->stage->has_limit ? s->stage->limit : UINT64_MAX;
		if (s->stage->n_sources == 0)
			close_scan(run, s, merging);
		else if (run->partial == NULL)
			close_sources(run, s);
		pl_query_rows_flush(run, s);
	}
}

static void close_window(struct pl_query_run *run, int64_t start, int64_t end)
{
	run->row = (struct pl_query_row){ .windowed = run->windows.spec.kind != W_NONE,
		.final = true,
		.late = late_since(run),
		.incomplete = window_lacks(run, start, end),
		.start_ns = start,
		.end_ns = end };
	for (uint32_t slot = 0; slot < run->windows.max; slot++)
		run->row.incomplete = run->row.incomplete ||
				      (within(run, slot) && run->windows.panes[slot].incomplete);
	for (uint32_t i = 0; i < run->query->n_stages; i++)
		run->row.incomplete =
			run->row.incomplete ||
			(run->stages[i].pairs != NULL &&
				pl_query_pairs_incomplete(&run->stages[i], start, end));
	pl_query_run_stages(run, false);
	run->stats.windows++;
	/* Partial results have their own account of late records. */
	if (run->partial == NULL)
		run->late_told += run->row.late;
	pl_query_windows_closed(&run->windows, end, drop_pane, run);
}

static void windows_until(struct pl_query_run *run, int64_t goal)
{
	int64_t start, end;

	if (run->windows.spec.kind == W_SESSION) {
		pl_query_sessions_close(run, &run->stages[0], goal);
		return;
	}
	while (pl_query_windows_next(&run->windows, goal, &start, &end))
		close_window(run, start, end);
}

static int64_t next_pair(const struct pl_query_run *run)
{
	int64_t next = INT64_MAX;

	for (uint32_t i = 0; i < run->query->n_stages; i++) {
		if (run->stages[i].pairs != NULL && pl_query_pairs_next(&run->stages[i]) < next)
			next = pl_query_pairs_next(&run->stages[i]);
	}
	return next;
}

/* Windows of pairs close later, by the longest WITHIN time. Long
 * steps are split into short ones, so that no more windows are open than there is room for. */
static void pairs_until(struct pl_query_run *run, int64_t goal)
{
	const int64_t within = (int64_t)run->query->within_ns;
	const int64_t pane = run->windows.pane_ns;
	int64_t step;

	do {
		if (pane == 0 || pane > INT64_MAX / 64 ||
			__builtin_add_overflow(next_pair(run), within + pane * 16, &step) ||
			step > goal)
			step = goal;
		for (uint32_t i = 0; i < run->query->n_stages; i++) {
			if (run->stages[i].pairs != NULL)
				pl_query_pairs_until(run, &run->stages[i], step);
		}
		if (step == INT64_MAX)
			windows_until(run, step);
		else if (step > INT64_MIN + within)
			windows_until(run, step - within);
		for (uint32_t i = 0; i < run->query->n_stages; i++) {
			if (run->stages[i].pairs != NULL)
				pl_query_pairs_closed(run, &run->stages[i], step);
		}
	} while (step < goal);
}

void pl_query_run_until(struct pl_query_run *run, int64_t goal)
{
	if (run->query->within_ns > 0)
		pairs_until(run, goal);
	else
		windows_until(run, goal);
}
