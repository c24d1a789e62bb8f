/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A standing query: its run over the records of its sources, and the outputs of its rows. For
 * standing.c, standing_out.c and standing_series.c.
 */
#pragma once

#include <sys/types.h>

#include "base/line_file.h"
#include "base/stats.h"
#include "export/exposition.h"
#include "pipeline/config.h"
#include "query/query.h"
#include "record/clocks.h"
#include "record/record.h"
#include "tapout/result_out.h"
#if PL_HAVE_KAFKA
#include "service/kafka_source.h"
#endif

#define PL_STANDING_LIMITS  4096 /* groups whose last event is remembered */
#define PL_STANDING_FILES   8
#define PL_STANDING_COLUMNS 8 /* most columns shown as gauges */

struct pl_standing_stats {
#define PL_STAT PL_STAT_MEMBER
#include "service/standing_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_standing_stats_list;

/* A topic, or a server, as an output. A reload keeps it for a query with the same URI. */
struct pl_standing_to_topic {
	char *uri;
	struct pl_result_out *out;         /* NULL: not open, or still to be taken over */
	struct pl_standing_to_topic *from; /* the one to take `out` over from; NULL: none */
	bool claimed;                      /* another one will take `out` over */
};

/* Outputs for rows. */
struct pl_standing_outs {
	bool events, metrics, log;
	int value; /* column of the value; -1: none */
	struct pl_line_file files[PL_STANDING_FILES];
	unsigned int n_files;
	struct pl_standing_to_topic topics[PL_STANDING_FILES];
	unsigned int n_topics;
	struct pl_standing_series *series; /* NULL: no gauges */
};

struct pl_standing_query;

/* A tap, a topic, or a stream of the collector. Each has partitions of its own in the run, so that
 * no source makes records of another one late. */
struct pl_standing_source {
	char *from;
	int tap; /* index of the tap; -1: none */
	unsigned int
		stream; /* of the collector: paths, hops, events or values; PL_QUERY_STREAMS: none */
	uint32_t partition;     /* its first partition in the run */
	enum pl_flat_kind kind; /* kind of a topic's records */
	struct pl_query_run *run;
	struct pl_standing_query *query;
	uint64_t open_by_ns; /* as the query's */
	bool alerts;
#if PL_HAVE_KAFKA
	struct pl_kafka_source_options options;
	struct pl_kafka_source topic;
#endif
};

struct pl_standing_limit;
struct pl_standing_rows;

struct pl_standing_query {
	char *name, *text;
	char *group; /* consumer group of a topic of rows; NULL: none */
	uint64_t groups, lateness_ns, ahead_ns;
	struct pl_standing_source sources[PL_CONFIG_FROM_MAX];
	unsigned int n_sources;
	struct pl_query *query;
	struct pl_query_run *run;
	uint64_t open_by_ns;           /* until when topics are waited for (monotonic); 0: 10 s */
	bool reads_rows;               /* its source is a topic of rows; the run gets no records */
	struct pl_standing_rows *rows; /* NULL: not open, or the source has records */
	bool stays;                    /* while a reload plans */
	bool alerts;                   /* rows become events, as configured at first */
	bool leaves;                   /* removed by a reload: nothing is waited for */
	struct pl_clocks clocks;       /* clocks of its taps' and topics' records */
	bool counted;                  /* its tap counts packets for it in the kernel */
	uint64_t pushed_told;          /* stats.in_kernel as logged last */
	uint64_t restarts_told;        /* the run's restarts as logged last */
	bool back_told;                /* it is logged that times went back */
	struct pl_standing_outs outs;
	bool keys[PL_QUERY_ITEMS_MAX];
	int src, dst, sport, dport, proto, address; /* columns; -1: none */
	struct pl_standing_limit *limits;           /* PL_STANDING_LIMITS */
	struct pl_standing_stats stats;
	struct pl_buf key, line; /* of the present row */
	/* Takes events; returns how many it took. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
};

/* ---- standing_memory.c ---- */

/* Makes a run as configured; its rows go to `to`. Returns negative errno with diag. */
int pl_standing_run_new(struct pl_query_run **ret, const struct pl_query *query,
	const struct pl_config_query *config, uint32_t partitions, struct pl_standing_query *to,
	struct pl_diag *diag);
/* Checks that the queries together have room in this machine's memory. Returns -EINVAL with diag. */
int pl_standing_check_memory(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag);

/* ---- standing_out.c ---- */

/* Checks an output of a configured query, as pl_result_out_check. */
int pl_standing_check_out(const struct pl_config_query *config, const struct pl_query *query,
	const char *to, struct pl_diag *diag);
/* Makes the outputs as configured; opens nothing. To be closed also on failure. Returns negative
 * errno with diag. */
int pl_standing_outs_make(struct pl_standing_outs *ret, const struct pl_config_query *config,
	const struct pl_query *query, struct pl_diag *diag);
/* Opens files, topics and servers, except for those that one of the n queries has open: these are
 * marked to be taken over. Returns negative errno with diag. */
int pl_standing_outs_open(struct pl_standing_outs *outs, const struct pl_query *query,
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag);
/* Withdraws all claims on topics of these queries. */
void pl_standing_outs_unclaim(struct pl_standing_query *const *queries, unsigned int n);
/* Takes over the topics that were claimed. */
void pl_standing_outs_take_over(struct pl_standing_outs *outs);
/* Takes over the old gauges if both have some, with the same maximum of groups. */
void pl_standing_outs_keep(struct pl_standing_outs *outs, struct pl_standing_outs *old);
/* Writes waiting lines first, unless q is NULL. */
void pl_standing_outs_close(struct pl_standing_query *q, struct pl_standing_outs *outs);
/* Finds the columns that an event shows, and allocates `limits`. Returns -ENOMEM. */
int pl_standing_look(struct pl_standing_query *q);
void pl_standing_take_row(void *query, const struct pl_query_row *row);
/* Takes a row that came as this message, a line without its end. */
void pl_standing_take_message(struct pl_standing_query *q, const struct pl_query_row *row,
	const char *message, size_t len);
/* Writes waiting lines. */
void pl_standing_write(struct pl_standing_query *q);
/* Runs turns of the topics. Returns the time of the next one. */
uint64_t pl_standing_outs_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Returns whether the rows before the last mark (`all`: all rows) are in files and topics
 * (result_out.h); then another mark may be set. */
bool pl_standing_outs_settled(struct pl_standing_query *q, bool all);
void pl_standing_outs_mark(struct pl_standing_query *q);
/* To be called after the last row: topics deliver until this time (monotonic). */
void pl_standing_outs_finish(struct pl_standing_outs *outs, uint64_t until_ns);
/* Closes the files and opens them by name again. */
void pl_standing_reopen(struct pl_standing_query *q);

/* ---- standing_series.c: gauges of the rows of the latest window ---- */

int pl_standing_series_new(
	struct pl_standing_series **ret, const struct pl_query *query, uint64_t max); /* -ENOMEM */
void pl_standing_series_free(struct pl_standing_series *series);
uint64_t pl_standing_series_max(const struct pl_standing_series *series);
/* Sets the gauges of the group `key`. Returns false when there is no room for it. */
bool pl_standing_series_put(
	struct pl_standing_series *series, const char *key, const struct pl_query_row *row);
/* Writes the samples of the open family. */
void pl_standing_series_page(
	const struct pl_standing_series *series, const char *query, struct pl_exposition *page);
