/* SPDX-License-Identifier: BSD-2-Clause */
/* What output.c and output_marks.c share. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "pipeline/output.h"
#include "record/where.h"

#define PL_OUTPUT_BATCH 256 /* events, and values, taken at a time */

struct pl_tap {
	struct pl_output *output;
	struct pl_tap *next;
	struct pl_export_queue *queue;
	bool closed; /* under the output's lock */
	/* Marks, numbered: the worker's last one with the entries before it, the last one that is
	 * settled, and the thread's: the one that stands at the exporter's mark. */
	_Atomic uint64_t marked, marked_at, settled;
	uint64_t joined;
};

/* How the thread ended. */
enum pl_output_end { PL_OUTPUT_RUNS, PL_OUTPUT_ENDED_WELL, PL_OUTPUT_ENDED_WITH_REST };

struct pl_output {
	char *name;
	uint32_t queue_records;
	struct pl_export *export;
	struct pl_series *series; /* NULL: none are wanted */
	bool late;
	uint64_t interval_ns;
	pthread_t thread;
	bool running;
	/* What the workers look at once per batch. */
	_Atomic bool paths, events, values, packets;
	_Atomic int end; /* enum pl_output_end */
	/* Whoever finds the thread asleep and clears that wakes it. */
	_Atomic bool asleep;
	sem_t wake;

	pthread_mutex_t lock; /* all below, up to the counters */
	bool stop, reopen;
	uint64_t deadline_ns;
	struct pl_tap *taps;
	struct pl_where *where;
	/* of queues freed */
	uint64_t gone_accepted, gone_full_paths, gone_full_events, gone_full_values,
		gone_full_packets;
	uint64_t gone_taken;

	struct pl_counter filtered;
	/* The thread's scratch. */
	struct pl_record_batch batch;
	struct pl_event batch_events[PL_OUTPUT_BATCH];
	struct pl_value batch_values[PL_OUTPUT_BATCH];
	uint8_t *batch_packets; /* PACKETS_BYTES; NULL: the exporter takes none */
	uint64_t woken_ns;
	bool unflushed, news; /* anything, or events, was written since the last flush */
	bool marking;         /* the exporter has a mark that is not settled */
	int last_error_said;
	uint64_t refused_said;
};

/* Between two rounds: all that was taken is with the exporter. With the lock held. */
void pl_output_turn_marks(struct pl_output *output);
/* When the exporter has finished. With the lock held. */
void pl_output_end_marks(struct pl_output *output);
