/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints rows of named values on standard output in a form: aligned columns (table; wide with all
 * of them), a JSON array, JSON lines, CSV (RFC 4180, bare line feeds), or text (name=value).
 * Numbers are given as text and become numbers in JSON; an absent value has no key, is "-" in a
 * table and an empty field in CSV.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "show/record_out.h"

struct pl_column {
	const char *name;
	int width;   /* table: least characters; negative: flush left */
	bool number; /* JSON: without quotes */
	bool wide;   /* left out of the form table */
	bool flag;   /* "yes" or "no"; JSON: true or false */
};

struct pl_row_out {
	enum pl_out_form form;
	const struct pl_column *columns; /* borrowed */
	unsigned int n;
	uint64_t rows;
	bool gone; /* the reader of standard output is gone */
	int error; /* negative errno of the first failed write */
	struct pl_buf buf;
};

/* Begins the output. form: one of pl_out_forms. */
void pl_row_out_init(
	struct pl_row_out *out, const char *form, const struct pl_column *columns, unsigned int n);

/* Adds a row: a text for each column, NULL for an absent value. */
void pl_row_out_add(struct pl_row_out *out, const char *const *values);

/* Writes the gathered rows. */
void pl_row_out_write(struct pl_row_out *out);

/* Ends the output: closes the array, if one is open, writes and frees. When writing failed, prints
 * the error and returns false. */
bool pl_row_out_end(struct pl_row_out *out);

/* Returns true when no more is to be written. */
static inline bool pl_row_out_full(const struct pl_row_out *out)
{
	return out->gone || out->error != 0;
}
