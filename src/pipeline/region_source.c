/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the worker that reads regions. */
#include "pipeline/region_source.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/region_alerts.h"

struct pl_region_source {
	pthread_mutex_t lock; /* protects the inputs, during a turn, a change, a read of stats */
	struct pl_region_input **inputs;
	unsigned int n;
	struct pl_region_input **leaving; /* removed inputs, until their events have ended */
	unsigned int n_leaving;
	const struct pl_region_keys *keys;
	uint64_t told[PL_EVENT_KIND_MAX]; /* events of rules on values; written by the worker */
	struct pl_worker_feed feed;
	sem_t wake;
	_Atomic bool woken;
};

static void free_inputs(struct pl_region_input **inputs, unsigned int n)
{
	for (unsigned int i = 0; inputs != NULL && i < n; i++)
		pl_region_input_free(inputs[i]);
	free(inputs);
}

/* ---- worker ---- */

static void let_leave(struct pl_region_source *s, const struct pl_region_room *room)
{
	for (unsigned int i = 0; i < s->n_leaving; i++) {
		if (s->leaving[i] != NULL)
			pl_region_input_end(s->leaving[i], room);
	}
	free_inputs(s->leaving, s->n_leaving);
	s->leaving = NULL;
	s->n_leaving = 0;
}

static bool take(void *arg, uint64_t now_ns, uint64_t ts_ns, bool final,
	struct pl_record_batch *paths, struct pl_event_batch *events, struct pl_value_batch *values)
{
	struct pl_region_source *s = arg;
	const bool woken = atomic_exchange(&s->woken, false);
	const struct pl_region_room room = { .paths = paths,
		.events = events,
		.values = values,
		.told = s->told,
		.now_ns = now_ns,
		.ts_ns = ts_ns,
		.final = final };
	bool more = false;

	while (woken && sem_trywait(&s->wake) == 0)
		;
	pthread_mutex_lock(&s->lock);
	let_leave(s, &room);
	for (unsigned int i = 0; i < s->n; i++) {
		if (woken)
			pl_region_input_wake(s->inputs[i]);
		more = pl_region_input_step(s->inputs[i], &room) || more;
	}
	pthread_mutex_unlock(&s->lock);
	return more;
}

static uint64_t due_ns(struct pl_region_source *s)
{
	uint64_t due = UINT64_MAX;

	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < s->n; i++) {
		const uint64_t d = pl_region_input_due_ns(s->inputs[i]);

		due = d < due ? d : due;
	}
	pthread_mutex_unlock(&s->lock);
	return due;
}

static void wait_for_more(void *arg, uint64_t limit_ns)
{
	struct pl_region_source *s = arg;
	const uint64_t now = pl_clock_mono_ns(), due = due_ns(s);
	const uint64_t until = due < now + limit_ns ? due : now + limit_ns;
	const struct timespec t = pl_clock_timespec(until);

	if (until > now)
		(void)sem_clockwait(&s->wake, CLOCK_MONOTONIC, &t);
}

static int trouble(void *arg, char *dst, size_t cap)
{
	struct pl_region_source *s = arg;
	int error = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < s->n && error == 0; i++) {
		const struct pl_region_input_stats *t = pl_region_input_stats(s->inputs[i]);

		if (t->readable)
			continue;
		error = ENODATA;
		snprintf(dst, cap, "region %s: %s", t->name,
			t->trouble[0] != '\0' ? t->trouble : "is not open yet");
	}
	pthread_mutex_unlock(&s->lock);
	return error;
}

static void totals(void *arg, struct pl_totals *t)
{
	const struct pl_region_source *s = arg;

	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		t->events[i] += s->told[i];
}

/* ---- controlling thread ---- */

/* The regions to be read. */
struct plan {
	struct pl_region_input **inputs;  /* NULL: the present input is kept */
	struct pl_region_alerts **alerts; /* for its input; NULL: no rules */
	unsigned int n;
};

static void drop_plan(struct plan *plan)
{
	for (unsigned int i = 0; plan->alerts != NULL && i < plan->n; i++)
		pl_region_alerts_free(plan->alerts[i]);
	free(plan->alerts);
	free_inputs(plan->inputs, plan->n);
	*plan = (struct plan){ .n = 0 };
}

static struct pl_region_input **reader_of(
	struct pl_region_source *s, const struct pl_config_region *r)
{
	for (unsigned int k = 0; k < s->n; k++) {
		if (s->inputs[k] != NULL && pl_region_input_is(s->inputs[k], r))
			return &s->inputs[k];
	}
	return NULL;
}

static bool rules_of(struct pl_region_alert_rules *ret, const struct pl_config *config,
	const struct pl_config_region *r)
{
	return pl_region_alert_rules(ret, r, config->detect.idle_ns, config->detect.forget_ns);
}

static const struct pl_key_names *keys_of(const struct pl_region_source *s, const char *region)
{
	for (unsigned int i = 0; i < s->keys->n; i++) {
		if (strcmp(s->keys->items[i].region, region) == 0)
			return s->keys->items[i].names;
	}
	return NULL;
}

/* Sets what a reload may change. */
static void give(const struct pl_region_source *s, struct pl_region_input *in,
	struct pl_region_alerts **alerts, const struct pl_config *config,
	const struct pl_config_region *r)
{
	struct pl_region_alert_rules rules;

	(void)rules_of(&rules, config, r);
	pl_region_input_set_alerts(in, alerts, &rules);
	pl_region_input_set_slot(in, config->aggregate.slot_ns);
	pl_region_input_set_keys(in, r->writer == PL_WRITER_DTA ? keys_of(s, r->name) : NULL);
}

/* Makes inputs for regions that are not read yet, and rules for all. */
static int make_plan(
	struct pl_region_source *have, const struct pl_config *config, struct plan *ret)
{
	const struct pl_config_region *r = config->regions.items;
	const size_t most = config->regions.n + 1;
	struct plan p = { .inputs = calloc(most, sizeof(struct pl_region_input *)),
		.alerts = calloc(most, sizeof(struct pl_region_alerts *)) };
	struct pl_region_alert_rules rules;
	int e = p.inputs != NULL && p.alerts != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; e == 0 && i < config->regions.n; i++) {
		if (!pl_config_reads_region(&r[i]))
			continue;
		if (reader_of(have, &r[i]) == NULL)
			e = pl_region_input_new(&p.inputs[p.n], &r[i]);
		if (e == 0 && rules_of(&rules, config, &r[i]))
			e = pl_region_alerts_new(&p.alerts[p.n], r[i].name, &rules);
		if (e == 0 && p.inputs[p.n] != NULL)
			give(have, p.inputs[p.n], &p.alerts[p.n], config, &r[i]);
		p.n++;
	}
	if (e < 0) {
		drop_plan(&p);
		return e;
	}
	*ret = p;
	return 0;
}

/* Moves the inputs that are kept to the plan. */
static void complete(struct pl_region_source *s, const struct pl_config *config, struct plan *p)
{
	const struct pl_config_region *r = config->regions.items;
	unsigned int at = 0;

	for (size_t i = 0; i < config->regions.n; i++) {
		if (!pl_config_reads_region(&r[i]))
			continue;
		if (p->inputs[at] == NULL) {
			struct pl_region_input **stays = reader_of(s, &r[i]);

			assert(stays != NULL); /* names differ: no other region took it */
			p->inputs[at] = *stays;
			*stays = NULL;
			give(s, p->inputs[at], &p->alerts[at], config, &r[i]);
		}
		at++;
	}
}

/* Moves inputs no longer read to `leaving`, until the worker's next turn, into `room`. */
static void leave(struct pl_region_source *s, struct pl_region_input **room)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n_leaving; i++)
		room[n++] = s->leaving[i];
	for (unsigned int i = 0; i < s->n; i++)
		room[n++] = s->inputs[i];
	free(s->leaving);
	free(s->inputs);
	s->leaving = room;
	s->n_leaving = n;
}

int pl_region_source_change(struct pl_region_source *s, const struct pl_config *config)
{
	struct pl_region_input **room;
	struct plan p;
	int r;

	pthread_mutex_lock(&s->lock);
	room = calloc(s->n_leaving + s->n + 1, sizeof(struct pl_region_input *));
	pthread_mutex_unlock(&s->lock);
	r = room != NULL ? make_plan(s, config, &p) : -ENOMEM;
	if (r < 0) {
		free(room);
		return r;
	}
	for (unsigned int i = 0; i < p.n; i++) {
		if (p.inputs[i] != NULL)
			pl_region_input_open(p.inputs[i], true);
	}
	pthread_mutex_lock(&s->lock);
	complete(s, config, &p);
	leave(s, room);
	s->inputs = p.inputs;
	s->n = p.n;
	pthread_mutex_unlock(&s->lock);
	p.inputs = NULL;
	drop_plan(&p);
	return 0;
}

int pl_region_source_new(struct pl_region_source **ret, const struct pl_config *config,
	const struct pl_region_keys *keys)
{
	struct pl_region_source *s = calloc(1, sizeof(*s));
	struct plan p;
	int r;

	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	sem_init(&s->wake, 0, 0);
	s->keys = keys;
	s->feed = (struct pl_worker_feed){
		.take = take, .wait = wait_for_more, .trouble = trouble, .totals = totals, .arg = s
	};
	r = make_plan(s, config, &p);
	if (r < 0) {
		pl_region_source_free(s);
		return r;
	}
	s->inputs = p.inputs;
	s->n = p.n;
	p.inputs = NULL;
	drop_plan(&p);
	*ret = s;
	return 0;
}

void pl_region_source_open(struct pl_region_source *s)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < s->n; i++)
		pl_region_input_open(s->inputs[i], true);
	pthread_mutex_unlock(&s->lock);
}

void pl_region_source_free(struct pl_region_source *s)
{
	if (s == NULL)
		return;
	free_inputs(s->inputs, s->n);
	free_inputs(s->leaving, s->n_leaving);
	sem_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const struct pl_worker_feed *pl_region_source_feed(const struct pl_region_source *s)
{
	return &s->feed;
}

void pl_region_source_take_keys(struct pl_region_source *s)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < s->n; i++)
		pl_region_input_set_keys(
			s->inputs[i], keys_of(s, pl_region_input_stats(s->inputs[i])->name));
	pthread_mutex_unlock(&s->lock);
}

void pl_region_source_wake(struct pl_region_source *s)
{
	/* One post for any number of calls. */
	if (!atomic_exchange(&s->woken, true))
		sem_post(&s->wake);
}

bool pl_region_source_stats(
	struct pl_region_source *s, unsigned int i, struct pl_region_input_stats *ret)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	found = i < s->n;
	if (found)
		*ret = *pl_region_input_stats(s->inputs[i]);
	pthread_mutex_unlock(&s->lock);
	return found;
}
