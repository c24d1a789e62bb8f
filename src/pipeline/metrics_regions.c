/* SPDX-License-Identifier: BSD-2-Clause */
/* Families of values read from regions, labelled by region: how many, what happened to them, and
 * the newest. No label names a key, a slot or a cell. */
#include <stdlib.h>

#include "pipeline/metrics_page.h"
#include "pipeline/region_source.h"

struct all {
	struct pl_region_input_stats *s; /* heap */
	unsigned int n;
};

static void write_counters(struct pl_exposition *page, const struct all *a)
{
	for (unsigned int k = 0; k < pl_region_input_list.n; k++) {
		const struct pl_stat *stat = &pl_region_input_list.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < a->n; i++) {
			const struct pl_label l[] = { TEXT("region", a->s[i].name) };

			pl_exposition_u64(page, l, 1, pl_stat_read(stat, &a->s[i]));
		}
	}
	counter(page, "pathline_region_dropped", NULL,
		"New entries and changes that were not told, by cause: overrun (overwritten before it was read), damaged, repeated (another copy of a value that was told), keyed (paths of postcards, which cannot be read without their flow), invalid (no record).");
	for (unsigned int i = 0; i < a->n; i++) {
		for (unsigned int c = 0; c < PL_REGION_DROP_MAX; c++) {
			const struct pl_label l[] = { TEXT("region", a->s[i].name),
				TEXT("cause", pl_region_drop_name(c)) };

			pl_exposition_u64(page, l, 2, a->s[i].dropped[c]);
		}
	}
	counter(page, "pathline_region_increase", NULL,
		"Sum of all additions to the counters of a region: of their first row, or of all rows that share one array.");
	for (unsigned int i = 0; i < a->n; i++) {
		const struct pl_label l[] = { TEXT("region", a->s[i].name) };

		if (a->s[i].primitive == PL_COUNTERS)
			pl_exposition_u64(page, l, 1, a->s[i].increase);
	}
}

static void write_gauges(struct pl_exposition *page, const struct all *a)
{
	gauge(page, "pathline_region_readable", NULL, "Whether a region that is to be read is.");
	for (unsigned int i = 0; i < a->n; i++) {
		const struct pl_label l[] = { TEXT("region", a->s[i].name) };

		pl_exposition_u64(page, l, 1, a->s[i].readable);
	}
	gauge(page, "pathline_region_value", NULL, "The newest number read from a region.");
	for (unsigned int i = 0; i < a->n; i++) {
		const struct pl_label l[] = { TEXT("region", a->s[i].name) };

		if (a->s[i].has_value)
			pl_exposition_u64(page, l, 1, a->s[i].value);
	}
	gauge(page, "pathline_region_value_max", NULL,
		"Largest number of this and the last slot of aggregate.slot; of counters the largest increase of a cell between two readings.");
	for (unsigned int i = 0; i < a->n; i++) {
		const struct pl_label l[] = { TEXT("region", a->s[i].name) };

		if (a->s[i].has_max)
			pl_exposition_u64(page, l, 1, a->s[i].max);
	}
	gauge(page, "pathline_region_last_found_timestamp_seconds", "seconds",
		"When something new was found in a region last.");
	for (unsigned int i = 0; i < a->n; i++) {
		const struct pl_label l[] = { TEXT("region", a->s[i].name) };

		if (a->s[i].last_ts_ns != 0)
			pl_exposition_double(page, l, 1, (double)a->s[i].last_ts_ns * 1e-9);
	}
}

void pl_metrics_regions(struct pl_region_source *source, struct pl_exposition *page)
{
	struct all a = { .s = calloc(PL_CONFIG_REGIONS_MAX, sizeof(*a.s)) };

	while (source != NULL && a.s != NULL && a.n < PL_CONFIG_REGIONS_MAX &&
		pl_region_source_stats(source, a.n, &a.s[a.n]))
		a.n++;
	write_counters(page, &a);
	write_gauges(page, &a);
	free(a.s);
}
