/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The merged aggregates as a stream of points (export/series.h), for one output. Counters are since
 * the start; beside them stand count, mean, percentiles and maximum over the interval, made from
 * the difference of two snapshots. A cell whose counters went back (its network part was idle for
 * aggregate.idle in one worker, or a reload began it anew) has none of those for that interval.
 * Percentiles and maxima are upper bounds of the buckets they lie in (base/hist.h has their width).
 *
 * docs/formats/influx.md lists points, labels and fields. Cells that nothing passed during the
 * interval are written too, so a steady queue never vanishes from a chart before aggregate.idle is
 * over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/exporter.h"

struct pl_pipeline;
struct pl_series;

/* page: instead, every family of the metrics page, a point for each series or histogram.
 * -ENOMEM. */
int pl_series_new(struct pl_series **ret, struct pl_pipeline *pipeline, bool page);
void pl_series_free(struct pl_series *series);

/* Begins the first interval; earlier counts are not of it. */
void pl_series_begin(struct pl_series *series);
/* Takes the pipeline's lock. Nothing is written when a worker does not answer in time. */
void pl_series_write(struct pl_series *series, struct pl_export *to, uint64_t now_ns);
