/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of metrics.c and metrics_network.c that write lines of the page. */
#pragma once

#include <string.h>

#include "base/stats.h"
#include "export/exposition.h"
#include "pipeline/pipeline.h"

/* clang-format off */
#define TEXT(n, v) { .name = (n), .form = PL_LABEL_TEXT, .text = (v) }
#define NUM(n, v)  { .name = (n), .form = PL_LABEL_U64, .number = (v) }
#define HEX(n, v)  { .name = (n), .form = PL_LABEL_HEX64, .number = (v) }
#define ADDR(n, v) { .name = (n), .form = PL_LABEL_ADDR, .addr = (v) }
/* clang-format on */

static inline void counter(
	struct pl_exposition *page, const char *name, const char *unit, const char *help)
{
	pl_exposition_family(page, name, PL_METRIC_COUNTER, unit, help);
}

static inline void gauge(
	struct pl_exposition *page, const char *name, const char *unit, const char *help)
{
	pl_exposition_family(page, name, PL_METRIC_GAUGE, unit, help);
}

static inline void counter_value(struct pl_exposition *page, const char *name, const char *unit,
	const char *help, uint64_t value)
{
	counter(page, name, unit, help);
	pl_exposition_u64(page, NULL, 0, value);
}

static inline void gauge_value(struct pl_exposition *page, const char *name, const char *unit,
	const char *help, double value)
{
	gauge(page, name, unit, help);
	pl_exposition_double(page, NULL, 0, value);
}

/* ---- metrics_regions.c ---- */

/* source NULL: families without samples. */
struct pl_region_source;
void pl_metrics_regions(struct pl_region_source *source, struct pl_exposition *page);

/* ---- metrics_network.c ---- */

/* Writes the families of queues, ports, links and paths. */
void pl_metrics_network(const struct pl_aggregate *merged, const struct pl_config *config,
	struct pl_exposition *page);
/* Largest number of their series. */
uint64_t pl_metrics_network_series(const struct pl_config *config);
