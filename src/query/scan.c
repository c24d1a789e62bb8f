/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes records into a stage: filters them, finds their windows, and adds them to groups or makes
 * rows of them. */
#include <string.h>

#include "core/tap_counts.h"
#include "query/origin.h"

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

/* Returns the slot of the pane of a time. Counts what is left out, when there is none: n packets. */
static uint32_t slot_of(struct pl_query_run *run, int64_t ts, uint64_t n)
{
	const uint32_t slot = pl_query_windows_slot(&run->windows, ts);

	if (slot == SLOT_LATE) {
		run->stats.late += n;
		run->late_told += pl_query_windows_resumed(&run->windows, ts) ? n : 0;
	} else if (slot == SLOT_FULL) {
		run->stats.windows_refused += n;
		lacks_room(&run->eval, ts);
	}
	return slot;
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
		slot = slot_of(run, (int64_t)ts, 1);
		length = 0;
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
	struct pl_query_row row = { 0 };
	uint32_t slot;

	if (run->windows.spec.kind == W_SESSION) {
		pl_query_session_window(run, s, entry, &row);
	} else {
		memcpy(&slot, table_at(&s->groups.table, entry), sizeof(slot));
		row = pl_query_row_of_pane(run, s, slot);
	}
	row.late = late_since(run);
	return row;
}

/* Gives groups for which the condition has become true, each once. */
static void first_crossings(struct pl_query_run *run, struct stage_run *s, uint32_t n)
{
	const struct stage *stage = s->stage;
	struct rows rows;
	uint32_t fresh = 0;

	for (uint32_t k = 0; k < n; k++) {
		struct link *link = link_of(s, run->entries[k]);

		if (link->fired || link->in_batch)
			continue;
		link->in_batch = 1;
		run->entries[fresh] = run->entries[k];
		pl_query_groups_finish_one(run, s, run->entries[k], fresh++);
	}
	for (uint32_t k = 0; k < fresh; k++)
		link_of(s, run->entries[k])->in_batch = 0;
	rows = pl_query_rows_of_groups(run, stage, fresh, run->sel);
	for (uint32_t k = 0; k < rows.n; k++) {
		const uint32_t entry = run->entries[rows.sel[k]];

		link_of(s, entry)->fired = 1;
		run->row = window_of(run, s, entry);
		s->limit_left = UINT64_MAX;
		pl_query_rows_give(run, s, run->out_cells + (size_t)k * stage->out.size, 1);
	}
}

struct rows pl_query_scan_where(
	struct pl_query_run *run, const struct stage *stage, const uint8_t *records, uint32_t n)
{
	struct rows rows = { records, stage->input.size, n, NULL };

	at_times_of(run, stage);
	pl_query_rows_where(run, stage, &rows);
	if (stage->kind != PL_QUERY_STREAMS)
		run->stats.passed += rows.n;
	return rows;
}

void pl_query_scan(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *records, uint32_t n)
{
	const struct stage *stage = s->stage;
	const uint64_t no_text = run->eval.no_text;
	struct rows rows = pl_query_scan_where(run, stage, records, n);

	if (rows.n == 0)
		return;
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
			pl_query_rows_zip(run, s, rows.sel != NULL ? rows.sel[k] : k,
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

/* Selects counts that have a window: their numbers go to run->sel, their slots to run->slots. */
static uint32_t assign_counts(
	struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t ts = counts[k].record.ts_ns, packets = counts[k].value.packets;
		uint32_t slot;

		run->stats.counted += packets;
		if (run->windows.spec.kind != W_NONE && ts > (uint64_t)run->windows.latest) {
			run->stats.ahead += packets;
			continue;
		}
		slot = slot_of(run, (int64_t)ts, packets);
		if (slot >= SLOT_FULL)
			continue;
		run->sel[kept] = (uint16_t)k;
		run->ts[kept] = ts;
		run->slots[kept++] = slot;
	}
	return kept;
}

void pl_query_scan_counts(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n)
{
	struct rows rows = { (const uint8_t *)counts, sizeof(*counts), 0, run->sel };

	rows.n = assign_counts(run, counts, n);
	if (rows.n == 0)
		return;
	run->counts = counts;
	run->one_slot = false;
	pl_query_groups_add(run, &run->stages[0], &rows, run->slots);
	run->counts = NULL;
	note_absent(run);
}
