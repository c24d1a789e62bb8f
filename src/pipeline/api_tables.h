/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the API, shared by its files: tables and their rows. */
#pragma once

#include <stddef.h>

#include "pipeline/api.h"
#include "pipeline/state.h"

/* A column: member, form, presence mask (0: always), unit, help. Its name is the member's. */
#define PL_API_COLUMN(st, member, f, has, u, h)                                                    \
	{                                                                                          \
		.name = #member, .unit = (u), .help = (h), .offset = offsetof(struct st, member),  \
		.form = PL_FORM_##f, .present = (has)                                              \
	}
#define PL_API_COUNT(list) (sizeof(list) / sizeof((list)[0]))

#define PL_API_ROW_MAX     1024 /* largest row, in bytes */

/* State of a walk over a table. `rows` is for tables that are collected first. */
struct pl_api_walk {
	struct pl_pipeline *pipeline; /* locked, with a fresh snapshot; NULL: `records` */
	struct pl_watch *live;        /* may be NULL */
	const struct pl_api_records *records;
	const struct pl_aggregate *aggregate; /* of pipeline or records */
	const struct pl_api_table *table;
	uint32_t pos;
	void *rows; /* heap; freed by the caller */
	size_t n_rows;
	struct pl_core_units units; /* set by begin of tables made from the aggregate */
	uint64_t overflow;          /* set by begin: readings without a row of their own */
};

struct pl_api_table {
	const char *name, *help;
	const struct pl_field *fields;
	size_t n_fields;
	size_t row_size;
	const char *sort;                       /* default order */
	bool flows;                             /* needs the workers' top flows in the snapshot */
	bool recorded;                          /* struct pl_api_records has it */
	enum pl_agg_table cells;                /* of tables made from the aggregate */
	int (*begin)(struct pl_api_walk *walk); /* NULL: nothing to do. -ENOMEM */
	bool (*next)(struct pl_api_walk *walk,
		void *row); /* false after the last; row is zeroed before */
};

/* First member of every row. */
struct pl_api_row {
	uint32_t present;
};

/* api_regions.c */
extern const struct pl_api_table pl_api_table_regions, pl_api_table_values;

/* api_flows.c, api_drops.c */
extern const struct pl_api_table pl_api_table_flows, pl_api_table_drops;

/* All tables. */
extern const struct pl_api_table *const pl_api_tables[];
extern const unsigned int pl_api_n_tables;

/* api.c: set status, code and text of a problem, and return the error. */
int pl_api_no_memory(struct pl_api_problem *problem); /* -ENOMEM */
/* r: the error of pl_pipeline_snapshot, which is returned. */
int pl_api_no_snapshot(int r, struct pl_api_problem *problem);

/* api_drops.c: returns the readings of an aggregate's table that found no row of their own. */
uint64_t pl_api_overflow(const struct pl_api_walk *walk, enum pl_agg_table table);
