/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outputs for the rows of a query, as a JSON object each (query/result_json.h):
 *
 *   file:PATH                          a line each, added to the file
 *   kafka://HOST[:PORT],…/TOPIC[?spool=FOLDER&spool_bytes=SIZE&…]
 *                                      a message each, with the key of its group (kafka/uri.h);
 *                                      with a spool, rows that no broker takes wait on disk
 *
 * or by their columns, with the keys of taps (tapout/tap_influx.c, tap_clickhouse.c) but for kind=:
 *
 *   influx://HOST[:PORT]/DATABASE[?series=GROUPS&…]
 *                                      a line each (export/influx_rows.h)
 *   clickhouse://HOST[:PORT]/TABLE[?…] a row each (export/clickhouse_rows.h)
 *
 * An output never waits for its receiver. The rows it got are those it delivered, those that wait,
 * and those it dropped, by cause (result_stats.def). One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "query/query.h"
#include "runtime/confine.h"

#define PL_RESULT_FILE       "file:"
#define PL_RESULT_INFLUX     "influx://"
#define PL_RESULT_CLICKHOUSE "clickhouse://"

struct pl_result_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/result_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_result_stats_list;

/* Sum of the rows drop_*. */
uint64_t pl_result_lost(const struct pl_result_stats *stats);

struct pl_result_out;

/* A row, and its JSON object with the key of its group, which is empty when the row has no
 * group. */
struct pl_result_item {
	const struct pl_query *query;
	const char *name; /* of the query */
	const struct pl_query_row *row;
	const char *key, *line;
	size_t key_len, len;
};

/* Functions of one kind of output; for result_out.c. */
struct pl_result_driver {
	int (*check)(const char *uri, const struct pl_query *query, struct pl_diag *diag);
	int (*files)(const char *uri, struct pl_confine *confine);
	int (*open)(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
		uint32_t wait_ms, struct pl_diag *diag);
	void (*put)(struct pl_result_out *out, const struct pl_result_item *item);
	uint64_t (*turn)(struct pl_result_out *out, uint64_t now_ns);
	bool (*settled)(struct pl_result_out *out, bool all);
	void (*mark)(struct pl_result_out *out);
	void (*reopen)(struct pl_result_out *out); /* NULL: nothing to do */
	bool (*failing)(const struct pl_result_out *out, struct pl_diag *ret); /* NULL: never */
	void (*finish)(struct pl_result_out *out, uint32_t wait_ms);
	void (*close)(struct pl_result_out *out);
};

/* First member of the structure of its kind. */
struct pl_result_out {
	const struct pl_result_driver *driver;
	char *name; /* the URI without its keys, which may be secret */
	struct pl_result_stats stats;
	uint64_t refused; /* rows that could not be made, part of stats.drop_failed */
};

/* Returns the driver of the URI's kind; NULL: there is none. */
const struct pl_result_driver *pl_result_out_driver(const char *uri);
/* Checks that there is a kind, and that it has a form for the columns of the query; opens nothing.
 * -EINVAL with diag. */
int pl_result_out_check(const char *uri, const struct pl_query *query, struct pl_diag *diag);
/* Lists the files that the output will open, before privileges are given up. Negative errno. */
int pl_result_out_files(const char *uri, struct pl_confine *confine);

/* Opens an output. wait_ms: longest time for a broker to describe the topic; 0: no request is made
 * now. Negative errno with diag. */
int pl_result_out_open(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag);
/* Returns true when an output that is open for one query takes the rows of another one. */
bool pl_result_out_fits(
	const char *uri, const struct pl_query *query, const struct pl_query *other);
/* Takes a row, copied. */
void pl_result_out_put(struct pl_result_out *out, const struct pl_result_item *item);
/* Counts a row that could not be made. */
void pl_result_out_refuse(struct pl_result_out *out);
/* Sends rows that wait. Returns the time of the next call; UINT64_MAX: none is needed. now_ns is
 * monotonic. */
uint64_t pl_result_out_turn(struct pl_result_out *out, uint64_t now_ns);
/* Returns true when the rows from before the last mark, or all of them, are where a crash of the
 * process does not reach them (delivered, in the file or on the spool's disk), or were dropped
 * while it was open. When those from before the last mark are, another mark may be set. */
bool pl_result_out_settled(struct pl_result_out *out, bool all);
void pl_result_out_mark(struct pl_result_out *out);
/* Returns true when its receiver takes nothing at the moment, and writes why. */
bool pl_result_out_failing(const struct pl_result_out *out, struct pl_diag *ret);
/* Reads credentials again, and at once retries what waited for an operator (SIGHUP). */
void pl_result_out_reopen(struct pl_result_out *out);
/* Sends the rows that wait, for wait_ms at most; then none waits, and none may be put. */
void pl_result_out_finish(struct pl_result_out *out, uint32_t wait_ms);
void pl_result_out_close(struct pl_result_out *out); /* NULL is allowed */

extern const struct pl_result_driver pl_result_topic;  /* result_topic.c */
extern const struct pl_result_driver pl_result_server; /* result_server.c */
/* Writes the spool's folder in a URI into `ret`; empty: none. */
void pl_result_topic_spool(const char *uri, char *ret, size_t cap);
