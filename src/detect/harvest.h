/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Harvest of the sums and histograms that the steps keep beside their state
 * (pl_detect_options.aggregates), into the cells that pages and exporters read. Each harvest adds
 * the values since the one before it, so the aggregate's counters only grow although entries of the
 * tables age out, are replaced, and stand in one table per queue.
 *
 * Values that came to an entry between the last harvest and its replacement are not in the
 * aggregate; such entries are counted (evicted), and mean that a table is too small. Entries that
 * age out were harvested long before. The tables lack two things: the flow that a maximum came from
 * (so there are no exemplars), and buckets finer than powers of two. The thread that ticks the
 * tables calls this; other threads may update them meanwhile.
 */
#pragma once

#include "detect/aggregate.h"
#include "detect/events.h"

struct pl_harvest;

/* Makes a harvest of the tables of det. Returns 0 or -ENOMEM. */
int pl_harvest_new(struct pl_harvest **ret, const struct pl_detect *det);
void pl_harvest_free(struct pl_harvest *h);
uint64_t pl_harvest_memory(const struct pl_detect_options *options);

/* Adds the values since the last harvest to `into`. Maxima are taken out: the tables begin new
 * ones. now_ns as in the steps, ts_ns the same time since the Unix epoch. */
void pl_harvest_take(struct pl_harvest *h, struct pl_detect *det, struct pl_aggregate *into,
	uint64_t now_ns, uint64_t ts_ns);
