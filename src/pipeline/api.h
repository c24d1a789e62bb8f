/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline's state as JSON documents, for the HTTP API and the terminal views. Tables (queues,
 * links, ports, paths, exporters, events, drops, flows, regions, values) are rows that a table of
 * struct pl_field describes; each is filtered by an expression over its columns, ordered by any
 * column and cut to the largest `limit`.
 *
 * {"time":…,"time_ns":"…","table":"queues","total":812,"matched":40,"overflow":0,"rows":[{…},…]}
 *
 * Counters are sums since the start: a client computes rates by differences. Everything is bounded:
 * at most PL_API_LIMIT_MAX rows, in memory for that many. Published copies are read; no packet
 * waits for it. Any thread.
 */
#pragma once

#include "detect/aggregate.h"
#include "export/watch.h"
#include "pipeline/pipeline.h"
#include "record/rows.h"

#define PL_API_LIMIT_DEFAULT 100
#define PL_API_LIMIT_MAX     1000

/* The reason why a request is refused. */
struct pl_api_problem {
	unsigned int status; /* of HTTP */
	const char *code;    /* stable, for programs: "bad_sort" */
	struct pl_diag diag; /* for people */
};

struct pl_api_query {
	const char
		*sort; /* a column; with "-" before it the largest first; NULL: the table's own */
	const char *where; /* NULL: all rows */
	uint64_t limit;    /* 0 = PL_API_LIMIT_DEFAULT */
};

struct pl_api_table;

/* Return the table of a name ("queues"), or the i-th; NULL when there is none. */
const struct pl_api_table *pl_api_table_find(const char *name);
const struct pl_api_table *pl_api_table_at(unsigned int i);
const char *pl_api_table_name(const struct pl_api_table *table);
const char *pl_api_table_help(const struct pl_api_table *table);
const struct pl_field *pl_api_table_fields(const struct pl_api_table *table, size_t *ret_n);

/* Checks a query without a pipeline. Returns 0, or -EINVAL with problem. */
int pl_api_check(const struct pl_api_table *table, const struct pl_api_query *query,
	struct pl_api_problem *problem);

/* Writes the document. Returns 0, or negative with problem: -EINVAL, -ESRCH (the collector does not
 * run), -ENOMEM. */
int pl_api_table_write(struct pl_pipeline *pipeline, struct pl_watch *live,
	const struct pl_api_table *table, const struct pl_api_query *query, struct pl_buf *out,
	struct pl_api_problem *problem);

/* Source of tables without a pipeline: stored records, such as those of a history. */
struct pl_api_records {
	const struct pl_aggregate *aggregate; /* queues, links, ports, paths */
	uint64_t now_ns;                      /* time of the document */
	const struct pl_event *events;
	size_t n_events;
	uint64_t events_before; /* number of events before these */
};

/* As pl_api_table_write; -EINVAL with problem also for tables that cannot be made from records. */
int pl_api_records_write(const struct pl_api_records *records, const struct pl_api_table *table,
	const struct pl_api_query *query, struct pl_buf *out, struct pl_api_problem *problem);

/* Contributions of all parts of the process to a status; called without the pipeline's lock. */
struct pl_api_parts {
	/* Adds elements to an open array (base/condition.h). Returns true when none is a fault. */
	bool (*conditions)(void *arg, struct pl_json *json);
	/* Adds members to an open object: counters of each part but the collector, in words. */
	void (*accounts)(void *arg, struct pl_json *json);
	void *arg;
};

/* Writes the status: version, uptime, conditions, readiness, sources, workers, verdicts, outputs
 * with their accounts, other parts, streams. Returns as above. */
int pl_api_status_write(struct pl_pipeline *pipeline, struct pl_watch *live,
	const struct pl_api_parts *parts, struct pl_buf *out, struct pl_api_problem *problem);
