/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks workers for copies of their counters and aggregates, and merges these for readers. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/state.h"

/* Looks for a snapshot: about a second. */
#define SNAPSHOT_LOOKS    4000
#define SNAPSHOT_PAUSE_NS 200000
#define SNAPSHOT_FRESH_NS (UINT64_C(20) * 1000000u)
#define BEHIND_NS         (UINT64_C(1) * 1000000000u)

static void ask(struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_worker_ask(p->workers[i]);
	p->asking = true;
	p->asked++;
	p->asked_ns = pl_clock_mono_ns();
}

/* Takes the snapshots when all workers have answered. */
static bool take(struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_workers; i++) {
		if (!pl_worker_answered(p->workers[i]))
			return false;
	}
	pl_aggregate_reset(p->merged);
	/* Maxima are shown as of the reader's time. */
	pl_aggregate_tick(p->merged, pl_clock_mono_ns());
	for (unsigned int i = 0; i < p->n_workers; i++) {
		pl_worker_take(p->workers[i]);
		pl_aggregate_merge(p->merged, p->workers[i]->engine->aggregate_copy);
	}
	/* Counters do not fall when only one worker has not seen a place for long. */
	pl_aggregate_expire(p->merged);
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_aggregate_note_seen(p->workers[i]->engine->aggregate_copy, p->merged);
	p->asking = p->behind = false;
	p->taken = p->asked;
	p->published_ns = p->asked_ns;
	return true;
}

uint64_t pl_pipeline_open_ns(const struct pl_pipeline *p)
{
	return p->asking ? pl_clock_mono_ns() - p->asked_ns : 0;
}

void pl_pipeline_look(struct pl_pipeline *p)
{
	if (p->asking)
		(void)take(p);
}

int pl_pipeline_snapshot(struct pl_pipeline *p)
{
	const struct timespec pause = { .tv_nsec = SNAPSHOT_PAUSE_NS };
	unsigned int looks = SNAPSHOT_LOOKS;
	uint64_t wanted;

	/* Several scrapers at a time share one snapshot. */
	if (p->snapshot_ns != 0 && pl_clock_mono_ns() - p->snapshot_ns < SNAPSHOT_FRESH_NS &&
		!p->stopping)
		return 0;
	if (!p->running)
		return -ESRCH;
	/* An answer that an earlier caller did not wait for is too old. */
	pl_pipeline_look(p);
	if (!p->asking)
		ask(p);
	for (wanted = p->asked; p->taken < wanted && !(p->asking && take(p)); looks--) {
		if (looks == 0) {
			p->behind = true;
			return 0;
		}
		pthread_mutex_unlock(&p->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&p->lock);
		if (!p->running)
			return -ESRCH;
		if (!p->asking && p->taken < wanted)
			ask(p);
	}
	p->snapshot_ns = pl_clock_mono_ns();
	return 0;
}

int pl_pipeline_snapshot_now(struct pl_pipeline *p)
{
	if (!p->running)
		return -ESRCH;
	pl_pipeline_look(p);
	p->behind |= pl_pipeline_open_ns(p) >= BEHIND_NS;
	if (!p->asking) {
		ask(p);
		/* Workers that have ended answer at once. */
		pl_pipeline_look(p);
	}
	return 0;
}

void pl_pipeline_forget_answers(struct pl_pipeline *p)
{
	p->asking = false;
	p->snapshot_ns = 0;
}

uint64_t pl_pipeline_age_ns(const struct pl_pipeline *p)
{
	return pl_clock_mono_ns() - p->published_ns;
}

int pl_pipeline_aggregate(struct pl_pipeline *p, struct pl_aggregate *into)
{
	int r;

	pthread_mutex_lock(&p->lock);
	r = pl_pipeline_snapshot(p);
	if (r == 0) {
		pl_aggregate_reset(into);
		pl_aggregate_tick(into, pl_clock_mono_ns());
		pl_aggregate_merge(into, p->merged);
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}
