/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of queries (lang/lang.h): records are fed, and rows come out.
 *
 * Time is the records' own. The watermark of a partition is its greatest time less the lateness; a
 * window closes when the least watermark of the partitions reaches its end. It moves between
 * batches of up to 1024 records. Records that come later are counted and left out. If the run has a
 * clock (pl_query_clock), records too far ahead of it are left out as well, because one of them
 * would make all following records late. `ts` of a flow is the time of its last packet: the
 * lateness has to cover the idle timeout of the exporter of the flows, and half of it for a flow
 * cache that is fed from a capture (flow/cache.h).
 *
 * A join WITHIN joins records: a pair has equal keys, times at most that far apart, and satisfies
 * the rest of ON. Records wait, up to max_groups of each side, until the watermark is past the last
 * partner that a record of the left may have; then its pairs are given, or with LEFT and ANTI the
 * record alone. The time of a pair is that of its left record, and pairs come in that order,
 * whatever the order of the records. Windows of pairs close by that time later. A record that comes
 * behind the watermark is late; one without room is counted, and the rows whose times are near it
 * are incomplete.
 *
 * A window of SESSION belongs to a group: it goes from its first record to `gap` behind its last
 * one, and two records of a group are of one session when they are less than that apart. It closes
 * when the watermark reaches its end. Until then a record that is less than the gap from two
 * sessions merges them. A record is late when the watermark is a gap past it and no open session
 * takes it in.
 *
 * The engine owns no file, socket, thread or clock. A query is constant once parsed, and any number
 * of runs share it; a run is used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "lang/lang.h"
#include "record/packet.h"

#define PL_QUERY_BATCH 1024 /* largest number of records that are processed together */

/* A row of the result, with the query's columns. */
struct pl_query_row {
	const struct pl_query_value *values;
	uint32_t n;
	bool windowed; /* start and end are valid */
	bool final;    /* the window has closed; false: a first crossing, or a row of one record */
	/* Something of this window was left out because there was no room: groups, distinct values,
	 * rows. */
	bool incomplete;
	int64_t start_ns,
		end_ns; /* the window, [start, end); start of a HOP may be before the epoch */
	/* Earliest time of the records of the row; PL_QUERY_NO_TIME: no record. */
	uint64_t first_ns;
	/* Records that came too late for their windows since the last window closed: rows given
	 * before lack them. 0 in a row of one record. */
	uint64_t late;
	/* Observation points of the records of packets and flows in the row, in order; exp_more:
	 * there are others, because the run has had more than PL_QUERY_EXP_MAX. */
	const uint16_t *exp;
	uint32_t n_exp;
	bool exp_more;
};

#define PL_QUERY_NO_TIME UINT64_MAX
#define PL_QUERY_EXP_MAX 28

/* Takes a row, which is valid during the call. */
typedef void pl_query_sink(void *arg, const struct pl_query_row *row);

/* Configuration of a run; 0 in a member: the default in its comment. */
struct pl_query_config {
	/* 262144; groups over all open windows of a (sub-)query; waiting records of a side of a
	 * join */
	uint32_t max_groups;
	uint32_t max_distinct; /* 4 * max_groups; of one count(distinct) */
	/* Windows (HOP: panes) open at a time; by default as many as records in order and
	 * lateness_ns need, at most 65536. */
	uint32_t max_windows;
	uint32_t partitions; /* 1; partitions 0 to partitions - 1 are fed */
	/* 200 ms, and 25 s for a query that reads flows; PL_QUERY_NO_LATENESS: none */
	uint64_t lateness_ns;
	/* 5 s; time of pl_query_advance without a record after which a partition no longer holds
	 * windows open */
	uint64_t idle_ns;
	/* 1 min; largest distance of a record's time ahead of pl_query_clock's */
	uint64_t ahead_ns;
	uint64_t seed; /* pl_hash_seed(); seed of the tables */
	/* When the own time of all partitions that are not idle has gone back, so that all records
	 * have been late for idle_ns of pl_query_advance, the partitions restart: all windows
	 * close, and the watermark goes back to the times of the records. The same windows may come
	 * again. */
	bool restarts;
};

#define PL_QUERY_NO_LATENESS UINT64_MAX
#define PL_QUERY_AHEAD_NS    UINT64_C(60000000000) /* default of ahead_ns */

struct pl_query_stats {
#define PL_STAT PL_STAT_MEMBER
#include "query/stats.def"
#undef PL_STAT
};

extern const struct pl_stats pl_query_stats_list;

struct pl_query_run;

/* Makes a run and allocates memory for the limits of `config`. `query` is borrowed until the run is
 * freed. Returns -ENOMEM and -EINVAL with diag. */
int pl_query_run_new(struct pl_query_run **ret, const struct pl_query *query,
	const struct pl_query_config *config, pl_query_sink *sink, void *arg, struct pl_diag *diag);
void pl_query_run_free(struct pl_query_run *run);

/* Takes a record as it was fed, which is valid during the call. */
typedef void pl_query_record_sink(void *arg, const void *record);

/* Makes the run give records instead of rows: those that satisfy WHERE, up to LIMIT; `arg` is that
 * of the rows. Called before the first record. Returns -EINVAL when the query has groups, or reads
 * several streams. */
int pl_query_take_records(struct pl_query_run *run, pl_query_record_sink *sink);

/* Feeds n records of a stream, one behind the other, 8-byte aligned. Streams that the query does
 * not read are ignored. Returns -EINVAL when there is no such partition. */
int pl_query_feed(struct pl_query_run *run, unsigned int stream, const void *records, uint32_t n,
	uint32_t partition);

/* Feeds records as taps and files have them: whole for questions that read packets96 or flows288,
 * and as pkt64 and flow128, with which those begin, for questions that read packets or flows. As
 * pl_query_feed. */
int pl_query_feed_flat(struct pl_query_run *run, enum pl_flat_kind kind, const void *records,
	uint32_t n, uint32_t partition);

/* Feeds the paths and hops of a decoder. As pl_query_feed. */
int pl_query_feed_reports(
	struct pl_query_run *run, const struct pl_record_batch *batch, uint32_t partition);

/* Sets the wall clock, before records of a live source are fed: the clocks of exporters may be
 * wrong. Without it a record may have any time. */
void pl_query_clock(struct pl_query_run *run, uint64_t real_ns);

/* Tells that the partition's records of the stream up to this time, since the epoch, were fed, if
 * there were any: the watermark goes on without a record. Returns -EINVAL when there is no such
 * partition. */
int pl_query_passed(
	struct pl_query_run *run, unsigned int stream, uint64_t ts_ns, uint32_t partition);

/* Tells whether the partition has records of the stream that were not fed yet: such a partition is
 * not idle, however long none comes, as when much is stored and other partitions are read first.
 * Returns -EINVAL when there is no such partition. */
int pl_query_behind(struct pl_query_run *run, unsigned int stream, uint32_t partition, bool behind);

/* Tells that the partition has no more records of the stream: it holds back nothing. Returns
 * -EINVAL when there is no such partition. */
int pl_query_ended(struct pl_query_run *run, unsigned int stream, uint32_t partition);

struct pl_tap_count;

/* Feeds packets counted by key (core/tap_counts.h), by the query's plan for that
 * (lang/push_counts.h), beside records of other packets. Returns -EINVAL when the query has no such
 * plan. */
int pl_query_feed_counts(struct pl_query_run *run, const struct pl_tap_count *counts, uint32_t n);
/* On: only pl_query_passed moves the watermark, not times of records or an idle time: records are
 * given before counts of the same time. */
void pl_query_told(struct pl_query_run *run, bool on);

/*
 * Tells the time, of any clock that does not go backwards, such as the monotonic one: only differences
 * count. A partition (of a kind) without a record for idle_ns no longer holds back
 * windows; neither does one that has had no record since the first call. When all are idle, windows
 * close as if the records' time had gone on with the clock.
 */
void pl_query_advance(struct pl_query_run *run, uint64_t now_ns);

/* Closes every window. Nothing may be fed afterwards. */
void pl_query_finish(struct pl_query_run *run);

/* Returns by how much partitions whose time has gone back are behind their earlier records, ns;
 * only if the run has restarts. */
uint64_t pl_query_went_back(const struct pl_query_run *run);

/* Returns the most memory that the run can take. Room set aside that no group, waiting
 * record or row needs yet takes no memory. */
uint64_t pl_query_run_bytes(const struct pl_query_run *run);

/* Returns whether texts are refused: there are as many as the run has room for. */
bool pl_query_lacks_texts(const struct pl_query_run *run);

const struct pl_query_stats *pl_query_run_stats(const struct pl_query_run *run);
