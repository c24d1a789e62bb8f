/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a query as a chart of characters. What is drawn is the first number that is no key of the
 * question; the other keys, and what is no number, are the name of a row.
 *
 *   without windows   a bar for each row, in their order
 *   windows, no name  columns over time, eight lines high
 *   windows, names    a line of blocks over time for each name, on one scale, the largest first
 *
 * Where there are more windows than columns, a column has the largest value of several, and the chart
 * says of how many.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "query/query.h"

#define PL_CHART_ROWS  200000u /* that are kept; further ones are counted */
#define PL_CHART_BARS  50u     /* rows that are drawn without windows */
#define PL_CHART_LINES 20u     /* names that are drawn with windows */
#define PL_CHART_LIVE  50000u  /* rows that are kept of a stream that goes on, the latest */

struct pl_chart;

/* -EINVAL with diag: the rows have no number to draw. -ENOMEM. */
int pl_chart_new(struct pl_chart **ret, const struct pl_query *query, struct pl_diag *diag);
/* NULL is allowed. */
void pl_chart_free(struct pl_chart *chart);

/* A first crossing (EMIT FIRST) gives way to the row of its whole window. */
void pl_chart_add(struct pl_chart *chart, const struct pl_query_row *row);

/* Of a stream that goes on: rows of older windows, or older rows, give way to later ones, and a column
 * is one window, the latest of which are drawn. Before the first row. */
void pl_chart_follow(struct pl_chart *chart);

struct pl_chart_area {
	unsigned int cols;  /* at most so wide */
	unsigned int lines; /* at most so high, PL_CHART_LEAST or more; 0: as high as it is */
	bool ascii;         /* by the characters ".:-=+*#%@" */
};

#define PL_CHART_LEAST 12u

/* Draws what was added. */
void pl_chart_draw(
	const struct pl_chart *chart, const struct pl_chart_area *area, struct pl_buf *out);
