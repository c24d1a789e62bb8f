/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of questions as lines of InfluxDB: the measurement pathline_query_NAME, the columns of the group
 * as tags, the others as fields, with w1, final, first_ts, late, exp and incomplete (a column of the
 * question with one of these names takes its place). Values that are absent are left out. The time is
 * the begin of the window; without windows the earliest time of the row's records, without records
 * that of writing.
 *
 * The row of a closed window takes the place of its first crossing, which has the same tags and time.
 * Other rows with the same tags and time are moved apart by nanoseconds. As many groups have rows as
 * the output has sets of tags (max_keys); rows of further ones are refused.
 */
#pragma once

#include "export/influx.h"
#include "query/query.h"

/* Whether its columns have a form there. -EINVAL with diag. */
int pl_influx_rows_check(const struct pl_query *query, struct pl_diag *diag);

/* `e` is of pl_influx_open. -ERANGE: its time, -ENOSPC: one group too many, -E2BIG: no memory. */
int pl_influx_write_row(struct pl_export *e, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t now_ns);

/* For tests: appends the line; `format` is of pl_influx_format_new. */
int pl_influx_put_row(void *format, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t real_ns, struct pl_buf *out);
