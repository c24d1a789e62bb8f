/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passes records, events and values of the collector to another thread of the process, as an
 * exporter: its output's thread fills one buffer while the other thread reads a second one. When
 * the buffer is full, the output's thread waits up to a second while its queues fill; entries that
 * find no room then are dropped and counted by the output (queue_full).
 *
 * The output's thread is the exporter's; the functions here are for any one other thread, except
 * for making and closing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/exporter.h"

struct pl_report_feed;

/* Receives entries in the order of the output's queues: reports with their hops, events, and values
 * of regions. Arguments are valid during the call. */
struct pl_report_feed_sink {
	void (*reports)(void *arg, const struct pl_record_batch *batch);
	void (*events)(void *arg, const struct pl_event *events, uint32_t n);
	void (*values)(void *arg, const struct pl_value *values, uint32_t n);
	void *arg;
};

/* Makes a feed without buffers. The exporter owns *ret_feed, which lives until that is closed.
 * Returns negative errno. */
int pl_report_feed_new(struct pl_export **ret, struct pl_report_feed **ret_feed);
/* Allocates the buffers if needed, before the output gets its first entry. Returns -ENOMEM. */
int pl_report_feed_make_room(struct pl_report_feed *feed);
/* Memory of the buffers, in bytes. */
uint64_t pl_report_feed_memory(void);

/* Descriptor that is readable when there are entries to take. */
int pl_report_feed_fd(const struct pl_report_feed *feed);
/* Gives all entries since the last call to the sink. */
void pl_report_feed_take(struct pl_report_feed *feed, const struct pl_report_feed_sink *sink);
