/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes from one configuration to the next while packets come. First everything new is opened and
 * made; if any of it fails, it is undone and nothing has changed. Then the workers exchange their
 * parts at their quiet points; sockets are closed only for sources that are removed, after they
 * were drained.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/event_feed.h"
#include "pipeline/kernel_source.h"
#include "pipeline/region_source.h"
#include "pipeline/reload_fixed.h"
#include "pipeline/state.h"

#define REMOVE_LIMIT_NS (UINT64_C(1) * 1000000000u)
/* For all removed outputs together: the service manager expects a sign of life within half a
 * minute. */
#define DRAIN_LIMIT_NS  (UINT64_C(15) * 1000000000u)

struct plan {
	struct pl_pipeline *p;
	struct pl_config *to;
	struct pl_profile *profiles;
	struct pl_changes changes;
	struct pl_aggregate *merged;
	struct pl_worker *added[PL_WORKERS_MAX];
	unsigned int n_added;
	bool gone[PL_WORKERS_MAX];        /* of p->workers */
	bool output_gone[PL_OUTPUTS_MAX]; /* of p->outputs */
	unsigned int outputs_before;
	bool regions_added;                        /* none were read before */
	bool events_added;                         /* there were none before */
	struct pl_engine *engines[PL_WORKERS_MAX]; /* for workers that stay */
};

/* Returns whether a detector can continue with the other rules: its tables have the same sizes. */
static bool same_tables(const struct pl_config *a, const struct pl_config *b)
{
	uint32_t had[PL_CORE_T_MAX], wants[PL_CORE_T_MAX];
	struct pl_detect_options options;

	pl_config_detect(a, &options);
	pl_detect_entries(&options, had);
	pl_config_detect(b, &options);
	pl_detect_entries(&options, wants);
	return memcmp(had, wants, sizeof(had)) == 0;
}

static bool same_copies(const struct pl_config *a, const struct pl_config *b)
{
	struct pl_kernel_wanted had, wants;

	pl_config_copies(a, &had);
	pl_config_copies(b, &wants);
	return had.sample == wants.sample && had.match == wants.match && had.flags == wants.flags &&
	       had.node_set == wants.node_set && had.node == wants.node &&
	       pl_addr_equal(&had.addr, &wants.addr);
}

/* Returns whether a decoder can continue: all that pl_config_decode reads is equal. */
static bool same_decode(const struct pl_config *a, const struct pl_config *b)
{
	/* Configurations are zeroed before they are filled, so padding is equal. */
	const size_t plain =
		offsetof(struct pl_config, decode.ioam_time) - offsetof(struct pl_config, decode);

	return memcmp(&a->decode, &b->decode, plain) == 0 &&
	       pl_reload_same_names(&a->decode.ioam_time, &b->decode.ioam_time) &&
	       pl_reload_same_names(&a->decode.vxlan_ports, &b->decode.vxlan_ports) &&
	       a->detect.forget_ns == b->detect.forget_ns;
}

static bool same_units(const struct pl_config *a, const struct pl_config *b)
{
	struct pl_core_units had, wants;

	/* Both were checked when they were read. */
	(void)pl_config_units(a, &had, NULL);
	(void)pl_config_units(b, &wants, NULL);
	return memcmp(&had, &wants, sizeof(had)) == 0;
}

static int plan_parts(struct plan *plan, struct pl_diag *diag)
{
	const struct pl_config *from = &plan->p->config, *to = plan->to;
	struct pl_aggregate_options options;
	int r = pl_config_profiles(to, &plan->profiles, diag);

	if (r < 0)
		return r;
	plan->changes.decode = !same_decode(from, to) || from->profiles.n != to->profiles.n ||
			       memcmp(plan->profiles, plan->p->profiles,
				       to->profiles.n * sizeof(*plan->profiles)) != 0;
	plan->changes.aggregate =
		memcmp(&from->aggregate, &to->aggregate, sizeof(to->aggregate)) != 0;
	/* The detector tracks the decoder's exporters: they start together. Padding as above. */
	plan->changes.rules = /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		memcmp(&from->detect, &to->detect, sizeof(to->detect)) != 0 ||
		!same_units(from, to);
	plan->changes.detect =
		plan->changes.decode || (plan->changes.rules && !same_tables(from, to));
	plan->changes.rules = plan->changes.rules && !plan->changes.detect;
	plan->changes.copies = !same_copies(from, to);
	if (!plan->changes.aggregate)
		return 0;
	pl_config_aggregate(to, &options);
	return pl_aggregate_new(&plan->merged, &options);
}

/* Workers of removed sources run until those of new ones do. */
static int check_room(const struct plan *plan, unsigned int workers, struct pl_diag *diag)
{
	if (plan->p->n_workers + plan->n_added + workers <= PL_WORKERS_MAX)
		return 0;
	return pl_diag_fail(diag, -E2BIG,
		"too many sockets at a time; remove sources in one reload and add new ones in the next");
}

static int plan_sources(struct plan *plan, struct pl_diag *diag)
{
	const struct pl_config_source *s = plan->to->sources.items;
	int r = 0;

	for (unsigned int i = 0; i < plan->p->n_workers; i++)
		plan->gone[i] = plan->p->workers[i]->source.feed == NULL &&
				pl_config_find_source(plan->to, plan->p->workers[i]->uri) == NULL;
	for (size_t i = 0; r == 0 && i < plan->to->sources.n; i++) {
		if (pl_config_find_source(&plan->p->config, s[i].uri) != NULL)
			continue;
		r = check_room(plan, pl_config_source_workers(plan->to, &s[i]), diag);
		if (r == 0)
			r = pl_pipeline_open_source(plan->p, plan->to, plan->profiles, &s[i],
				plan->added, &plan->n_added, diag);
	}
	if (r == 0 && plan->p->regions == NULL) {
		r = check_room(plan, pl_config_reads(plan->to), diag);
		if (r == 0)
			r = pl_pipeline_open_regions(
				plan->p, plan->to, plan->added, &plan->n_added, diag);
		plan->regions_added = r == 0 && plan->p->regions != NULL;
		if (plan->regions_added)
			pl_region_source_open(plan->p->regions);
	}
	if (r == 0 && plan->p->events == NULL) {
		r = check_room(plan, plan->to->queries.n + plan->to->marks.n > 0, diag);
		if (r == 0)
			r = pl_pipeline_open_events(
				plan->p, plan->to, plan->added, &plan->n_added, diag);
		plan->events_added = r == 0 && plan->p->events != NULL;
	}
	return r;
}

/* Opens and starts new outputs, which join the pipeline at once; they get nothing until the workers
 * have taps. */
static int plan_outputs(struct plan *plan, struct pl_diag *diag)
{
	struct pl_pipeline *p = plan->p;
	const struct pl_config_output *o = plan->to->outputs.items;
	int r = 0;

	for (unsigned int i = 0; i < p->n_outputs; i++)
		plan->output_gone[i] = p->output_ids[i] != NULL &&
				       pl_config_find_output(plan->to, p->output_ids[i]) == NULL;
	for (size_t i = 0; r == 0 && i < plan->to->outputs.n; i++) {
		struct pl_output *output;

		if (pl_config_find_output(&p->config, pl_config_output_identity(&o[i])) != NULL)
			continue;
		r = pl_pipeline_open_output(p, &output, &o[i], diag);
		if (r < 0)
			break;
		r = pl_pipeline_keep_output(p, output, pl_config_output_identity(&o[i]));
		if (r == 0)
			r = pl_output_start(output, true);
		if (r < 0)
			pl_diag_set(diag,
				"no room for another output, or its thread cannot be started");
	}
	return r;
}

/* Returns the engine's tap for an output. */
static struct pl_tap *find_tap(const struct pl_engine *e, const struct pl_output *output)
{
	for (unsigned int i = 0; i < e->n_taps; i++) {
		if (pl_tap_output(e->taps[i]) == output)
			return e->taps[i];
	}
	return NULL;
}

static int plan_engines(struct plan *plan)
{
	struct pl_pipeline *p = plan->p;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		struct pl_engine *e;
		int r;

		if (plan->gone[i])
			continue;
		r = pl_pipeline_engine_new(
			&e, plan->to, plan->profiles, p->workers[i], &plan->changes);
		if (r < 0)
			return r;
		plan->engines[i] = e;
		for (unsigned int k = 0; k < p->n_outputs; k++) {
			struct pl_tap *t = NULL;

			if (k < plan->outputs_before && plan->output_gone[k])
				continue;
			/* Engines of running workers are only exchanged by this thread. */
			if (k < plan->outputs_before)
				t = find_tap(p->workers[i]->engine, p->outputs[k]);
			if (t != NULL) {
				e->taps[e->n_taps++] = t;
				continue;
			}
			r = pl_pipeline_add_tap(e, p->outputs[k]);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Removes taps from `e` that `other` uses, too: freeing `e` must not close them. */
static void forget_shared_taps(struct pl_engine *e, const struct pl_engine *other)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < e->n_taps; i++) {
		bool shared = false;

		for (unsigned int k = 0; k < other->n_taps; k++)
			shared = shared || other->taps[k] == e->taps[i];
		if (!shared)
			e->taps[kept++] = e->taps[i];
	}
	e->n_taps = kept;
}

static void drop_output(struct pl_pipeline *p, unsigned int i, uint64_t limit_ns)
{
	struct pl_output *o = p->outputs[i];
	uint64_t left;

	free(p->output_ids[i]);
	p->n_outputs--;
	for (unsigned int k = i; k < p->n_outputs; k++) {
		p->outputs[k] = p->outputs[k + 1];
		p->output_ids[k] = p->output_ids[k + 1];
		p->output_full[k] = p->output_full[k + 1];
		p->output_full_ns[k] = p->output_full_ns[k + 1];
	}
	/* Unlocked: pages must not wait for a slow disk. */
	pthread_mutex_unlock(&p->lock);
	left = pl_output_stop(o, pl_clock_mono_ns() + limit_ns);
	if (left > 0)
		pl_warn("reload", "%s is removed; %llu entries were not delivered",
			pl_output_name(o), (unsigned long long)left);
	pl_output_free(o);
	pthread_mutex_lock(&p->lock);
}

static void undo(struct plan *plan)
{
	struct pl_pipeline *p = plan->p;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (plan->engines[i] == NULL)
			continue;
		forget_shared_taps(plan->engines[i], p->workers[i]->engine);
		pl_engine_free(plan->engines[i]);
	}
	for (unsigned int i = 0; i < plan->n_added; i++) {
		pl_worker_stop_by(plan->added[i], 1);
		pl_worker_join(plan->added[i]);
		pl_worker_free(plan->added[i]);
	}
	if (plan->regions_added) {
		pl_region_source_free(p->regions);
		p->regions = NULL;
	}
	if (plan->events_added) {
		pl_event_feed_free(p->events);
		p->events = NULL;
	}
	while (p->n_outputs > plan->outputs_before)
		drop_output(p, p->n_outputs - 1, 0);
	pl_aggregate_free(plan->merged);
	free(plan->profiles);
}

static void remove_worker(struct pl_pipeline *p, unsigned int i)
{
	struct pl_worker *w = p->workers[i];

	pl_worker_stop_by(w, pl_clock_mono_ns() + REMOVE_LIMIT_NS);
	pl_worker_join(w);
	/* The process goes on, and nothing else would end them. */
	pl_worker_end_events(w);
	pl_worker_ask(w);
	/* The thread has ended: the answer is there at once. */
	(void)pl_worker_answered(w);
	pl_worker_take(w);
	pl_totals_add(&p->gone, &w->snap.totals);
	pl_port_stats_add(&p->gone_ports, &w->snap.port);
	pl_worker_free(w);
	p->workers[i] = NULL;
}

/* Applies the plan; nothing fails from here on. */
static void apply(struct plan *plan)
{
	struct pl_pipeline *p = plan->p;
	const struct pl_config_output *o = plan->to->outputs.items;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		struct pl_engine *old, *engine = plan->engines[i];

		/* Only removed sources have no engine. */
		if (engine == NULL) {
			remove_worker(p, i);
			continue;
		}
		if ((plan->changes.detect || plan->changes.rules || plan->changes.copies) &&
			pl_kernel_source_of(p->workers[i]) != NULL &&
			pl_kernel_source_change(pl_kernel_source_of(p->workers[i]), plan->to) < 0)
			pl_error("reload",
				"%s: no memory for the new thresholds; the old ones stay",
				p->workers[i]->uri);
		pl_worker_exchange(p->workers[i], engine, &old);
		forget_shared_taps(old, engine);
		pl_engine_free(old);
	}
	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (p->workers[i] != NULL)
			p->workers[kept++] = p->workers[i];
	}
	for (unsigned int i = 0; i < plan->n_added; i++)
		p->workers[kept++] = plan->added[i];
	p->n_workers = kept;
	for (size_t i = 0; i < plan->to->outputs.n; i++) {
		for (unsigned int k = 0; k < plan->outputs_before; k++) {
			struct pl_output_options options = {
				.paths = o[i].paths,
				.events = o[i].events,
				.values = o[i].values,
				.where = o[i].where,
			};

			/* The expression compiled when the file was checked: only memory can be
			 * short. */
			if (p->output_ids[k] != NULL &&
				strcmp(p->output_ids[k], pl_config_output_identity(&o[i])) == 0 &&
				pl_output_configure(p->outputs[k], &options, NULL) < 0)
				pl_error("reload",
					"%s: no memory for the new expression; the old one stays",
					o[i].name);
		}
	}
	if (plan->merged != NULL) {
		pl_aggregate_free(p->merged);
		p->merged = plan->merged;
	}
	if (p->regions != NULL && !plan->regions_added &&
		pl_region_source_change(p->regions, plan->to) < 0)
		pl_error("reload", "no memory for other regions; those that are read stay");
	pl_pipeline_forget_answers(p);
	free(p->profiles);
	p->profiles = plan->profiles;
}

static void say_changes(const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->p->n_workers; i++)
		pl_kernel_source_tell_kept(plan->p->workers[i], plan->to);
	if (plan->changes.decode)
		pl_notice(
			"reload", "decode changed: sequence tracking and path tables start empty");
	if (plan->changes.aggregate)
		pl_notice("reload",
			"aggregate changed: the series of queues, ports, links and paths start empty");
	if (plan->changes.detect && !plan->changes.decode)
		pl_notice("reload", "detect changed: known flows and level events start empty");
	if (plan->changes.rules)
		pl_notice("reload",
			"detect changed: new rules apply from now on; flows and level events are kept");
}

/* Set before workers lose their taps to removed outputs, cleared when these have ended. */
static void unsettle(const struct plan *plan, bool unsettled)
{
	const struct pl_pipeline *p = plan->p;
	bool any = false;

	for (unsigned int i = 0; i < plan->outputs_before; i++)
		any = any || plan->output_gone[i];
	for (unsigned int i = 0; any && i < p->n_workers; i++)
		atomic_store(&p->workers[i]->unsettled, unsettled);
}

/* Returns how long each removed output may take. */
static uint64_t drain_limit(const struct plan *plan)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < plan->outputs_before; i++)
		n += plan->output_gone[i];
	if (n == 0 || plan->to->drain_ns < DRAIN_LIMIT_NS / n)
		return plan->to->drain_ns;
	return DRAIN_LIMIT_NS / n;
}

int pl_pipeline_reload(struct pl_pipeline *p, struct pl_config *config, struct pl_diag *diag)
{
	struct plan plan = { .p = p, .to = config, .outputs_before = p->n_outputs };
	uint64_t limit_ns;
	int r;

	pthread_mutex_lock(&p->lock);
	r = pl_reload_names(&p->config, config, diag);
	if (r == 0) {
		pl_reload_keep_fixed(&p->config, config);
		r = plan_parts(&plan, diag);
	}
	if (r == 0)
		r = plan_outputs(&plan, diag);
	if (r == 0)
		r = plan_sources(&plan, diag);
	if (r == 0)
		r = plan_engines(&plan);
	for (unsigned int i = 0; r == 0 && i < plan.n_added; i++)
		r = pl_pipeline_start_worker(
			p, plan.added[i], config, plan.profiles, plan.output_gone);
	if (r < 0) {
		undo(&plan);
		p->reloads_failed++;
		p->last_reload_ok = false;
		pthread_mutex_unlock(&p->lock);
		return r;
	}
	unsettle(&plan, true);
	apply(&plan);
	say_changes(&plan);
	limit_ns = drain_limit(&plan);
	for (unsigned int i = plan.outputs_before; i-- > 0;) {
		if (plan.output_gone[i])
			drop_output(p, i, limit_ns);
	}
	unsettle(&plan, false);
	pl_config_done(&p->config);
	p->config = *config;
	memset(config, 0, sizeof(*config));
	p->reloads_ok++;
	p->last_reload_ok = true;
	p->last_reload_ok_ns = pl_clock_real_ns();
	pthread_mutex_unlock(&p->lock);
	return 0;
}

void pl_pipeline_reload_failed(struct pl_pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->reloads_failed++;
	p->last_reload_ok = false;
	pthread_mutex_unlock(&p->lock);
}
