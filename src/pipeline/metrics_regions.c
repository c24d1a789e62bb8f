/* SPDX-License-Identifier: BSD-2-Clause */
/* Families of what is read from regions, with the label region: how many values, what became of
 * them, and the newest. No label names a key, a slot or a cell. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/metrics_page.h"
#include "pipeline/region_source.h"

struct all {
	struct pl_region_input_stats *s; /* heap */
	unsigned int n;
};

static const struct {
	const char *name, *unit, *help;
	size_t offset;
} counters[] = {
	{ "pathline_region_found", NULL,
		"New entries of lists, changed slots and cells, and complete sketches of a region. found = told + counted + dropped.",
		offsetof(struct pl_region_input_stats, found) },
	{ "pathline_region_told", NULL,
		"Of these, those given to the outputs as values, or as records to detection and the outputs.",
		offsetof(struct pl_region_input_stats, told) },
	{ "pathline_region_counted", NULL, "Of these, those that read.tell: false only counts.",
		offsetof(struct pl_region_input_stats, counted) },
	{ "pathline_region_unsettled", NULL,
		"Slots that were being written when they were read, and were left to the next time.",
		offsetof(struct pl_region_input_stats, unsettled) },
	{ "pathline_region_losses", NULL,
		"Times the file of a region was truncated, removed or made anew; pathline opens it again by itself.",
		offsetof(struct pl_region_input_stats, lost) },
};

static uint64_t value_at(const struct pl_region_input_stats *s, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const char *)s + offset, sizeof(v));
	return v;
}

static void write_counters(struct pl_exposition *page, const struct all *a)
{
	for (size_t k = 0; k < sizeof(counters) / sizeof(counters[0]); k++) {
		counter(page, counters[k].name, counters[k].unit, counters[k].help);
		for (unsigned int i = 0; i < a->n; i++) {
			const struct pl_label l[] = { TEXT("region", a->s[i].name) };

			pl_exposition_u64(page, l, 1, value_at(&a->s[i], counters[k].offset));
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
		"The largest number of the last interval that had any; of counters the largest increase of a cell.");
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

	while (a.s != NULL && a.n < PL_CONFIG_REGIONS_MAX &&
		pl_region_source_stats(source, a.n, &a.s[a.n]))
		a.n++;
	write_counters(page, &a);
	write_gauges(page, &a);
	free(a.s);
}
