/* SPDX-License-Identifier: BSD-2-Clause */
/* Group commit: a thread that has the region written to disk every so often, beside the writer. */
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/thread.h"
#include "memory/region_internal.h"

static void *commit(void *arg)
{
	struct pl_region *g = arg;
	struct region_commit *c = &g->commit;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		const struct timespec until = pl_clock_timespec(pl_clock_mono_ns() + g->sync_ns);

		while (!c->stop && pthread_cond_timedwait(&c->wake, &c->lock, &until) == 0)
			;
		if (c->stop)
			break;
		pthread_mutex_unlock(&c->lock);
		/* A failure is counted in the region, where everybody sees it. */
		(void)(c->ahead != NULL ? region_ahead_sync(g) : pl_region_sync(g));
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int region_commit_start(struct pl_region *g)
{
	struct region_commit *c = &g->commit;
	int r;

	if (!g->writer || g->sync_ns == 0)
		return 0;
	r = region_ahead_new(g);
	if (r < 0)
		return r;
	pl_cond_init(&c->wake);
	pthread_mutex_init(&c->lock, NULL);
	r = pl_thread_start(&g->commit.thread, "pl-commit", commit, g);
	c->running = r == 0;
	if (r < 0)
		region_ahead_free(g);
	return r;
}

void region_commit_stop(struct pl_region *g)
{
	struct region_commit *c = &g->commit;

	if (!c->running)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	region_ahead_free(g);
	c->running = false;
}
