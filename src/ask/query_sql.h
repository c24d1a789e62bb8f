/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question over records (query/query.h) of captures, interfaces, remote taps and files of
 * records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_decode_options;
struct pl_opt_list;
struct pl_client_args;

#define PL_QUERY_CHART "chart"

struct pl_query_sql {
	const char *form; /* one of pl_out_forms, or PL_QUERY_CHART; NULL: table */
	uint64_t count;   /* rows; 0: all */
	bool inner, stats;
	const char *into; /* an output, as in INTO of the question; NULL: none */
	const struct pl_decode_options *decode; /* for captures and ports with telemetry */
	bool decode_given;                      /* some options of it are not the default */
	const struct pl_client_args *client;    /* for asking a daemon */
	bool no_push_down;                      /* no rules for the tap in the kernel */
	const struct pl_opt_list *rules;        /* for the tap that makes the records, as texts */
	const char *export;   /* a dialect of pl_query_dialect_name(); NULL: none */
	uint64_t lateness_ns; /* PL_OPT_NOT_GIVEN: the default */
	uint64_t ahead_ns;    /* likewise */
	uint64_t groups;      /* 0: the default */
	uint64_t duration_ns;
	const char *user, *group; /* with a topic, `group` is the consumer group */
	/* for a member of a group */
	const char *to, *partials;
	const char *web; /* address of its page; NULL: none */
	bool transactions;
	uint64_t idle_ns; /* PL_OPT_NOT_GIVEN: the default */
};

/* Answers the question. Returns an exit code; prints errors. */
int pl_query_sql(const struct pl_query_sql *args, const char *question, const char *const *sources,
	size_t n);
