/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A query in two stages, so that several processes answer it together. The first stage is a run for
 * each part of the records: it filters and groups, and gives the groups of each window that closes
 * as a partial result. The second stage is one run that joins the partial results of a window, in
 * any number of pieces, and goes on where the first one stopped: having, joins, order, limit.
 *
 *   pl_query_partial_from(scan, take, arg);      before the first record; then feed, advance, finish
 *   pl_query_partial_add(merge, piece, len)...;  every piece of the window, each once
 *   pl_query_partial_close(merge, start, end, false);                rows go to the run's sink
 *
 * A partial result is bytes from outside when it is read: it is checked whole before any of it is
 * taken. Numbers are little-endian:
 *
 *   u32 "PLQP"  u16 version (2)  u16 number of the scan among the plan's steps  u64 plan
 *   i64 start  i64 end of the window, ns, one of the query's: as long, and its start a multiple of
 *   the step  u32 flags (1: incomplete)  u32 groups  u64 records that came late since the piece
 *   before, and then of each group:
 *   u32 absent keys, a bit for each; the keys, as wide as the plan has them; u64 the earliest time of
 *   its records, ns; u16 n, at most 28, + 32768 when it has other points, too; n points, u16 each, in
 *   order; its aggregates
 *
 * An aggregate has the bytes of its accumulator (lang/accumulator.h), except accumulators that are
 * mostly zeros:
 *   approx_distinct  u16 n, u16 register, u8 rank, …; n = 65535: all 1024 ranks
 *   quantile, hist   u16 n, u16 bucket, u64 count, …
 *   topk             u16 n, 16 bytes value, u64 count, u64 error, …
 *   count(distinct)  u32 n, the values, 8 bytes each, 16 of an address: exact. A set of more than
 *                    4096 values, or than a piece has room for, is continued: the group comes
 *                    again, with empty aggregates. Values
 *                    for which the table of max_distinct has no room are left out, and the rows of
 *                    the window say that they are incomplete.
 */
#pragma once

#include <stddef.h>

#include "query/query.h"

#define PL_QUERY_PARTIAL_VERSION 2
#define PL_QUERY_PARTIAL_PIECE                                                                     \
	(512 << 10) /* bytes of a piece at most, unless another limit is set */

/* Ways in which members of a group share a query whose records are spread over partitions by the
 * symmetric hash of their flow (record/flow_hash.h). */
enum pl_query_split {
	PL_QUERY_BY_PARTITION, /* a group is in one partition: its rows are the result */
	PL_QUERY_TWO_STAGES,
	PL_QUERY_NO_SPLIT,
};

/* Chooses how members share the query. `topics`: number of topics with the records; two of them may
 * have records of the same flow. `ret_why` (may be NULL): a sentence about the choice, of static
 * storage. */
enum pl_query_split pl_query_split(
	const struct pl_query *query, uint32_t topics, const char **ret_why);

/* Number of the plan: partial results of another plan are refused. */
uint64_t pl_query_plan_hash(const struct pl_query *query);

/* Takes a piece of a window's partial result; the bytes are valid during the call. A window without
 * groups has no piece. */
typedef void pl_query_partial_sink(
	void *arg, int64_t start_ns, int64_t end_ns, const void *data, size_t len);

/* Makes the run give partial results instead of rows. Called before anything is fed. */
void pl_query_partial_from(struct pl_query_run *run, pl_query_partial_sink *sink, void *arg);

/* The least limit of a query's pieces: below it a group may not fit in a piece. */
uint32_t pl_query_partial_least(const struct pl_query *query);
/* Sets the limit of a piece. Called before anything is fed; `bytes` is at least
 * pl_query_partial_least. */
void pl_query_partial_limit(struct pl_query_run *run, uint32_t bytes);

/* Adds a piece. Returns -EBADMSG when the piece is malformed or of another plan or version; nothing
 * of it was taken. -ENOMEM. */
int pl_query_partial_add(struct pl_query_run *run, const void *data, size_t len);

/* Reads the window of a piece that pl_query_partial_add would take. Returns -EBADMSG. */
int pl_query_partial_check(const struct pl_query *query, const void *data, size_t len,
	int64_t *ret_start, int64_t *ret_end);

/* Gives the rows of the added pieces. `incomplete`: the rows are marked incomplete, as they also
 * are when a piece was. */
void pl_query_partial_close(
	struct pl_query_run *run, int64_t start_ns, int64_t end_ns, bool incomplete);

/* ---- places in what is read, to begin again behind what is done ---- */

/* Sets the position of the records that are fed next: an offset that grows. */
void pl_query_run_at(struct pl_query_run *run, uint64_t position);
/* Reads the least position of a record that an open window, or a record that waits for its partner,
 * needs. Returns false when there is none. */
bool pl_query_run_oldest(const struct pl_query_run *run, uint64_t *ret);
/* The watermark: windows that end at it or before are closed. INT64_MIN: none is. */
int64_t pl_query_run_watermark(const struct pl_query_run *run);
/* Time up to which rows were given: the watermark, or of pairs without windows the time of the last
 * pairs. It is committed with a position, and given to pl_query_run_resume. INT64_MIN: none. */
int64_t pl_query_run_done(const struct pl_query_run *run);
/* Starts after another run, which closed windows and gave pairs up to this time. Called before the
 * first record. */
void pl_query_run_resume(struct pl_query_run *run, int64_t done);
/* Gives the pairs and closes the open windows, as if time had gone on; later records of them are
 * late. */
void pl_query_run_close_open(struct pl_query_run *run);
