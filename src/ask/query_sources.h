/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of a question: those that go together are read, each in its way, into its run.
 * Taps, captures and files of records, topics, regions, histories, daemons and ports of reports.
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
	struct pl_query_into *into;   /* rows go there; NULL: to standard output, in a form */
	struct pl_query_chart *chart; /* that form is a chart */
	bool live, reports;           /* reports: they arrive */
	/* Of capture files, each with a partition of its own and its records in the order of their
	 * times: how many there are, the tap that reads them, and the last record of each but for
	 * flows, which come later. */
	size_t captures;
	const struct pl_tap_service *tap;
	uint64_t newest_ns[PL_TAP_PORTS_MAX];
	bool ended[PL_TAP_PORTS_MAX];
	enum pl_flat_kind topic_kind;
	struct pl_clocks clocks; /* of the records' times */
};

/* A service (runtime/runtime.h) has its records: ports, captures and topics. */
bool pl_query_is_served(const struct pl_asking *a, const char *source);
/* The question is asked as a member of a consumer group. */
bool pl_query_is_member(const struct pl_asking *a, const char *const *sources, size_t n);

/* The number of kinds of a tap's records that the question reads; *ret is the first of them. */
int pl_query_kinds_read(const struct pl_asking *a, enum pl_flat_kind *ret);
/* Whether packets have all that the question reads; complains. */
bool pl_query_made_of_packets(const struct pl_query *query);

/* Sources that do not go together, or with the question or its options, are told. 0, or an exit
 * code. */
int pl_query_sources_check(struct pl_asking *a, const char *const *sources, size_t n);

/* How many partitions a run needs for them. */
uint32_t pl_query_sources_partitions(
	const struct pl_asking *a, const char *const *sources, size_t n);

/* Feeds the run with all their records. 0, or an exit code; complains. */
int pl_query_sources_read(struct pl_asking *a, const char *const *sources, size_t n);
