/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes events of standing queries and marks to a worker, as a source. */
#include "pipeline/event_feed.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct pl_event_feed {
	pthread_mutex_t lock;
	sem_t wake; /* posted by each put: there may be more */
	struct pl_worker_feed feed;
	uint32_t first, n;
	struct pl_event ring[PL_EVENT_FEED_ROOM];
};

/* Takes events as far as the batch has room; the worker flushes it later, without our lock. */
static bool take(void *arg, uint64_t now_ns, uint64_t ts_ns, bool final,
	struct pl_record_batch *paths, struct pl_event_batch *events, struct pl_value_batch *values)
{
	struct pl_event_feed *f = arg;
	bool more;

	(void)now_ns;
	(void)ts_ns;
	(void) final;
	(void)paths;
	(void)values;
	while (sem_trywait(&f->wake) == 0)
		;
	pthread_mutex_lock(&f->lock);
	while (f->n > 0 && events->n < events->cap) {
		events->events[events->n++] = f->ring[f->first];
		f->first = (f->first + 1) % PL_EVENT_FEED_ROOM;
		f->n--;
	}
	more = f->n > 0;
	pthread_mutex_unlock(&f->lock);
	return more;
}

static void wait_for_more(void *arg, uint64_t limit_ns)
{
	struct pl_event_feed *f = arg;
	const struct timespec t = pl_clock_timespec(pl_clock_mono_ns() + limit_ns);

	(void)sem_clockwait(&f->wake, CLOCK_MONOTONIC, &t);
}

static int trouble(void *arg, char *dst, size_t cap)
{
	(void)arg;
	(void)dst;
	(void)cap;
	return 0;
}

int pl_event_feed_new(struct pl_event_feed **ret)
{
	struct pl_event_feed *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	sem_init(&f->wake, 0, 0);
	f->feed = (struct pl_worker_feed){
		.take = take, .wait = wait_for_more, .trouble = trouble, .arg = f
	};
	*ret = f;
	return 0;
}

void pl_event_feed_free(struct pl_event_feed *f)
{
	if (f == NULL)
		return;
	sem_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

const struct pl_worker_feed *pl_event_feed_feed(const struct pl_event_feed *f)
{
	return &f->feed;
}

uint32_t pl_event_feed_put(struct pl_event_feed *f, const struct pl_event *events, uint32_t n)
{
	uint32_t taken = 0;

	pthread_mutex_lock(&f->lock);
	while (taken < n && f->n < PL_EVENT_FEED_ROOM) {
		f->ring[(f->first + f->n) % PL_EVENT_FEED_ROOM] = events[taken++];
		f->n++;
	}
	pthread_mutex_unlock(&f->lock);
	sem_post(&f->wake);
	return taken;
}
