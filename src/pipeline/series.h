/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The merged aggregates as a stream of points (export/series.h), for one output. Counters are sums
 * since the start; with them come count, mean, percentiles and maximum over the interval, from the
 * difference of two snapshots. A cell whose counters went back (its network part was idle for
 * aggregate.idle in one worker, or a reload emptied it) has none of those for that interval.
 * Percentiles and maxima are upper bounds of their buckets (base/hist.h has the width).
 *
 * docs/formats/influx.md lists points, labels and fields. Cells without packets in the interval are
 * written too, so that a steady queue stays in a chart until aggregate.idle is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/exporter.h"

struct pl_pipeline;
struct pl_series;

/* page: write every family of the metrics page instead, a point for each series or histogram.
 * Returns -ENOMEM. */
int pl_series_new(struct pl_series **ret, struct pl_pipeline *pipeline, bool page);
void pl_series_free(struct pl_series *series);

/* Begins the first interval; earlier counts are not part of it. */
void pl_series_begin(struct pl_series *series);
/* Writes an interval, with the pipeline's lock; nothing when a worker does not answer in time. */
void pl_series_write(struct pl_series *series, struct pl_export *to, uint64_t now_ns);
