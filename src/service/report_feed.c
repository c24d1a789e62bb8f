/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes records, events and values of the collector to another thread. */
#include "service/report_feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* Entries in each buffer, for the time when the other thread is busy. */
enum { ROOM_PATHS = 8192, ROOM_HOPS = 65536, ROOM_EVENTS = 4096, ROOM_VALUES = 8192 };
/* Longest wait for room, while entries queue in the output: longer than a reload takes. */
#define PATIENCE_NS UINT64_C(1000000000)

struct half {
	struct pl_record_batch reports;
	struct pl_event *events; /* ROOM_EVENTS */
	struct pl_value *values; /* ROOM_VALUES */
	uint32_t n_events, n_values;
};

struct pl_report_feed {
	struct pl_export e; /* first */
	int fd;
	bool has_room; /* both halves are allocated */
	pthread_mutex_t lock;
	pthread_cond_t taken;
	unsigned int filling; /* under the lock: index of the half that is filled */
	uint64_t takes;       /* likewise: number of times that a half was taken */
	bool gave_up;         /* likewise: a wait timed out since the last half was taken */
	struct half halves[2];
};

static struct pl_report_feed *of(struct pl_export *e)
{
	return (struct pl_report_feed *)e;
}

/* ---- the output's thread ---- */

static bool put_path(struct half *h, const struct pl_path *path, const struct pl_hop *hops)
{
	struct pl_record_batch *b = &h->reports;

	if (b->n_paths == b->cap_paths || b->cap_hops - b->n_hops < path->hop_count)
		return false;
	b->paths[b->n_paths] = *path;
	b->first_hop[b->n_paths++] = b->n_hops;
	if (path->hop_count > 0)
		memcpy(b->hops + b->n_hops, hops, path->hop_count * sizeof(*hops));
	b->n_hops += path->hop_count;
	return true;
}

/* Counts `kept` entries put into the half, and wakes the reader if it was empty. Called locked. */
static void note(struct pl_report_feed *f, uint32_t kept, bool empty)
{
	const uint64_t one = 1;

	atomic_fetch_add_explicit(&f->e.stats.queued, kept, memory_order_relaxed);
	/* The write cannot block: the counter is reset before a half is taken. */
	if (empty && kept > 0)
		(void)!write(f->fd, &one, sizeof(one));
}

/* Waits until a half is taken. Returns whether one was, so that there is room. */
static bool wait_for_room(struct pl_report_feed *f)
{
	const struct timespec until = pl_clock_timespec(pl_clock_mono_ns() + PATIENCE_NS);
	const uint64_t takes = f->takes;

	while (f->has_room && !f->gave_up && f->takes == takes)
		f->gave_up = pthread_cond_timedwait(&f->taken, &f->lock, &until) == ETIMEDOUT &&
			     f->takes == takes;
	return f->takes != takes;
}

/* Puts entries into the half, starting at `from`, as far as there is room. Returns their number. */
typedef uint32_t put_fn(struct half *h, const void *entries, uint32_t from, uint32_t n);

static void put_all(struct pl_report_feed *f, put_fn *put, const void *entries, uint32_t n)
{
	uint32_t kept = 0;

	pthread_mutex_lock(&f->lock);
	pl_count(&f->e.stats.accepted, n);
	do {
		struct half *h = &f->halves[f->filling];
		const bool empty = h->reports.n_paths + h->n_events + h->n_values == 0;
		const uint32_t some = f->has_room ? put(h, entries, kept, n) : 0;

		note(f, some, empty);
		kept += some;
	} while (kept < n && wait_for_room(f));
	pl_count(&f->e.stats.dropped[PL_EXPORT_QUEUE_FULL], n - kept);
	pthread_mutex_unlock(&f->lock);
}

static uint32_t put_paths(struct half *h, const void *batch, uint32_t from, uint32_t n)
{
	const struct pl_record_batch *b = batch;
	uint32_t i = from;

	while (i < n && put_path(h, &b->paths[i], b->hops + b->first_hop[i]))
		i++;
	return i - from;
}

static uint32_t put_events(struct half *h, const void *events, uint32_t from, uint32_t n)
{
	const uint32_t room = ROOM_EVENTS - h->n_events, some = n - from < room ? n - from : room;

	if (some > 0)
		memcpy(h->events + h->n_events, (const struct pl_event *)events + from,
			some * sizeof(*h->events));
	h->n_events += some;
	return some;
}

static uint32_t put_values(struct half *h, const void *values, uint32_t from, uint32_t n)
{
	const uint32_t room = ROOM_VALUES - h->n_values, some = n - from < room ? n - from : room;

	if (some > 0)
		memcpy(h->values + h->n_values, (const struct pl_value *)values + from,
			some * sizeof(*h->values));
	h->n_values += some;
	return some;
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	(void)now_ns;
	put_all(of(e), put_paths, batch, batch->n_paths);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)now_ns;
	put_all(of(e), put_events, events, n);
}

static void write_values(
	struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns)
{
	(void)now_ns;
	put_all(of(e), put_values, values, n);
}

/* Always returns that entries are done: results of queries are in memory only, whether entries were
 * taken or not. */
static bool settled(struct pl_export *e)
{
	(void)e;
	return true;
}

static void close_feed(struct pl_export *e)
{
	struct pl_report_feed *f = of(e);

	for (unsigned int i = 0; i < 2; i++) {
		pl_record_batch_done(&f->halves[i].reports);
		free(f->halves[i].events);
		free(f->halves[i].values);
	}
	close(f->fd);
	pthread_cond_destroy(&f->taken);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static const struct pl_export_ops ops = {
	.name = "queries",
	.write_paths = write_paths,
	.write_events = write_events,
	.write_values = write_values,
	.settled = settled,
	.close = close_feed,
};

/* ---- the other thread ---- */

int pl_report_feed_new(struct pl_export **ret, struct pl_report_feed **ret_feed)
{
	struct pl_report_feed *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	f->e.ops = &ops;
	f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->fd < 0) {
		r = -errno;
		free(f);
		return r;
	}
	pthread_mutex_init(&f->lock, NULL);
	pl_cond_init(&f->taken);
	*ret = &f->e;
	*ret_feed = f;
	return 0;
}

int pl_report_feed_make_room(struct pl_report_feed *f)
{
	int r = 0;

	for (unsigned int i = 0; i < 2 && r == 0 && !f->has_room; i++) {
		struct half *h = &f->halves[i];

		if (h->events == NULL)
			h->events = malloc(ROOM_EVENTS * sizeof(*h->events));
		if (h->values == NULL)
			h->values = malloc(ROOM_VALUES * sizeof(*h->values));
		if (h->events == NULL || h->values == NULL)
			r = -ENOMEM;
		if (r == 0 && h->reports.paths == NULL)
			r = pl_record_batch_init(&h->reports, ROOM_PATHS, ROOM_HOPS);
	}
	if (r < 0)
		return r;
	pthread_mutex_lock(&f->lock);
	f->has_room = true;
	pthread_mutex_unlock(&f->lock);
	return 0;
}

uint64_t pl_report_feed_memory(void)
{
	return 2 *
	       (ROOM_PATHS * (sizeof(struct pl_path) + 2 * sizeof(uint32_t)) +
		       ROOM_HOPS * sizeof(struct pl_hop) + ROOM_EVENTS * sizeof(struct pl_event) +
		       ROOM_VALUES * sizeof(struct pl_value));
}

int pl_report_feed_fd(const struct pl_report_feed *f)
{
	return f->fd;
}

void pl_report_feed_take(struct pl_report_feed *f, const struct pl_report_feed_sink *sink)
{
	uint64_t n;
	struct half *h;

	/* Read first: entries written after the halves were swapped wake the reader again. */
	(void)!read(f->fd, &n, sizeof(n));
	pthread_mutex_lock(&f->lock);
	h = &f->halves[f->filling];
	f->filling ^= 1;
	f->takes++;
	f->gave_up = false;
	pthread_cond_signal(&f->taken);
	pthread_mutex_unlock(&f->lock);
	if (h->reports.n_paths > 0)
		sink->reports(sink->arg, &h->reports);
	if (h->n_events > 0)
		sink->events(sink->arg, h->events, h->n_events);
	if (h->n_values > 0)
		sink->values(sink->arg, h->values, h->n_values);
	n = (uint64_t)h->reports.n_paths + h->n_events + h->n_values;
	pl_count(&f->e.stats.delivered, n);
	atomic_fetch_sub_explicit(&f->e.stats.queued, n, memory_order_relaxed);
	pl_record_batch_clear(&h->reports);
	h->n_events = h->n_values = 0;
}
