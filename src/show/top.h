/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The screens of pathline top as data, and the lines they consist of: pure functions from the API's
 * documents to text, for the terminal and for batch output alike.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

enum pl_top_cell {
	PL_TOP_NUMBER,   /* exact if it fits, else as 3.10M */
	PL_TOP_DURATION, /* of nanoseconds */
	PL_TOP_TEXT,     /* left-aligned, cut */
	PL_TOP_CLOCK,    /* time of day of an RFC 3339 text */
	PL_TOP_RATE,     /* growth of `key` per second, from the second document on */
	PL_TOP_NODES,    /* nodes of a path, without those in its middle when it is too long */
	PL_TOP_FLOW,     /* present and earlier path, if the row has them; then source and
			  * destination of the member "flow", or the exporter */
};

struct pl_top_column {
	const char *title;
	const char *key;    /* member of the row; for RATE the counter */
	unsigned int width; /* 0: the rest of the line */
	enum pl_top_cell cell;
};

struct pl_top_screen {
	const char *name; /* of the table */
	const struct pl_top_column *columns;
	unsigned int n_columns;
	unsigned int sort;    /* column of the initial order */
	const char *identity; /* keys that identify a row, with blanks between */
	const char *beyond; /* name of the values without rows ("overflow"); NULL: there are none */
};

extern const struct pl_top_screen pl_top_screens[];
extern const unsigned int pl_top_n_screens;

const struct pl_top_screen *pl_top_screen_find(const char *name); /* NULL: there is none */
/* Returns the column of a key or a title, in any case; negative when there is none. */
int pl_top_column_find(const struct pl_top_screen *screen, const char *name);
/* Returns true when the column is sorted with the largest first: numbers, but not names. */
bool pl_top_descends(const struct pl_top_column *column);

/* The counters of the last document, from which rates are computed. */
struct pl_top_rates {
	json_t *before; /* identity -> counter; NULL: none yet */
	uint64_t before_ns;
	double seconds; /* between the last two */
};
void pl_top_rates_done(struct pl_top_rates *rates);

/* Adds a member "rate" to every row that the last document had, sorts by it if `by_rate`, and keeps
 * the counters. To be called once for each document. */
void pl_top_rates_apply(struct pl_top_rates *rates, const struct pl_top_screen *screen, json_t *doc,
	bool by_rate, bool descending);

/* Append a line without its end, at most `cols` columns; `ascii`: with ASCII characters only. */
void pl_top_titles(struct pl_buf *out, const struct pl_top_screen *screen, unsigned int sort,
	bool descending, unsigned int cols);
void pl_top_row(struct pl_buf *out, const struct pl_top_screen *screen, const json_t *row,
	unsigned int cols, bool ascii);

/* Appends "12 of 40": matching rows, all rows; then the number of values without rows. */
void pl_top_counts(struct pl_buf *out, const struct pl_top_screen *screen, const json_t *table);

/* Cuts the text to this number of columns. */
void pl_top_cut(char *text, unsigned int cols);

/* Append the two lines about the whole daemon; `before` is an older status or NULL. */
void pl_top_head(struct pl_buf *out, const json_t *status, const char *url, unsigned int cols);
void pl_top_sums(struct pl_buf *out, const json_t *status, const json_t *before, unsigned int cols);
