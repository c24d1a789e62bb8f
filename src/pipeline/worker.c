/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the thread of a port: decoding, detection and outputs. */
#include "pipeline/worker.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "detect/units.h"
#include "pipeline/path_notes.h"
#include "pipeline/worker_parts.h"

enum {
	RECV_TIMEOUT_MS = 50, /* longest time to a quiet point without traffic */
	BATCH_PATHS = 512,
	BATCH_HOPS = 4096,
	ASK_PAUSE_US = 200,
	EXCHANGE_LIMIT_S = 5,
};
#define LOOK_NS (UINT64_C(1) * 1000000000u)

/* ---- packet path ---- */

static void deliver_events(struct pl_worker *w)
{
	const struct pl_engine *e = w->engine;

	if (w->events.n == 0)
		return;
	pl_path_notes(w->events.events, w->events.n, e->decode, w->source.aside);
	for (unsigned int i = 0; i < e->n_taps; i++)
		pl_tap_events(e->taps[i], w->events.events, w->events.n);
	w->events.n = 0;
}

static void flush_events(struct pl_event_batch *batch, void *arg)
{
	(void)batch;
	deliver_events(arg);
}

static void deliver_values(struct pl_value_batch *batch, void *arg)
{
	const struct pl_worker *w = arg;

	for (unsigned int i = 0; batch->n > 0 && i < w->engine->n_taps; i++)
		pl_tap_values(w->engine->taps[i], batch->values, batch->n);
	batch->n = 0;
}

static void count_reports(struct pl_worker *w, const struct pl_record_batch *batch)
{
	w->stored += batch->n_paths;
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *p = &batch->paths[i];
		bool report = (p->present & PL_PATH_HAS_report_version) != 0;

		w->by_version[report ? p->report_version + 1 : 0]++;
		w->by_mode[p->mode]++;
	}
}

/* Returns whether the batch was detected already, or is by another worker. The latter applies to
 * reports only: packets that carry INT or IOAM come to no other worker. All records of a batch are
 * of packets to one port. */
static bool elsewhere(const struct pl_worker *w, const struct pl_record_batch *batch)
{
	return w->settled || (w->source.detected_elsewhere &&
				     (batch->paths[0].present & PL_PATH_HAS_report_version) != 0);
}

static void detect(struct pl_worker *w, const struct pl_record_batch *batch)
{
	const struct pl_worker_aside *aside = w->source.aside;

	if (elsewhere(w, batch))
		return;
	if (aside != NULL && aside->detect != NULL)
		aside->detect(aside->arg, batch, &w->events);
	else
		pl_detect_batch(w->engine->detect, batch, w->rule_ns, &w->events);
}

static void flush_records(struct pl_record_batch *batch, void *arg)
{
	struct pl_worker *w = arg;
	const struct pl_engine *e = w->engine;

	if (batch->n_paths > 0) {
		pl_units_batch(&e->units, batch);
		if (!w->settled) {
			pl_aggregate_batch(e->aggregate, batch);
			count_reports(w, batch);
		}
		detect(w, batch);
		if (pl_worker_follows(w) && !elsewhere(w, batch))
			pl_detect_numbers(e->detect, batch, w->rule_ns);
		for (unsigned int i = 0; i < e->n_taps; i++)
			pl_tap_paths(e->taps[i], batch);
		deliver_events(w);
	}
	pl_record_batch_clear(batch);
}

/* ---- quiet point ---- */

/* Logs exporters that found no room since the last check. */
static void look_untracked(struct pl_worker *w)
{
	const struct pl_worker_aside *aside = w->source.aside;
	struct pl_totals t;

	pl_worker_totals(&t, w->engine);
	pl_totals_add(&t, &w->carried);
	if (aside != NULL)
		aside->totals(aside->arg, &t);
	if (t.exporters_full > w->untracked)
		atomic_store_explicit(&w->untracked_ns, w->now_ns, memory_order_relaxed);
	w->untracked = t.exporters_full;
}

static void quiet_point(struct pl_worker *w)
{
	/* Acquire pairs with the release in pl_worker_ask: the last snapshot was taken. */
	uint64_t wanted = atomic_load_explicit(&w->snap_wanted, memory_order_acquire);
	struct pl_engine *next;

	pl_worker_tick(w);
	if (w->now_ns - w->looked_ns >= LOOK_NS) {
		w->looked_ns = w->now_ns;
		look_untracked(w);
		pl_worker_look_floods(w);
		pl_worker_harvest(w);
		pl_aggregate_tick(w->engine->aggregate, w->now_ns);
	}
	deliver_events(w);
	if (wanted != atomic_load_explicit(&w->snap_done, memory_order_relaxed)) {
		pl_worker_publish(w);
		/* Pairs with the acquire in pl_worker_answered. */
		atomic_store_explicit(&w->snap_done, wanted, memory_order_release);
	}
	/* Acquire pairs with the release in pl_worker_exchange: the new engine is complete. */
	next = atomic_load_explicit(&w->next_engine, memory_order_acquire);
	if (next != NULL) {
		atomic_store_explicit(&w->next_engine, NULL, memory_order_relaxed);
		pl_worker_install(w, next);
	}
}

static void pin(const struct pl_worker *w)
{
	cpu_set_t set;

	if (w->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)w->cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0)
		pl_warn("worker", "%s: cannot be pinned to processor %d; runs unpinned", w->uri,
			w->cpu);
}

/* ---- loop ---- */

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* As receive, for a source without packets. */
static int take_fed(struct pl_worker *w, bool stopping)
{
	const struct pl_worker_feed *f = w->source.feed;
	const bool more =
		f->take(f->arg, w->now_ns, w->ts_ns, stopping, &w->batch, &w->events, &w->values);
	const int was = atomic_load(&w->error);
	char words[sizeof(w->trouble)];
	int error;

	flush_records(&w->batch, w);
	deliver_values(&w->values, w);
	/* Not only at the quiet point, which follows the wait. */
	deliver_events(w);
	error = f->trouble(f->arg, words, sizeof(words));
	if (error != 0 && was == 0)
		pl_worker_lost(w, error, words);
	else if (error != 0)
		pl_worker_set_trouble(w, error, words);
	else if (was != 0)
		pl_worker_back(w);
	if (!more && !stopping)
		f->wait(f->arg, (uint64_t)RECV_TIMEOUT_MS * 1000000u);
	return more;
}

/* Returns the number of packets; 0: none for now; negative: no more will come. */
static int receive(struct pl_worker *w, bool stopping)
{
	const struct pl_worker_aside *aside = w->source.aside;
	const int timeout_ms = stopping ? 0 : RECV_TIMEOUT_MS;
	struct pl_diag diag = { .text = "" };
	int n;

	if (w->source.feed != NULL)
		return take_fed(w, stopping);
	if (aside != NULL && aside->receive != NULL)
		return aside->receive(aside->arg, &w->packets, timeout_ms, &w->settled);
	if (w->port == NULL) {
		if (!stopping && !pl_worker_regain(w))
			return -EPERM;
		if (w->port == NULL && !stopping)
			pause_us(RECV_TIMEOUT_MS * 1000);
		if (w->port == NULL)
			return 0;
	}
	n = pl_port_recv(w->port, &w->packets, timeout_ms, &diag);
	if (n >= 0)
		return n;
	return pl_worker_hear_port(w, -n, &diag) ? 0 : n;
}

/* Decodes packets, and gives their contents to detection and outputs. */
static void take(struct pl_worker *w, const struct pl_batch *packets)
{
	const struct pl_engine *e = w->engine;

	for (unsigned int i = 0; i < e->n_taps; i++)
		pl_tap_packets(e->taps[i], packets);
	if (w->settled)
		pl_decode_copies(e->decode, packets, &w->batch);
	else
		pl_decode_batch(e->decode, packets, &w->batch);
	if (pl_advise_batch(e->advise, packets, pl_decode_outcomes(e->decode), w->rule_ns))
		pl_worker_show_advices(w);
	flush_records(&w->batch, w);
}

static void *worker_loop(void *arg)
{
	struct pl_worker *w = arg;
	const struct pl_worker_aside *aside = w->source.aside;
	uint64_t stop_by = 0;

	pin(w);
	pl_worker_time(w, true);
	w->looked_ns = w->now_ns;
	pl_aggregate_tick(w->engine->aggregate, w->now_ns);
	for (;;) {
		int n;

		if (aside != NULL)
			aside->work(aside->arg, w->now_ns, w->ts_ns, &w->events);
		n = receive(w, stop_by != 0);
		pl_worker_time(w, false);
		if (n > 0 && w->source.feed == NULL) {
			if (w->replays)
				pl_worker_replay(w, take);
			else
				take(w, &w->packets);
			if (w->port != NULL)
				pl_port_release(w->port, &w->packets);
		}
		quiet_point(w);
		if (n < 0)
			break;
		if (stop_by != 0 && (n == 0 || w->now_ns >= stop_by))
			break;
		stop_by = atomic_load_explicit(&w->stop_by_ns, memory_order_relaxed);
	}
	if (aside != NULL)
		aside->work(aside->arg, w->now_ns, w->ts_ns, &w->events);
	pl_worker_last_tick(w);
	pl_detect_tick(w->engine->detect, w->rule_ns, w->rule_ts_ns, &w->events);
	deliver_events(w);
	/* Pairs with the acquire in pl_worker_answered: now the state belongs to the controller. */
	atomic_store_explicit(&w->ended, true, memory_order_release);
	return NULL;
}

/* ---- controlling thread ---- */

static bool has_port(const struct pl_worker_source *s)
{
	return s->feed == NULL && (s->aside == NULL || s->aside->receive == NULL);
}

static const char *name_of(const struct pl_worker_source *s)
{
	return s->aside != NULL && s->aside->name != NULL ? s->aside->name : s->name;
}

int pl_worker_new(struct pl_worker **ret, const struct pl_worker_source *source, unsigned int id,
	uint32_t cap_exporters, struct pl_diag *diag)
{
	struct pl_worker *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (w == NULL)
		goto fail;
	pthread_mutex_init(&w->trouble_lock, NULL);
	w->source = *source;
	w->source.aside = NULL; /* the caller's until nothing can fail */
	w->index = source->index;
	w->of = source->of;
	w->id = id;
	w->cpu = -1;
	w->uri = strdup(source->name);
	w->source.name = w->uri;
	w->source.uri = strdup(source->uri);
	w->replays =
		source->feed == NULL && (pl_port_uri_can(source->uri) & PL_PORT_CAN_REPLAY) != 0;
	w->snap.cap_exporters = w->filling.cap_exporters = cap_exporters;
	w->snap.exporters = calloc(cap_exporters + 1, sizeof(*w->snap.exporters));
	w->filling.exporters = calloc(cap_exporters + 1, sizeof(*w->filling.exporters));
	if (w->uri == NULL || w->source.uri == NULL || w->snap.exporters == NULL ||
		w->filling.exporters == NULL ||
		pl_record_batch_init(&w->batch, BATCH_PATHS, BATCH_HOPS) < 0)
		goto fail;
	w->batch.flush = flush_records;
	w->batch.flush_arg = w;
	w->events.events = w->event_room;
	w->events.cap = sizeof(w->event_room) / sizeof(w->event_room[0]);
	w->events.flush = flush_events;
	w->events.flush_arg = w;
	w->values.values = w->value_room;
	w->values.cap = sizeof(w->value_room) / sizeof(w->value_room[0]);
	w->values.flush = deliver_values;
	w->values.flush_arg = w;
	r = has_port(source) ? pl_worker_open_port(w, &w->port, diag) : 0;
	if (r < 0) {
		w->port = NULL;
		pl_worker_free(w);
		return r;
	}
	w->source.with = NULL;
	w->local_port = w->port != NULL ? pl_port_local_port(w->port) : 0;
	w->name = strdup(w->port != NULL ? pl_port_name(w->port) : name_of(source));
	r = w->name != NULL ? 0 : -ENOMEM;
	if (r < 0)
		goto fail;
	w->source.aside = source->aside;
	*ret = w;
	return 0;
fail:
	pl_diag_set(diag, "not enough memory for a worker");
	pl_worker_free(w);
	return r;
}

int pl_worker_start(struct pl_worker *w, struct pl_engine *engine)
{
	int r;

	w->engine = engine;
	r = pl_thread_start(&w->thread, "pl-worker", worker_loop, w);
	if (r < 0)
		return r;
	w->started = true;
	return 0;
}

int pl_worker_trouble(struct pl_worker *w, char *dst, size_t cap)
{
	int error = atomic_load(&w->error);

	dst[0] = '\0';
	if (error == 0)
		return 0;
	pthread_mutex_lock(&w->trouble_lock);
	snprintf(dst, cap, "%s", w->trouble);
	pthread_mutex_unlock(&w->trouble_lock);
	return error;
}

void pl_worker_stop_by(struct pl_worker *w, uint64_t deadline_ns)
{
	atomic_store_explicit(
		&w->stop_by_ns, deadline_ns > 0 ? deadline_ns : 1, memory_order_relaxed);
}

void pl_worker_join(struct pl_worker *w)
{
	if (!w->started)
		return;
	pthread_join(w->thread, NULL);
	w->started = false;
}

void pl_worker_end_events(struct pl_worker *w)
{
	const struct pl_worker_aside *aside = w->source.aside;

	assert(!w->started);
	if (aside != NULL)
		aside->end(aside->arg, w->now_ns, w->ts_ns, &w->events);
	pl_detect_end(w->engine->detect, w->rule_ns, w->rule_ts_ns, &w->events);
	deliver_events(w);
}

void pl_worker_free(struct pl_worker *w)
{
	if (w == NULL)
		return;
	assert(!w->started);
	/* Closing a port may call its reader, which needs the engine. */
	if (w->port != NULL)
		pl_port_close(w->port);
	if (w->source.aside != NULL && w->source.aside->close != NULL)
		w->source.aside->close(w->source.aside->arg);
	pl_engine_free(w->engine);
	pl_record_batch_done(&w->batch);
	free(w->snap.exporters);
	free(w->filling.exporters);
	free(w->uri);
	free(w->name);
	free((char *)w->source.uri);
	pthread_mutex_destroy(&w->trouble_lock);
	free(w);
}

bool pl_worker_untracked(struct pl_worker *w, uint64_t now_ns, uint64_t within_ns)
{
	uint64_t last = atomic_load_explicit(&w->untracked_ns, memory_order_relaxed);

	return last != 0 && (now_ns < last || now_ns - last < within_ns);
}

void pl_worker_ask(struct pl_worker *w)
{
	uint64_t done = atomic_load_explicit(&w->snap_done, memory_order_relaxed);

	/* Pairs with the acquire in quiet_point. */
	atomic_store_explicit(&w->snap_wanted, done + 1, memory_order_release);
}

bool pl_worker_answered(struct pl_worker *w)
{
	const uint64_t wanted = atomic_load_explicit(&w->snap_wanted, memory_order_relaxed);

	/* Acquire pairs with the releases in worker_loop and quiet_point. */
	if (atomic_load_explicit(&w->snap_done, memory_order_acquire) == wanted)
		return true;
	if (!atomic_load_explicit(&w->ended, memory_order_acquire))
		return false;
	pl_worker_publish(w);
	atomic_store_explicit(&w->snap_done, wanted, memory_order_relaxed);
	return true;
}

void pl_worker_exchange(struct pl_worker *w, struct pl_engine *next, struct pl_engine **ret_old)
{
	uint64_t deadline = pl_clock_mono_ns() + (uint64_t)EXCHANGE_LIMIT_S * 1000000000u;
	struct pl_engine *old;

	assert(atomic_load(&w->next_engine) == NULL && atomic_load(&w->old_engine) == NULL);
	/* Pairs with the acquire in quiet_point. */
	atomic_store_explicit(&w->next_engine, next, memory_order_release);
	for (;;) {
		/* Pairs with the release in pl_worker_install. */
		old = atomic_load_explicit(&w->old_engine, memory_order_acquire);
		if (old != NULL)
			break;
		if (atomic_load_explicit(&w->ended, memory_order_acquire)) {
			/* The thread has ended: install it here. */
			next = atomic_exchange(&w->next_engine, NULL);
			if (next != NULL)
				pl_worker_install(w, next);
			deliver_events(w);
			old = atomic_load(&w->old_engine);
			break;
		}
		/* A worker without a quiet point for seconds is a defect. A half-made exchange
		 * cannot be undone, so wait on, but log it. */
		if (pl_clock_mono_ns() >= deadline) {
			pl_error("worker", "%s: does not answer", w->uri);
			deadline += (uint64_t)EXCHANGE_LIMIT_S * 1000000000u;
		}
		pause_us(ASK_PAUSE_US);
	}
	atomic_store(&w->old_engine, NULL);
	*ret_old = old;
}

uint64_t pl_worker_memory(uint32_t cap_exporters)
{
	return sizeof(struct pl_worker) + 2 * (uint64_t)cap_exporters * sizeof(struct pl_exporter) +
	       BATCH_PATHS * (sizeof(struct pl_path) + 2 * sizeof(uint32_t)) +
	       BATCH_HOPS * sizeof(struct pl_hop);
}
