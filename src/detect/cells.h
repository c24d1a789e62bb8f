/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues, ports, links and paths as rows of columns (cells.def): the metrics page, the API and
 * series read a cell of the aggregate by this one code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/detect_state.h"
#include "detect/aggregate.h"
#include "record/record.h"

enum pl_column_kind { PL_COLUMN_KEY, PL_COLUMN_COUNTER, PL_COLUMN_GAUGE, PL_COLUMN_SHOWN };

/* A column of cells.def; its name, unit and help are in the field of the same number. */
struct pl_column {
	uint8_t kind; /* enum pl_column_kind */
	bool other;
	const char *field, *family, *label, *text;
};

#define PL_CELL_COLUMNS_MAX 16
#define PL_CELL_KEYS_MAX    4

/* A cell as a row: it begins as every row of the API does. Column i is present when bit i of
 * `present` is set. Pointers lead into the cell. */
struct pl_cell {
	uint32_t present;
	uint32_t zero;
	uint64_t value[PL_CELL_COLUMNS_MAX];
	char nodes[PL_PATH_STEPS_MAX * 21 + 8];
	const struct pl_hist *delays; /* NULL: the table has none */
	const struct pl_exemplar_gate *delays_gate;
	const struct pl_exemplars *delays_exemplars;
	const struct pl_agg_jitter *jitter; /* NULL: likewise, or the overflow cell */
	const struct pl_hist *depths;       /* likewise */
	const struct pl_exemplar_gate *depths_gate;
	const struct pl_exemplars *depths_exemplars;
};

/* Index of each column in the whole list, and of each table's first one. */
enum {
#define PL_CELL_KEY(table, name, ...)    PL_CELL_AT_##table##_##name,
#define PL_CELL_NUMBER(table, name, ...) PL_CELL_AT_##table##_##name,
#define PL_CELL_SHOWN(table, name, ...)  PL_CELL_AT_##table##_##name,
#include "detect/cells.def"
#undef PL_CELL_KEY
#undef PL_CELL_NUMBER
#undef PL_CELL_SHOWN
	PL_CELL_COLUMNS,
	PL_CELL_FIRST_queue = PL_CELL_AT_queue_node,
	PL_CELL_FIRST_port = PL_CELL_AT_port_node,
	PL_CELL_FIRST_link = PL_CELL_AT_link_node,
	PL_CELL_FIRST_path = PL_CELL_AT_path_path_id,
};
/* The columns as fields of struct pl_cell. */
extern const struct pl_field pl_cell_fields[PL_CELL_COLUMNS];

struct pl_cell_table {
	const char *name; /* of its series: "queue" */
	const struct pl_column *columns;
	const struct pl_field *fields; /* part of pl_cell_fields */
	size_t n;
	/* Families of its histograms and jitter, with their helps; NULL: none. */
	const char *delays, *delays_help, *jitter, *jitter_help, *depths, *depths_help;
};

/* By enum pl_agg_table. */
extern const struct pl_cell_table pl_cell_tables[PL_AGG_TABLE_MAX];

/* Returns the next cell from *pos on, NULL after the last; or the overflow cell, NULL if empty. */
const void *pl_cell_next(const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t *pos);
const void *pl_cell_overflow(const struct pl_aggregate *agg, enum pl_agg_table table);

/* Reads a cell; `other`: it is the overflow cell, whose key is to be ignored. */
void pl_cell_read(struct pl_cell *ret, const struct pl_aggregate *agg, enum pl_agg_table table,
	const void *cell, bool other, const struct pl_core_units *units);

/* Adds the expensive columns, of kind SHOWN: those of delays, and the nodes of a path. */
void pl_cell_add_shown(struct pl_cell *ret, enum pl_agg_table table, const void *cell);

/* Writes the nodes of a path, source first: "3>7>12". */
void pl_cell_path_nodes(const struct pl_agg_path *path, char *dst, size_t cap);
