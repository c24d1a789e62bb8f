/* SPDX-License-Identifier: BSD-2-Clause */
/* What export.c, its parts and export_expr.c share: one statement being written. */
#pragma once

#include "lang/export.h"
#include "lang/plan.h"

struct exporter {
	enum pl_query_dialect dialect;
	const struct pl_query *query;
	const struct stage *stage; /* expressions are of this one */
	const char *source;        /* the name that the records of its stream have */
	struct pl_buf *out;
	struct lexer lx; /* for the place of an error */
	bool failed;
};

/* The construct is none of the dialect's: "… do not translate to Flink SQL". */
void pl_export_refuse(struct exporter *e, uint32_t at, const char *what);

/* ---- export_expr.c ---- */

/* An expression. `filter`: absent may stand for false, as at the top of WHERE. */
void pl_export_node(struct exporter *e, const struct node *node, bool filter);
/* Whether the expression can be absent: NULL in SQL. */
bool pl_export_nullable(struct exporter *e, const struct node *node);
/* Columns are those of a side of the stage's pairs, until _whole. */
void pl_export_side(struct exporter *e, unsigned int side);
void pl_export_whole(struct exporter *e, const struct stage *stage);
/* The time of the stage's records, in ns. */
void pl_export_time(struct exporter *e);
void pl_export_name(struct exporter *e, const char *name); /* in the dialect's quotes */

/* ---- export_agg.c ---- */
void pl_export_agg(struct exporter *e, const struct agg *agg);

/* ---- export_column.c ---- */

/* A column of the stage's stream; of a boolean one the condition. */
void pl_export_stream_column(struct exporter *e, const struct column *column, uint32_t at);
/* N_TEST of a column of the stage's stream. */
void pl_export_test(struct exporter *e, const struct node *node);
void pl_export_number(struct exporter *e, uint64_t value, uint32_t at);
/* (x >> shift) & mask, x being what `put` writes. */
void pl_export_bits(struct exporter *e, void (*put)(struct exporter *e, const void *arg),
	const void *arg, unsigned int shift, uint64_t mask, uint64_t all, uint32_t at);
