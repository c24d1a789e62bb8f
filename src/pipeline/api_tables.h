/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the API: its tables and their rows, and what its files share. */
#pragma once

#include <stddef.h>

#include "pipeline/api.h"
#include "pipeline/state.h"

/* A column: member, form, presence mask (0 = always), unit, help. Its name is the member's. */
#define PL_API_COLUMN(st, member, f, has, u, h)                                                    \
	{                                                                                          \
		.name = #member, .unit = (u), .help = (h), .offset = offsetof(struct st, member),  \
		.form = PL_FORM_##f, .present = (has)                                              \
	}
#define PL_API_COUNT(list) (sizeof(list) / sizeof((list)[0]))

#define PL_API_ROW_MAX     1024 /* bytes of the largest row */

/* What a table is walked with. `rows` is for tables that are gathered first. */
struct pl_api_walk {
	struct pl_pipeline *pipeline; /* its lock is held, its snapshot fresh; NULL: `records` */
	struct pl_watch *live;        /* may be NULL */
	const struct pl_api_records *records;
	const struct pl_aggregate *aggregate; /* of one or the other */
	const struct pl_api_table *table;
	uint32_t pos;
	void *rows; /* heap; freed by the caller */
	size_t n_rows;
	struct pl_core_units units; /* set by begin of what is made of the aggregate */
	uint64_t overflow;          /* set by begin: readings that found no row of their own */
};

struct pl_api_table {
	const char *name, *help;
	const struct pl_field *fields;
	size_t n_fields;
	size_t row_size;
	const char *sort;                       /* the order without one asked for */
	bool flows;                             /* needs the workers' top flows in the snapshot */
	bool recorded;                          /* struct pl_api_records has it */
	enum pl_agg_table cells;                /* of those that are made of the aggregate */
	int (*begin)(struct pl_api_walk *walk); /* NULL: nothing to do. -ENOMEM */
	bool (*next)(struct pl_api_walk *walk,
		void *row); /* false behind the last; row is zeroed before */
};

/* Every row begins with this. */
struct pl_api_row {
	uint32_t present;
};

/* api_regions.c */
extern const struct pl_api_table pl_api_table_regions, pl_api_table_values;

/* api_flows.c, api_drops.c */
extern const struct pl_api_table pl_api_table_flows, pl_api_table_drops;

/* All of them. */
extern const struct pl_api_table *const pl_api_tables[];
extern const unsigned int pl_api_n_tables;

/* api.c: why there is no answer, by its words and status. */
int pl_api_no_memory(struct pl_api_problem *problem); /* -ENOMEM */
/* r: what pl_pipeline_snapshot returned, and what this one does. */
int pl_api_no_snapshot(int r, struct pl_api_problem *problem);

/* api_tables.c: readings of the aggregate's table that found no row of their own. */
uint64_t pl_api_overflow(const struct pl_api_walk *walk, enum pl_agg_table table);
