/* SPDX-License-Identifier: BSD-2-Clause */
#include "pipeline/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "detect/lean.h"
#include "pipeline/kernel_source.h"
#include "pipeline/metrics_page.h"
#include "pipeline/state.h"
#include "wire/report.h"

#define NS 1e-9

enum { KERNEL_FAMILIES = 9 };

/* ---- the process and its configuration ---- */

static void write_self(const struct pl_pipeline *p, struct pl_exposition *page)
{
	struct pl_label version[] = { TEXT("version", PL_VERSION), TEXT("compiler", __VERSION__) };
	struct pl_label ok[] = { TEXT("result", "success") }, bad[] = { TEXT("result", "failure") };

	gauge(page, "pathline_build_info", NULL, "Which pathline this is; always 1.");
	pl_exposition_u64(page, version, 2, 1);
	gauge_value(page, "pathline_start_time_seconds", "seconds",
		"When the collector started, since the Unix epoch.", (double)p->started_ns * NS);
	gauge_value(page, "pathline_memory_bound_bytes", "bytes",
		"What tables, queues and buffers can take at most with this configuration; the HTTP "
		"server's own buffers aside.",
		(double)pl_pipeline_memory(&p->config));
	gauge_value(page, "pathline_config_last_reload_successful", NULL,
		"Whether the last attempt to load the configuration succeeded.", p->last_reload_ok);
	gauge_value(page, "pathline_config_last_reload_success_timestamp_seconds", "seconds",
		"When the configuration in use was loaded, since the Unix epoch.",
		(double)p->last_reload_ok_ns * NS);
	counter(page, "pathline_config_reloads", NULL, "Attempts to load the configuration anew.");
	pl_exposition_u64(page, ok, 1, p->reloads_ok);
	pl_exposition_u64(page, bad, 1, p->reloads_failed);
}

/* ---- what came in ---- */

static void write_listeners(const struct pl_pipeline *p, struct pl_exposition *page)
{
	static const struct {
		const char *name, *unit, *help;
		size_t offset;
		bool gauge;
	} rows[] = {
		{ "pathline_socket_packets", NULL, "Datagrams taken from the socket.",
			offsetof(struct pl_port_stats, packets), false },
		{ "pathline_socket_received_bytes", "bytes",
			"Payload of the datagrams taken from the socket.",
			offsetof(struct pl_port_stats, bytes), false },
		{ "pathline_socket_drops", NULL,
			"Datagrams the kernel dropped: no room in the socket's buffer.",
			offsetof(struct pl_port_stats, kernel_drops), false },
		{ "pathline_socket_filtered", NULL,
			"Frames on the interface that are no report traffic, left to the host (afxdp).",
			offsetof(struct pl_port_stats, filtered), false },
		{ "pathline_socket_unread", NULL,
			"Report traffic on queues that are not read, left to the host (afxdp).",
			offsetof(struct pl_port_stats, no_socket), false },
		{ "pathline_socket_fragments", NULL,
			"IP fragments of datagrams to the port (afxdp: of any), left to the host.",
			offsetof(struct pl_port_stats, fragments), false },
		{ "pathline_socket_cut", NULL,
			"Datagrams longer than the receive buffer, handed over cut.",
			offsetof(struct pl_port_stats, cut), false },
		{ "pathline_socket_errors", NULL, "Failed receive calls.",
			offsetof(struct pl_port_stats, errors), false },
		{ "pathline_socket_buffer_bytes", "bytes", "Socket buffer the kernel granted.",
			offsetof(struct pl_port_stats, rcvbuf_bytes), true },
	};

	gauge(page, "pathline_listener_up", NULL,
		"Whether the socket is open and its interface there.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		struct pl_label l[] = { TEXT("listener", w->name), NUM("socket", w->index) };

		pl_exposition_u64(page, l, 2, atomic_load(&w->error) == 0);
	}
	counter(page, "pathline_listener_losses", NULL,
		"How often the socket or its interface was lost; it is opened again by itself.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		struct pl_label l[] = { TEXT("listener", w->name), NUM("socket", w->index) };

		pl_exposition_u64(page, l, 2, atomic_load(&w->losses));
	}
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		pl_exposition_family(page, rows[k].name,
			rows[k].gauge ? PL_METRIC_GAUGE : PL_METRIC_COUNTER, rows[k].unit,
			rows[k].help);
		for (unsigned int i = 0; i < p->n_workers; i++) {
			const struct pl_worker *w = p->workers[i];
			struct pl_label l[] = { TEXT("listener", w->name),
				NUM("socket", w->index) };

			pl_exposition_u64(page, l, 2, value_at(&w->snap.port, rows[k].offset));
		}
	}
}

/* What the detector in the kernel did, and what it handed up, and why; families without samples where there is none. */
static void write_kernel(const struct pl_pipeline *p, struct pl_exposition *page)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} rows[KERNEL_FAMILIES] = {
		{ "pathline_kernel_reports",
			"Datagrams with reports that the detector in the kernel saw.",
			offsetof(struct pl_kernel_counters, packets) },
		{ "pathline_kernel_settled", "Of them settled there.",
			offsetof(struct pl_kernel_counters, settled) },
		{ "pathline_kernel_quiet", "Of those, settled on the fast path.",
			offsetof(struct pl_kernel_counters, quiet) },
		{ "pathline_kernel_stirred", "Of those, with a value outside its quiet band.",
			offsetof(struct pl_kernel_counters, stirred) },
		{ "pathline_kernel_handed_up_lost", "Handed up, but the ring was full.",
			offsetof(struct pl_kernel_counters, handed_up_lost) },
		{ "pathline_kernel_copied",
			"Settled ones of which a copy came up, as detect.copy asks for.",
			offsetof(struct pl_kernel_counters, copied) },
		{ "pathline_kernel_copies_lost", "Copies for which the ring had no room.",
			offsetof(struct pl_kernel_counters, copies_lost) },
		{ "pathline_kernel_numbers_lost",
			"Sequence numbers left to user space for which the ring had no room.",
			offsetof(struct pl_kernel_counters, numbers_lost) },
		{ "pathline_kernel_events_lost", "Events for which their ring had no room.",
			offsetof(struct pl_kernel_counters, core.events_dropped) },
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		counter(page, rows[k].name, NULL, rows[k].help);
		for (unsigned int i = 0; i < p->n_workers; i++) {
			const struct pl_kernel_source *s = pl_kernel_source_of(p->workers[i]);
			struct pl_label l[] = { TEXT("listener", p->workers[i]->name) };

			if (s != NULL)
				pl_exposition_u64(page, l, 1,
					value_at(pl_kernel_source_counters(s), rows[k].offset));
		}
	}
	counter(page, "pathline_kernel_handed_up", NULL,
		"Datagrams the kernel did not settle, by why; they are decoded here.");
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_kernel_source *s = pl_kernel_source_of(p->workers[i]);

		for (unsigned int h = 0; s != NULL && h < PL_HANDUP_MAX; h++) {
			struct pl_label l[] = { TEXT("listener", p->workers[i]->name),
				TEXT("cause", pl_handup_name((enum pl_handup)h)) };

			if (l[1].text != NULL)
				pl_exposition_u64(
					page, l, 2, pl_kernel_source_counters(s)->handed_up[h]);
		}
	}
	counter(page, "pathline_kernel_slow_path", NULL,
		"Datagrams that took the slow path in the kernel, settled or handed up, by why; "
		"pathline help causes says what each means.");
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
	counter_value(page, "pathline_packets", NULL,
		"Datagrams decoded or refused: pathline_packets_decoded_total and the sum over "
		"pathline_report_errors_total.",
		t->packets);
	counter_value(page, "pathline_packets_settled", NULL,
		"Among them: dealt with by the detector in the kernel, never seen by a socket.",
		t->settled);
	counter_value(page, "pathline_packet_bytes", "bytes",
		"Payload of those that came to a socket.", t->bytes);
	counter_value(page, "pathline_packets_decoded", NULL,
		"Datagrams with nothing wrong in them.", t->verdicts[PL_V_OK]);
	counter(page, "pathline_report_errors", NULL,
		"Datagrams in which something was wrong, by what; reports before the fault are kept.");
	for (unsigned int i = 0; i < PL_V_MAX; i++) {
		struct pl_label l[] = { TEXT("reason", pl_verdict_name(i)) };

		if (i != PL_V_OK)
			pl_exposition_u64(page, l, 1, t->verdicts[i]);
	}
	counter(page, "pathline_notes", NULL,
		"Remarkable things in datagrams that decode, by what.");
	for (unsigned int i = 0; i < PL_N_MAX; i++) {
		struct pl_label l[] = { TEXT("note", pl_note_name(i)) };

		pl_exposition_u64(page, l, 1, t->notes[i]);
	}
	counter(page, "pathline_reports", NULL,
		"Reports decoded, by version of the telemetry report; none is telemetry without one, settled "
		"is what the detector in the kernel dealt with.");
	for (unsigned int i = 0; i < PL_TOTALS_VERSIONS; i++) {
		struct pl_label l[] = { TEXT("version", versions[i]) };

		pl_exposition_u64(page, l, 1, t->by_version[i]);
	}
	counter(page, "pathline_paths", NULL, "Reports decoded, by how the telemetry travelled.");
	for (unsigned int i = 0; i < PL_MODE_MAX; i++) {
		struct pl_label l[] = { TEXT("mode", pl_mode_name(i)) };

		pl_exposition_u64(page, l, 1, t->by_mode[i]);
	}
	counter_value(page, "pathline_hops", NULL, "Hops decoded.", t->hops);
	counter_value(page, "pathline_exporters_untracked", NULL,
		"Reports of exporters for which there was no room (decode.max_exporters): decoded, their "
		"losses unknown.",
		t->exporters_full);
	counter_value(page, "pathline_exporters_displaced", NULL,
		"Exporters that are not tracked any more because others needed the room: idle ones, or those of "
		"a source that had more than its share.",
		t->exporters_gone);
	counter_value(page, "pathline_reports_unproven", NULL,
		"Reports of exporters that had not shown yet that they number their reports: decoded and "
		"delivered, neither aggregated nor detected on (decode.admit).",
		t->unproven);
	counter_value(page, "pathline_paths_uninterned", NULL,
		"Reports with paths beyond decode.max_paths: identified, their nodes not remembered.",
		t->paths_full);
}

/* ---- exporters ---- */

static int by_identity(const void *a, const void *b)
{
	const struct pl_exporter *x = a, *y = b;
	int r = memcmp(&x->addr, &y->addr, sizeof(x->addr));

	if (r == 0)
		r = (x->node > y->node) - (x->node < y->node);
	if (r == 0)
		r = (int)x->hw_id - (int)y->hw_id;
	return r;
}

static int by_appearance(const void *a, const void *b)
{
	const struct pl_exporter *x = a, *y = b;

	if (x->first_ts_ns != y->first_ts_ns)
		return x->first_ts_ns < y->first_ts_ns ? -1 : 1;
	return by_identity(a, b);
}

/* An exporter, by its place among those of its source. */
struct ranked {
	const struct pl_exporter *x;
	struct pl_addr source;
	size_t rank;
};

static int by_source(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int r = memcmp(&x->source, &y->source, sizeof(x->source));

	return r != 0 ? r : by_appearance(x->x, y->x);
}

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : by_appearance(x->x, y->x);
}

/* Puts those first that get series: as many of each source, by appearance, as there is room for. -ENOMEM. */
static int share_out(struct pl_exporter *list, size_t n, size_t limit)
{
	struct ranked *order = calloc(n, sizeof(*order));
	struct pl_exporter *copy = calloc(n, sizeof(*copy));
	int r = order != NULL && copy != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		copy[i] = list[i];
		order[i] =
			(struct ranked){ .x = &copy[i], .source = pl_addr_source(&list[i].addr) };
	}
	if (r == 0) {
		qsort(order, n, sizeof(*order), by_source);
		for (size_t i = 1; i < n; i++)
			order[i].rank = pl_addr_equal(&order[i].source, &order[i - 1].source)
						? order[i - 1].rank + 1
						: 0;
		qsort(order, n, sizeof(*order), by_rank);
		for (size_t i = 0; i < n; i++)
			list[i] = *order[i].x;
		qsort(list, limit, sizeof(*list), by_appearance);
	}
	free(order);
	free(copy);
	return r;
}

static void add_exporter(struct pl_exporter *into, const struct pl_exporter *x)
{
	into->reports += x->reports;
	into->skipped += x->skipped;
	into->recovered += x->recovered;
	into->reordered += x->reordered;
	into->duplicates += x->duplicates;
	into->restarts += x->restarts;
	if (x->last_ts_ns > into->last_ts_ns)
		into->last_ts_ns = x->last_ts_ns;
	if (x->first_ts_ns < into->first_ts_ns)
		into->first_ts_ns = x->first_ts_ns;
}

int pl_metrics_exporters(const struct pl_pipeline *p, struct pl_exporters *ret)
{
	size_t n = 0, kept = 0, limit = p->config.metrics.max_exporters;
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
		add_exporter(&ret->others, &s->others);
	}
	qsort(list, n, sizeof(*list), by_identity);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && by_identity(&list[kept - 1], &list[i]) == 0)
			add_exporter(&list[kept - 1], &list[i]);
		else
			list[kept++] = list[i];
	}
	if (kept <= limit) {
		qsort(list, kept, sizeof(*list), by_appearance);
	} else if (share_out(list, kept, limit) < 0) {
		free(list);
		return -ENOMEM;
	}
	for (size_t i = limit; i < kept; i++) {
		add_exporter(&ret->others, &list[i]);
		ret->n_others++;
	}
	ret->n = kept < limit ? kept : limit;
	return 0;
}

/* Reports of version 0.5 name no node: an empty label, which is as good as none. */
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

static uint64_t exporter_value(const struct pl_exporter *x, unsigned int which)
{
	const uint64_t values[] = { x->reports, x->skipped, x->recovered, x->reordered,
		x->duplicates, x->restarts };

	return values[which];
}

static void write_exporters(const struct pl_exporters *e, struct pl_exposition *page)
{
	static const char *const rows[][2] = {
		{ "pathline_exporter_reports",
			"Reports of one sequence: exporter, node, hardware unit." },
		{ "pathline_exporter_skipped",
			"Sequence numbers passed over. Reports lost are these less the recovered ones." },
		{ "pathline_exporter_recovered", "Passed over, then late: not lost after all." },
		{ "pathline_exporter_reordered", "Reports that came after a later one." },
		{ "pathline_exporter_duplicates", "Reports that came more than once." },
		{ "pathline_exporter_restarts", "Times the sequence began anew." },
	};
	struct pl_label other[] = { TEXT("exporter", "other"), TEXT("node", "other"),
		TEXT("hw_id", "other") };
	struct exporter_labels t;

	for (unsigned int k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		counter(page, rows[k][0], NULL, rows[k][1]);
		for (size_t i = 0; i < e->n; i++) {
			exporter_labels(&t, &e->list[i]);
			pl_exposition_u64(page, t.l, 3, exporter_value(&e->list[i], k));
		}
		if (e->n_others > 0)
			pl_exposition_u64(page, other, 3, exporter_value(&e->others, k));
	}
	gauge(page, "pathline_exporter_last_report_timestamp_seconds", "seconds",
		"When the last report of the sequence came, since the Unix epoch.");
	for (size_t i = 0; i < e->n; i++) {
		exporter_labels(&t, &e->list[i]);
		pl_exposition_double(page, t.l, 3, (double)e->list[i].last_ts_ns * NS);
	}
	gauge(page, "pathline_exporter_unsequenced", NULL,
		"1 when the exporter sends a constant sequence number: its losses cannot be told.");
	for (size_t i = 0; i < e->n; i++) {
		exporter_labels(&t, &e->list[i]);
		pl_exposition_u64(page, t.l, 3, e->list[i].unsequenced);
	}
}

/* One of the totals that each family has a count in, over all workers. array: its offset in struct pl_agg_totals. */
static void write_by_family(const struct pl_pipeline *p, struct pl_exposition *page, size_t array)
{
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		struct pl_label l[] = { TEXT("family", pl_agg_table_name(t)) };
		uint64_t sum = 0;

		for (unsigned int i = 0; i < p->n_workers; i++) {
			const void *totals =
				pl_aggregate_totals(p->workers[i]->engine->aggregate_copy);
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
		"Members of a family that get series of their own; the rest share one labelled other.");
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++) {
		struct pl_label l[] = { TEXT("family", pl_agg_table_name(t)) };

		pl_exposition_u64(page, l, 1, pl_aggregate_limit(p->merged, t));
	}
	pl_exposition_u64(page, exporters, 1, p->config.metrics.max_exporters);
	gauge(page, "pathline_series_used", NULL,
		"Members of a family that have series of their own.");
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
		"Members of a family whose series ended because nothing was heard of them.");
	write_by_family(p, page, offsetof(struct pl_agg_totals, aged));
}

static void write_displaced(const struct pl_pipeline *p, struct pl_exposition *page)
{
	counter(page, "pathline_series_displaced", NULL,
		"Members of a family whose series went into the one labelled other: their source (an address, of "
		"IPv6 a /64) had more of the family than another one that needed the room.");
	write_by_family(p, page, offsetof(struct pl_agg_totals, displaced));
}

/* ---- events and outputs ---- */

static void write_events(
	const struct pl_totals *t, const struct pl_pipeline *p, struct pl_exposition *page)
{
	uint64_t flows = 0, raised = 0;

	counter(page, "pathline_events", NULL,
		"Events told, by kind; a begin and its end are two.");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		struct pl_label l[] = { TEXT("event", pl_event_kind_name(i)) };

		pl_exposition_u64(page, l, 1, t->events[i]);
	}
	counter(page, "pathline_events_limited", NULL,
		"Events held back because one kind and place had too many (detect.limit_*).");
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		struct pl_label l[] = { TEXT("event", pl_event_kind_name(i)) };

		pl_exposition_u64(page, l, 1, t->events_limited[i]);
	}
	counter_value(page, "pathline_events_dropped", NULL, "Events for which there was no room.",
		t->events_dropped);
	for (unsigned int i = 0; i < p->n_workers; i++) {
		flows += p->workers[i]->snap.flows;
		raised += p->workers[i]->snap.raised;
	}
	gauge_value(page, "pathline_flows", NULL, "Flows whose path is remembered.", (double)flows);
	gauge_value(page, "pathline_levels_raised", NULL,
		"Queues and hops above their threshold now.", (double)raised);
	counter_value(page, "pathline_flow_numbered_packets", NULL,
		"Packets that had a number of their flow from its source (GEANT, IOAM).",
		t->numbered);
	counter_value(page, "pathline_flow_lost_packets", NULL,
		"Packets whose number is missing in their flow, beyond doubt: the reports were all there.",
		t->flow_lost);
	counter_value(page, "pathline_flow_reordered_packets", NULL,
		"Packets that came after a later one of their flow, beyond doubt.",
		t->flow_reordered);
	counter_value(page, "pathline_flow_unsure_packets", NULL,
		"Numbers missing or out of order while reports of the exporter were, too: the packet, or its report.",
		t->flow_unsure);
	counter_value(page, "pathline_flow_restarts", NULL,
		"Times the numbers of a flow began anew.", t->flow_restarts);
	counter_value(page, "pathline_flow_numbers_full", NULL,
		"Numbered packets of flows that found no room: detect.max_flows is too small.",
		t->flow_numbers_full);
	counter_value(page, "pathline_flows_evicted", NULL,
		"Flows forgotten while still fresh: detect.max_flows is too small.",
		t->flows_evicted);
	counter_value(page, "pathline_levels_unfollowed", NULL,
		"Queues forgotten while still heard of: detect.max_queues is too small.",
		t->queues_full);
}

static void write_outputs(struct pl_pipeline *p, struct pl_exposition *page)
{
	static const struct {
		const char *name, *unit, *help;
		size_t offset;
		bool gauge;
	} rows[] = {
		{ "pathline_output_offered", NULL,
			"Entries (a report with its hops, or an event) offered to an output: accepted and "
			"dropped with cause queue_full.",
			offsetof(struct pl_output_stats, offered), false },
		{ "pathline_output_accepted", NULL,
			"Entries taken into an output's queue: filtered, delivered, dropped with any other cause, "
			"and waiting.",
			offsetof(struct pl_output_stats, accepted), false },
		{ "pathline_output_filtered", NULL, "Entries its expression is not true of.",
			offsetof(struct pl_output_stats, filtered), false },
		{ "pathline_output_delivered", NULL, "Entries delivered.",
			offsetof(struct pl_output_stats, delivered), false },
		{ "pathline_output_errors", NULL, "Failed attempts to deliver.",
			offsetof(struct pl_output_stats, errors), false },
		{ "pathline_output_written_bytes", "bytes", "Handed to the system.",
			offsetof(struct pl_output_stats, bytes), false },
		{ "pathline_output_rotations", NULL, "Files begun after the first.",
			offsetof(struct pl_output_stats, rotations), false },
		{ "pathline_output_points", NULL,
			"Points of series made for an output, entries beside those accepted into its queue.",
			offsetof(struct pl_output_stats, points), false },
		{ "pathline_output_recovered", NULL,
			"Entries found in the spool at the start, beside those accepted.",
			offsetof(struct pl_output_stats, recovered), false },
		{ "pathline_output_requests", NULL, "Requests made to a server.",
			offsetof(struct pl_output_stats, requests), false },
		{ "pathline_output_dead_letters", NULL,
			"Entries a server refused that were written to the dead-letter file.",
			offsetof(struct pl_output_stats, dead_letters), false },
		{ "pathline_output_folded", NULL,
			"Points written under an overflow key: more distinct sets of tags than max_keys.",
			offsetof(struct pl_output_stats, folded), false },
		{ "pathline_output_damaged_records", NULL,
			"Records of the spool that could not be read any more.",
			offsetof(struct pl_output_stats, damaged), false },
	};
	struct pl_output_stats s[PL_OUTPUTS_MAX];

	for (unsigned int i = 0; i < p->n_outputs; i++)
		pl_output_stats(p->outputs[i], &s[i]);
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		counter(page, rows[k].name, rows[k].unit, rows[k].help);
		for (unsigned int i = 0; i < p->n_outputs; i++) {
			struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

			pl_exposition_u64(page, l, 1, value_at(&s[i], rows[k].offset));
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
	gauge(page, "pathline_output_spooled", NULL, "Entries in an output's spool on disk.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

		pl_exposition_u64(page, l, 1, s[i].spooled);
	}
	gauge(page, "pathline_output_spool_bytes", "bytes",
		"What an output's spool takes on disk.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

		pl_exposition_u64(page, l, 1, s[i].spooled_bytes);
	}
	gauge(page, "pathline_output_waiting", NULL, "Entries in an output's queues and buffer.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

		pl_exposition_u64(page, l, 1, s[i].waiting + s[i].queued);
	}
	gauge(page, "pathline_output_up", NULL, "Whether the last attempt to deliver succeeded.");
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_label l[] = { TEXT("output", pl_output_name(p->outputs[i])) };

		pl_exposition_u64(page, l, 1, s[i].last_error == 0);
	}
}

int pl_metrics_write(struct pl_pipeline *p, struct pl_exposition *page)
{
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
	totals = p->gone;
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_totals_add(&totals, &p->workers[i]->snap.totals);
	write_self(p, page);
	write_listeners(p, page);
	write_totals(&totals, page);
	write_kernel(p, page);
	write_exporters(&exporters, page);
	write_limits(p, &exporters, page);
	write_displaced(p, page);
	pl_metrics_network(p->merged, &p->config, page);
	write_events(&totals, p, page);
	write_outputs(p, page);
	pthread_mutex_unlock(&p->lock);
	free(exporters.list);
	return 0;
}

uint64_t pl_metrics_series(const struct pl_config *config)
{
	uint64_t fixed = 64 + PL_V_MAX + PL_N_MAX + PL_TOTALS_VERSIONS + PL_MODE_MAX +
			 2 * PL_EVENT_KIND_MAX + 4 * (PL_AGG_TABLE_MAX + 1) + PL_AGG_TABLE_MAX;

	return fixed + 7 * pl_config_workers(config) +
	       (KERNEL_FAMILIES + PL_HANDUP_MAX + PL_SLOW_MAX) * config->sources.n +
	       (17 + PL_EXPORT_DROP_MAX) * (config->outputs.n + 1) +
	       7 * (config->metrics.max_exporters + 1) + pl_metrics_network_series(config);
}
