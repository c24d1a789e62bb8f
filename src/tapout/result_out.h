/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the rows of a query go, as a JSON object (query/result_json.h):
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
 * An output never waits for its receiver. What it got is what it delivered, what waits, and what it
 * dropped, by cause (result_stats.def). One thread at a time.
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

/* A row, and the same as a JSON object with its group's key, which may be empty: the row is of no
 * group. */
struct pl_result_item {
	const struct pl_query *query;
	const char *name; /* of the query */
	const struct pl_query_row *row;
	const char *key, *line;
	size_t key_len, len;
};

/* One of the kinds above; for result_out.c. */
struct pl_result_driver {
	int (*check)(const char *uri, const struct pl_query *query, struct pl_diag *diag);
	int (*files)(const char *uri, struct pl_confine *confine);
	int (*open)(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
		uint32_t wait_ms, struct pl_diag *diag);
	void (*put)(struct pl_result_out *out, const struct pl_result_item *item);
	uint64_t (*turn)(struct pl_result_out *out, uint64_t now_ns);
	bool (*settled)(struct pl_result_out *out, bool all);
	void (*mark)(struct pl_result_out *out);
	void (*reopen)(struct pl_result_out *out); /* NULL: there is nothing to do */
	bool (*failing)(const struct pl_result_out *out, struct pl_diag *ret); /* NULL: never */
	void (*finish)(struct pl_result_out *out, uint32_t wait_ms);
	void (*close)(struct pl_result_out *out);
};

/* Stands first in the structure of its kind. */
struct pl_result_out {
	const struct pl_result_driver *driver;
	char *name; /* its URI without keys, which may be secret */
	struct pl_result_stats stats;
	uint64_t refused; /* rows that could not be made, of stats.drop_failed */
};

/* Whether the text names one of the kinds; NULL: none. */
const struct pl_result_driver *pl_result_out_driver(const char *uri);
/* Whether it does, and the kind has a form for the columns of the query; opens nothing. -EINVAL with
 * diag. */
int pl_result_out_check(const char *uri, const struct pl_query *query, struct pl_diag *diag);
/* Files that it will open, to be told before rights are given up. Negative errno. */
int pl_result_out_files(const char *uri, struct pl_confine *confine);

/* wait_ms: how long a broker may take to tell of the topic; 0: it is not asked now. Negative errno
 * with diag. */
int pl_result_out_open(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag);
/* Whether an output that is open for one query takes the rows of another one. */
bool pl_result_out_fits(
	const char *uri, const struct pl_query *query, const struct pl_query *other);
/* A row, copied. */
void pl_result_out_put(struct pl_result_out *out, const struct pl_result_item *item);
/* A row that could not be made. */
void pl_result_out_refuse(struct pl_result_out *out);
/* Gives away what waits. When it is to be called next; UINT64_MAX: no need. now_ns is monotonic. */
uint64_t pl_result_out_turn(struct pl_result_out *out, uint64_t now_ns);
/* Whether the rows that were put before the last mark, or all of them, are where a crash does not
 * reach them: delivered, in the file or on the spool's disk; or dropped while it was open. Where
 * those before the last one are, there may be another mark. */
bool pl_result_out_settled(struct pl_result_out *out, bool all);
void pl_result_out_mark(struct pl_result_out *out);
/* Whether its receiver takes nothing at the moment, and why. */
bool pl_result_out_failing(const struct pl_result_out *out, struct pl_diag *ret);
/* Credentials are read anew, and what an operator had to mend is tried again at once (SIGHUP). */
void pl_result_out_reopen(struct pl_result_out *out);
/* Gives away all that waits, for so long at most; then nothing waits, and nothing is put. */
void pl_result_out_finish(struct pl_result_out *out, uint32_t wait_ms);
void pl_result_out_close(struct pl_result_out *out); /* NULL is allowed */

extern const struct pl_result_driver pl_result_topic;  /* result_topic.c */
extern const struct pl_result_driver pl_result_server; /* result_server.c */
/* The folder of the spool that a URI names, into `ret`; empty: none. */
void pl_result_topic_spool(const char *uri, char *ret, size_t cap);
