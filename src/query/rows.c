/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of a result: makes them of expressions, keeps and orders them, gives them to the sink. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "query/origin.h"

static bool is_wide(enum pl_query_type type)
{
	return type == PL_QUERY_ADDR || type == PL_QUERY_LIST;
}

/* Tests the first word of a row. */
static bool is_absent(uint64_t head, uint32_t column)
{
	return column < PL_QUERY_COLUMNS_MAX && (head >> column & 1) != 0;
}

void pl_query_rows_make(struct pl_query_run *run, const struct node *const *items, uint32_t n,
	const struct rows *rows, uint8_t *to)
{
	const uint32_t size = ROW_HEAD + n * CELL_BYTES;
	const struct vector *v = &run->eval.vectors[0];

	memset(to, 0, (size_t)size * rows->n);
	for (uint32_t i = 0; i < n; i++) {
		const enum pl_query_type type = items[i]->type;
		uint8_t *cell = to + ROW_HEAD + (size_t)i * CELL_BYTES;

		pl_query_eval(&run->eval, items[i], rows, 0);
		for (uint32_t k = 0; k < rows->n; k++, cell += size) {
			uint64_t value = type == PL_QUERY_BOOL ? v->b[k] : v->u[k], head;

			if (v->some_absent && v->absent[k]) {
				assert(i < PL_QUERY_COLUMNS_MAX);
				memcpy(&head, to + (size_t)k * size, sizeof(head));
				head |= (uint64_t)1 << i;
				memcpy(to + (size_t)k * size, &head, sizeof(head));
			} else if (is_wide(type)) {
				memcpy(cell, &v->a[k], 16);
			} else {
				memcpy(cell, &value, 8);
			}
		}
	}
}

void pl_query_rows_where(struct pl_query_run *run, const struct stage *stage, struct rows *rows)
{
	for (uint32_t i = 0; i < stage->n_where && rows->n > 0; i++) {
		rows->n = pl_query_filter(&run->eval, stage->where[i], rows, run->sel);
		rows->sel = run->sel;
	}
}

void pl_query_rows_result(
	struct pl_query_run *run, const struct stage *stage, const struct rows *rows)
{
	pl_query_rows_make(run, stage->items, stage->n_items, rows, run->out_cells);
	pl_query_origins_copy(rows, run->out_cells, stage->out.size);
}

struct rows pl_query_rows_of_groups(
	struct pl_query_run *run, const struct stage *stage, uint32_t n, uint16_t *sel)
{
	struct rows rows = { run->cells, stage->groups.size, n, NULL };

	if (stage->having != NULL) {
		rows.n = pl_query_filter(&run->eval, stage->having, &rows, sel);
		rows.sel = sel;
	}
	if (rows.n > 0)
		pl_query_rows_result(run, stage, &rows);
	return rows;
}

struct pl_query_row pl_query_row_of_pane(
	const struct pl_query_run *run, const struct stage_run *s, uint32_t slot)
{
	struct pl_query_row row = { .windowed = run->windows.spec.kind != W_NONE };

	if (row.windowed)
		pl_query_windows_of_slot(&run->windows, slot, &row.start_ns, &row.end_ns);
	row.incomplete = run->windows.panes[slot].incomplete ||
			 window_lacks(run, row.start_ns, row.end_ns) ||
			 pl_query_pairs_incomplete(s, row.start_ns, row.end_ns);
	return row;
}

/* ---- what is kept ---- */

bool pl_query_rows_kept(const struct pl_query_run *run, const struct stage_run *s)
{
	return s->stage->number + 1 < run->query->n_stages || s->stage->order >= 0;
}

bool pl_query_rows_add(
	struct pl_query_run *run, struct row_list *list, const uint8_t *data, uint32_t n)
{
	uint32_t room = list->max - list->n, take = n < room ? n : room;

	if (list->n + take > list->cap) {
		uint64_t cap = list->cap == 0 ? 1024 : (uint64_t)list->cap * 2;
		uint8_t *grown;

		if (cap < (uint64_t)list->n + take)
			cap = (uint64_t)list->n + take;
		grown = realloc(list->data, cap * list->size);
		if (grown != NULL) {
			list->data = grown;
			list->cap = (uint32_t)cap;
		} else {
			take = list->cap - list->n;
		}
	}
	if (take > 0)
		memcpy(list->data + (size_t)list->n * list->size, data, (size_t)take * list->size);
	list->n += take;
	if (take < n) {
		run->stats.rows_refused += n - take;
		run->row.incomplete = true;
	}
	return take == n;
}

void pl_query_rows_zip(struct pl_query_run *run, struct stage_run *side, uint32_t record,
	bool incomplete, const uint8_t *row)
{
	const struct zip_head head = { record, incomplete };
	uint8_t entry[sizeof(head) + ROW_HEAD + PL_QUERY_COLUMNS_MAX * CELL_BYTES];

	memcpy(entry, &head, sizeof(head));
	memcpy(entry + sizeof(head), row, side->stage->out.size);
	pl_query_rows_add(run, &side->zipped, entry, 1);
}

/* ---- order ---- */

struct order {
	const struct column *columns;
	uint32_t n, column; /* the row is ordered by that one */
	bool descending;
};

static int by_type(const uint8_t *a, const uint8_t *b, enum pl_query_type type)
{
	uint64_t x, y;
	double d, e;

	if (type == PL_QUERY_ADDR)
		return memcmp(a, b, 16);
	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	if (type == PL_QUERY_TEXT)
		return strcmp((const char *)(uintptr_t)x, (const char *)(uintptr_t)y);
	memcpy(&d, a, 8);
	memcpy(&e, b, 8);
	if (type == PL_QUERY_DOUBLE)
		return d < e ? -1 : d > e;
	if (type == PL_QUERY_SIGNED)
		return (int64_t)x < (int64_t)y ? -1 : (int64_t)x > (int64_t)y;
	return x < y ? -1 : x > y;
}

/* Compares rows with equal values of ORDER BY by their bytes. A text is compared itself: its cell is
 * an address, which differs from run to run. There are no lists beside ORDER BY. The origin is no
 * value, and is not compared. */
static int by_others(const uint8_t *a, const uint8_t *b, uint64_t head, const struct order *o)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < o->n; i++) {
		const size_t at = ROW_HEAD + (size_t)i * CELL_BYTES;

		if (o->columns[i].type == PL_QUERY_TEXT && !is_absent(head, i))
			r = by_type(a + at, b + at, PL_QUERY_TEXT);
		else
			r = memcmp(a + at, b + at, CELL_BYTES);
	}
	return r;
}

/* Compares rows: absent values come last in either order. */
static int in_order(const void *a, const void *b, void *arg)
{
	const struct order *o = arg;
	const size_t at = ROW_HEAD + (size_t)o->column * CELL_BYTES;
	uint64_t head_a, head_b;
	bool no_a, no_b;
	int r;

	memcpy(&head_a, a, sizeof(head_a));
	memcpy(&head_b, b, sizeof(head_b));
	no_a = is_absent(head_a, o->column);
	no_b = is_absent(head_b, o->column);
	if (no_a != no_b)
		return no_a ? 1 : -1;
	r = no_a ? 0
		 : by_type((const uint8_t *)a + at, (const uint8_t *)b + at,
			   o->columns[o->column].type);
	if (r != 0)
		return o->descending ? -r : r;
	r = memcmp(a, b, sizeof(head_a));
	return r != 0 ? r : by_others(a, b, head_a, o);
}

/* ---- to the sink ---- */

static void to_value(
	struct pl_query_value *v, const uint8_t *cell, enum pl_query_type type, bool absent)
{
	uint64_t n;

	*v = (struct pl_query_value){ .type = type, .absent = absent };
	if (absent)
		return;
	memcpy(&v->addr, cell, 16);
	memcpy(&n, cell, sizeof(n));
	if (type == PL_QUERY_BOOL)
		v->b = n != 0;
	if (type == PL_QUERY_TEXT)
		v->text = (const char *)(uintptr_t)n;
	if (type == PL_QUERY_LIST) {
		memcpy(&v->list.items, cell, sizeof(uintptr_t));
		memcpy(&n, cell + 8, sizeof(n));
		v->list.n = (uint32_t)n;
	}
}

static void to_sink(struct pl_query_run *run, const struct stage *stage, const uint8_t *data)
{
	uint64_t head;

	memcpy(&head, data, sizeof(head));
	for (uint32_t i = 0; i < stage->n_items; i++)
		to_value(&run->values[i], data + ROW_HEAD + (size_t)i * CELL_BYTES,
			stage->items[i]->type, is_absent(head, i));
	run->row.values = run->values;
	run->row.n = stage->n_items;
	pl_query_origin_tell(run, &run->row, data);
	run->stats.rows++;
	run->sink(run->arg, &run->row);
}

void pl_query_rows_give(
	struct pl_query_run *run, struct stage_run *s, const uint8_t *data, uint32_t n)
{
	const struct stage *stage = s->stage;

	if (pl_query_rows_kept(run, s)) {
		pl_query_rows_add(run, &s->out, data, n);
		return;
	}
	for (uint32_t k = 0; k < n && s->limit_left > 0; k++, s->limit_left--)
		to_sink(run, stage, data + (size_t)k * stage->out.size);
}

void pl_query_rows_whole(struct pl_query_run *run, struct stage_run *s, const struct rows *rows)
{
	for (uint32_t k = 0; k < rows->n && s->limit_left > 0; k++, s->limit_left--) {
		run->stats.rows++;
		run->records(run->arg, row_at(rows, k));
	}
}

void pl_query_rows_flush(struct pl_query_run *run, struct stage_run *s)
{
	const struct stage *stage = s->stage;
	struct row_list *list = &s->out;

	if (!pl_query_rows_kept(run, s))
		return;
	if (stage->order >= 0 && list->n > 1) {
		struct order o = { stage->out.columns, stage->n_items, (uint32_t)stage->order,
			stage->descending };

		qsort_r(list->data, list->n, list->size, in_order, &o);
	}
	if (list->n > s->limit_left)
		list->n = (uint32_t)s->limit_left;
	if (stage->number + 1 < run->query->n_stages)
		return;
	for (uint32_t k = 0; k < list->n; k++)
		to_sink(run, stage, list->data + (size_t)k * list->size);
	list->n = 0;
}
