/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a row for show/row_out.h as text. As zeros, all are absent. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/addr.h"
#include "record/put.h"

#define PL_ROW_CELLS_MAX              40 /* columns of a row */
#define PL_ROW_CELL_BYTES             64

/* Of a list of columns, COLUMN(number, members of struct pl_column), makes their numbers and table. */
#define PL_COLUMN_NUMBER(number, ...) number,
#define PL_COLUMN_ROW(number, ...)    { __VA_ARGS__ },
#define PL_COLUMNS(LIST)                                                                           \
	enum column { LIST(PL_COLUMN_NUMBER) COLUMNS };                                            \
	_Static_assert(COLUMNS <= PL_ROW_CELLS_MAX, "a row has room for its columns");             \
	static const struct pl_column columns[COLUMNS] = { LIST(PL_COLUMN_ROW) }

struct pl_row_cells {
	char texts[PL_ROW_CELLS_MAX][PL_ROW_CELL_BYTES];
	/* Texts for pl_row_out_add(); may be set to texts of the caller. */
	const char *values[PL_ROW_CELLS_MAX];
};

static inline void pl_row_cells_u64(struct pl_row_cells *c, unsigned int column, uint64_t value)
{
	snprintf(c->texts[column], PL_ROW_CELL_BYTES, "%" PRIu64, value);
	c->values[column] = c->texts[column];
}

static inline void pl_row_cells_s64(struct pl_row_cells *c, unsigned int column, int64_t value)
{
	snprintf(c->texts[column], PL_ROW_CELL_BYTES, "%" PRId64, value);
	c->values[column] = c->texts[column];
}

/* Sets a value with this number of significant digits. */
static inline void pl_row_cells_double(
	struct pl_row_cells *c, unsigned int column, int digits, double value)
{
	snprintf(c->texts[column], PL_ROW_CELL_BYTES, "%.*g", digits, value);
	c->values[column] = c->texts[column];
}

static inline void pl_row_cells_addr(
	struct pl_row_cells *c, unsigned int column, const struct pl_addr *addr)
{
	*put_addr(c->texts[column], addr) = '\0';
	c->values[column] = c->texts[column];
}
