/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a statement being written, for export.c, its parts and export_expr.c. */
#pragma once

#include "lang/export.h"
#include "lang/plan.h"

struct exporter {
	enum pl_query_dialect dialect;
	const struct pl_query *query;
	const struct stage *stage; /* stage of the expressions */
	const char *source;        /* name of the records of its stream */
	struct pl_buf *out;
	struct lexer lx; /* for the place of an error */
	bool failed;
};

/* ---- export_expr.c ---- */

/* Writes an expression. `filter`: an absent value may count as false, as at the top of WHERE. */
void pl_export_node(struct exporter *e, const struct node *node, bool filter);
/* True when the expression can be absent: NULL in SQL. */
bool pl_export_nullable(struct exporter *e, const struct node *node);

/* ---- export_agg.c ---- */
void pl_export_agg(struct exporter *e, const struct agg *agg);

/* ---- export_column.c ---- */

/* Reports a construct that the dialect does not have: "… do not translate to Flink SQL". */
void pl_export_refuse(struct exporter *e, uint32_t at, const char *what);
void pl_export_name(struct exporter *e, const char *name); /* in the dialect's quotes */
/* Takes columns from a side of the stage's pairs, until pl_export_whole. */
void pl_export_side(struct exporter *e, unsigned int side);
void pl_export_whole(struct exporter *e, const struct stage *stage);
/* Writes the time of the stage's records, in ns. */
void pl_export_time(struct exporter *e);
/* Writes a column of the stage's stream; for a boolean one its condition. */
void pl_export_stream_column(struct exporter *e, const struct column *column, uint32_t at);
/* Writes N_TEST of a column of the stage's stream. */
void pl_export_test(struct exporter *e, const struct node *node);
void pl_export_number(struct exporter *e, uint64_t value, uint32_t at);
/* Writes (x >> shift) & mask, where `put` writes x. */
void pl_export_bits(struct exporter *e, void (*put)(struct exporter *e, const void *arg),
	const void *arg, unsigned int shift, uint64_t mask, uint64_t all, uint32_t at);
