/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline's part of the metrics page: what came in and what became of it, per listener,
 * exporter, queue, port, link, path, event kind and output. Cardinality is bounded by the
 * configuration; what is beyond a bound is folded into a series labelled "other" and counted. Any
 * thread.
 */
#pragma once

#include "export/exposition.h"
#include "pipeline/pipeline.h"

/* Writes the families. 0, or -ESRCH when it does not run: then the page must not be served. */
int pl_metrics_write(struct pl_pipeline *pipeline, struct pl_exposition *page);

/* Writes the families of a pipeline that has seen nothing: what their names mean. -ENOMEM. */
int pl_metrics_describe(struct pl_exposition *page);

/* How many series (samples on the page) there can be at most with this configuration. */
uint64_t pl_metrics_series(const struct pl_config *config);

/* The exporters of all workers, each once, at most metrics.max_exporters: as many of each source
 * as there is room for, those that appeared first. With the
 * pipeline's lock held and a fresh snapshot. -ENOMEM. */
struct pl_exporters {
	struct pl_exporter *list; /* heap, the caller frees */
	size_t n;
	struct pl_exporter others; /* sum of the rest */
	uint64_t n_others;
};
int pl_metrics_exporters(const struct pl_pipeline *pipeline, struct pl_exporters *ret);
