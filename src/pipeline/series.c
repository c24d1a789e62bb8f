/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the points of aggregates for an output. */
#include "pipeline/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "detect/units.h"
#include "export/exposition.h"
#include "export/process.h"
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

/* A point being put together. */
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

/* In the order of the names. */
static void label(struct draft *d, const char *name, bool other, bool there, uint64_t value)
{
	uint32_t i = d->point.n_labels;

	if (!other && !there)
		return;
	if (other)
		snprintf(d->texts[i], TEXT_MAX, "other");
	else
		snprintf(d->texts[i], TEXT_MAX, "%llu", (unsigned long long)value);
	d->labels[i] = (struct pl_series_label){ name, d->texts[i] };
	d->point.n_labels++;
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

/* hist minus before; false when it went back. */
static bool difference(
	struct pl_hist *ret, const struct pl_hist *hist, const struct pl_hist *before)
{
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

/* Field names of what happened within the interval. */
struct interval_names {
	const char *count, *mean, *p50, *p99, *max;
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
	/* Beyond the histogram's range there is no upper bound to tell. */
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
		field(d, names->max, NULL, PL_SERIES_GAUGE, pl_hist_upper(last));
}

/* Jitter in the point's own unit, and in the metrics' one. */
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

/* The 99th percentile of the variation within the interval. */
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
	"latency_p50_ns", "latency_p99_ns", "latency_max_ns" };
static const struct interval_names depth_names = { "depth_count", "depth_mean", "depth_p50",
	"depth_p99", "depth_highest" };

static void queue_point(struct draft *d, const struct pl_series *s, const struct pl_agg_queue *q,
	const struct pl_agg_queue *before, bool other)
{
	const uint64_t unit = other ? 0 : pl_units_queue(&s->units, q->key.node);
	const struct pl_aggregate *agg = s->now;
	uint32_t max;

	begin(d, "queue");
	label(d, "node", other, true, q->key.node);
	label(d, "port", other, (q->key.has & PL_KEY_HAS_PORT) != 0, q->key.port);
	label(d, "queue", other, (q->key.has & PL_KEY_HAS_QUEUE) != 0, q->key.queue);
	field(d, "packets", "pathline_queue_packets", PL_SERIES_COUNTER, q->packets);
	if (q->has_depth && !other)
		field(d, "depth", "pathline_queue_depth", PL_SERIES_GAUGE, q->last_depth);
	if (q->has_depth && unit != 0)
		field(d, "depth_bytes", "pathline_queue_depth_bytes", PL_SERIES_GAUGE,
			q->last_depth * unit);
	if (pl_aggregate_max(agg, &q->depth_max, &max)) {
		field(d, "depth_max", "pathline_queue_depth_max", PL_SERIES_GAUGE, max);
		if (unit != 0)
			field(d, "depth_max_bytes", "pathline_queue_depth_max_bytes",
				PL_SERIES_GAUGE, max * unit);
	}
	histogram(d, "pathline_hop_latency_seconds", &q->latency, &pl_bounds_latency);
	interval(d, &latency_names, &q->latency, before != NULL ? &before->latency : NULL);
	variation(d, &q->latency, before != NULL ? &before->latency : NULL);
	if (!other)
		jitter(d, "pathline_hop_jitter_seconds", &q->jitter, &q->latency);
	if (q->has_depth)
		interval(d, &depth_names, &q->depth, before != NULL ? &before->depth : NULL);
	emit(d);
}

static void port_point(
	struct draft *d, const struct pl_aggregate *agg, const struct pl_agg_port *x, bool other)
{
	uint32_t max;

	begin(d, "port");
	label(d, "node", other, true, x->key.node);
	label(d, "port", other, (x->key.has & PL_KEY_HAS_PORT) != 0, x->key.port);
	field(d, "packets", "pathline_port_packets", PL_SERIES_COUNTER, x->packets);
	if (x->has_util && !other)
		field(d, "utilization", "pathline_port_utilization", PL_SERIES_GAUGE, x->last_util);
	if (!other && pl_aggregate_max(agg, &x->util_max, &max))
		field(d, "utilization_max", "pathline_port_utilization_max", PL_SERIES_GAUGE, max);
	emit(d);
}

static void link_point(
	struct draft *d, const struct pl_agg_link *x, const struct pl_agg_link *before, bool other)
{
	static const char *const clocks[PL_CLOCK_MAX] = {
		[PL_CLOCK_OK] = "clock_ok",
		[PL_CLOCK_SKEWED] = "clock_skewed",
		[PL_CLOCK_IMPLAUSIBLE] = "clock_implausible",
		[PL_CLOCK_MIXED] = "clock_mixed",
	};

	begin(d, "link");
	label(d, "node", other, true, x->key.a);
	label(d, "peer", other, true, x->key.b);
	label(d, "peer_port", other, (x->key.has & PL_KEY_HAS_INGRESS) != 0, x->key.b_port);
	label(d, "port", other, (x->key.has & PL_KEY_HAS_PORT) != 0, x->key.a_port);
	field(d, "packets", "pathline_link_packets", PL_SERIES_COUNTER, x->reports);
	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		field(d, clocks[i], NULL, PL_SERIES_COUNTER, x->clock[i]);
	histogram(d, "pathline_link_latency_seconds", &x->latency, &pl_bounds_latency);
	interval(d, &latency_names, &x->latency, before != NULL ? &before->latency : NULL);
	variation(d, &x->latency, before != NULL ? &before->latency : NULL);
	if (!other)
		jitter(d, "pathline_link_jitter_seconds", &x->jitter, &x->latency);
	emit(d);
}

static void path_point(
	struct draft *d, const struct pl_agg_path *x, const struct pl_agg_path *before, bool other)
{
	begin(d, "path");
	label(d, "path_id", other, true, 0);
	if (!other)
		snprintf(d->texts[0], TEXT_MAX, "%016llx", (unsigned long long)x->key.path_id);
	field(d, "packets", "pathline_path_packets", PL_SERIES_COUNTER, x->reports);
	if (!other)
		field(d, "hops", NULL, PL_SERIES_GAUGE, x->hop_count);
	histogram(d, "pathline_path_latency_seconds", &x->latency, &pl_bounds_latency);
	interval(d, &latency_names, &x->latency, before != NULL ? &before->latency : NULL);
	emit(d);
}

static void write_all(const struct pl_series *s, struct draft *d)
{
	const struct pl_aggregate *a = s->now, *b = s->before;
	const struct pl_agg_queue *q, *q_over = pl_aggregate_queue_overflow(a);
	const struct pl_agg_port *x, *x_over = pl_aggregate_port_overflow(a);
	const struct pl_agg_link *l, *l_over = pl_aggregate_link_overflow(a);
	const struct pl_agg_path *p, *p_over = pl_aggregate_path_overflow(a);
	uint32_t pos = 0;

	while ((q = pl_aggregate_queue(a, &pos)) != NULL)
		queue_point(d, s, q, pl_aggregate_find(b, PL_AGG_QUEUES, &q->key), false);
	if (q_over->seen_ns != 0)
		queue_point(d, s, q_over, pl_aggregate_queue_overflow(b), true);
	for (pos = 0; (x = pl_aggregate_port(a, &pos)) != NULL;)
		port_point(d, a, x, false);
	if (x_over->seen_ns != 0)
		port_point(d, a, x_over, true);
	for (pos = 0; (l = pl_aggregate_link(a, &pos)) != NULL;)
		link_point(d, l, pl_aggregate_find(b, PL_AGG_LINKS, &l->key), false);
	if (l_over->seen_ns != 0)
		link_point(d, l_over, pl_aggregate_link_overflow(b), true);
	for (pos = 0; (p = pl_aggregate_path(a, &pos)) != NULL;)
		path_point(d, p, pl_aggregate_find(b, PL_AGG_PATHS, &p->key), false);
	if (p_over->seen_ns != 0)
		path_point(d, p_over, pl_aggregate_path_overflow(b), true);
}

/* ---- snapshots ---- */

/* Tables of the size that the configuration has now; what was before is forgotten when it
 * changed. */
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

/* What all workers see now, into s->now. */
static int take(struct pl_series *s)
{
	struct pl_pipeline *p = s->pipeline;
	struct pl_aggregate_options options;
	int r;

	pthread_mutex_lock(&p->lock);
	r = pl_pipeline_snapshot(p);
	/* Intervals are of what is seen now. */
	if (r == 0 && p->behind)
		r = -ETIMEDOUT;
	if (r == 0) {
		memset(&options, 0, sizeof(options));
		pl_config_aggregate(&p->config, &options);
		/* It was checked when the file was read. */
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

int pl_series_new(struct pl_series **ret, struct pl_pipeline *pipeline, bool page)
{
	struct pl_series *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->pipeline = pipeline;
	s->page = page;
	*ret = s;
	return 0;
}

void pl_series_free(struct pl_series *s)
{
	if (s == NULL)
		return;
	pl_aggregate_free(s->now);
	pl_aggregate_free(s->before);
	free(s);
}

void pl_series_begin(struct pl_series *s)
{
	/* At the start of the daemon there is nothing yet, and that is right too. */
	if (!s->page && take(s) == 0)
		turn(s);
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
	if (pl_metrics_write(s->pipeline, &page) == 0)
		pl_exposition_process(&page);
	pl_buf_done(&scratch);
}

void pl_series_write(struct pl_series *s, struct pl_export *to, uint64_t now_ns)
{
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
