/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of records that were left out, against a list of all of them. */
#include "query/losses.h"

#include "base/rng.h"
#include "base/test.h"

#define TIMES 2000

static struct pl_rng rng;
static bool lost[TIMES];

static bool any_of(int64_t start, int64_t end)
{
	for (int64_t t = start < 0 ? 0 : start; t < end && t < TIMES; t++) {
		if (lost[t])
			return true;
	}
	return false;
}

/* Asks about every window of the length `near`; returns the number of wrong answers. */
static unsigned int count_wrong(const struct losses *l)
{
	unsigned int wrong = 0;

	for (int64_t t = -20; t < TIMES; t++)
		wrong += pl_query_losses_within(l, t, t + l->near) != any_of(t, t + l->near);
	return wrong;
}

/* Few enough losses that each can have a stretch of its own. */
static void test_exact(unsigned int rounds)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		struct losses l = { .near = 1 + (int64_t)pl_rng_below(&rng, 100) };
		const unsigned int n = (unsigned int)pl_rng_below(&rng, LOSSES_MAX);

		memset(lost, 0, sizeof(lost));
		for (unsigned int k = 0; k < n; k++) {
			const int64_t from = (int64_t)pl_rng_below(&rng, TIMES);
			const int64_t to = from + (int64_t)pl_rng_below(&rng, 10);

			pl_query_losses_add(&l, from, to);
			for (int64_t t = from; t <= to && t < TIMES; t++)
				lost[t] = true;
		}
		wrong += count_wrong(&l);
	}
	eq(wrong, 0, "exactly the windows with a loss are marked");
}

/* More stretches than there is room for: the earliest become one, and the latest stay exact. */
static void test_many(void)
{
	struct losses l = { .near = 1 };
	unsigned int wrong = 0;

	memset(lost, 0, sizeof(lost));
	for (int64_t t = TIMES - 10; t >= 0; t -= 10) {
		pl_query_losses_add(&l, t, t);
		lost[t] = true;
	}
	eq(l.n, LOSSES_MAX);
	for (int64_t t = 0; t < TIMES; t++)
		wrong += any_of(t, t + 1) && !pl_query_losses_within(&l, t, t + 1);
	eq(wrong, 0, "no loss is forgotten");
	ok(!pl_query_losses_within(&l, TIMES - 19, TIMES - 10), "nothing between the last two");
	ok(pl_query_losses_within(&l, 11, 20), "the first ones are one stretch");
}

int main(int argc, char **argv)
{
	const unsigned int rounds = pl_test_rounds(argc, argv, 200);

	pl_rng_seed(&rng, pl_test_seed(argc, argv, 20260));
	test_exact(rounds);
	test_many();
	return pl_test_done();
}
