/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the collector's families of the metrics page. */
#include "pipeline/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "detect/direct.h"
#include "export/process.h"
#include "pipeline/kernel_source.h"
#include "pipeline/metrics_page.h"
#include "pipeline/state.h"
#include "wire/report.h"

#define NS 1e-9

/* ---- the process and its configuration ---- */

static void write_self(const struct pl_pipeline *p, struct pl_exposition *page)
{
	struct pl_label version[] = { TEXT("version", PL_VERSION), TEXT("compiler", __VERSION__) };
	struct pl_label ok[] = { TEXT("result", "success") }, bad[] = { TEXT("result", "failure") };

	gauge(page, "pathline_build_info", NULL, "Version of pathline, as labels; always 1.");
	pl_exposition_u64(page, version, 2, 1);
	gauge_value(page, "pathline_start_time_seconds", "seconds",
		"When the collector started, since the Unix epoch.", (double)p->started_ns * NS);
	gauge_value(page, "pathline_memory_bound_bytes", "bytes",
		"Upper bound of the memory of tables, queues and buffers with this configuration, without the buffers of the HTTP server.",
		(double)pl_pipeline_memory(&p->config));
	gauge_value(page, "pathline_config_last_reload_successful", NULL,
		"Whether the last attempt to load the configuration succeeded.", p->last_reload_ok);
	gauge_value(page, "pathline_config_last_reload_success_timestamp_seconds", "seconds",
		"When the configuration in use was loaded, since the Unix epoch.",
		(double)p->last_reload_ok_ns * NS);
	gauge_value(page, "pathline_state_age_seconds", "seconds",
		"Age of the workers' state that this page tells: more than a moment when a worker does not answer.",
		(double)pl_pipeline_age_ns(p) * NS);
	counter(page, "pathline_config_reloads", NULL, "Attempts to reload the configuration.");
	pl_exposition_u64(page, ok, 1, p->reloads_ok);
	pl_exposition_u64(page, bad, 1, p->reloads_failed);
}

/* ---- sources ---- */

static void write_listeners(const struct pl_pipeline *p, struct pl_exposition *page)
{
	gauge(page, "pathline_listener_up", NULL,
		"Whether the socket is open and its interface there.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		struct pl_label l[] = { TEXT("listener", w->name), NUM("socket", w->index) };

		pl_exposition_u64(page, l, 2, atomic_load(&w->error) == 0);
	}
	counter(page, "pathline_listener_losses", NULL,
		"Times the socket or its interface was lost; pathline opens it again by itself.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		struct pl_label l[] = { TEXT("listener", w->name), NUM("socket", w->index) };

		pl_exposition_u64(page, l, 2, atomic_load(&w->losses));
	}
	for (unsigned int k = 0; k < pl_port_stats_list.n; k++) {
		const struct pl_stat *stat = &pl_port_stats_list.rows[k];

		pl_exposition_stat(page, stat);
		for (unsigned int i = 0; i < p->n_workers; i++) {
			const struct pl_worker *w = p->workers[i];
			struct pl_label l[] = { TEXT("listener", w->name),
				NUM("socket", w->index) };

			pl_exposition_u64(page, l, 2, pl_stat_read(stat, &w->snap.port));
		}
	}
}

/* Writes counters of the detector in the kernel, and escalations by cause; families without samples
 * where there is none. */
static void write_kernel(const struct pl_pipeline *p, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < pl_kernel_stats.n; k++) {
		const struct pl_stat *stat = &pl_kernel_stats.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < p->n_workers; i++) {
			const struct pl_kernel_source *s = pl_kernel_source_of(p->workers[i]);
			struct pl_label l[] = { TEXT("listener", p->workers[i]->name) };

			if (s != NULL)
				pl_exposition_u64(page, l, 1,
					pl_stat_read(stat, pl_kernel_source_counters(s)));
		}
	}
	counter(page, "pathline_kernel_escalated", NULL,
		"Datagrams that the detector in the kernel escalated to user space, by cause.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_kernel_source *s = pl_kernel_source_of(p->workers[i]);

		for (unsigned int h = 0; s != NULL && h < PL_ESCALATION_MAX; h++) {
			struct pl_label l[] = { TEXT("listener", p->workers[i]->name),
				TEXT("cause", pl_escalation_name((enum pl_escalation)h)) };

			if (l[1].text != NULL)
				pl_exposition_u64(
					page, l, 2, pl_kernel_source_counters(s)->escalated[h]);
		}
	}
	counter(page, "pathline_kernel_slow_path", NULL,
		"Datagrams that took the slow path in the kernel, settled or escalated, by cause; \"pathline help causes\" explains the causes.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_kernel_source *s = pl_kernel_source_of(p->workers[i]);

		for (unsigned int k = 1; s != NULL && k < PL_SLOW_MAX; k++) {
			struct pl_label l[] = { TEXT("listener", p->workers[i]->name),
				TEXT("cause", pl_slow_name((enum pl_slow)k)) };

			pl_exposition_u64(page, l, 2, pl_kernel_source_counters(s)->slow[k]);
		}
	}
}

static void write_totals(const struct pl_totals *t, struct pl_exposition *page)
{
	static const char *const versions[] = { "none", "0.5", "1.0", "2.0", "settled" };

	_Static_assert(
		sizeof(versions) / sizeof(versions[0]) == PL_TOTALS_VERSIONS, "one name each");
	for (unsigned int k = 0; k < pl_totals_stats.n; k++) {
		const struct pl_stat *stat = &pl_totals_stats.rows[k];

		if (pl_exposition_stat(page, stat))
			pl_exposition_u64(page, NULL, 0, pl_stat_read(stat, t));
	}
	counter_value(page, "pathline_packets_decoded", NULL,
		"Datagrams that were decoded without an error.", t->verdicts[PL_V_OK]);
	counter(page, "pathline_report_errors", NULL,
		"Datagrams with an error, by cause; reports before the error are kept.");
	for (unsigned int i = 0; i < PL_V_MAX; i++) {
		struct pl_label l[] = { TEXT("reason", pl_verdict_name(i)) };

		if (i != PL_V_OK)
			pl_exposition_u64(page, l, 1, t->verdicts[i]);
	}
	counter(page, "pathline_notes", NULL,
		"Unusual findings in datagrams that were decoded, by kind.");
	for (unsigned int i = 0; i < PL_N_MAX; i++) {
		struct pl_label l[] = { TEXT("note", pl_note_name(i)) };

		pl_exposition_u64(page, l, 1, t->notes[i]);
	}
	counter(page, "pathline_reports", NULL,
		"Reports decoded, by version of the telemetry report; none is telemetry without a report, settled was settled by the detector in the kernel.");
	for (unsigned int i = 0; i < PL_TOTALS_VERSIONS; i++) {
		struct pl_label l[] = { TEXT("version", versions[i]) };

		pl_exposition_u64(page, l, 1, t->by_version[i]);
	}
	counter(page, "pathline_paths", NULL, "Reports decoded, by mode of the telemetry.");
	for (unsigned int i = 0; i < PL_MODE_MAX; i++) {
		struct pl_label l[] = { TEXT("mode", pl_mode_name(i)) };

		pl_exposition_u64(page, l, 1, t->by_mode[i]);
	}
}

/* ---- exporters ---- */

int pl_metrics_exporters(const struct pl_pipeline *p, struct pl_exporters *ret)
{
	size_t n = 0, kept = 0;
	struct pl_exporter *list;

	for (unsigned int i = 0; i < p->n_workers; i++)
		n += p->workers[i]->snap.n_exporters;
	list = calloc(n + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	*ret = (struct pl_exporters){ .list = list };
	n = 0;
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_snapshot *s = &p->workers[i]->snap;

		if (s->n_exporters > 0)
			memcpy(list + n, s->exporters, s->n_exporters * sizeof(*list));
		n += s->n_exporters;
		ret->n_others += s->n_others;
		pl_exporter_add(&ret->others, &s->others);
	}
	qsort(list, n, sizeof(*list), pl_exporter_compare);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && pl_exporter_compare(&list[kept - 1], &list[i]) == 0)
			pl_exporter_add(&list[kept - 1], &list[i]);
		else
			list[kept++] = list[i];
	}
	ret->n = kept;
	return pl_exporters_bound(ret, p->config.metrics.max_exporters);
}

/* Reports of version 0.5 have no node: the label is empty, which equals none. */
struct exporter_labels {
	char node[24];
	struct pl_label l[3];
};

static void exporter_labels(struct exporter_labels *t, const struct pl_exporter *x)
{
	t->node[0] = '\0';
	if (x->report_version != PL_REPORT_V05)
		snprintf(t->node, sizeof(t->node), "%" PRIu64, x->node);
	t->l[0] = (struct pl_label)ADDR("exporter", x->addr);
	t->l[1] = (struct pl_label)TEXT("node", t->node);
	t->l[2] = (struct pl_label)NUM("hw_id", x->hw_id);
}

static void write_exporters(const struct pl_exporters *e, struct pl_exposition *page)
{
	struct pl_label other[] = { TEXT("exporter", "other"), TEXT("node", "other"),
		TEXT("hw_id", "other") };
	struct exporter_labels t;

	for (unsigned int k = 0; k < pl_exporter_stats.n; k++) {
		const struct pl_stat *stat = &pl_exporter_stats.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (size_t i = 0; i < e->n; i++) {
			exporter_labels(&t, &e->list[i]);
			pl_exposition_u64(page, t.l, 3, pl_stat_read(stat, &e->list[i]));
		}
		if (e->n_others > 0)
			pl_exposition_u64(page, other, 3, pl_stat_read(stat, &e->others));
	}
	gauge(page, "pathline_exporter_last_report_timestamp_seconds", "seconds",
		"When the last report of the sequence came, since the Unix epoch.");
	for (size_t i = 0; i < e->n; i++) {
		exporter_labels(&t, &e->list[i]);
		pl_exposition_double(page, t.l, 3, (double)e->list[i].last_ts_ns * NS);
	}
	gauge(page, "pathline_exporter_unsequenced", NULL,
		"1 when the exporter sends a constant sequence number: its losses cannot be measured.");
	for (size_t i = 0; i < e->n; i++) {
		exporter_labels(&t, &e->list[i]);
		pl_exposition_u64(page, t.l, 3, e->list[i].unsequenced);
	}
	gauge(page, "pathline_exporter_shared", NULL,
		"1 when several senders number their reports under this identity (address, node, hardware unit), or their reports overtake each other by far: missing reports cannot be told, and are not counted.");
	for (size_t i = 0; i < e->n; i++) {
		exporter_labels(&t, &e->list[i]);
		pl_exposition_u64(page, t.l, 3, e->list[i].shared);
	}
}

/* Writes a total that each family has, summed over all workers. array: its offset in struct
 * pl_agg_totals. */
static void write_by_family(const struct pl_pipeline *p, struct pl_exposition *page, size_t array)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		struct pl_label l[] = { TEXT("family", pl_agg_table_name(t)) };
		uint64_t sum = 0;

		for (unsigned int i = 0; i < p->n_workers; i++) {
			const void *totals = &p->workers[i]->snap.aggregate;
			const uint64_t *counts = (const void *)((const char *)totals + array);

			sum += counts[t];
		}
		pl_exposition_u64(page, l, 1, sum);
	}
}

/* ---- bounds ---- */

static void write_limits(
	const struct pl_pipeline *p, const struct pl_exporters *e, struct pl_exposition *page)
{
	struct pl_label exporters[] = { TEXT("family", "exporters") };

	gauge(page, "pathline_series_limit", NULL,
		"Limit of members of a family with their own series; all others share one labelled other.");
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		struct pl_label l[] = { TEXT("family", pl_agg_table_name(t)) };

		pl_exposition_u64(page, l, 1, pl_aggregate_limit(p->merged, t));
	}
	pl_exposition_u64(page, exporters, 1, p->config.metrics.max_exporters);
	gauge(page, "pathline_series_used", NULL,
		"Members of a family that have their own series.");
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		struct pl_label l[] = { TEXT("family", pl_agg_table_name(t)) };

		pl_exposition_u64(page, l, 1, pl_aggregate_count(p->merged, t));
	}
	pl_exposition_u64(page, exporters, 1, e->n);
	counter(page, "pathline_series_limited", NULL,
		"Readings folded into the series labelled other because the family was at its limit.");
	write_by_family(p, page, offsetof(struct pl_agg_totals, overflow));
	pl_exposition_u64(page, exporters, 1, e->others.reports);
	counter(page, "pathline_series_aged", NULL,
		"Members of a family whose series ended because they were not seen for aggregate.idle.");
	write_by_family(p, page, offsetof(struct pl_agg_totals, aged));
}

static void write_displaced(const struct pl_pipeline *p, struct pl_exposition *page)
{
	counter(page, "pathline_series_displaced", NULL,
		"Members of a family whose series were merged into the one labelled other, because their source (an address, for IPv6 a /64) had more of the family than another source that needed the room.");
	write_by_family(p, page, offsetof(struct pl_agg_totals, displaced));
}

/* ---- events and outputs ---- */

static void write_events(
	const struct pl_totals *t, const struct pl_pipeline *p, struct pl_exposition *page)
{
	uint64_t flows = 0, raised = 0;

	counter(page, "pathline_events", NULL,
		"Events reported, by kind; a begin and its end count as two.");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		struct pl_label l[] = { TEXT("event", pl_event_kind_name(i)) };

		pl_exposition_u64(page, l, 1, t->events[i]);
	}
	counter(page, "pathline_events_limited", NULL,
		"Events suppressed because one kind and place had too many (detect.limit_*).");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		struct pl_label l[] = { TEXT("event", pl_event_kind_name(i)) };

		pl_exposition_u64(page, l, 1, t->events_limited[i]);
	}
	for (unsigned int i = 0; i < p->n_workers; i++) {
		flows += p->workers[i]->snap.flows;
		raised += p->workers[i]->snap.raised;
	}
	gauge_value(page, "pathline_flows", NULL, "Flows whose path is remembered.", (double)flows);
	gauge_value(page, "pathline_levels_raised", NULL,
		"Queues and hops above their threshold now.", (double)raised);
}

static void write_outputs(struct pl_pipeline *p, struct pl_exposition *page)
{
	struct pl_output_stats s[PL_OUTPUTS_MAX];

	for (unsigned int i = 0; i < p->n_outputs; i++)
		pl_output_stats(p->outputs[i], &s[i]);
	for (unsigned int k = 0; k < pl_output_stats_list.n; k++) {
		const struct pl_stat *stat = &pl_output_stats_list.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < p->n_outputs; i++) {
			struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

			pl_exposition_u64(page, l, 1, pl_stat_read(stat, &s[i]));
		}
	}
	counter(page, "pathline_output_dropped", NULL,
		"Entries an output could not deliver, by cause.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++) {
			struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])),
				TEXT("cause", pl_export_drop_name(c)) };

			pl_exposition_u64(page, l, 2, s[i].dropped[c]);
		}
	}
	gauge(page, "pathline_output_up", NULL, "Whether the last attempt to deliver succeeded.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

		pl_exposition_u64(page, l, 1, s[i].last_error == 0);
	}
}

static void write_page(struct pl_pipeline *p, const struct pl_totals *totals,
	const struct pl_exporters *exporters, struct pl_exposition *page)
{
	write_self(p, page);
	write_listeners(p, page);
	write_totals(totals, page);
	write_kernel(p, page);
	write_exporters(exporters, page);
	write_limits(p, exporters, page);
	write_displaced(p, page);
	pl_metrics_network(p->merged, &p->config, page);
	write_events(totals, p, page);
	write_outputs(p, page);
}

/* A counter never falls, but the sum does when one of them is forgotten, or gets its own series. */
static void show_others(struct pl_pipeline *p, struct pl_exporters *e)
{
	for (unsigned int k = 0; k < pl_exporter_stats.n; k++) {
		const struct pl_stat *stat = &pl_exporter_stats.rows[k];
		const uint64_t now = pl_stat_read(stat, &e->others);
		const uint64_t before = pl_stat_read(stat, &p->others_read);
		uint64_t *shown = (void *)((char *)&p->others_shown + stat->offset);

		*shown = stat->gauge ? now : *shown + (now > before ? now - before : 0);
	}
	p->others_read = e->others;
	e->others = p->others_shown;
}

int pl_metrics_write(void *pipeline, struct pl_exposition *page)
{
	struct pl_pipeline *p = pipeline;
	struct pl_totals totals;
	struct pl_exporters exporters = { .list = NULL };
	int r;

	pthread_mutex_lock(&p->lock);
	r = pl_pipeline_snapshot(p);
	if (r == 0)
		r = pl_metrics_exporters(p, &exporters);
	if (r < 0) {
		pthread_mutex_unlock(&p->lock);
		return r;
	}
	show_others(p, &exporters);
	totals = p->gone;
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_totals_add(&totals, &p->workers[i]->snap.totals);
	write_page(p, &totals, &exporters, page);
	if (p->regions != NULL)
		pl_metrics_regions(p->regions, page);
	pthread_mutex_unlock(&p->lock);
	free(exporters.list);
	pl_exposition_process(page);
	/* This state answers requests for the readiness that come while the pipeline is locked. */
	pl_pipeline_ready(p, NULL);
	if (p->families != NULL)
		p->families(p, page);
	return 0;
}

int pl_metrics_describe(struct pl_exposition *page)
{
	const struct pl_totals totals = { 0 };
	const struct pl_exporters exporters = { .list = NULL };
	struct pl_pipeline *p = calloc(1, sizeof(*p));
	struct pl_aggregate_options aggregate;
	int r = p != NULL ? pl_config_defaults(&p->config) : -ENOMEM;

	if (r == 0) {
		pl_config_aggregate(&p->config, &aggregate);
		r = pl_aggregate_new(&p->merged, &aggregate);
		if (r == 0)
			write_page(p, &totals, &exporters, page);
		pl_metrics_regions(NULL, page);
		pl_exposition_process(page);
		pl_aggregate_free(p->merged);
		pl_config_done(&p->config);
	}
	free(p);
	return r;
}

uint64_t pl_metrics_series(const struct pl_config *config)
{
	uint64_t fixed = 128 + pl_totals_stats.n + PL_V_MAX + PL_N_MAX + PL_TOTALS_VERSIONS +
			 PL_MODE_MAX + 2 * PL_EVENT_KIND_MAX + 4 * (PL_AGG_TABLE_MAX + 1) +
			 PL_AGG_TABLE_MAX;

	return fixed + pl_config_services_series(config) +
	       (pl_port_stats_list.n + 2) * pl_config_workers(config) +
	       (pl_kernel_stats.n + PL_ESCALATION_MAX + PL_SLOW_MAX) * config->sources.n +
	       (pl_output_stats_list.n + 1 + PL_EXPORT_DROP_MAX) * (config->outputs.n + 2) +
	       (pl_exporter_stats.n + 2) * (config->metrics.max_exporters + 1) +
	       pl_metrics_network_series(config);
}
