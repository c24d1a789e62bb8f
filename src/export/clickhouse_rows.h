/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of questions into a table of ClickHouse, as JSONEachRow: a column for each of the question, and
 * w0, w1, final, first_ts, late, exp and incomplete behind them (a column of the question with one of
 * these names takes its place; w0 and w1 are of windows). An absent value is NULL.
 */
#pragma once

#include "export/clickhouse.h"
#include "query/query.h"

/* Appends the columns of an INSERT: "`src`, `n`, `w0`, …". */
void pl_clickhouse_rows_columns(const struct pl_query *query, struct pl_buf *out);
/* Appends the statement that makes the table; `what` is told in a comment in front of it. */
void pl_clickhouse_rows_table(
	const struct pl_query *query, const char *what, const char *table, struct pl_buf *out);

/* `e` is of pl_clickhouse_open with the columns of the query. -ENOMEM. */
int pl_clickhouse_write_row(struct pl_export *e, const struct pl_query *query,
	const struct pl_query_row *row, uint64_t now_ns);

/* For tests: appends the object and a line end. */
void pl_clickhouse_put_row(
	const struct pl_query *query, const struct pl_query_row *row, struct pl_buf *out);
