/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints rows of a query on standard output, in the forms of row_out.h: the window, if there is
 * one, then the columns of the question, and in every form but table columns that every row has:
 * `first_ts`, `late`, `exp` and `incomplete` (struct pl_query_row), and with windows `final` (no: a
 * first crossing), which table shows when there are crossings.
 */
#pragma once

#include "query/query.h"
#include "show/row_out.h"

#define PL_QUERY_OUT_EXTRA   5
#define PL_QUERY_OUT_COLUMNS (PL_QUERY_ITEMS_MAX + 2 + PL_QUERY_OUT_EXTRA)

struct pl_query_out {
	const struct pl_query *query;
	const char *form;
	bool begun, windowed, gone;
	uint64_t n, limit, incomplete;
	uint32_t clocks; /* clocks of the records' times, bits 1 << enum pl_clock_kind: printed with
			 * the counters */
	struct pl_column columns[PL_QUERY_OUT_COLUMNS];
	uint8_t extra[PL_QUERY_OUT_EXTRA], n_extra; /* columns behind the question's */
	struct pl_row_out out;
	struct pl_buf text; /* the values of a row */
};

/* Begins the output. stats: a JSON object follows the rows, which are no array then. limit: 0 =
 * none. */
void pl_query_out_init(struct pl_query_out *rows, const struct pl_query *query, const char *form,
	bool stats, uint64_t limit);
void pl_query_out_add(struct pl_query_out *rows, const struct pl_query_row *row);
void pl_query_out_write(struct pl_query_out *rows);
bool pl_query_out_full(const struct pl_query_out *rows);
/* Ends the output: closes the array, if one is open, and prints the counters, unless they are NULL.
 * When writing failed, prints the error and returns false. */
bool pl_query_out_end(struct pl_query_out *rows, const struct pl_query_stats *stats);
/* Prints a message about rows and records that the result lacks. */
void pl_query_out_tell(const struct pl_query_out *rows, const struct pl_query_stats *stats);
