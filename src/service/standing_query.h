/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A standing query: its run over the records that its source gives, and where rows of its result
 * go. For standing.c, standing_out.c and standing_series.c.
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

#define PL_STANDING_LIMITS  4096 /* groups that were told, remembered at a time */
#define PL_STANDING_FILES   8
#define PL_STANDING_COLUMNS 8 /* with gauges */

struct pl_standing_stats {
#define PL_STAT PL_STAT_MEMBER
#include "service/standing_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_standing_stats_list;

/* A topic, or a server, that rows go to. At a reload the output goes on for whoever has the same URI. */
struct pl_standing_to_topic {
	char *uri;
	struct pl_result_out *out;         /* NULL: not opened, or to be taken over */
	struct pl_standing_to_topic *from; /* that it is to be taken over from */
	bool claimed;                      /* another one is to take it over */
};

/* Where rows go. */
struct pl_standing_outs {
	bool events, metrics, log;
	int value; /* column; -1: none */
	struct pl_line_file files[PL_STANDING_FILES];
	unsigned int n_files;
	struct pl_standing_to_topic topics[PL_STANDING_FILES];
	unsigned int n_topics;
	struct pl_standing_series *series; /* NULL: no gauges */
};

struct pl_standing_query;

/* A tap, a topic, or a stream of the collector. Each has partitions of its own in the run, so that
 * neither makes the other's records late. */
struct pl_standing_source {
	char *from;
	int tap; /* -1: none */
	unsigned int
		stream; /* of the collector: paths, hops, events or values; PL_QUERY_STREAMS: none */
	uint32_t partition;     /* the first */
	enum pl_flat_kind kind; /* of a topic */
	struct pl_query_run *run;
	struct pl_standing_query *query;
	uint64_t open_by_ns; /* the query's */
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
	char *group; /* with rows; NULL: none */
	uint64_t groups, lateness_ns, ahead_ns;
	struct pl_standing_source sources[PL_CONFIG_FROM_MAX];
	unsigned int n_sources;
	struct pl_query *query;
	struct pl_query_run *run;
	uint64_t open_by_ns;           /* topics may be asked for until then (monotonic); 0: 10 s */
	bool reads_rows;               /* its topic has rows; the run gets nothing */
	struct pl_standing_rows *rows; /* NULL: not open, or records */
	bool stays;                    /* while a reload plans */
	bool alerts;                   /* its rows are events, as it was made */
	bool leaves;                   /* a reload takes it away: nothing is waited for */
	struct pl_clocks clocks;       /* of the records of its taps and topics */
	bool counted;                  /* its tap counts packets for it in the kernel */
	uint64_t pushed_told;          /* stats.in_kernel, as the log was told last */
	struct pl_standing_outs outs;
	bool keys[PL_QUERY_ITEMS_MAX];
	int src, dst, sport, dport, proto, address; /* columns; -1: none */
	struct pl_standing_limit *limits;           /* PL_STANDING_LIMITS */
	struct pl_standing_stats stats;
	struct pl_buf key, line; /* of a row */
	/* Takes events; how many found room. */
	uint32_t (*put)(void *arg, const struct pl_event *events, uint32_t n);
	void *arg;
};

/* ---- standing_out.c ---- */

/* Where they go, as the configuration says it; opens nothing. What was made is to be closed also on
 * failure. Negative errno with diag. */
int pl_standing_outs_make(struct pl_standing_outs *ret, const struct pl_config_query *config,
	const struct pl_query *query, struct pl_diag *diag);
/* Opens files, topics and servers, but for those that one of the n queries has open: these are taken over.
 * As above. */
int pl_standing_outs_open(struct pl_standing_outs *outs, const struct pl_query *query,
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag);
/* Nothing is to be taken over from these queries. */
void pl_standing_outs_unclaim(struct pl_standing_query *const *queries, unsigned int n);
/* Takes over the topics that are to be. */
void pl_standing_outs_take_over(struct pl_standing_outs *outs);
/* Takes over the gauges of the old ones, where both have some of as many groups. */
void pl_standing_outs_keep(struct pl_standing_outs *outs, struct pl_standing_outs *old);
/* Writes what waits, first; q is NULL where nothing does. */
void pl_standing_outs_close(struct pl_standing_query *q, struct pl_standing_outs *outs);
/* Which columns say what an event has; makes room. -ENOMEM. */
int pl_standing_look(struct pl_standing_query *q);
void pl_standing_take_row(void *query, const struct pl_query_row *row);
/* A row that came as this message, a line without its end. */
void pl_standing_take_message(struct pl_standing_query *q, const struct pl_query_row *row,
	const char *message, size_t len);
/* Writes the lines that wait. */
void pl_standing_write(struct pl_standing_query *q);
/* Turns of the topics; when the next one is due. */
uint64_t pl_standing_outs_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Whether the rows from before the last mark, or all of them, are in the files and topics
 * (result_out.h); then there may be another mark. */
bool pl_standing_outs_settled(struct pl_standing_query *q, bool all);
void pl_standing_outs_mark(struct pl_standing_query *q);
/* After the last row: topics get all that waits, until then (monotonic). */
void pl_standing_outs_finish(struct pl_standing_outs *outs, uint64_t until_ns);
/* Lets go of the files and opens them by name again. */
void pl_standing_reopen(struct pl_standing_query *q);

/* ---- standing_series.c: gauges of the rows of the latest window ---- */

int pl_standing_series_new(
	struct pl_standing_series **ret, const struct pl_query *query, uint64_t max); /* -ENOMEM */
void pl_standing_series_free(struct pl_standing_series *series);
uint64_t pl_standing_series_max(const struct pl_standing_series *series);
/* `key` names the group. Whether it has gauges. */
bool pl_standing_series_put(
	struct pl_standing_series *series, const char *key, const struct pl_query_row *row);
/* Samples of the family that is open. */
void pl_standing_series_page(
	const struct pl_standing_series *series, const char *query, struct pl_exposition *page);
