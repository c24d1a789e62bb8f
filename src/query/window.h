/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event time: which pane a record is of, how far the watermark is, which window closes next. A
 * tumbling window is one pane; windows that overlap share panes as long as the greatest common
 * divisor of length and step. Without windows there is one pane, which closes at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lang/plan.h"
#include "query/query.h"

struct pane {
	int64_t start;
	bool open, incomplete;
	uint64_t position; /* of its first record, as pl_query_run_at told */
};

struct feed { /* of a kind and a partition */
	bool used, seen;
	bool behind; /* it has records that were not fed yet: it is not idle */
	int64_t greatest;
	uint64_t last_ns; /* pl_query_advance's time at its last record */
};

struct windows {
	struct ast_window spec;
	int64_t pane_ns;
	int64_t watermark; /* windows that end here or before are closed */
	int64_t resumed;   /* and were by another run */
	int64_t latest;    /* the greatest time that a record may have */
	int64_t lateness;
	uint64_t idle_ns, now_ns;
	bool now_known;
	struct pane *panes;
	uint32_t max, n_open, last;
	struct feed *feeds; /* partitions for each kind */
	uint32_t partitions;
	/* Numbers of the feeds that had a record: a topic has room for many more than come. */
	uint32_t *seen;
	uint32_t n_seen, n_unseen; /* n_unseen: of those that are used */
	uint64_t began_ns;         /* when the time was told first */
	uint64_t position;         /* of what is fed */
};

/* Times up to here have room for the longest window behind them. */
#define PL_QUERY_TIME_MAX (INT64_MAX - ((int64_t)1 << 61))

#define SLOT_LATE         UINT32_MAX
#define SLOT_FULL         (UINT32_MAX - 1)

int pl_query_windows_init(
	struct windows *w, const struct pl_query *query, const struct pl_query_config *config);
void pl_query_windows_done(struct windows *w);

/* The number of the pane of a time, opened where it must be. */
uint32_t pl_query_windows_slot(struct windows *w, int64_t ts);
/* Whether another run has closed all windows of the time. */
bool pl_query_windows_resumed(const struct windows *w, int64_t ts);
/* The pane of a slot, [*start, *end). */
void pl_query_windows_of_slot(
	const struct windows *w, uint32_t slot, int64_t *ret_start, int64_t *ret_end);
/* Notes the greatest time of a batch. */
void pl_query_windows_note(
	struct windows *w, unsigned int kind, uint32_t partition, int64_t greatest);
/* No record comes of it any more. */
void pl_query_windows_ended(struct windows *w, unsigned int kind, uint32_t partition);
void pl_query_windows_behind(struct windows *w, unsigned int kind, uint32_t partition, bool behind);
void pl_query_windows_tell(struct windows *w, uint64_t now_ns);
/* How far the watermark may go. */
int64_t pl_query_windows_goal(const struct windows *w);
/* The next window that ends at `goal` or before; false when there is none, and the watermark is at
 * the goal. */
bool pl_query_windows_next(struct windows *w, int64_t goal, int64_t *ret_start, int64_t *ret_end);
/* The end of the last window that is open; the watermark when none is. */
int64_t pl_query_windows_last_end(const struct windows *w);
/* Frees the panes that no window needs that ends behind `end`. Calls `drop` for each first. */
void pl_query_windows_closed(
	struct windows *w, int64_t end, void (*drop)(void *arg, uint32_t slot), void *arg);
