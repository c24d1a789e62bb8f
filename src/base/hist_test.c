/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hist.h"

#include <math.h>

#include "base/rng.h"
#include "base/test.h"

/* Every bucket by its definition: above the upper bound before it, not above its own. */
static void bounds(void)
{
	bool good = true, powers = true, growing = true;

	eq(pl_hist_index(0), 0, "zero");
	eq(pl_hist_index(1), 0, "one");
	eq(pl_hist_index(UINT64_MAX), PL_HIST_BUCKETS - 1,
		"the largest integer is beyond the range");
	eq(pl_hist_index(((uint64_t)1 << 36) + 1), PL_HIST_BUCKETS - 1, "just beyond the range");
	eq(pl_hist_index((uint64_t)1 << 36), PL_HIST_BUCKETS - 2, "the end of the range");
	for (unsigned int i = 0; i < PL_HIST_BUCKETS - 1; i++) {
		uint64_t upper = pl_hist_upper(i);

		powers &= i % 2 != 0 || upper == (uint64_t)1 << (i / 2);
		growing &= i == 0 || upper >= pl_hist_upper(i - 1);
		if (i == 0 || upper > pl_hist_upper(i - 1))
			good &= pl_hist_index(upper) == i;
		good &= pl_hist_index(upper + 1) > i;
		if (i % 2 == 1)
			good &= (double)upper <= exp2(i / 2.0) && (double)upper + 1 > exp2(i / 2.0);
	}
	ok(good, "upper bounds are inclusive, and the next integer is in a later bucket");
	ok(powers, "even buckets end at powers of two");
	ok(growing, "bounds do not fall");
	eq(pl_hist_upper(PL_HIST_BUCKETS - 1), UINT64_MAX, "the last bucket has no bound");
}

static void random_values(void)
{
	struct pl_rng rng;
	bool good = true;

	printf("# seed 1\n");
	pl_rng_seed(&rng, 1);
	for (unsigned int n = 0; n < 200000; n++) {
		uint64_t v = pl_rng_u64(&rng) >> pl_rng_below(&rng, 64);
		unsigned int i = pl_hist_index(v);

		good &= v <= pl_hist_upper(i) && (i == 0 || v > pl_hist_upper(i - 1));
	}
	ok(good, "random values lie within their bucket");
}

static void quantiles(void)
{
	static struct pl_hist h, other;

	eq(pl_hist_quantile(&h, 0.5), 0, "quantile of nothing");
	for (uint64_t v = 1; v <= 1000; v++)
		pl_hist_add(&h, v);
	eq(pl_hist_count(&h), 1000, "count");
	eq(h.sum, 500500, "sum");
	eq(pl_hist_quantile(&h, 0.5), 512, "median");
	eq(pl_hist_quantile(&h, 0), 1, "smallest");
	eq(pl_hist_quantile(&h, 1), 1024, "largest");
	pl_hist_add(&other, (uint64_t)1 << 40);
	pl_hist_merge(&h, &other);
	eq(pl_hist_count(&h), 1001, "merged");
	eq(pl_hist_quantile(&h, 1), UINT64_MAX, "a quantile beyond the range says so");
}

int main(void)
{
	bounds();
	random_values();
	quantiles();
	return pl_test_done();
}
