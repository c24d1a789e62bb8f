/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the pipeline's status for the API: sources, counters, outputs and streams. */
#include "pipeline/api.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "pipeline/api_tables.h"

static void bool_member(struct pl_json *json, const char *key, bool v)
{
	pl_json_key(json, key);
	pl_json_bool(json, v);
}

static void time_member(struct pl_json *json, const char *key, const char *ns_key, uint64_t ts_ns)
{
	char text[PL_TIME_TEXT_MAX];

	pl_time_text(text, ts_ns);
	pl_json_text(json, key, text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)ts_ns);
	pl_json_text(json, ns_key, text);
}

static void write_sources(struct pl_json *json, const struct pl_pipeline *p)
{
	pl_json_key(json, "sources");
	pl_json_array(json);
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		const struct pl_snapshot *s = &w->snap;
		int error = atomic_load(&w->error);

		pl_json_object(json);
		pl_json_text(json, "name", w->name);
		pl_json_text(json, "uri", w->uri);
		pl_json_number(json, "socket", w->index);
		pl_json_number(json, "worker", w->id);
		bool_member(json, "up", error == 0);
		if (error != 0)
			pl_json_text(json, "trouble", strerrordesc_np(error));
		pl_stats_json(&pl_port_stats_list, &s->port, NULL, json);
		pl_json_key(json, "floods");
		pl_json_array(json);
		pl_floods_json(json, s->floods, s->n_floods);
		pl_json_array_end(json);
		pl_json_number(json, "reports", s->totals.stored);
		pl_json_number(json, "flows", s->flows);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

static void write_counts(struct pl_json *json, const struct pl_totals *t)
{
	pl_json_key(json, "packets");
	pl_json_object(json);
	pl_stats_json(&pl_totals_stats, t, "packets", json);
	pl_json_number(json, "decoded", t->verdicts[PL_V_OK]);
	pl_json_key(json, "refused");
	pl_json_object(json);
	for (unsigned int v = 0; v < PL_V_MAX; v++) {
		if (v != PL_V_OK && t->verdicts[v] > 0)
			pl_json_number(json, pl_verdict_name(v), t->verdicts[v]);
	}
	pl_json_object_end(json);
	pl_json_object_end(json);
	pl_json_key(json, "reports");
	pl_json_object(json);
	pl_stats_json(&pl_totals_stats, t, "reports", json);
	pl_json_object_end(json);
	pl_json_key(json, "events");
	pl_json_object(json);
	for (unsigned int k = 0; k < PL_EVENT_KIND_MAX; k++)
		pl_json_number(json, pl_event_kind_name(k), t->events[k]);
	pl_json_object_end(json);
	pl_json_key(json, "flow_numbers");
	pl_json_object(json);
	pl_stats_json(&pl_totals_stats, t, "flow_numbers", json);
	pl_json_object_end(json);
	pl_stats_json(&pl_totals_stats, t, NULL, json);
}

static void write_output(struct pl_json *json, struct pl_output *output)
{
	struct pl_output_stats s;

	pl_output_stats(output, &s);
	pl_json_object(json);
	pl_json_text(json, "name", pl_output_name(output));
	bool_member(json, "up", s.last_error == 0);
	if (s.last_error != 0)
		pl_json_text(json, "trouble",
			strerrordesc_np(s.last_error < 0 ? -s.last_error : s.last_error));
	pl_stats_json(&pl_output_stats_list, &s, NULL, json);
	pl_json_key(json, "dropped");
	pl_json_object(json);
	for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++) {
		if (s.dropped[c] > 0)
			pl_json_number(json, pl_export_drop_name(c), s.dropped[c]);
	}
	pl_json_object_end(json);
	pl_json_object_end(json);
}

static void write_streams(struct pl_json *json, struct pl_watch *live)
{
	const struct pl_watch_kind *kind;
	struct pl_watch_stats s;
	char text[PL_ADDR_TEXT_MAX];

	pl_json_key(json, "streams");
	pl_json_array(json);
	for (unsigned int i = 0; live != NULL && pl_watch_stats(live, i, &s); i++) {
		pl_json_object(json);
		pl_format_addr(text, &s.address);
		pl_json_text(json, "address", pl_addr_is_unspecified(&s.address) ? "local" : text);
		pl_json_text(json, "form", pl_watch_form_name(s.form));
		bool_member(json, "paths", s.paths);
		bool_member(json, "events", s.events);
		bool_member(json, "values", s.values);
		for (unsigned int k = 0; (kind = pl_watch_kind_at(k)) != NULL; k++)
			bool_member(json, kind->name, (s.flat & 1u << kind->flat) != 0);
		pl_json_number(json, "seen", s.seen);
		pl_json_number(json, "filtered", s.filtered);
		pl_json_number(json, "sent", s.sent);
		pl_json_number(json, "dropped", s.dropped);
		pl_json_number(json, "missed", s.missed);
		pl_json_number(json, "waiting_bytes", s.waiting_bytes);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

/* Returns where events are detected; a worker with `aside` drives the detector in the kernel. */
static const char *detect_where(const struct pl_pipeline *p)
{
	bool kernel = false, user = false;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker_source *s = &p->workers[i]->source;

		kernel = kernel || s->aside != NULL;
		user = user || (s->aside == NULL && !s->detected_elsewhere && !s->partial);
	}
	return kernel && user ? "both" : kernel ? "kernel" : "user";
}

/* JSON values that are made without the pipeline's lock. */
struct parts_text {
	struct pl_buf ready, conditions, accounts;
	bool all_ready;
};

static void write_status(struct pl_pipeline *p, struct pl_watch *live,
	const struct parts_text *parts, struct pl_json *json)
{
	struct pl_totals totals = p->gone;
	uint64_t now = pl_clock_real_ns(), raised = 0, flows = 0, exporters = 0;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_snapshot *s = &p->workers[i]->snap;

		pl_totals_add(&totals, &s->totals);
		raised += s->raised;
		flows += s->flows;
		exporters += s->n_exporters + s->n_others;
	}
	pl_json_time(json, now);
	pl_json_text(json, "version", PL_VERSION);
	time_member(json, "started", "started_ns", p->started_ns);
	pl_json_number(
		json, "uptime_s", now > p->started_ns ? (now - p->started_ns) / 1000000000u : 0);
	pl_json_text(json, "detect", detect_where(p));
	bool_member(json, "ready", parts->all_ready);
	pl_json_key(json, "conditions");
	pl_json_raw(json, parts->conditions.data, parts->conditions.len);
	pl_json_key(json, "readiness");
	pl_json_raw(json, parts->ready.data, parts->ready.len);
	bool_member(json, "config_reload_ok", p->last_reload_ok);
	pl_json_number(json, "workers", p->n_workers);
	pl_json_number(json, "age_ns", pl_pipeline_age_ns(p));
	pl_json_number(json, "exporters", exporters);
	pl_json_number(json, "flows", flows);
	pl_json_number(json, "levels_raised", raised);
	write_sources(json, p);
	write_counts(json, &totals);
	pl_json_key(json, "outputs");
	pl_json_array(json);
	for (unsigned int i = 0; i < p->n_outputs; i++)
		write_output(json, p->outputs[i]);
	pl_json_array_end(json);
	pl_json_key(json, "parts");
	pl_json_raw(json, parts->accounts.data, parts->accounts.len);
	write_streams(json, live);
}

static void read_parts(
	struct pl_pipeline *p, const struct pl_api_parts *parts, struct parts_text *ret)
{
	struct pl_json json;

	pl_buf_init(&ret->ready);
	pl_buf_init(&ret->conditions);
	pl_buf_init(&ret->accounts);
	pl_pipeline_ready(p, &ret->ready);
	pl_json_init(&json, &ret->conditions);
	pl_json_array(&json);
	ret->all_ready = parts->conditions(parts->arg, &json);
	pl_json_array_end(&json);
	pl_json_init(&json, &ret->accounts);
	pl_json_object(&json);
	parts->accounts(parts->arg, &json);
	pl_json_object_end(&json);
}

static void done_parts(struct parts_text *t)
{
	pl_buf_done(&t->ready);
	pl_buf_done(&t->conditions);
	pl_buf_done(&t->accounts);
}

int pl_api_status_write(struct pl_pipeline *p, struct pl_watch *live,
	const struct pl_api_parts *parts, struct pl_buf *out, struct pl_api_problem *problem)
{
	struct parts_text text;
	struct pl_json json;
	int r;

	read_parts(p, parts, &text);
	pthread_mutex_lock(&p->lock);
	r = pl_pipeline_snapshot(p);
	if (r < 0) {
		pl_api_no_snapshot(r, problem);
	} else if (text.ready.failed || text.conditions.failed || text.accounts.failed) {
		r = pl_api_no_memory(problem);
	} else {
		pl_json_init(&json, out);
		pl_json_object(&json);
		write_status(p, live, &text, &json);
		pl_json_object_end(&json);
		pl_buf_chr(out, '\n');
	}
	pthread_mutex_unlock(&p->lock);
	done_parts(&text);
	return r;
}
