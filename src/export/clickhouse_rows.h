/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of queries for a table of ClickHouse, as JSONEachRow: one column for each of the query,
 * followed by w0, w1, final, first_ts, late, exp and incomplete (a column of the query with one of
 * these names replaces it; w0 and w1 exist only with windows). An absent value is NULL.
 */
#pragma once

#include "export/clickhouse.h"
#include "query/query.h"

/* Appends the columns of an INSERT: "`src`, `n`, `w0`, …". */
void pl_clickhouse_rows_columns(const struct pl_query *query, struct pl_buf *out);
/* Appends the statement that creates the table; `what` goes into a comment in front of it. */
void pl_clickhouse_rows_table(
	const struct pl_query *query, const char *what, const char *table, struct pl_buf *out);

/* Writes one row; `e` was opened by pl_clickhouse_open with the columns of the query. -ENOMEM. */
int pl_clickhouse_write_row(struct pl_export *e, const struct pl_query *query,
	const struct pl_query_row *row, uint64_t now_ns);

/* For tests: appends the row's object and a newline. */
void pl_clickhouse_put_row(
	const struct pl_query *query, const struct pl_query_row *row, struct pl_buf *out);
