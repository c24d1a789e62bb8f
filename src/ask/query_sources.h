/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the sources of a question into its run, each in its way: taps, captures and files of
 * records, topics, regions, histories, daemons and ports of reports. Checks that sources can be
 * combined.
 */
#pragma once

#include "ask/query_chart.h"
#include "ask/query_into.h"
#include "ask/query_sql.h"
#include "query/query.h"
#include "record/clocks.h"
#include "service/tap.h"
#include "show/query_out.h"

struct pl_asking {
	const struct pl_query_sql *args;
	struct pl_query *query;
	struct pl_query_run *run;
	struct pl_query_out rows;
	struct pl_query_into *into;   /* output of rows; NULL: standard output */
	struct pl_query_chart *chart; /* set when the form is a chart */
	bool live, reports;           /* reports: telemetry reports arrive */
	bool told_full;               /* that there is no room for further groups */
	/* Capture files, each with a partition of its own and records in the order of their times:
	 * number of files, the tap that reads them, and time of the last record of each; not of
	 * flows, which come later. */
	size_t captures;
	const struct pl_tap_service *tap;
	uint64_t newest_ns[PL_TAP_PORTS_MAX];
	bool ended[PL_TAP_PORTS_MAX];
	enum pl_flat_kind topic_kind;
	struct pl_clocks clocks; /* of the records' times */
};

/* Returns true when a service (runtime/runtime.h) reads the source: ports, captures and topics. */
bool pl_query_is_served(const struct pl_asking *a, const char *source);
/* Returns true when the question is asked as a member of a consumer group. */
bool pl_query_is_member(const struct pl_asking *a, const char *const *sources, size_t n);

/* Returns the number of kinds of a tap's records that the question reads; *ret is the first of
 * them. */
int pl_query_kinds_read(const struct pl_asking *a, enum pl_flat_kind *ret);
/* Returns true when packets have everything that the question reads; else prints the error. */
bool pl_query_made_of_packets(const struct pl_query *query);

/* Checks that sources can be combined, and suit the question and its options. Returns 0, or prints
 * the error and returns an exit code. */
int pl_query_sources_check(struct pl_asking *a, const char *const *sources, size_t n);

/* Returns the partitions that a run needs for the sources. */
uint32_t pl_query_sources_partitions(
	const struct pl_asking *a, const char *const *sources, size_t n);

/* Feeds all records of the sources to the run. Returns 0, or prints the error and returns an exit
 * code. */
int pl_query_sources_read(struct pl_asking *a, const char *const *sources, size_t n);
