/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes points from aggregates, for an output. */
#include "pipeline/series.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "detect/cells.h"
#include "export/exposition.h"
#include "pipeline/metrics.h"
#include "pipeline/state.h"

enum { TEXT_MAX = 24 };

struct pl_series {
	struct pl_pipeline *pipeline;
	bool page;
	struct pl_aggregate_options options;
	struct pl_core_units units;
	struct pl_aggregate *now, *before;
};

/* A point under construction. */
struct draft {
	struct pl_series_point point;
	struct pl_series_label labels[PL_SERIES_LABELS_MAX];
	char texts[PL_SERIES_LABELS_MAX][TEXT_MAX];
	struct pl_series_field fields[PL_SERIES_FIELDS_MAX];
	struct pl_export *to;
	uint64_t now_ns;
};

/* ---- putting a point together ---- */

static void begin(struct draft *d, const char *name)
{
	d->point.name = name;
	d->point.labels = d->labels;
	d->point.fields = d->fields;
	d->point.n_labels = d->point.n_fields = 0;
}

/* Adds a label, in the order of names. */
static void label(struct draft *d, const char *name, const char *text)
{
	uint32_t i = d->point.n_labels++;

	for (; i > 0 && strcmp(d->labels[i - 1].name, name) > 0; i--)
		d->labels[i] = d->labels[i - 1];
	d->labels[i] = (struct pl_series_label){ name, text };
}

/* Adds column i, a part of the key, as a label. */
static void key_label(struct draft *d, const struct pl_cell *c, const struct pl_field *field,
	unsigned int i, bool other)
{
	char *text = d->texts[d->point.n_labels];

	if (other)
		snprintf(text, TEXT_MAX, "other");
	else if ((c->present & UINT32_C(1) << i) != 0)
		snprintf(text, TEXT_MAX, field->form == PL_FORM_HEX64 ? "%016llx" : "%llu",
			(unsigned long long)c->value[i]);
	else
		return;
	label(d, field->name, text);
}

static void field(struct draft *d, const char *name, const char *metric, enum pl_series_kind kind,
	uint64_t value)
{
	d->fields[d->point.n_fields++] = (struct pl_series_field){
		.name = name, .metric = metric, .kind = kind, .u64 = value
	};
}

static void number(struct draft *d, const char *name, double value)
{
	d->fields[d->point.n_fields++] =
		(struct pl_series_field){ .name = name, .kind = PL_SERIES_NUMBER, .f64 = value };
}

static void histogram(struct draft *d, const char *metric, const struct pl_hist *hist,
	const struct pl_exposition_bounds *bounds)
{
	d->fields[d->point.n_fields++] = (struct pl_series_field){
		.metric = metric, .kind = PL_SERIES_HIST, .hist = hist, .bounds = bounds
	};
}

/* Computes hist minus before. Returns false when a counter went back. */
static bool difference(
	struct pl_hist *ret, const struct pl_hist *hist, const struct pl_hist *before)
{
	assert(hist != NULL);
	*ret = *hist;
	if (before == NULL)
		return true;
	if (hist->sum < before->sum)
		return false;
	ret->sum -= before->sum;
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		if (hist->buckets[i] < before->buckets[i])
			return false;
		ret->buckets[i] -= before->buckets[i];
	}
	return true;
}

/* Names of fields for values within the interval. */
struct interval_names {
	const char *count, *mean, *p50, *p99, *bound; /* bound: no value was above it */
};

static void interval(struct draft *d, const struct interval_names *names,
	const struct pl_hist *hist, const struct pl_hist *before)
{
	struct pl_hist h;
	uint64_t n, v;
	unsigned int last = 0;

	if (!difference(&h, hist, before))
		return;
	n = pl_hist_count(&h);
	field(d, names->count, NULL, PL_SERIES_GAUGE, n);
	if (n == 0)
		return;
	number(d, names->mean, (double)h.sum / (double)n);
	/* Beyond the histogram's range there is no upper bound. */
	v = pl_hist_quantile(&h, 0.5);
	if (v != UINT64_MAX)
		field(d, names->p50, NULL, PL_SERIES_GAUGE, v);
	v = pl_hist_quantile(&h, 0.99);
	if (v != UINT64_MAX)
		field(d, names->p99, NULL, PL_SERIES_GAUGE, v);
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		if (h.buckets[i] > 0)
			last = i;
	}
	if (pl_hist_upper(last) != UINT64_MAX)
		field(d, names->bound, NULL, PL_SERIES_GAUGE, pl_hist_upper(last));
}

/* Adds the jitter, in ns for points and in seconds for metrics. */
static void jitter(struct draft *d, const char *metric, const struct pl_agg_jitter *j,
	const struct pl_hist *delays)
{
	double ns;

	if (!pl_agg_jitter(j, delays, &ns))
		return;
	number(d, "jitter_ns", ns);
	d->fields[d->point.n_fields++] = (struct pl_series_field){
		.metric = metric, .kind = PL_SERIES_NUMBER, .f64 = ns * 1e-9
	};
}

/* Adds the 99th percentile of the variation within the interval. */
static void variation(struct draft *d, const struct pl_hist *hist, const struct pl_hist *before)
{
	struct pl_hist h;
	uint64_t v;

	if (difference(&h, hist, before) && pl_agg_variation(&h, 0.99, &v))
		field(d, "variation_p99_ns", NULL, PL_SERIES_GAUGE, v);
}

static void emit(struct draft *d)
{
	pl_export_write_series(d->to, &d->point, 1, d->now_ns);
}

/* ---- cells ---- */

static const struct interval_names latency_names = { "latency_count", "latency_mean_ns",
	"latency_p50_ns", "latency_p99_ns", "latency_bound_ns" };
static const struct interval_names depth_names = { "depth_count", "depth_mean", "depth_p50",
	"depth_p99", "depth_bound" };

/* before: the cell at the last point; NULL: none. */
static void cell_point(struct draft *d, const struct pl_series *s, enum pl_agg_table table,
	const void *cell, const void *before, bool other)
{
	const struct pl_cell_table *t = &pl_cell_tables[table];
	struct pl_cell c, b = { 0 };

	pl_cell_read(&c, s->now, table, cell, other, &s->units);
	if (before != NULL)
		pl_cell_read(&b, s->before, table, before, other, &s->units);
	begin(d, t->name);
	for (unsigned int i = 0; i < t->n; i++) {
		const struct pl_column *column = &t->columns[i];

		if (column->kind == PL_COLUMN_KEY)
			key_label(d, &c, &t->fields[i], i, other);
		else if (column->field != NULL && (c.present & UINT32_C(1) << i) != 0)
			field(d, column->field, column->label == NULL ? column->family : NULL,
				column->kind == PL_COLUMN_COUNTER ? PL_SERIES_COUNTER
								  : PL_SERIES_GAUGE,
				c.value[i]);
	}
	if (c.delays != NULL) {
		histogram(d, t->delays, c.delays, &pl_bounds_latency);
		interval(d, &latency_names, c.delays, b.delays);
	}
	if (t->jitter != NULL)
		variation(d, c.delays, b.delays);
	if (c.jitter != NULL)
		jitter(d, t->jitter, c.jitter, c.delays);
	if (c.depths != NULL && pl_hist_count(c.depths) > 0)
		interval(d, &depth_names, c.depths, b.depths);
	emit(d);
}

static void write_all(const struct pl_series *s, struct draft *d)
{
	for (unsigned int table = 0; table < PL_AGG_TABLE_MAX; table++) {
		const void *cell, *over = pl_cell_overflow(s->now, table);
		uint32_t pos = 0;

		/* A cell begins with its key. */
		while ((cell = pl_cell_next(s->now, table, &pos)) != NULL)
			cell_point(d, s, table, cell, pl_aggregate_find(s->before, table, cell),
				false);
		if (over != NULL)
			cell_point(d, s, table, over, pl_cell_overflow(s->before, table), true);
	}
}

/* ---- snapshots ---- */

/* Makes tables of the configured size; after a change, earlier values are forgotten. */
static int fit(struct pl_series *s, const struct pl_aggregate_options *options)
{
	struct pl_aggregate *now, *before;
	int r;

	if (s->now != NULL && memcmp(options, &s->options, sizeof(*options)) == 0)
		return 0;
	r = pl_aggregate_new(&now, options);
	if (r < 0)
		return r;
	r = pl_aggregate_new(&before, options);
	if (r < 0) {
		pl_aggregate_free(now);
		return r;
	}
	pl_aggregate_free(s->now);
	pl_aggregate_free(s->before);
	s->now = now;
	s->before = before;
	s->options = *options;
	return 0;
}

/* Copies the present state of all workers to s->now. */
static int take(struct pl_series *s)
{
	struct pl_pipeline *p = s->pipeline;
	struct pl_aggregate_options options;
	int r;

	pthread_mutex_lock(&p->lock);
	r = pl_pipeline_snapshot(p);
	/* An outdated state must not count for this interval. */
	if (r == 0 && p->behind)
		r = -ETIMEDOUT;
	if (r == 0) {
		memset(&options, 0, sizeof(options));
		pl_config_aggregate(&p->config, &options);
		/* Checked when the file was read. */
		(void)pl_config_units(&p->config, &s->units, NULL);
		r = fit(s, &options);
	}
	if (r == 0) {
		pl_aggregate_reset(s->now);
		pl_aggregate_tick(s->now, pl_clock_mono_ns());
		pl_aggregate_merge(s->now, p->merged);
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

static void turn(struct pl_series *s)
{
	struct pl_aggregate *old = s->before;

	s->before = s->now;
	s->now = old;
}

struct page_target {
	struct pl_export *to;
	uint64_t now_ns;
};

static void page_point(void *ctx, const struct pl_series_point *point)
{
	struct page_target *t = ctx;

	pl_export_write_series(t->to, point, 1, t->now_ns);
}

static void write_page(const struct pl_series *s, struct pl_export *to, uint64_t now_ns)
{
	struct page_target target = { to, now_ns };
	struct pl_exposition page;
	struct pl_buf scratch;

	pl_buf_init(&scratch);
	pl_exposition_init_points(&page, &scratch, pl_clock_real_ns(), page_point, &target);
	(void)pl_metrics_write(s->pipeline, &page);
	pl_buf_done(&scratch);
}

static void write_points(void *arg, struct pl_export *to, uint64_t now_ns)
{
	struct pl_series *s = arg;
	struct draft d = { .to = to, .now_ns = now_ns };

	if (s->page) {
		write_page(s, to, now_ns);
		return;
	}
	if (take(s) < 0)
		return;
	d.point.ts_ns = pl_clock_real_ns();
	write_all(s, &d);
	turn(s);
}

static void begin_points(void *arg)
{
	struct pl_series *s = arg;

	/* When the collector starts there is no state yet: the first interval begins with zero. */
	if (!s->page && take(s) == 0)
		turn(s);
}

static void free_points(void *arg)
{
	struct pl_series *s = arg;

	pl_aggregate_free(s->now);
	pl_aggregate_free(s->before);
	free(s);
}

int pl_series_new(struct pl_output_points *ret, struct pl_pipeline *pipeline, bool page)
{
	struct pl_series *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->pipeline = pipeline;
	s->page = page;
	*ret = (struct pl_output_points){ s, begin_points, write_points, free_points };
	return 0;
}
