/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws rows of a query as a chart of characters. It draws the first number that is no key of the
 * question; the other keys, and columns that are no numbers, are the name of a row.
 *
 *   without windows   a bar for each row, in their order
 *   windows, no name  columns over time, eight lines high
 *   windows, names    a line of blocks over time for each name, on one scale, the largest first
 *
 * When there are more windows than columns, a column has the largest value of several windows, and
 * the chart shows their number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "query/query.h"

#define PL_CHART_ROWS  200000u /* rows kept; further ones are counted */
#define PL_CHART_BARS  50u     /* rows drawn without windows */
#define PL_CHART_LINES 20u     /* names drawn with windows */
#define PL_CHART_LIVE  50000u  /* latest rows kept of a live stream */

struct pl_chart;

/* Begins a chart. Returns -EINVAL with diag when the rows have no number to draw, or -ENOMEM. */
int pl_chart_new(struct pl_chart **ret, const struct pl_query *query, struct pl_diag *diag);
/* NULL is allowed. */
void pl_chart_free(struct pl_chart *chart);

/* Adds a row. The row of a whole window replaces its first crossing (EMIT FIRST). */
void pl_chart_add(struct pl_chart *chart, const struct pl_query_row *row);

/* Sets up the chart for a live stream, before the first row: later rows replace those of older
 * windows, or older rows; a column is one window, and the latest are drawn. */
void pl_chart_follow(struct pl_chart *chart);

struct pl_chart_area {
	unsigned int cols;  /* width at most */
	unsigned int lines; /* height at most, PL_CHART_LEAST or more; 0: no limit */
	bool ascii;         /* draws with the characters ".:-=+*#@" */
};

#define PL_CHART_LEAST 12u

/* Appends the drawing of all rows added. */
void pl_chart_draw(
	const struct pl_chart *chart, const struct pl_chart_area *area, struct pl_buf *out);
