/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of up to 1024 records, and their computation by expressions. */
#pragma once

#include "lang/plan.h"
#include "query/losses.h"
#include "query/query.h"

struct vector {
	union {
		uint64_t u[PL_QUERY_BATCH]; /* for texts: their addresses (texts.h) */
		int64_t i[PL_QUERY_BATCH];
		double d[PL_QUERY_BATCH];
		uint8_t b[PL_QUERY_BATCH];
		struct pl_addr a[PL_QUERY_BATCH];
	};
	uint8_t absent[PL_QUERY_BATCH]; /* valid when some_absent */
	bool some_absent;
};

/* Rows of a batch: n of them, number sel[i] of the records at `base`, or number i with sel NULL. */
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
	struct texts *texts;    /* NULL when no column is a text, or nothing is evaluated */
	uint64_t no_text;       /* texts without room */
	/* of the rows that texts are loaded from: offset of the time, and the greatest that it may
	 * have */
	uint32_t time_at;
	int64_t latest;
	/* times of records that had no room for a text, their window or their session */
	struct losses losses;
	uint64_t absent; /* values made absent by overflow and division by zero */
};

static inline void lacks_room(struct evaluator *e, int64_t ts)
{
	pl_query_losses_add(&e->losses, ts, ts);
}

/* load.c: loads a column; tests a node of the kind N_TEST. */
void pl_query_load(struct evaluator *e, struct vector *v, const struct column *column,
	const struct rows *rows);
void pl_query_test(struct vector *v, const struct node *node, const struct rows *rows);
void pl_query_exists(struct vector *v, const struct column *column, const struct rows *rows);

/* expr.c */
/* Computes values into vectors[at]; later vectors are used on the way. */
void pl_query_eval(
	struct evaluator *e, const struct node *node, const struct rows *rows, uint32_t at);
/* Writes the numbers of rows for which the node is true into `sel`, which may be rows->sel. Returns
 * their number. */
uint32_t pl_query_filter(struct evaluator *e, const struct node *node, const struct rows *rows,
	uint16_t sel[PL_QUERY_BATCH]);
