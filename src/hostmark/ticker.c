/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets the tick, and notes when that was late. */
#include "hostmark/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "mark/tick.h"

/* Longest time between two checks of the thread for its end or a set clock. */
#define LOOK_NS UINT64_C(100000000)

struct pl_ticker {
	struct pl_ticker_options o;
	pthread_mutex_t lock;
	struct pl_ticker_state state;
	pthread_t thread;
	bool runs, stop;
};

static uint64_t tai_ns(void)
{
	return pl_clock_read(CLOCK_TAI);
}

/* Returns true when the word, `tick` until now, was too old. Packets were then counted in its
 * block, and, when a meter took them for early ones, in the block after the present one. */
static bool is_late(struct pl_ticker *t, uint64_t tick, uint64_t now_ns)
{
	const struct pl_ticker_options *o = &t->o;
	const uint64_t old = pl_mark_tick_block(tick), now = now_ns / o->period_ns,
		       last = (now > old ? now : old) + 1,
		       end = pl_mark_tick_begin(tick + 1, o->period_ns, o->guard_ns),
		       late = now_ns > end ? now_ns - end : 0;

	if (late > t->state.worst_ns)
		t->state.worst_ns = late;
	/* Or the clock was set back behind the word. */
	if (late <= pl_mark_tick_slack(o->period_ns) &&
		now_ns >= pl_mark_tick_begin(tick, o->period_ns, o->guard_ns))
		return false;
	if (last > *o->unsure)
		__atomic_store_n(o->unsure, last, __ATOMIC_SEQ_CST);
	return true;
}

/* Sets the word again until the clock is still in the part of the block that was set, because a
 * delay between reading the clock and writing the word sets an old part. Uncertain blocks are noted
 * before that, in case this process is killed. */
static void set_locked(struct pl_ticker *t)
{
	const struct pl_ticker_options *o = &t->o;
	uint64_t now = o->now_ns(), tick;

	while (true) {
		const uint64_t old = __atomic_load_n(o->tick, __ATOMIC_RELAXED);

		tick = pl_mark_tick_at(now, o->period_ns, o->guard_ns);
		if (old == tick)
			return;
		if (old != 0)
			(void)is_late(t, old, now);
		__atomic_store_n(o->tick, tick, __ATOMIC_SEQ_CST);
		now = o->now_ns();
		t->state.late += old != 0 && is_late(t, old, now);
	}
}

struct pl_ticker_state pl_ticker_set(struct pl_ticker *t)
{
	struct pl_ticker_state state;

	pthread_mutex_lock(&t->lock);
	set_locked(t);
	state = t->state;
	state.unsure = *t->o.unsure;
	pthread_mutex_unlock(&t->lock);
	return state;
}

/* ---- the thread ---- */

static uint64_t next_change(const struct pl_ticker *t)
{
	const uint64_t tick = __atomic_load_n(t->o.tick, __ATOMIC_RELAXED);

	return pl_mark_tick_begin(tick + 1, t->o.period_ns, t->o.guard_ns);
}

static void *run(void *arg)
{
	struct pl_ticker *t = arg;

	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		const uint64_t now = t->o.now_ns(), next = next_change(t),
			       wait = next > now ? next - now : 0;
		const struct timespec pause = pl_clock_timespec(wait < LOOK_NS ? wait : LOOK_NS);

		/* Not until a time of CLOCK_TAI: when that is set back, the time is far away. */
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		(void)pl_ticker_set(t);
	}
	return NULL;
}

int pl_ticker_start(struct pl_ticker *t, struct pl_diag *diag)
{
	const int r = pl_thread_start(&t->thread, "pl-ticker", run, t);

	t->runs = r == 0;
	if (r < 0)
		pl_diag_set(diag,
			"cannot start the thread that sets the kernel program's block: %s",
			strerror(-r));
	return r;
}

/* ---- begin and end ---- */

int pl_ticker_new(
	struct pl_ticker **ret, const struct pl_ticker_options *options, struct pl_diag *diag)
{
	struct pl_ticker *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	t->o = *options;
	if (t->o.now_ns == NULL)
		t->o.now_ns = tai_ns;
	pthread_mutex_init(&t->lock, NULL);
	(void)pl_ticker_set(t);
	*ret = t;
	return 0;
}

void pl_ticker_free(struct pl_ticker *t)
{
	if (t == NULL)
		return;
	__atomic_store_n(&t->stop, true, __ATOMIC_RELEASE);
	if (t->runs)
		(void)pthread_join(t->thread, NULL);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
