/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The view of pathline top: its screen, order and filter with the last documents, and its table as
 * text. top_draw.h draws it in a terminal.
 */
#pragma once

#include "base/buf.h"
#include "show/top.h"
#include "show/top_fetch.h"

enum {
	PL_TOP_ROWS = 1000, /* most rows of a request */
	PL_TOP_FILTER_MAX = 400,
	PL_TOP_PATH_BYTES = 1400,
	PL_TOP_SCREENS_MAX = 16,
};

struct pl_top_view {
	unsigned int screen;
	unsigned int sort[PL_TOP_SCREENS_MAX]; /* per screen: column */
	bool descending[PL_TOP_SCREENS_MAX];
	char where[PL_TOP_FILTER_MAX];
	struct pl_top_rates rates;
	json_t *status, *before, *table; /* before: the status before the last */
	const char *source;              /* to show: an address or a folder; borrowed */
};

/* Begins a view. The screen is one of pl_top_screens; sort and where may be NULL. Returns 0, or
 * prints the error and returns an exit code. */
int pl_top_view_init(
	struct pl_top_view *v, const char *screen, const char *sort, const char *where);
void pl_top_view_done(struct pl_top_view *v);

const struct pl_top_screen *pl_top_view_screen(const struct pl_top_view *v);
/* Returns the column that the screen is sorted by. */
const struct pl_top_column *pl_top_view_column(const struct pl_top_view *v);

/* Makes the request for the view's table, with `rows` rows; returns false when it does not fit. */
bool pl_top_view_path(const struct pl_top_view *v, unsigned int rows, char *dst, size_t cap);

/* Takes an answer's documents, which the view owns then. */
void pl_top_view_take(struct pl_top_view *v, struct pl_top_answer *answer);

/* Returns true when the locale has ASCII characters only. */
bool pl_top_ascii(void);

struct pl_top_batch {
	uint64_t times, rows, interval_ns;
	bool json; /* the table's document instead of its text */
};
/* Requests the view and prints it to standard output, once for each of `times`. Returns an exit
 * code after printing the error. */
int pl_top_view_print(struct pl_top_view *v, const struct pl_top_source *source,
	const struct pl_top_batch *batch);
