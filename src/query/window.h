/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event time: panes of records, the watermark, and the next window to close. A tumbling window is
 * one pane; overlapping windows share panes of the greatest common divisor of length and step.
 * Without windows there is one pane, which closes at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lang/plan.h"
#include "query/query.h"

struct pane {
	int64_t start;
	bool open, incomplete;
	uint64_t position; /* position of its first record (pl_query_run_at) */
	uint64_t batch;    /* number of the batch with its first record */
};

struct feed { /* state of a kind in a partition */
	bool used, seen;
	bool behind;              /* it has records that were not fed yet: not idle */
	bool back;                /* since back_ns its records are all behind its mark, and late */
	int64_t greatest, latest; /* latest: of the last batch */
	int64_t before;           /* `greatest` before the last restart; INT64_MIN: there was
				   * none */
	uint64_t back_ns;
	uint64_t last_ns; /* pl_query_advance's time at its last record */
};

struct windows {
	struct ast_window spec;
	int64_t pane_ns;
	int64_t watermark; /* windows that end at it or before are closed */
	int64_t resumed;   /* windows that end at it or before were closed by another run */
	int64_t latest;    /* the greatest time that a record may have */
	int64_t lateness;
	uint64_t idle_ns, now_ns;
	bool now_known;
	struct pane *panes;
	uint32_t max, n_open, last;
	struct feed *feeds; /* partitions for each kind */
	uint32_t partitions;
	/* Numbers of feeds that had a record: few of a topic's many partitions may have any. */
	uint32_t *seen;
	uint32_t n_seen, n_unseen; /* n_unseen: used feeds without a record */
	uint64_t began_ns;         /* time of the first pl_query_advance */
	uint64_t position;         /* position of the records that are fed */
	uint64_t batch;            /* number of the batch that is fed */
};

/* Largest time of a record: behind it the longest window does not overflow. */
#define PL_QUERY_TIME_MAX (INT64_MAX - ((int64_t)1 << 61))

#define SLOT_LATE         UINT32_MAX
#define SLOT_FULL         (UINT32_MAX - 1)

int pl_query_windows_init(
	struct windows *w, const struct pl_query *query, const struct pl_query_config *config);
void pl_query_windows_done(struct windows *w);

/* Returns the slot of the pane of a time, opened when needed. */
uint32_t pl_query_windows_slot(struct windows *w, int64_t ts);
/* Returns true when another run has closed all windows of the time. */
bool pl_query_windows_resumed(const struct windows *w, int64_t ts);
/* Reads the pane of a slot, [*start, *end). */
void pl_query_windows_of_slot(
	const struct windows *w, uint32_t slot, int64_t *ret_start, int64_t *ret_end);
/* Notes the greatest time of a batch. `late`: the whole batch is older than the windows that are
 * closed. Returns true when all batches of this partition, and of all others that are not idle, have
 * been late for the idle time: their clocks were set back. */
bool pl_query_windows_note(
	struct windows *w, unsigned int kind, uint32_t partition, int64_t greatest, bool late);
/* Returns true when all windows of the time have closed. */
bool pl_query_windows_past(const struct windows *w, int64_t ts);
/* Restarts the partitions whose time has gone back, and the watermark; no window is open. */
void pl_query_windows_restart(struct windows *w);
/* Returns by how much partitions whose time has gone back are behind their earlier time. */
uint64_t pl_query_windows_went_back(const struct windows *w);
/* Marks that a feed has no more records. */
void pl_query_windows_ended(struct windows *w, unsigned int kind, uint32_t partition);
void pl_query_windows_behind(struct windows *w, unsigned int kind, uint32_t partition, bool behind);
void pl_query_windows_tell(struct windows *w, uint64_t now_ns);
/* Returns the time to which the watermark may go. */
int64_t pl_query_windows_goal(const struct windows *w);
/* Finds the next window that ends at `goal` or before. Returns false when there is none; the
 * watermark is at the goal then. */
bool pl_query_windows_next(struct windows *w, int64_t goal, int64_t *ret_start, int64_t *ret_end);
/* Returns the number of the first batch that an open pane may hold something of. */
uint64_t pl_query_windows_oldest(const struct windows *w);
/* Returns the end of the last open window; the watermark when none is open. */
int64_t pl_query_windows_last_end(const struct windows *w);
/* Frees the panes that no window needs that ends after `end`. Calls `drop` for each first. */
void pl_query_windows_closed(
	struct windows *w, int64_t end, void (*drop)(void *arg, uint32_t slot), void *arg);
