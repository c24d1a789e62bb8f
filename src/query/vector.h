/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of up to 1024 records, and how expressions give them. */
#pragma once

#include "lang/plan.h"
#include "query/query.h"

struct vector {
	union {
		uint64_t u[PL_QUERY_BATCH]; /* of texts their addresses (texts.h) */
		int64_t i[PL_QUERY_BATCH];
		double d[PL_QUERY_BATCH];
		uint8_t b[PL_QUERY_BATCH];
		struct pl_addr a[PL_QUERY_BATCH];
	};
	uint8_t absent[PL_QUERY_BATCH]; /* valid when some_absent */
	bool some_absent;
};

/* Records of a batch: n of them, number sel[i] of those at `base`, or number i with sel NULL. */
struct rows {
	const uint8_t *base;
	uint32_t stride, n;
	const uint16_t *sel;
};

static inline const uint8_t *row_at(const struct rows *rows, uint32_t i)
{
	return rows->base + (size_t)(rows->sel != NULL ? rows->sel[i] : i) * rows->stride;
}

struct evaluator {
	struct vector *vectors; /* as many as the widest expression needs */
	struct texts *texts;    /* NULL where no column is a text, or nothing is evaluated */
	uint64_t no_text;       /* values without room there */
	uint64_t absent;        /* values that overflow and division by zero made absent */
};

/* load.c: a column; a node of the kind N_TEST. */
void pl_query_load(struct evaluator *e, struct vector *v, const struct column *column,
	const struct rows *rows);
void pl_query_test(struct vector *v, const struct node *node, const struct rows *rows);
void pl_query_exists(struct vector *v, const struct column *column, const struct rows *rows);

/* expr.c */
/* The values go to vectors[at]; those behind are used. */
void pl_query_eval(
	struct evaluator *e, const struct node *node, const struct rows *rows, uint32_t at);
/* Those rows for which it is true: their numbers into `sel`, which may be rows->sel. Returns how
 * many. */
uint32_t pl_query_filter(struct evaluator *e, const struct node *node, const struct rows *rows,
	uint16_t sel[PL_QUERY_BATCH]);
