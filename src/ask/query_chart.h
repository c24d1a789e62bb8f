/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a question as a chart on standard output. Of a live source a terminal has it all the time,
 * drawn again in its place when rows have come; anything else gets it once, at the end.
 */
#pragma once

#include <stdbool.h>

#include "show/chart.h"

struct pl_query_chart {
	struct pl_chart *chart;
	bool ascii, follows; /* follows: it is drawn while rows come */
	bool gone;           /* nobody reads any more */
	int error;           /* negative errno: it could not be written */
	bool stale;          /* rows have come since it was drawn */
	unsigned int lines;  /* of the terminal that it takes; 0: it is not drawn */
	uint64_t drawn_ns;   /* monotonic */
};

/* Before rights are given up. As pl_chart_new. */
int pl_query_chart_init(
	struct pl_query_chart *c, const struct pl_query *query, struct pl_diag *diag);
void pl_query_chart_done(struct pl_query_chart *c);

/* The source is live; before the first row. */
void pl_query_chart_follow(struct pl_query_chart *c);
void pl_query_chart_add(struct pl_query_chart *c, const struct pl_query_row *row);
/* Now and then. */
void pl_query_chart_turn(struct pl_query_chart *c);
/* Draws what there is. False: it could not be written; complains. */
bool pl_query_chart_end(struct pl_query_chart *c);
