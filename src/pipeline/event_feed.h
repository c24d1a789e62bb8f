/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of standing queries and marking domains as one source: a worker of its own takes them and
 * gives them to the outputs, as those of detection.
 */
#pragma once

#include "pipeline/worker.h"

#define PL_EVENT_FEED_NAME "queries"
#define PL_EVENT_FEED_ROOM 4096 /* most events that wait for the worker */

struct pl_event_feed;

int pl_event_feed_new(struct pl_event_feed **ret); /* -ENOMEM */
void pl_event_feed_free(struct pl_event_feed *feed);

/* The feed of its worker, which is freed first. */
const struct pl_worker_feed *pl_event_feed_feed(const struct pl_event_feed *feed);

/* Copies events. Returns how many found room. Any thread. */
uint32_t pl_event_feed_put(struct pl_event_feed *feed, const struct pl_event *events, uint32_t n);
