/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks that are slewed, set ahead and set back. */
#include "base/rng.h"
#include "base/test.h"
#include "hostmark/step.h"

#define SECOND UINT64_C(1000000000)
#define ZERO   (UINT64_C(1700000000) * SECOND)

static struct pl_mark_watch watch;

/* So long after the beginning, with the clock ahead by that. */
static struct pl_mark_step look(uint64_t ns, int64_t ahead_ns, uint64_t next)
{
	return pl_mark_look_at_clock(
		&watch, 5 * SECOND + ns, ZERO + ns + (uint64_t)ahead_ns, SECOND, next);
}

static void slewed(void)
{
	struct pl_rng rng;
	unsigned int steps = 0;
	uint64_t at = 0;
	int64_t ahead = 0;

	watch = (struct pl_mark_watch){ 0 };
	pl_rng_seed(&rng, 37);
	ok(!look(0, 0, 7).is, "the first look has nothing to compare with");
	for (unsigned int i = 0; i < 100000; i++) {
		const uint64_t wait = pl_rng_below(&rng, 2 * SECOND);

		at += wait;
		ahead += (int64_t)(wait / 2000) * (pl_rng_below(&rng, 2) == 0 ? 1 : -1);
		steps += look(at, ahead, 7).is;
	}
	eq(steps, 0, "a clock that is slewed was not set");
}

static void set(int64_t moved, bool is)
{
	struct pl_mark_step s;

	watch = (struct pl_mark_watch){ 0 };
	(void)look(0, 0, 0);
	(void)look(10 * SECOND, 0, 0);
	s = look(11 * SECOND, moved, ZERO / SECOND + 9);
	ok(s.is == is && s.moved_ns == moved, "moved by %" PRId64 " ns", moved);
	if (!is)
		return;
	eq(s.last, (ZERO + (uint64_t)(11 * (int64_t)SECOND + moved)) / SECOND + 1,
		"blocks up to the next one are of both times");
	if (moved < -2 * (int64_t)SECOND)
		eq(s.next, s.last - 1, "reading goes on at the new time");
	else
		eq(s.next, ZERO / SECOND + 9, "what was not read yet is read");
	ok(!look(12 * SECOND, moved, s.next).is, "it was set once");
}

int main(void)
{
	slewed();
	set(1500000, false);
	set(3000000, true);
	set(-3000000, true);
	set(37 * (int64_t)SECOND, true);
	set(-37 * (int64_t)SECOND, true);
	return pl_test_done();
}
