/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads columns of records into vectors, with the stride of the records. Tests of columns with
 * constants, of which most filters consist, are computed from the records in one loop.
 */
#include <string.h>

#include "query/texts.h"
#include "query/vector.h"
#include "record/community_id.h"

/* A loop for each width and for all records or the selected ones; `use` handles the value v. */
#define LOAD_LOOP(type, use)                                                                       \
	do {                                                                                       \
		type w;                                                                            \
		if (rows->sel == NULL) {                                                           \
			const uint8_t *p = rows->base + column->offset;                            \
			for (uint32_t k = 0; k < n; k++, p += stride) {                            \
				memcpy(&w, p, sizeof(w));                                          \
				use;                                                               \
			}                                                                          \
		} else {                                                                           \
			const uint8_t *p = rows->base + column->offset;                            \
			for (uint32_t k = 0; k < n; k++) {                                         \
				memcpy(&w, p + (size_t)rows->sel[k] * stride, sizeof(w));          \
				use;                                                               \
			}                                                                          \
		}                                                                                  \
	} while (0)

#define LOAD_WIDTHS(use)                                                                           \
	do {                                                                                       \
		const uint32_t n = rows->n;                                                        \
		const size_t stride = rows->stride;                                                \
		if (column->width == 1)                                                            \
			LOAD_LOOP(uint8_t, use);                                                   \
		else if (column->width == 2)                                                       \
			LOAD_LOOP(uint16_t, use);                                                  \
		else if (column->width == 4)                                                       \
			LOAD_LOOP(uint32_t, use);                                                  \
		else                                                                               \
			LOAD_LOOP(uint64_t, use);                                                  \
	} while (0)

static uint32_t present_in(const struct column *column, const struct rows *rows, uint32_t k)
{
	uint32_t present;

	memcpy(&present, row_at(rows, k) + column->present_at, sizeof(present));
	return present & column->present;
}

/* Loads presence, for records with a bitmap of fields that hold a value. */
static void load_presence(struct vector *v, const struct column *column, const struct rows *rows)
{
	uint8_t some = 0;

	for (uint32_t k = 0; k < rows->n; k++) {
		v->absent[k] = present_in(column, rows, k) == 0;
		some |= v->absent[k];
	}
	v->some_absent = some != 0;
}

static void load_absent(struct vector *v, const struct column *column, const struct rows *rows)
{
	uint8_t some = 0;

	v->some_absent = false;
	if (column->present != 0) {
		load_presence(v, column, rows);
		return;
	}
	if (column->absent < 0)
		return;
	for (uint32_t k = 0; k < rows->n; k++) {
		uint64_t head;

		memcpy(&head, row_at(rows, k), sizeof(head));
		v->absent[k] = head >> column->absent & 1;
		some |= v->absent[k];
	}
	v->some_absent = some != 0;
}

static void refuse_text(struct evaluator *e, const uint8_t *row)
{
	uint64_t ts;

	memcpy(&ts, row + e->time_at, sizeof(ts));
	if (ts <= (uint64_t)e->latest)
		lacks_room(e, (int64_t)ts);
	e->no_text++;
}

static bool load_id(const struct column *column, const struct rows *rows, uint32_t k,
	char ret[PL_COMMUNITY_ID_MAX])
{
	return pl_community_id(
		ret, (enum pl_flat_kind)(column->id_of - 1), row_at(rows, k) + column->offset);
}

/* Loads texts. A text without room is absent, and the results that include its record are
 * incomplete. */
static void load_texts(
	struct evaluator *e, struct vector *v, const struct column *column, const struct rows *rows)
{
	if (!v->some_absent)
		memset(v->absent, 0, rows->n);
	for (uint32_t k = 0; k < rows->n; k++) {
		const char *from = (const char *)row_at(rows, k) + column->offset, *text;
		char id[PL_COMMUNITY_ID_MAX];

		if (v->absent[k])
			continue;
		if (column->id_of != 0 && !load_id(column, rows, k, id)) {
			v->absent[k] = 1;
			v->some_absent = true;
			continue;
		}
		from = column->id_of != 0 ? id : from;
		text = pl_query_text(e->texts, from, column->width);
		v->u[k] = (uintptr_t)text;
		v->absent[k] = text == NULL;
		if (text == NULL)
			refuse_text(e, row_at(rows, k));
		v->some_absent = v->some_absent || text == NULL;
	}
}

void pl_query_load(
	struct evaluator *e, struct vector *v, const struct column *column, const struct rows *rows)
{
	const uint64_t mask = column->mask, is = column->is, or_is = column->or_is;
	const uint8_t shift = column->shift;

	load_absent(v, column, rows);
	if (column->type == PL_QUERY_TEXT && column->width > sizeof(uint64_t)) {
		load_texts(e, v, column, rows);
	} else if (column->type == PL_QUERY_ADDR || column->type == PL_QUERY_LIST) {
		for (uint32_t k = 0; k < rows->n; k++)
			memcpy(&v->a[k], row_at(rows, k) + column->offset, 16);
	} else if (column->type == PL_QUERY_BOOL && is == or_is) {
		LOAD_WIDTHS(v->b[k] = (w & mask) == is);
	} else if (column->type == PL_QUERY_BOOL) {
		LOAD_WIDTHS(v->b[k] = ((w & mask) == is) | ((w & mask) == or_is));
	} else if (mask == UINT64_MAX && shift == 0) {
		LOAD_WIDTHS(v->u[k] = w);
	} else {
		LOAD_WIDTHS(v->u[k] = (uint64_t)w >> shift & mask);
	}
	/* An absent condition is not true. */
	if (column->type == PL_QUERY_BOOL && v->some_absent) {
		for (uint32_t k = 0; k < rows->n; k++)
			v->b[k] &= !v->absent[k];
		v->some_absent = false;
	}
}

void pl_query_exists(struct vector *v, const struct column *column, const struct rows *rows)
{
	load_absent(v, column, rows);
	for (uint32_t k = 0; k < rows->n; k++)
		v->b[k] = v->some_absent ? !v->absent[k] : 1;
	for (uint32_t k = 0; column->id_of != 0 && k < rows->n; k++) {
		char id[PL_COMMUNITY_ID_MAX];

		v->b[k] &= load_id(column, rows, k, id);
	}
	v->some_absent = false;
}

static void test_values(struct vector *v, const struct node *node, const struct rows *rows)
{
	const struct column *column = node->column;
	const uint64_t mask = node->mask, lo = node->lo, span = node->span;
	const uint8_t shift = column->shift;
	const bool invert = node->invert;

	/* Tests in the width of the column when the constants fit it: more records per vector. */
	if (column->width == 1 && lo <= 0xff) {
		const uint8_t m = (uint8_t)mask, l = (uint8_t)lo;
		const uint8_t s = span > 0xff ? 0xff : (uint8_t)span;
		const uint32_t n = rows->n;
		const size_t stride = rows->stride;

		if (lo + s <= 0xff || span <= 0xff - lo) {
			LOAD_LOOP(uint8_t, v->b[k] = ((uint8_t)((uint8_t)(w >> shift & m) - l) <=
							     s) != invert);
			return;
		}
	}
	LOAD_WIDTHS(v->b[k] = (((uint64_t)w >> shift & mask) - lo <= span) != invert);
}

void pl_query_test(struct vector *v, const struct node *node, const struct rows *rows)
{
	test_values(v, node, rows);
	v->some_absent = false;
	/* An absent value passes no test, not even an inverted one. */
	for (uint32_t k = 0; node->column->present != 0 && k < rows->n; k++)
		v->b[k] &= present_in(node->column, rows, k) != 0;
}
