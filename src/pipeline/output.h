/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output: a driver with a thread of its own and one bounded queue per worker. A worker puts
 * entries without waiting; entries without room are dropped and counted in the queue. A slow output
 * delays neither capture nor other outputs.
 *
 * offered = accepted + full (per queue; the worker's side)
 * taken + points = filtered + the driver's accepted (the thread's side)
 * driver accepted + recovered = delivered + dropped + queued + spooled
 *
 * Queues are added and closed by the controlling thread; a closed queue is emptied, then freed, its
 * counters kept. Counters may be read by any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "export/exporter.h"
#include "export/queue.h"

struct pl_output;

/* A source of points (export/series.h), which an output's thread asks once each interval. */
struct pl_output_points {
	void *arg;
	void (*begin)(void *arg); /* begins the first interval; earlier counts are not part of it */
	void (*write)(void *arg, struct pl_export *to, uint64_t now_ns);
	void (*free)(void *arg);
};

static inline void pl_output_points_free(const struct pl_output_points *points)
{
	if (points->free != NULL)
		points->free(points->arg);
}

struct pl_output_stats {
#define PL_STAT PL_STAT_MEMBER
#include "export/stats.def"
#include "pipeline/output_stats.def"
#undef PL_STAT
	uint64_t dropped[PL_EXPORT_DROP_MAX]; /* QUEUE_FULL: `full` and the driver's own */
	int last_error;
};
extern const struct pl_stats pl_output_stats_list;

struct pl_output_options {
	const char *name;       /* copied */
	uint32_t queue_records; /* per worker */
	bool paths, events, values;
	const char *where; /* of paths; NULL: all */
	/* If points are wanted (write is not NULL): they are taken over, also on failure. Not
	 * changed by pl_output_configure. */
	struct pl_output_points points;
	uint64_t interval_ns;
};

/* Takes `export` over, also on failure. Returns -ENOMEM, -EINVAL with diag for a bad expression. */
int pl_output_new(struct pl_output **ret, const struct pl_output_options *options,
	struct pl_export *export, struct pl_diag *diag);
/* Starts the thread. late: the pipeline runs already, so the first interval of points begins now;
 * else with the first report. */
int pl_output_start(struct pl_output *output, bool late);

/* Changes the kinds of records that a running output takes. */
int pl_output_configure(
	struct pl_output *output, const struct pl_output_options *options, struct pl_diag *diag);
/* Asks the thread to close its file and open it by name again. */
void pl_output_reopen(struct pl_output *output);

/* Delivers what waits until the deadline (monotonic), then ends the thread. The queues' producers
 * must have stopped. Returns the number of entries left undelivered. */
uint64_t pl_output_stop(struct pl_output *output, uint64_t deadline_ns);
void pl_output_free(struct pl_output *output);

const char *pl_output_name(const struct pl_output *output);
void pl_output_stats(struct pl_output *output, struct pl_output_stats *ret);
/* Copies why nothing is delivered, and the last refusal; empty when there is none. */
void pl_output_words(struct pl_output *output, struct pl_export_words *ret);

/* The queue of one worker. */
struct pl_tap;
int pl_tap_new(struct pl_tap **ret, struct pl_output *output);
struct pl_output *pl_tap_output(const struct pl_tap *tap);
void pl_tap_close(struct pl_tap *tap); /* ends the worker's use; the caller must not use the tap */
void pl_tap_paths(struct pl_tap *tap, const struct pl_record_batch *batch);
void pl_tap_events(struct pl_tap *tap, const struct pl_event *events, uint32_t n);
void pl_tap_values(struct pl_tap *tap, const struct pl_value *values, uint32_t n);
/* Only to drivers that take packets (pl_export_ops.write_packets). */
void pl_tap_packets(struct pl_tap *tap, const struct pl_batch *batch);

/* Sets a mark behind all entries so far; may be repeated at any time. pl_tap_settled returns 1 when
 * no entry before it can be lost with the process: each is delivered, on disk, or dropped and
 * counted. 0: not yet. -1: never, as the output ended before. */
void pl_tap_mark(struct pl_tap *tap);
int pl_tap_settled(const struct pl_tap *tap);
