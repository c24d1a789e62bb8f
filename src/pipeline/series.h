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

#include "pipeline/output.h"

struct pl_pipeline;

/* Makes the points, for an output's thread. They are written with the pipeline's lock; none when a
 * worker does not answer in time. page: every family of the metrics page instead, a point for each
 * series or histogram. Returns -ENOMEM. */
int pl_series_new(struct pl_output_points *ret, struct pl_pipeline *pipeline, bool page);
