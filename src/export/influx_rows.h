/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of queries as lines of InfluxDB: the measurement pathline_query_NAME, the columns of the
 * group as tags, the others as fields, with w1, final, first_ts, late, exp and incomplete (a column
 * of the query with one of these names replaces it). Absent values are left out. The line's time is
 * the begin of the window; without windows the earliest time of the row's records, without records
 * the time of writing.
 *
 * The row of a closed window replaces the row of its first crossing, which has the same tags and
 * time. Other rows with the same tags and time are moved apart by nanoseconds. At most max_keys
 * groups have rows, the output's limit on sets of tags; rows of further groups are refused.
 */
#pragma once

#include "export/influx.h"
#include "query/query.h"

/* Checks that the query's columns can be written. -EINVAL with diag. */
int pl_influx_rows_check(const struct pl_query *query, struct pl_diag *diag);

/* Writes a row; `e` is of pl_influx_open. -ERANGE: time, -ENOSPC: groups, -E2BIG: no memory. */
int pl_influx_write_row(struct pl_export *e, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t now_ns);

/* For tests: appends the line; `format` was made by pl_influx_format_new. */
int pl_influx_put_row(void *format, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t real_ns, struct pl_buf *out);
