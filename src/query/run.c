/* SPDX-License-Identifier: BSD-2-Clause */
/* Closes windows, stage by stage. */
#include "query/origin.h"

/* Makes rows of the result from finished groups. */
static void give_groups(struct pl_query_run *run, struct stage_run *s, uint32_t next)
{
	const struct stage *stage = s->stage;
	uint32_t n;

	if (stage->n_folds > 0)
		pl_query_folds_close(run, s, next);
	if (stage->emits)
		return;
	while ((n = pl_query_groups_finish(run, s, &next)) > 0) {
		const struct rows rows = pl_query_rows_of_groups(run, stage, n, run->sel);

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
		run->give_partial(run, s, s->groups.heads[from]);
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

		pl_query_rows_where(run, stage, &rows);
		if (rows.n == 0)
			continue;
		if (stage->grouped) {
			pl_query_groups_add(run, s, &rows, NULL);
		} else {
			pl_query_rows_result(run, stage, &rows);
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
	for (uint32_t i = 0; i < run->n_paired; i++)
		run->row.incomplete = run->row.incomplete ||
				      pl_query_pairs_incomplete(run->paired[i], start, end);
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

	for (uint32_t i = 0; i < run->n_paired; i++) {
		if (pl_query_pairs_next(run->paired[i]) < next)
			next = pl_query_pairs_next(run->paired[i]);
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
		for (uint32_t i = 0; i < run->n_paired; i++)
			pl_query_pairs_until(run, run->paired[i], step);
		if (step == INT64_MAX)
			windows_until(run, step);
		else if (step > INT64_MIN + within)
			windows_until(run, step - within);
		for (uint32_t i = 0; i < run->n_paired; i++)
			pl_query_pairs_closed(run, run->paired[i], step);
	} while (step < goal);
}

void pl_query_run_until(struct pl_query_run *run, int64_t goal)
{
	if (run->query->within_ns > 0)
		pairs_until(run, goal);
	else
		windows_until(run, goal);
}
