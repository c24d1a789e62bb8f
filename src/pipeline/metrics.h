/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline's part of the metrics page: what came in and what became of it, per listener, exporter, queue,
 * port, link, path, event kind and output. Cardinality is bounded by the configuration; what is beyond a
 * bound is folded into a series labelled "other" and counted. Any thread.
 */
#pragma once

#include "export/exposition.h"
#include "pipeline/pipeline.h"

/* Writes the families. 0, or -ETIMEDOUT when a worker did not answer: then the page must not be served. */
int pl_metrics_write(struct pl_pipeline *pipeline, struct pl_exposition *page);

/* process_*: of this process, as every exporter has them. */
void pl_metrics_process(struct pl_exposition *page);

/* How many series (samples on the page) there can be at most with this configuration. */
uint64_t pl_metrics_series(const struct pl_config *config);
