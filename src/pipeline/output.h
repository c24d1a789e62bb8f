/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output: an exporter with a thread of its own and one bounded queue per worker. A worker puts
 * and goes on; what does not fit is dropped and counted in the queue. A slow output holds up
 * neither capture nor another output.
 *
 *   offered = accepted + full                         (per queue; the worker's side)
 *   taken + points = filtered + the exporter's accepted   (the thread's side)
 *   exporter accepted + recovered = delivered + dropped + queued + spooled
 * where taken and the points of series are what the exporter accepts.
 *
 * Queues are added and closed by the controlling thread; a closed queue is emptied, then freed, its
 * counts kept. Counters may be read by any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "export/exporter.h"
#include "export/queue.h"

struct pl_output;
struct pl_series;

struct pl_output_stats {
#define PL_STAT PL_STAT_MEMBER
#include "export/stats.def"
#include "pipeline/output_stats.def"
#undef PL_STAT
	uint64_t dropped[PL_EXPORT_DROP_MAX]; /* QUEUE_FULL is `full` */
	int last_error;
};
extern const struct pl_stats pl_output_stats_list;

struct pl_output_options {
	const char *name;       /* copied */
	uint32_t queue_records; /* per worker */
	bool paths, events, values;
	const char *where; /* of paths; NULL = all */
	/* When series are wanted: taken over, also on failure, and written every interval. Not
	 * changed by pl_output_configure. */
	struct pl_series *series;
	uint64_t interval_ns;
};

/* Takes `export` over, also on failure. -ENOMEM, -EINVAL with diag for a bad expression. */
int pl_output_new(struct pl_output **ret, const struct pl_output_options *options,
	struct pl_export *export, struct pl_diag *diag);
/* late: the pipeline runs already, so the first interval of its series begins now; else with the
 * first report. */
int pl_output_start(struct pl_output *output, bool late);

/* Changes the records that the output takes, while it runs. */
int pl_output_configure(
	struct pl_output *output, const struct pl_output_options *options, struct pl_diag *diag);
/* Asks the thread to let go of its file and open it by name again. */
void pl_output_reopen(struct pl_output *output);

/* Empties what waits and delivers it until the deadline (monotonic); ends the thread. The queues'
 * producers must have stopped. Returns the number of entries left undelivered. */
uint64_t pl_output_stop(struct pl_output *output, uint64_t deadline_ns);
void pl_output_free(struct pl_output *output);

const char *pl_output_name(const struct pl_output *output);
void pl_output_stats(struct pl_output *output, struct pl_output_stats *ret);
/* Why nothing is delivered, and the last refusal; empty texts for exporters that have none. */
void pl_output_words(struct pl_output *output, struct pl_export_words *ret);

/* One worker's end. */
struct pl_tap;
int pl_tap_new(struct pl_tap **ret, struct pl_output *output);
struct pl_output *pl_tap_output(const struct pl_tap *tap);
void pl_tap_close(struct pl_tap *tap); /* the worker puts no more; the tap is gone for the caller */
void pl_tap_paths(struct pl_tap *tap, const struct pl_record_batch *batch);
void pl_tap_events(struct pl_tap *tap, const struct pl_event *events, uint32_t n);
void pl_tap_values(struct pl_tap *tap, const struct pl_value *values, uint32_t n);
/* Where the exporter takes packets (pl_export_ops.write_packets). */
void pl_tap_packets(struct pl_tap *tap, const struct pl_batch *batch);

/* A mark behind all that was put so far; it may be set again at any time. Settled, 1: of what was put
 * before it nothing is lost when the process ends, for it is delivered, on disk, or dropped and
 * counted. 0: not yet. -1: never, for the output ended before. */
void pl_tap_mark(struct pl_tap *tap);
int pl_tap_settled(const struct pl_tap *tap);
