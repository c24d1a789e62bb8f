/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline's part of the metrics page: input and results, by listener, exporter, queue, port,
 * link, path, event kind and output. Cardinality is limited by the configuration; what exceeds a
 * limit is added to a series labelled "other" and counted. Any thread.
 */
#pragma once

#include "decode/exporter_list.h"
#include "export/exposition.h"
#include "pipeline/pipeline.h"

/* Writes the families of a struct pl_pipeline, of the process, and those of
 * pl_pipeline_add_families; renews its readiness. Returns negative errno, such as -ESRCH: then
 * serve no page. */
int pl_metrics_write(void *pipeline, struct pl_exposition *page);

/* Writes the families of a pipeline without input, with their help. Returns -ENOMEM. */
int pl_metrics_describe(struct pl_exposition *page);

/* Largest number of series (samples on the page) with this configuration. */
uint64_t pl_metrics_series(const struct pl_config *config);

/* Lists the exporters of all workers, each once, at most metrics.max_exporters: as many of each
 * source as there is room for, in the order in which they appeared. With the pipeline's lock held
 * and a fresh snapshot. Returns -ENOMEM. */
int pl_metrics_exporters(const struct pl_pipeline *pipeline, struct pl_exporters *ret);
