/* SPDX-License-Identifier: BSD-2-Clause */
/* Ticks: their parts, that a meter decides by them as by the clock, and words that are too old. */
#include "hostmark/ticker.h"

#include "base/rng.h"
#include "base/test.h"
#include "mark/period.h"
#include "mark/tick.h"

#define MS     UINT64_C(1000000)
#define PERIOD (800 * MS)
#define GUARD  (190 * MS)
#define BEGIN  (UINT64_C(1000000) * PERIOD) /* of block 1000000 */

static void parts(void)
{
	struct pl_rng rng;
	uint64_t wrong = 0;

	pl_rng_seed(&rng, 28);
	for (int i = 0; i < 200000; i++) {
		const uint64_t time = BEGIN + pl_rng_below(&rng, 4 * PERIOD),
			       tick = pl_mark_tick_at(time, PERIOD, GUARD),
			       block = pl_mark_tick_block(tick);
		const unsigned int bits = (unsigned int)pl_rng_below(&rng, 4);
		const struct pl_mark_seen by_clock = pl_mark_see_in(PL_MARK_STEP, time / PERIOD,
						  time % PERIOD, PERIOD, bits),
					  by_tick = pl_mark_see_in(PL_MARK_STEP, block,
						  pl_mark_tick_offset(tick, PERIOD, GUARD), PERIOD,
						  bits);

		wrong += by_clock.block != by_tick.block || by_clock.what != by_tick.what ||
			 pl_mark_is_beyond(&by_clock, PERIOD, GUARD) !=
				 pl_mark_is_beyond(&by_tick, PERIOD, GUARD) ||
			 pl_mark_tick_begin(tick, PERIOD, GUARD) > time ||
			 pl_mark_tick_begin(tick + 1, PERIOD, GUARD) <= time;
	}
	eq(wrong, 0, "block, late, early and outside the guard band are those of the clock");
}

static uint64_t now;
static uint64_t jump_ns; /* behind the next look at the clock */

static uint64_t clock_now(void)
{
	const uint64_t seen = now;

	now += jump_ns;
	jump_ns = 0;
	return seen;
}

static struct {
	uint64_t tick, unsure;
} word;

static struct pl_ticker *begin(void)
{
	const struct pl_ticker_options o = { .tick = &word.tick,
		.unsure = &word.unsure,
		.period_ns = PERIOD,
		.guard_ns = GUARD,
		.now_ns = clock_now };
	struct pl_ticker *t = NULL;

	if (pl_ticker_new(&t, &o, NULL) < 0)
		abort();
	return t;
}

static void ages(void)
{
	struct pl_ticker *t;
	struct pl_ticker_state s;

	now = BEGIN;
	word.tick = word.unsure = 0;
	t = begin();
	eq(word.tick, 4000000, "set when it begins");
	now = BEGIN + PERIOD + pl_mark_tick_slack(PERIOD) - 1;
	word.tick = 4000003; /* as the thread did */
	s = pl_ticker_set(t);
	eq(word.tick, 4000004);
	ok(s.late == 0 && s.unsure == 0 && s.worst_ns == pl_mark_tick_slack(PERIOD) - 1,
		"a change that is late by less than the slack is in the guard band");
	now = BEGIN + PERIOD + GUARD + 1 + pl_mark_tick_slack(PERIOD) + 1;
	s = pl_ticker_set(t);
	ok(s.late == 1 && s.unsure == 1000002, "one that is later is noted, with the next block");
	now = BEGIN + 4 * PERIOD + 1;
	s = pl_ticker_set(t);
	ok(s.late == 2 && s.unsure == 1000005 && word.tick == 4000016,
		"and one over several blocks up to the block behind the present one");
	now = BEGIN + 2 * PERIOD;
	s = pl_ticker_set(t);
	ok(s.late == 3 && s.unsure == 1000005 && word.tick == 4000008,
		"a clock that was set back makes the old block unsure");
	s = pl_ticker_set(t);
	ok(s.late == 3, "what did not change is not told again");
	pl_ticker_free(t);
}

static void other_process(void)
{
	struct pl_ticker *t;
	struct pl_ticker_state s;

	word.tick = 4000001;
	word.unsure = 0;
	now = BEGIN + 3 * PERIOD;
	t = begin();
	s = pl_ticker_set(t);
	ok(s.unsure == 1000004 && word.tick == 4000012, "a word that another process left is old");
	pl_ticker_free(t);
	now += GUARD + 1;
	t = begin();
	s = pl_ticker_set(t);
	ok(s.unsure == 1000004 && s.late == 0, "and the next process knows it, too");
	pl_ticker_free(t);
}

/* Between the look at the clock and the word much time passes. */
static void held_up(void)
{
	struct pl_ticker *t;
	struct pl_ticker_state s;

	word.tick = word.unsure = 0;
	now = BEGIN + PERIOD - 1;
	t = begin();
	now = BEGIN + PERIOD;
	jump_ns = PERIOD;
	s = pl_ticker_set(t);
	ok(s.late > 0 && s.unsure == 1000003, "its age is that at the later look");
	eq(word.tick, 4000008, "and it is set again");
	pl_ticker_free(t);
}

/* The thread follows the clock: by no verdict about how fast. */
static void thread(void)
{
	const struct pl_ticker_options o = {
		.tick = &word.tick, .unsure = &word.unsure, .period_ns = 20 * MS, .guard_ns = 5 * MS
	};
	struct pl_ticker *t = NULL;
	uint64_t first, changes = 0;

	word.tick = word.unsure = 0;
	if (pl_ticker_new(&t, &o, NULL) < 0 || pl_ticker_start(t, NULL) < 0)
		abort();
	first = __atomic_load_n(&word.tick, __ATOMIC_ACQUIRE);
	while (changes < 8) {
		const uint64_t tick = __atomic_load_n(&word.tick, __ATOMIC_ACQUIRE);

		changes += tick != first;
		first = tick;
	}
	pl_ticker_free(t);
	ok(changes == 8, "the thread sets the word");
}

static uint64_t ahead_ns;

static uint64_t clock_ahead(void)
{
	return pl_clock_read(CLOCK_TAI) + __atomic_load_n(&ahead_ns, __ATOMIC_ACQUIRE);
}

/* The clock is set back by an hour while the thread sleeps: the word follows, and the thread ends.
 * Else both take the hour. */
static void thread_set_back(void)
{
	const struct pl_ticker_options o = { .tick = &word.tick,
		.unsure = &word.unsure,
		.period_ns = 20 * MS,
		.guard_ns = 5 * MS,
		.now_ns = clock_ahead };
	struct pl_ticker *t = NULL;
	uint64_t before;

	word.tick = word.unsure = 0;
	ahead_ns = 3600 * 1000 * MS;
	if (pl_ticker_new(&t, &o, NULL) < 0 || pl_ticker_start(t, NULL) < 0)
		abort();
	before = __atomic_load_n(&word.tick, __ATOMIC_ACQUIRE);
	ok(eventually(__atomic_load_n(&word.tick, __ATOMIC_ACQUIRE) > before + 8),
		"the thread follows a clock that is ahead of the system's");
	__atomic_store_n(&ahead_ns, 0, __ATOMIC_RELEASE);
	ok(eventually(__atomic_load_n(&word.tick, __ATOMIC_ACQUIRE) < before),
		"and one that is set back");
	pl_ticker_free(t);
}

int main(void)
{
	parts();
	ages();
	other_process();
	held_up();
	thread();
	thread_set_back();
	return pl_test_done();
}
