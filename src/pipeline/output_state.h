/* SPDX-License-Identifier: BSD-2-Clause */
/* State of an output, for output.c (queues, thread, account) and output_marks.c (marks). */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "pipeline/output.h"
#include "record/where.h"

#define PL_OUTPUT_BATCH 256 /* most events, and values, taken at a time */

struct pl_tap {
	struct pl_output *output;
	struct pl_tap *next;
	struct pl_export_queue *queue;
	bool closed; /* under the output's lock */
	/* Numbers of marks: the worker's last mark, with the number of entries before it; the last
	 * settled mark; and, for the output's thread, the mark joined to the driver's mark. */
	_Atomic uint64_t marked, marked_at, settled;
	uint64_t joined;
};

/* State of the thread, or the way it ended. */
enum pl_output_end { PL_OUTPUT_RUNS, PL_OUTPUT_ENDED_WELL, PL_OUTPUT_ENDED_WITH_REST };

struct pl_output {
	char *name;
	uint32_t queue_records;
	struct pl_export *export;
	struct pl_output_points points; /* write NULL: none */
	bool late;
	uint64_t interval_ns;
	pthread_t thread;
	bool running;
	/* Kinds of records wanted; workers read this once per batch. */
	_Atomic bool paths, events, values, packets;
	_Atomic int end; /* enum pl_output_end */
	/* Set while the thread sleeps; whoever clears it wakes the thread. */
	_Atomic bool asleep;
	sem_t wake;

	pthread_mutex_t lock; /* protects the members up to the counters */
	bool stop, reopen;
	uint64_t deadline_ns;
	struct pl_tap *taps;
	struct pl_where *where;
	/* sums of freed queues */
	uint64_t gone_accepted, gone_full_paths, gone_full_events, gone_full_values,
		gone_full_packets;
	uint64_t gone_taken;

	struct pl_counter filtered;
	/* Used by the thread only. */
	struct pl_record_batch batch;
	struct pl_event batch_events[PL_OUTPUT_BATCH];
	struct pl_value batch_values[PL_OUTPUT_BATCH];
	uint8_t *batch_packets; /* PACKETS_BYTES; NULL: the driver takes none */
	uint64_t woken_ns;
	bool unflushed, news; /* since the last flush: something, or events, was written */
	bool marking;         /* the driver has an unsettled mark */
	int last_error_said;
	uint64_t refused_said;
};

/* To be called between two rounds, when the driver has all entries taken. With the lock held. */
void pl_output_turn_marks(struct pl_output *output);
/* To be called when the driver has finished. With the lock held. */
void pl_output_end_marks(struct pl_output *output);
