/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the thread of an output, and accounts for its records. */
#include "pipeline/output_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "raw/message.h"

enum {
	BATCH_PATHS = 256,
	BATCH_HOPS = 1024,
	PACKETS_BYTES = 2 * PL_RAW_ENTRY_MAX,
	IDLE_MS = 10,
	FLUSH_MS = 200,
};
/* Waking the thread costs a worker microseconds: at most one wake-up in this time. */
#define WAKE_MIN_NS UINT64_C(1000000)

/* ---- workers ---- */

int pl_tap_new(struct pl_tap **ret, struct pl_output *output)
{
	struct pl_tap *t = calloc(1, sizeof(*t));
	int r;

	if (t == NULL)
		return -ENOMEM;
	r = pl_export_queue_new(&t->queue, output->queue_records);
	if (r < 0) {
		free(t);
		return r;
	}
	t->output = output;
	pthread_mutex_lock(&output->lock);
	t->next = output->taps;
	output->taps = t;
	pthread_mutex_unlock(&output->lock);
	*ret = t;
	return 0;
}

struct pl_output *pl_tap_output(const struct pl_tap *tap)
{
	return tap->output;
}

void pl_tap_close(struct pl_tap *tap)
{
	struct pl_output *o;

	if (tap == NULL)
		return;
	o = tap->output;
	pthread_mutex_lock(&o->lock);
	tap->closed = true;
	pthread_mutex_unlock(&o->lock);
}

void pl_tap_paths(struct pl_tap *tap, const struct pl_record_batch *batch)
{
	if (atomic_load_explicit(&tap->output->paths, memory_order_relaxed))
		pl_export_queue_put_paths(tap->queue, batch);
}

static void wake(struct pl_output *o)
{
	if (atomic_load(&o->asleep) && atomic_exchange(&o->asleep, false))
		sem_post(&o->wake);
}

/* Events wake the thread, at most once per WAKE_MIN_NS; reports wait for its next regular round. */
void pl_tap_events(struct pl_tap *tap, const struct pl_event *events, uint32_t n)
{
	if (!atomic_load_explicit(&tap->output->events, memory_order_relaxed))
		return;
	pl_export_queue_put_events(tap->queue, events, n);
	wake(tap->output);
}

/* Values wake the thread as events do: they come in batches, one for each reading of the
 * regions. */
void pl_tap_values(struct pl_tap *tap, const struct pl_value *values, uint32_t n)
{
	if (!atomic_load_explicit(&tap->output->values, memory_order_relaxed))
		return;
	pl_export_queue_put_values(tap->queue, values, n);
	wake(tap->output);
}

void pl_tap_packets(struct pl_tap *tap, const struct pl_batch *batch)
{
	if (atomic_load_explicit(&tap->output->packets, memory_order_relaxed))
		pl_export_queue_put_packets(tap->queue, batch);
}

/* ---- the thread ---- */

/* Keeps the reports that match the expression, in their order. */
static void filter(struct pl_output *o)
{
	struct pl_record_batch *b = &o->batch;
	uint32_t kept = 0;

	if (o->where == NULL)
		return;
	for (uint32_t i = 0; i < b->n_paths; i++) {
		if (!pl_where_match(o->where, &b->paths[i], &b->hops[b->first_hop[i]],
			    b->paths[i].hop_count))
			continue;
		b->paths[kept] = b->paths[i];
		b->first_hop[kept] = b->first_hop[i];
		kept++;
	}
	pl_count(&o->filtered, b->n_paths - kept);
	b->n_paths = kept;
}

/* Takes from each queue once. Returns false when nothing waited. The lock is held, but released
 * while writing: a slow disk must not delay readers of counters. Meanwhile the list may only grow
 * at its head; queues are freed by this thread only. Producers never take the lock. */
static bool round_of_queues(struct pl_output *o)
{
	bool any = false;

	for (struct pl_tap *t = o->taps; t != NULL; t = t->next) {
		struct pl_export_taken taken = { .events = o->batch_events,
			.values = o->batch_values,
			.cap_events = PL_OUTPUT_BATCH,
			.cap_values = PL_OUTPUT_BATCH,
			.packets = o->batch_packets,
			.cap_packets = o->batch_packets != NULL ? PACKETS_BYTES : 0 };

		pl_record_batch_clear(&o->batch);
		if (pl_export_queue_take(t->queue, &o->batch, &taken) == 0)
			continue;
		any = o->unflushed = true;
		o->news |= taken.n_events > 0;
		filter(o);
		pthread_mutex_unlock(&o->lock);
		if (o->batch.n_paths > 0)
			pl_export_write_paths(o->export, &o->batch, pl_clock_mono_ns());
		if (taken.n_events > 0)
			pl_export_write_events(
				o->export, taken.events, taken.n_events, pl_clock_mono_ns());
		if (taken.n_values > 0)
			pl_export_write_values(
				o->export, taken.values, taken.n_values, pl_clock_mono_ns());
		if (taken.n_packets > 0)
			o->export->ops->write_packets(o->export, taken.packets, taken.packets_bytes,
				taken.n_packets, pl_clock_mono_ns());
		pthread_mutex_lock(&o->lock);
	}
	return any;
}

static void free_closed(struct pl_output *o)
{
	struct pl_tap **link = &o->taps, *t;

	while ((t = *link) != NULL) {
		const struct pl_export_queue_stats *s = pl_export_queue_stats(t->queue);

		if (!t->closed || pl_export_queue_waiting(t->queue) > 0) {
			link = &t->next;
			continue;
		}
		o->gone_accepted += pl_counter_read(&s->accepted);
		o->gone_full_paths += pl_counter_read(&s->full_paths);
		o->gone_full_events += pl_counter_read(&s->full_events);
		o->gone_full_values += pl_counter_read(&s->full_values);
		o->gone_full_packets += pl_counter_read(&s->full_packets);
		o->gone_taken += pl_counter_read(&s->taken);
		*link = t->next;
		pl_export_queue_free(t->queue);
		free(t);
	}
}

static void tell_trouble(struct pl_output *o)
{
	int e = atomic_load_explicit(&o->export->stats.last_error, memory_order_relaxed);

	uint64_t refused = pl_counter_read(&o->export->stats.dropped[PL_EXPORT_REJECTED]);
	struct pl_export_words words;

	if (e == o->last_error_said && refused == o->refused_said)
		return;
	pl_output_words(o, &words);
	if (refused != o->refused_said)
		pl_warn("output",
			"%s: %llu entries refused; answer of the server to the last one: %s",
			o->name, (unsigned long long)(refused - o->refused_said), words.refusal);
	o->refused_said = refused;
	if (e == o->last_error_said)
		return;
	o->last_error_said = e;
	if (e != 0)
		pl_error("output", "%s: %s; entries beyond the buffer are dropped and counted",
			o->name,
			words.trouble[0] != '\0' ? words.trouble : strerror(e < 0 ? -e : e));
	else
		pl_notice("output", "%s: writing again", o->name);
}

static bool anything_waits(const struct pl_output *o)
{
	for (const struct pl_tap *t = o->taps; t != NULL; t = t->next) {
		if (pl_export_queue_waiting(t->queue) > 0)
			return true;
	}
	return false;
}

/* Sleeps until woken; the lock is held, but released meanwhile. On a machine that orders stores
 * weakly, an event put between the check and the sleep may be noticed only when the sleep is
 * over. */
static void wait_a_little(struct pl_output *o)
{
	const uint64_t now = pl_clock_mono_ns(), since = now - o->woken_ns;
	const uint64_t until = now + (uint64_t)IDLE_MS * 1000000u;
	const struct timespec t = pl_clock_timespec(until);

	if (since < WAKE_MIN_NS) {
		pthread_mutex_unlock(&o->lock);
		nanosleep(&(struct timespec){ .tv_nsec = (long)(WAKE_MIN_NS - since) }, NULL);
		pthread_mutex_lock(&o->lock);
	}
	atomic_store(&o->asleep, true);
	if (!anything_waits(o)) {
		pthread_mutex_unlock(&o->lock);
		if (sem_clockwait(&o->wake, CLOCK_MONOTONIC, &t) == 0)
			o->woken_ns = pl_clock_mono_ns();
		pthread_mutex_lock(&o->lock);
	}
	atomic_store(&o->asleep, false);
}

static void reopen_file(struct pl_output *o, uint64_t now_ns)
{
	struct pl_diag diag = { .text = "" };

	if (pl_export_reopen(o->export, now_ns, &diag) < 0)
		pl_error("output", "%s: %s; continuing with the old file", o->name, diag.text);
}

/* Writes the points of an interval when due, and a last time at the end. *due: next time. */
static void points_if_due(struct pl_output *o, uint64_t now_ns, bool last, uint64_t *due)
{
	if (o->points.write == NULL || *due == UINT64_MAX || (now_ns < *due && !last))
		return;
	pthread_mutex_unlock(&o->lock);
	o->points.write(o->points.arg, o->export, now_ns);
	pthread_mutex_lock(&o->lock);
	*due = last ? UINT64_MAX : *due + o->interval_ns;
	if (*due <= now_ns)
		*due = now_ns + o->interval_ns;
}

/* Flushes at once after events; else when nothing more waits, or the last flush is long ago. */
static bool flush_is_due(const struct pl_output *o, bool any, uint64_t since_ns)
{
	return o->news || (o->unflushed && !any) || since_ns >= (uint64_t)FLUSH_MS * 1000000u;
}

static void *output_loop(void *arg)
{
	struct pl_output *o = arg;
	uint64_t flushed_ns = 0, due_ns = pl_clock_mono_ns() + o->interval_ns;

	if (o->points.write != NULL && o->late)
		o->points.begin(o->points.arg);
	pthread_mutex_lock(&o->lock);
	for (;;) {
		bool stop = o->stop, reopen = o->reopen;
		bool any = round_of_queues(o);
		uint64_t now = pl_clock_mono_ns();

		points_if_due(o, now, stop && !any, &due_ns);

		o->reopen = o->reopen && !reopen;
		if (reopen || stop || flush_is_due(o, any, now - flushed_ns)) {
			pthread_mutex_unlock(&o->lock);
			o->unflushed = o->news = false;
			if (reopen)
				reopen_file(o, now);
			pl_export_flush(o->export, now, stop && !any);
			tell_trouble(o);
			pthread_mutex_lock(&o->lock);
			flushed_ns = now;
			free_closed(o);
		}
		pl_output_turn_marks(o);
		if (stop && ((!any && atomic_load(&o->export->stats.queued) == 0) ||
				    now >= o->deadline_ns))
			break;
		if (!any)
			wait_a_little(o);
	}
	pthread_mutex_unlock(&o->lock);
	pl_export_finish(o->export);
	pthread_mutex_lock(&o->lock);
	pl_output_end_marks(o);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* ---- controlling thread ---- */

int pl_output_configure(
	struct pl_output *o, const struct pl_output_options *options, struct pl_diag *diag)
{
	struct pl_where *where = NULL, *old;
	int r;

	if (options->where != NULL) {
		r = pl_where_new(&where, options->where, diag);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&o->lock);
	old = o->where;
	o->where = where;
	pthread_mutex_unlock(&o->lock);
	pl_where_free(old);
	atomic_store_explicit(&o->paths, options->paths, memory_order_relaxed);
	atomic_store_explicit(&o->events, options->events, memory_order_relaxed);
	/* A driver that takes none must not get any. */
	atomic_store_explicit(&o->values, options->values && o->export->ops->write_values != NULL,
		memory_order_relaxed);
	atomic_store_explicit(&o->packets, o->batch_packets != NULL, memory_order_relaxed);
	return 0;
}

int pl_output_new(struct pl_output **ret, const struct pl_output_options *options,
	struct pl_export *export, struct pl_diag *diag)
{
	struct pl_output *o = calloc(1, sizeof(*o));
	int r = -ENOMEM;

	if (o == NULL) {
		pl_export_close(export);
		pl_output_points_free(&options->points);
		return -ENOMEM;
	}
	o->export = export;
	o->points = options->points;
	o->interval_ns = options->interval_ns;
	o->queue_records = options->queue_records;
	pthread_mutex_init(&o->lock, NULL);
	sem_init(&o->wake, 0, 0);
	o->name = strdup(options->name);
	if (o->name == NULL)
		goto fail;
	r = pl_record_batch_init(&o->batch, BATCH_PATHS, BATCH_HOPS);
	if (r == 0 && export->ops->write_packets != NULL) {
		o->batch_packets = malloc(PACKETS_BYTES);
		r = o->batch_packets == NULL ? -ENOMEM : 0;
	}
	if (r < 0)
		goto fail;
	r = pl_output_configure(o, options, diag);
	if (r < 0)
		goto fail;
	*ret = o;
	return 0;
fail:
	pl_output_free(o);
	return r;
}

int pl_output_start(struct pl_output *o, bool late)
{
	int r;

	o->late = late;
	r = pl_thread_start(&o->thread, "pl-output", output_loop, o);
	if (r < 0)
		return r;
	o->running = true;
	return 0;
}

void pl_output_reopen(struct pl_output *o)
{
	pthread_mutex_lock(&o->lock);
	o->reopen = true;
	pthread_mutex_unlock(&o->lock);
	wake(o);
}

uint64_t pl_output_stop(struct pl_output *o, uint64_t deadline_ns)
{
	struct pl_output_stats s;

	if (o->running) {
		pthread_mutex_lock(&o->lock);
		o->stop = true;
		o->deadline_ns = deadline_ns;
		pthread_mutex_unlock(&o->lock);
		wake(o);
		pthread_join(o->thread, NULL);
		o->running = false;
	} else if (atomic_load(&o->end) == PL_OUTPUT_RUNS) {
		atomic_store(&o->end, PL_OUTPUT_ENDED_WITH_REST);
	}
	pl_output_stats(o, &s);
	return s.undelivered;
}

void pl_output_free(struct pl_output *o)
{
	struct pl_tap *t;

	if (o == NULL)
		return;
	if (o->running)
		pl_output_stop(o, 0);
	while ((t = o->taps) != NULL) {
		o->taps = t->next;
		pl_export_queue_free(t->queue);
		free(t);
	}
	pl_export_close(o->export);
	pl_output_points_free(&o->points);
	pl_where_free(o->where);
	pl_record_batch_done(&o->batch);
	free(o->batch_packets);
	sem_destroy(&o->wake);
	pthread_mutex_destroy(&o->lock);
	free(o->name);
	free(o);
}

const char *pl_output_name(const struct pl_output *output)
{
	return output->name;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_output_stats, __VA_ARGS__)
#include "export/stats.def"
#include "pipeline/output_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_output_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

void pl_output_stats(struct pl_output *o, struct pl_output_stats *ret)
{
	const struct pl_export_stats *e = &o->export->stats;
	struct pl_output_stats s;

	pthread_mutex_lock(&o->lock);
	s = (struct pl_output_stats){
#define PL_STAT(kind, member, ...) .member = pl_counter_read(&e->member),
#include "export/stats.def"
#undef PL_STAT
		.accepted = o->gone_accepted,
		.full_paths = o->gone_full_paths,
		.full_events = o->gone_full_events,
		.full_values = o->gone_full_values,
		.full_packets = o->gone_full_packets,
		.taken = o->gone_taken,
		.filtered = pl_counter_read(&o->filtered),
		.spooled = atomic_load_explicit(&e->spooled, memory_order_relaxed),
		.spooled_bytes = atomic_load_explicit(&e->spooled_bytes, memory_order_relaxed),
		.last_error = atomic_load_explicit(&e->last_error, memory_order_relaxed),
	};
	for (const struct pl_tap *t = o->taps; t != NULL; t = t->next) {
		const struct pl_export_queue_stats *q = pl_export_queue_stats(t->queue);
		/* Read before accepted, which grows meanwhile: taken entries were accepted. */
		uint64_t taken = pl_counter_read(&q->taken);

		s.taken += taken;
		s.accepted += pl_counter_read(&q->accepted);
		s.full_events += pl_counter_read(&q->full_events);
		s.full_values += pl_counter_read(&q->full_values);
		s.full_packets += pl_counter_read(&q->full_packets);
		s.full_paths += pl_counter_read(&q->full_paths);
	}
	s.full = s.full_paths + s.full_events + s.full_values + s.full_packets;
	s.offered = s.accepted + s.full;
	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		s.dropped[i] = pl_counter_read(&e->dropped[i]);
	s.dropped[PL_EXPORT_QUEUE_FULL] += s.full;
	s.undelivered =
		s.accepted - s.taken + atomic_load_explicit(&e->queued, memory_order_relaxed);
	pthread_mutex_unlock(&o->lock);
	*ret = s;
}

void pl_output_words(struct pl_output *o, struct pl_export_words *ret)
{
	*ret = (struct pl_export_words){ .trouble = "" };
	if (o->export->ops->words != NULL)
		o->export->ops->words(o->export, ret);
}
