/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records, events and values of the collector for another thread of the process, as an exporter: its
 * output's thread fills one buffer while the other thread takes what is in a second one. Without room
 * the output's thread waits for a second, and its queues fill; what finds no room then is dropped and
 * counted by the output (queue_full).
 *
 * One thread is the exporter's; the functions here are for any one other thread, but for making and
 * closing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/exporter.h"

struct pl_report_feed;

/* Takes what came, in the order of the output's queues: reports with their hops, events, and values
 * of regions. It lasts as long as the call. */
struct pl_report_feed_sink {
	void (*reports)(void *arg, const struct pl_record_batch *batch);
	void (*events)(void *arg, const struct pl_event *events, uint32_t n);
	void (*values)(void *arg, const struct pl_value *values, uint32_t n);
	void *arg;
};

/* The exporter owns *ret_feed, which lives until it is closed. It has no buffers yet. Negative
 * errno. */
int pl_report_feed_new(struct pl_export **ret, struct pl_report_feed **ret_feed);
/* Makes the buffers, unless they are there: before the output is given the first entry. -ENOMEM. */
int pl_report_feed_make_room(struct pl_report_feed *feed);
/* What they take. */
uint64_t pl_report_feed_memory(void);

/* Readable when there is something to take. */
int pl_report_feed_fd(const struct pl_report_feed *feed);
/* Gives all that came since the last time. */
void pl_report_feed_take(struct pl_report_feed *feed, const struct pl_report_feed_sink *sink);
