/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs folds: each record in its order changes the variables of its group, and may make a row. */
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"

static inline struct acc_fold *acc_of(
	const struct stage_run *s, const struct fold *fold, uint32_t entry)
{
	return (struct acc_fold *)(void *)(table_at(&s->groups.table, entry) +
					   s->groups.acc_offset + fold->offset);
}

static inline uint8_t *cell_of(uint8_t *row, uint32_t i)
{
	return row + ROW_HEAD + (size_t)i * CELL_BYTES;
}

int pl_query_folds_init(struct pl_query_run *run, uint32_t inputs, uint32_t row_size)
{
	struct fold_room *room = &run->fold;
	const size_t stride = ROW_HEAD + (size_t)inputs * CELL_BYTES;

	room->row = calloc(1, ROW_HEAD + (size_t)PL_QUERY_COLUMNS_MAX * CELL_BYTES);
	room->inputs = calloc(PL_QUERY_BATCH, stride);
	room->kept = calloc(1, sizeof(uint64_t) + row_size);
	room->entries = calloc(PL_QUERY_BATCH, sizeof(*room->entries));
	room->sel = calloc(PL_QUERY_BATCH, sizeof(*room->sel));
	run->bytes += PL_QUERY_BATCH * (stride + 2 * sizeof(*room->entries) + sizeof(*room->sel));
	room->records = calloc(PL_QUERY_BATCH, sizeof(*room->records));
	return room->row != NULL && room->inputs != NULL && room->kept != NULL &&
			       room->entries != NULL && room->records != NULL && room->sel != NULL
		       ? 0
		       : -ENOMEM;
}

void pl_query_folds_done(struct pl_query_run *run)
{
	free(run->fold.row);
	free(run->fold.inputs);
	free(run->fold.kept);
	free(run->fold.entries);
	free(run->fold.records);
	free(run->fold.sel);
}

/* ---- rows that a fold makes ---- */

/* Gives a row of a stream's records to the sink, or keeps it until its window closes. */
static void give_one(struct pl_query_run *run, struct stage_run *s, uint32_t slot, uint8_t *row)
{
	const uint64_t head = slot;

	if (pl_query_rows_kept(run, s) || s->stage->has_limit) {
		bool before = run->row.incomplete;

		run->row.incomplete = false;
		memcpy(run->fold.kept, &head, sizeof(head));
		memcpy(run->fold.kept + sizeof(head), row, s->stage->out.size);
		if (!pl_query_rows_add(run, &s->emitted, run->fold.kept, 1))
			run->windows.panes[slot].incomplete = true;
		run->row.incomplete = before;
		return;
	}
	run->row = pl_query_row_of_pane(run, s, slot);
	pl_query_rows_give(run, s, row, 1);
}

/* Gives the rows emitted since the last call: at most 1024 wait. */
static void give_emitted(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	struct fold_room *room = &run->fold;
	const struct rows rows = pl_query_rows_of_groups(run, stage, room->n, room->sel);

	room->n = 0;
	if (stage->n_sources > 0 || run->closing) {
		pl_query_rows_give(run, s, run->out_cells, rows.n);
		return;
	}
	for (uint32_t k = 0; k < rows.n; k++) {
		uint32_t at = rows.sel != NULL ? rows.sel[k] : k, slot;

		memcpy(&slot, table_at(&s->groups.table, room->entries[at]), sizeof(slot));
		if (s->zip_of != NULL)
			pl_query_rows_zip(run, s, room->records[at],
				run->windows.panes[slot].incomplete || run->eval.no_text > 0,
				run->out_cells + (size_t)k * stage->out.size);
		else
			give_one(run, s, slot, run->out_cells + (size_t)k * stage->out.size);
	}
}

static void emit(struct pl_query_run *run, struct stage_run *s, uint32_t entry)
{
	pl_query_groups_finish_one(run, s, entry, run->fold.n);
	run->fold.records[run->fold.n] = run->fold.record;
	run->fold.entries[run->fold.n++] = entry;
	if (run->fold.n == PL_QUERY_BATCH)
		give_emitted(run, s);
}

/* Gives the rows kept for the closing window. */
void pl_query_folds_kept(struct pl_query_run *run, struct stage_run *s, uint32_t slot)
{
	struct row_list *list = &s->emitted;
	uint32_t n = 0;

	for (uint32_t k = 0; k < list->n; k++) {
		uint8_t *row = list->data + (size_t)k * list->size;
		uint64_t of;

		memcpy(&of, row, sizeof(of));
		if (of == slot) {
			pl_query_rows_give(run, s, row + sizeof(of), 1);
			continue;
		}
		memmove(list->data + (size_t)n * list->size, row, list->size);
		n++;
	}
	list->n = n;
}

/* ---- steps ---- */

static void load(uint8_t *row, const struct fold *fold, const struct acc_fold *acc)
{
	memcpy(row, &acc->absent, sizeof(acc->absent));
	memcpy(cell_of(row, 0), acc->cells, (size_t)fold->n_states * CELL_BYTES);
}

static void store(const uint8_t *row, const struct fold *fold, struct acc_fold *acc)
{
	uint64_t head;

	memcpy(&head, row, sizeof(head));
	acc->absent = head & (((uint64_t)1 << fold->n_states) - 1);
	memcpy(acc->cells, row + ROW_HEAD, (size_t)fold->n_states * CELL_BYTES);
}

/* Writes the value of an expression over the row into one of its cells. An absent value leaves a
 * variable unchanged. */
static void put(struct pl_query_run *run, const struct node *node, uint32_t to)
{
	const struct rows rows = { run->fold.row, 0, 1, NULL };
	const struct vector *v = &run->eval.vectors[0];
	uint8_t *row = run->fold.row, *cell = cell_of(row, to);
	uint64_t head, value;

	pl_query_eval(&run->eval, node, &rows, 0);
	memcpy(&head, row, sizeof(head));
	if (v->some_absent && v->absent[0]) {
		if (to < FOLD_STATES_MAX)
			return;
		head |= (uint64_t)1 << to;
		memcpy(row, &head, sizeof(head));
		return;
	}
	head &= ~((uint64_t)1 << to);
	memcpy(row, &head, sizeof(head));
	if (node->type == PL_QUERY_ADDR) {
		memcpy(cell, &v->a[0], 16);
		return;
	}
	value = node->type == PL_QUERY_BOOL ? v->b[0] : v->u[0];
	memcpy(cell, &value, 8);
}

static bool holds(struct pl_query_run *run, const struct node *condition)
{
	const struct rows rows = { run->fold.row, 0, 1, NULL };

	if (condition == NULL)
		return true;
	pl_query_eval(&run->eval, condition, &rows, 0);
	return run->eval.vectors[0].b[0] != 0;
}

static void steps(struct pl_query_run *run, struct stage_run *s, const struct fold *fold,
	const struct fold_step *step, uint32_t n, uint32_t entry)
{
	for (; n > 0; n--, step++) {
		if (!step->emit) {
			put(run, step->node, step->to);
		} else if (holds(run, step->node)) {
			store(run->fold.row, fold, acc_of(s, fold, entry));
			emit(run, s, entry);
		}
	}
	store(run->fold.row, fold, acc_of(s, fold, entry));
}

/* Copies the inputs of record k, which lie behind the variables and names. */
static void take_inputs(struct pl_query_run *run, const struct fold *fold, uint32_t k)
{
	const size_t size = ROW_HEAD + (size_t)fold->n_inputs * CELL_BYTES;
	const uint8_t *from = run->fold.inputs + (size_t)k * size;
	uint64_t head, absent;

	memcpy(&head, run->fold.row, sizeof(head));
	memcpy(&absent, from, sizeof(absent));
	head |= absent << FOLD_INPUT_CELL;
	memcpy(run->fold.row, &head, sizeof(head));
	memcpy(cell_of(run->fold.row, FOLD_INPUT_CELL), from + ROW_HEAD, size - ROW_HEAD);
}

/* Sets the variables at the first record of a key. An absent first value stays absent. */
static void begin(struct pl_query_run *run, const struct fold *fold, struct acc_fold *acc)
{
	const uint64_t none = ((uint64_t)1 << fold->n_states) - 1;
	uint64_t head;

	memcpy(&head, run->fold.row, sizeof(head));
	head |= none;
	memcpy(run->fold.row, &head, sizeof(head));
	for (uint32_t i = 0; i < fold->n_states; i++)
		put(run, fold->states[i].init, i);
	acc->began = 1;
}

static void add(struct pl_query_run *run, struct stage_run *s, const struct fold *fold,
	const struct rows *rows, const uint64_t *ts, const uint32_t *entries)
{
	pl_query_rows_make(run, fold->inputs, fold->n_inputs, rows, run->fold.inputs);
	for (uint32_t k = 0; k < rows->n; k++) {
		const uint32_t entry = entries[k];
		struct acc_fold *acc = acc_of(s, fold, entry);

		if (fold->emits)
			pl_query_origin_add(run, s, rows, k, ts[k], entry);
		load(run->fold.row, fold, acc);
		take_inputs(run, fold, k);
		if (!acc->began)
			begin(run, fold, acc);
		run->fold.record = rows->sel != NULL ? rows->sel[k] : k;
		steps(run, s, fold, fold->steps, fold->n_steps, entry);
	}
}

void pl_query_folds_add(struct pl_query_run *run, struct stage_run *s, const struct rows *rows,
	const uint64_t *ts, const uint32_t *entries)
{
	for (uint32_t i = 0; i < s->stage->n_folds; i++)
		add(run, s, s->stage->folds[i], rows, ts, entries);
	if (s->stage->emits)
		give_emitted(run, s);
}

void pl_query_folds_end(struct pl_query_run *run, struct stage_run *s, uint32_t entry)
{
	for (uint32_t i = 0; i < s->stage->n_folds; i++) {
		const struct fold *fold = s->stage->folds[i];
		const struct acc_fold *acc = acc_of(s, fold, entry);

		if (fold->n_end == 0 || !acc->began)
			continue;
		load(run->fold.row, fold, acc);
		steps(run, s, fold, fold->end, fold->n_end, entry);
	}
}

void pl_query_folds_close(struct pl_query_run *run, struct stage_run *s, uint32_t next)
{
	run->closing = true;
	for (; next != 0; next = link_of(s, next - 1)->next)
		pl_query_folds_end(run, s, next - 1);
	if (s->stage->emits)
		give_emitted(run, s);
	run->closing = false;
}
