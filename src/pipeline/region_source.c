/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the worker that reads regions. */
#include "pipeline/region_source.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct pl_region_source {
	pthread_mutex_t lock; /* the inputs, during a turn, a change, a look at stats */
	struct pl_region_input **inputs;
	unsigned int n;
	struct pl_worker_feed feed;
	sem_t wake;
	_Atomic bool woken;
};

/* ---- the worker's side ---- */

static bool take(void *arg, uint64_t now_ns, uint64_t ts_ns, bool final,
	struct pl_record_batch *paths, struct pl_event_batch *events, struct pl_value_batch *values)
{
	struct pl_region_source *s = arg;
	const bool woken = atomic_exchange(&s->woken, false);
	const struct pl_region_room room = { .paths = paths,
		.events = events,
		.values = values,
		.now_ns = now_ns,
		.ts_ns = ts_ns,
		.final = final };
	bool more = false;

	while (woken && sem_trywait(&s->wake) == 0)
		;
	pthread_mutex_lock(&s->lock);
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

/* ---- the controlling side ---- */

static void free_inputs(struct pl_region_input **inputs, unsigned int n)
{
	for (unsigned int i = 0; inputs != NULL && i < n; i++)
		pl_region_input_free(inputs[i]);
	free(inputs);
}

/* Inputs for all that is read. Those of `have` that stay the same are left out: NULL stands for
 * them. */
static int make_inputs(struct pl_region_source *have, const struct pl_config *config,
	struct pl_region_input ***ret, unsigned int *ret_n)
{
	const struct pl_config_region *r = config->regions.items;
	struct pl_region_input **made =
		calloc(config->regions.n + 1, sizeof(struct pl_region_input *));
	unsigned int n = 0;
	int e = made != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; e == 0 && i < config->regions.n; i++) {
		bool stays = false;

		if (!pl_config_reads_region(&r[i]))
			continue;
		for (unsigned int k = 0; k < have->n; k++)
			stays = stays || pl_region_input_is(have->inputs[k], &r[i]);
		if (!stays)
			e = pl_region_input_new(&made[n], &r[i]);
		if (e == 0 && made[n] != NULL)
			pl_region_input_set_slot(made[n], config->aggregate.slot_ns);
		n += e == 0;
	}
	if (e < 0) {
		free_inputs(made, n);
		return e;
	}
	*ret = made;
	*ret_n = n;
	return 0;
}

/* Fills the places of those that stay. */
static void keep_inputs(
	struct pl_region_source *s, const struct pl_config *config, struct pl_region_input **made)
{
	const struct pl_config_region *r = config->regions.items;
	unsigned int at = 0;

	for (size_t i = 0; i < config->regions.n; i++) {
		if (!pl_config_reads_region(&r[i]))
			continue;
		for (unsigned int k = 0; k < s->n && made[at] == NULL; k++) {
			if (s->inputs[k] == NULL || !pl_region_input_is(s->inputs[k], &r[i]))
				continue;
			made[at] = s->inputs[k];
			s->inputs[k] = NULL;
			pl_region_input_set_slot(made[at], config->aggregate.slot_ns);
		}
		at++;
	}
}

int pl_region_source_change(struct pl_region_source *s, const struct pl_config *config)
{
	struct pl_region_input **made, **old;
	unsigned int n, n_old;
	int r = make_inputs(s, config, &made, &n);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < n; i++) {
		if (made[i] != NULL)
			pl_region_input_open(made[i], true);
	}
	pthread_mutex_lock(&s->lock);
	keep_inputs(s, config, made);
	old = s->inputs;
	n_old = s->n;
	s->inputs = made;
	s->n = n;
	pthread_mutex_unlock(&s->lock);
	free_inputs(old, n_old);
	return 0;
}

int pl_region_source_new(struct pl_region_source **ret, const struct pl_config *config)
{
	struct pl_region_source *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	sem_init(&s->wake, 0, 0);
	s->feed = (struct pl_worker_feed){
		.take = take, .wait = wait_for_more, .trouble = trouble, .arg = s
	};
	r = make_inputs(s, config, &s->inputs, &s->n);
	if (r < 0) {
		s->n = 0;
		pl_region_source_free(s);
		return r;
	}
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
	sem_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const struct pl_worker_feed *pl_region_source_feed(const struct pl_region_source *s)
{
	return &s->feed;
}

void pl_region_source_wake(struct pl_region_source *s)
{
	/* One post for any number of wakes. */
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
