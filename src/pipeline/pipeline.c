/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and stops sources, workers and outputs. */
#include "pipeline/pipeline.h"
#include "pipeline/event_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "pipeline/kind.h"
#include "pipeline/region_source.h"
#include "pipeline/series.h"
#include "pipeline/state.h"

#define ADVISE_LOOK_NS (UINT64_C(100) * 1000000u)

/* ---- building parts ---- */

int pl_pipeline_open_output(struct pl_pipeline *p, struct pl_output **ret,
	const struct pl_config_output *c, struct pl_diag *diag)
{
	struct pl_output_options options = {
		.name = c->name,
		.queue_records = (uint32_t)c->queue_records,
		.paths = c->paths,
		.events = c->events,
		.values = c->values,
		.where = c->where,
	};
	struct pl_export *e;
	int r;

	if (c->interval_ns > 0) {
		options.interval_ns = c->interval_ns;
		r = pl_series_new(&options.points, p, pl_output_kinds[c->type]->page);
		if (r < 0)
			return r;
	}
	r = pl_output_kinds[c->type]->open(&e, c, pl_clock_mono_ns(), diag);
	if (r < 0) {
		pl_output_points_free(&options.points);
		return r;
	}
	return pl_output_new(ret, &options, e, diag);
}

static int new_aggregates(struct pl_engine *e, const struct pl_config *config)
{
	struct pl_aggregate_options options;
	int r;

	pl_config_aggregate(config, &options);
	r = pl_aggregate_new(&e->aggregate, &options);
	return r < 0 ? r : pl_aggregate_new(&e->aggregate_copy, &options);
}

int pl_pipeline_engine_new(struct pl_engine **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_worker *worker,
	const struct pl_changes *make)
{
	struct pl_engine *e = calloc(1, sizeof(*e));
	struct pl_decode_options decode;
	struct pl_detect_options detect;
	int r = 0;

	if (e == NULL)
		return -ENOMEM;
	e->taps = calloc(PL_OUTPUTS_MAX, sizeof(struct pl_tap *));
	if (e->taps == NULL)
		r = -ENOMEM;
	if (r == 0 && make->decode) {
		pl_config_decode(config, &decode);
		decode.profiles = profiles;
		decode.worker = (uint8_t)worker->id;
		decode.partial = worker->source.partial;
		if (worker->source.aside != NULL) {
			decode.number = worker->source.aside->number;
			decode.number_arg = worker->source.aside->arg;
		}
		r = pl_decode_new(&e->decode, &decode);
		if (r == 0)
			r = pl_advise_new(&e->advise, &decode, ADVISE_LOOK_NS);
	}
	if (r == 0 && make->aggregate)
		r = new_aggregates(e, config);
	pl_config_detect(config, &detect);
	e->units = detect.units;
	if (r == 0 && make->detect)
		r = pl_detect_new(&e->detect, &detect);
	if (r == 0 && make->rules) {
		e->rules = malloc(sizeof(*e->rules));
		if (e->rules != NULL)
			*e->rules = detect;
		else
			r = -ENOMEM;
	}
	if (r < 0) {
		pl_engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

int pl_pipeline_add_tap(struct pl_engine *e, struct pl_output *output)
{
	int r = pl_tap_new(&e->taps[e->n_taps], output);

	if (r == 0)
		e->n_taps++;
	return r;
}

/* ---- life ---- */

int pl_pipeline_keep_output(struct pl_pipeline *p, struct pl_output *output, const char *identity)
{
	char *copy = identity != NULL ? strdup(identity) : NULL;

	if (p->n_outputs == PL_OUTPUTS_MAX || (identity != NULL && copy == NULL)) {
		pl_output_free(output);
		free(copy);
		return -ENOMEM;
	}
	p->outputs[p->n_outputs] = output;
	/* An output that was removed may have been here. */
	p->output_full[p->n_outputs] = p->output_full_ns[p->n_outputs] = 0;
	p->output_ids[p->n_outputs++] = copy;
	return 0;
}

int pl_pipeline_new(struct pl_pipeline **ret, struct pl_config *config,
	const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_pipeline *p = calloc(1, sizeof(*p));
	const struct pl_config_source *s = config->sources.items;
	struct pl_aggregate_options aggregate;
	int r;

	if (p == NULL)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->said_lock, NULL);
	pl_buf_init(&p->said);
	p->started_ns = p->last_reload_ok_ns = pl_clock_real_ns();
	p->last_reload_ok = true;
	p->rights = rights;
	r = pl_config_profiles(config, &p->profiles, diag);
	if (r < 0)
		goto fail;
	pl_config_aggregate(config, &aggregate);
	r = pl_aggregate_new(&p->merged, &aggregate);
	for (size_t i = 0; r == 0 && i < config->sources.n; i++)
		r = pl_pipeline_open_source(
			p, config, p->profiles, &s[i], p->workers, &p->n_workers, diag);
	if (r == 0)
		r = pl_pipeline_open_regions(p, config, p->workers, &p->n_workers, diag);
	if (r == 0)
		r = pl_pipeline_open_events(p, config, p->workers, &p->n_workers, diag);
	if (r < 0)
		goto fail;
	p->config = *config;
	memset(config, 0, sizeof(*config));
	*ret = p;
	return 0;
fail:
	pl_pipeline_free(p);
	return r;
}

int pl_pipeline_add_output(struct pl_pipeline *p, const char *name, struct pl_export *export,
	uint32_t queue_records, struct pl_diag *diag)
{
	struct pl_output_options options = {
		.name = name,
		.queue_records = queue_records,
		.paths = true,
		.events = true,
		.values = true,
	};
	struct pl_output *output;
	int r = pl_output_new(&output, &options, export, diag);

	return r < 0 ? r : pl_pipeline_keep_output(p, output, NULL);
}

int pl_pipeline_start_worker(struct pl_pipeline *p, struct pl_worker *w,
	const struct pl_config *config, const struct pl_profile *profiles, const bool *skip_output)
{
	static const struct pl_changes all = { .decode = true, .aggregate = true, .detect = true };
	struct pl_engine *e;
	int r = pl_pipeline_engine_new(&e, config, profiles, w, &all);

	if (r < 0)
		return r;
	for (unsigned int i = 0; r == 0 && i < p->n_outputs; i++) {
		if (skip_output == NULL || !skip_output[i])
			r = pl_pipeline_add_tap(e, p->outputs[i]);
	}
	if (r < 0) {
		pl_engine_free(e);
		return r;
	}
	w->cpu = pl_source_cpu(w, (enum pl_config_pin)config->pin);
	return pl_worker_start(w, e);
}

static int open_outputs(struct pl_pipeline *p, struct pl_diag *diag)
{
	const struct pl_config_output *o = p->config.outputs.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->config.outputs.n; i++) {
		struct pl_output *output;

		r = pl_pipeline_open_output(p, &output, &o[i], diag);
		if (r == 0)
			r = pl_pipeline_keep_output(p, output, pl_config_output_identity(&o[i]));
	}
	return r;
}

int pl_pipeline_start(struct pl_pipeline *p, struct pl_diag *diag)
{
	int r = open_outputs(p, diag);

	if (r < 0)
		return r;
	if (p->regions != NULL)
		pl_region_source_open(p->regions);
	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; r == 0 && i < p->n_outputs; i++)
		r = pl_output_start(p->outputs[i], false);
	for (unsigned int i = 0; r == 0 && i < p->n_workers; i++)
		r = pl_pipeline_start_worker(p, p->workers[i], &p->config, p->profiles, NULL);
	p->running = r == 0;
	p->published_ns = pl_clock_mono_ns();
	pthread_mutex_unlock(&p->lock);
	pl_pipeline_ready(p, NULL);
	if (r < 0) {
		pl_diag_set(diag, "cannot start a worker or an output: %s", strerror(-r));
		pl_pipeline_stop(p, 0);
	}
	return r;
}

void pl_pipeline_reopen(struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_outputs; i++)
		pl_output_reopen(p->outputs[i]);
}

/* Ends all workers; `queries` false: except the one that takes events of standing queries. */
static void end_workers(struct pl_pipeline *p, bool queries, uint64_t deadline_ns)
{
	const struct pl_worker_feed *kept =
		p->events != NULL && !queries ? pl_event_feed_feed(p->events) : NULL;

	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (kept == NULL || p->workers[i]->source.feed != kept)
			pl_worker_stop_by(p->workers[i], deadline_ns);
	}
	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (kept == NULL || p->workers[i]->source.feed != kept)
			pl_worker_join(p->workers[i]);
	}
}

void pl_pipeline_end_sources(struct pl_pipeline *p, uint64_t limit_ns)
{
	end_workers(p, false, pl_clock_mono_ns() + limit_ns);
}

uint64_t pl_pipeline_stop(struct pl_pipeline *p, uint64_t limit_ns)
{
	uint64_t deadline = pl_clock_mono_ns() + limit_ns, left = 0;

	end_workers(p, true, deadline);
	for (unsigned int i = 0; i < p->n_outputs; i++)
		left += pl_output_stop(p->outputs[i], deadline);
	return left;
}

void pl_pipeline_free(struct pl_pipeline *p)
{
	if (p == NULL)
		return;
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_worker_free(p->workers[i]);
	pl_region_source_free(p->regions);
	pl_event_feed_free(p->events);
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		pl_output_free(p->outputs[i]);
		free(p->output_ids[i]);
	}
	pl_aggregate_free(p->merged);
	free(p->profiles);
	pl_config_done(&p->config);
	pl_buf_done(&p->said);
	pthread_mutex_destroy(&p->said_lock);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- reading ---- */

static void add_output_stats(struct pl_output_stats *into, const struct pl_output_stats *from)
{
	pl_stats_add(&pl_output_stats_list, into, from);
	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		into->dropped[i] += from->dropped[i];
}

static int read_stats(struct pl_pipeline *p, int (*snapshot)(struct pl_pipeline *p),
	struct pl_pipeline_stats *ret)
{
	struct pl_pipeline_stats s = { 0 };
	int r;

	pthread_mutex_lock(&p->lock);
	r = snapshot(p);
	if (r == 0) {
		s.totals = p->gone;
		s.ports = p->gone_ports;
		s.workers = p->n_workers;
		s.started_ns = p->started_ns;
		s.age_ns = pl_pipeline_age_ns(p);
		s.open_ns = pl_pipeline_open_ns(p);
		for (unsigned int i = 0; i < p->n_workers; i++) {
			const struct pl_worker *w = p->workers[i];

			pl_totals_add(&s.totals, &w->snap.totals);
			pl_port_stats_add(&s.ports, &w->snap.port);
			s.workers_failed += atomic_load(&w->error) != 0;
			s.exporters += w->snap.n_exporters + w->snap.n_others;
			s.flows += w->snap.flows;
			s.raised += w->snap.raised;
		}
		for (unsigned int i = 0; i < p->n_outputs; i++) {
			struct pl_output_stats o;

			if (p->output_ids[i] == NULL)
				continue;
			pl_output_stats(p->outputs[i], &o);
			add_output_stats(&s.outputs, &o);
		}
		*ret = s;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

int pl_pipeline_stats(struct pl_pipeline *p, struct pl_pipeline_stats *ret)
{
	return read_stats(p, pl_pipeline_snapshot, ret);
}

int pl_pipeline_stats_now(struct pl_pipeline *p, struct pl_pipeline_stats *ret)
{
	return read_stats(p, pl_pipeline_snapshot_now, ret);
}

const struct pl_config *pl_pipeline_config(const struct pl_pipeline *pipeline)
{
	return &pipeline->config;
}

const char *pl_pipeline_listener(const struct pl_pipeline *p, unsigned int i, uint16_t *ret_port)
{
	if (i >= p->n_workers || p->workers[i]->source.feed != NULL)
		return NULL;
	if (ret_port != NULL)
		*ret_port = p->workers[i]->local_port;
	return p->workers[i]->name;
}
