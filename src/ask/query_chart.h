/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws rows of a question as a chart on standard output. For a live source on a terminal the chart
 * is redrawn in the same place whenever rows have come; otherwise it is drawn once, at the end.
 */
#pragma once

#include <stdbool.h>

#include "show/chart.h"

struct pl_query_chart {
	struct pl_chart *chart;
	bool ascii, follows; /* the chart is redrawn as rows come */
	bool gone;           /* the reader of standard output is gone */
	int error;           /* negative errno of writing */
	bool stale;          /* rows have come since it was drawn */
	unsigned int lines;  /* lines of the chart on the terminal; 0: it is not drawn */
	uint64_t drawn_ns;   /* monotonic */
};

/* Begins a chart, before privileges are given up. Returns as pl_chart_new. */
int pl_query_chart_init(
	struct pl_query_chart *c, const struct pl_query *query, struct pl_diag *diag);
void pl_query_chart_done(struct pl_query_chart *c);

/* Draws while rows come, for a live source; to be called before the first row. */
void pl_query_chart_follow(struct pl_query_chart *c);
void pl_query_chart_add(struct pl_query_chart *c, const struct pl_query_row *row);
/* Draws new rows when it is time; to be called now and then. */
void pl_query_chart_turn(struct pl_query_chart *c);
/* Draws the last rows. When that fails, prints the error and returns false. */
bool pl_query_chart_end(struct pl_query_chart *c);
