/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second stage of a query whose first stage runs elsewhere, over numbered inputs (partitions of
 * a topic): messages in their order, rows out. A message is a piece of a window's partial result
 * (partial.h), or a mark: "of this input, windows up to this time are all there". The rows of a
 * window are given when every input has marked it, is idle, or has let the wait time pass.
 *
 * The reader of an input sends, as one attempt: the pieces of windows as they close; behind them,
 * once those are surely stored, marks. After a failure another reader begins again behind the last
 * committed mark, as a new attempt. Of several attempts at a window of an input only the first that
 * marked it counts; the others are repetitions.
 *
 * Numbers are little-endian: u32 "PLQX", u16 version (2), u16 1 for a piece, 2 for a mark, u64
 * plan, u64 attempt, u32 input, u32 flags (1: idle), i64 time: a piece's end of window, or the
 * mark. Messages are from outside: a malformed one is refused and counted.
 */
#pragma once

#include "base/buf.h"
#include "query/partial.h"

#define PL_QUERY_INPUTS_MAX 4096

struct pl_query_sender {
	uint64_t plan; /* pl_query_plan_hash */
	uint64_t attempt;
	uint32_t input;
};

/* Appends a message with a piece to `out`. */
void pl_query_piece_message(struct pl_buf *out, const struct pl_query_sender *from, int64_t end_ns,
	const void *piece, size_t len);
void pl_query_mark_message(
	struct pl_buf *out, const struct pl_query_sender *from, int64_t mark_ns, bool idle);

struct pl_query_merge_config {
	struct pl_query_config run;
	uint32_t inputs;    /* number of inputs that have to mark a window, numbered from 0 */
	uint64_t wait_ns;   /* longest wait for an input that marks nothing; 0: 60 s */
	uint64_t max_bytes; /* of waiting pieces; 0: 1 GiB */
};

struct pl_query_merge_stats {
#define PL_STAT PL_STAT_MEMBER
#include "query/merge_stats.def"
#undef PL_STAT
};

extern const struct pl_stats pl_query_merge_list;

struct pl_query_merge;

/* As pl_query_run_new. */
int pl_query_merge_new(struct pl_query_merge **ret, const struct pl_query *query,
	const struct pl_query_merge_config *config, pl_query_sink *sink, void *arg,
	struct pl_diag *diag);
void pl_query_merge_free(struct pl_query_merge *m);

/* Starts after an earlier process: rows of windows up to this time were given. */
void pl_query_merge_resume(struct pl_query_merge *m, int64_t given_ns);
/* Takes the message at this offset. Errors are counted. Returns -EBADMSG; -EPROTONOSUPPORT for
 * another version of partial results, from a member of another version of pathline; -ENOMEM without
 * room, when the rows of the window say that they are incomplete. now_ns is any clock that does not
 * go back. */
int pl_query_merge_take(
	struct pl_query_merge *m, const void *data, size_t len, uint64_t offset, uint64_t now_ns);
/* Gives the rows of complete windows. */
void pl_query_merge_turn(struct pl_query_merge *m, uint64_t now_ns);
/* Reads the least offset that a window not given yet needs. Returns false when there is none. */
bool pl_query_merge_oldest(const struct pl_query_merge *m, uint64_t *ret);
/* End of the last window given: windows that end at it or before are given. INT64_MIN: none was. */
int64_t pl_query_merge_given(const struct pl_query_merge *m);

const struct pl_query_merge_stats *pl_query_merge_stats(const struct pl_query_merge *m);
