/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A query in the SQL of another system, from the same plan: for records that are in tables of
 * ClickHouse (record/clickhouse.h), in topics that Flink reads (record/flink.h), or in files that
 * DuckDB reads (record/duckdb.h). The tables have the names of the streams.
 *
 * Comments before the statement say where the other system computes in another way; a construct
 * that it does not have is an error, which names the construct and its place. One difference has no
 * comment: numbers that do not fit 64 bits are absent here, and wrap around in the other system.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "lang/lang.h"

enum pl_query_dialect { PL_QUERY_CLICKHOUSE, PL_QUERY_FLINK, PL_QUERY_DUCKDB, PL_QUERY_DIALECTS };

/* Name of a dialect: "clickhouse", "flink", "duckdb". */
const char *pl_query_dialect_name(enum pl_query_dialect dialect);

/* Appends one statement without a semicolon, and a line end. `text` is the one that the query was
 * parsed from. Returns 0, -ENOTSUP with diag, which has line and column, or -ENOMEM. */
int pl_query_export(const struct pl_query *query, const char *text, enum pl_query_dialect dialect,
	struct pl_buf *out, struct pl_diag *diag);
