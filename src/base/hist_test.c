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

		powers &= i % 4 != 0 || upper == (uint64_t)1 << (i / 4);
		growing &= i == 0 || upper >= pl_hist_upper(i - 1);
		if (i == 0 || upper > pl_hist_upper(i - 1))
			good &= pl_hist_index(upper) == i;
		good &= pl_hist_index(upper + 1) > i;
		good &= (double)upper <= exp2(i / 4.0) && (double)upper + 1 > exp2(i / 4.0);
	}
	ok(good, "upper bounds are inclusive, and the next integer is in a later bucket");
	ok(powers, "every fourth bucket ends at a power of two");
	ok(growing, "bounds do not fall");
	eq(pl_hist_upper(PL_HIST_BUCKETS - 1), UINT64_MAX, "the last bucket has no bound");
}

static void random_values(void)
{
	struct pl_rng rng;
	bool good = true, near = true;

	printf("# seed 1\n");
	pl_rng_seed(&rng, 1);
	for (unsigned int n = 0; n < 200000; n++) {
		uint64_t v = pl_rng_u64(&rng) >> pl_rng_below(&rng, 64);
		unsigned int i = pl_hist_index(v);

		good &= v <= pl_hist_upper(i) && (i == 0 || v > pl_hist_upper(i - 1));
		near &= i == 0 || i == PL_HIST_BUCKETS - 1 ||
			(double)pl_hist_upper(i) < 1.1893 * (double)v;
	}
	ok(good, "random values lie within their bucket");
	ok(near, "and within 2^(1/4) of its bound");
}

static void quantiles(void)
{
	static struct pl_hist h, other;

	eq(pl_hist_quantile(&h, 0.5), 0, "quantile of nothing");
	for (uint64_t v = 1; v <= 1000; v++)
		pl_hist_add(&h, v);
	eq(pl_hist_count(&h), 1000, "count");
	eq(h.sum, 500500, "sum");
	eq(pl_hist_quantile(&h, 0.5), 512, "median"); /* 500, within 19 % */
	eq(pl_hist_quantile(&h, 0), 1, "smallest");
	eq(pl_hist_quantile(&h, 1), 1024, "largest");
	pl_hist_add(&other, (uint64_t)1 << 40);
	pl_hist_merge(&h, &other);
	eq(pl_hist_count(&h), 1001, "merged");
	eq(pl_hist_quantile(&h, 1), UINT64_MAX, "a quantile beyond the range says so");
}

/* Values sorted into whole powers of two elsewhere, then added: exact where both have a bound. */
static void log2_counts(void)
{
	static struct pl_hist direct, added, beyond;
	static uint64_t counts[64];
	struct pl_rng rng;
	uint64_t sum = 0, a = 0, d = 0;
	bool same = true, low = true;

	printf("# seed 2\n");
	pl_rng_seed(&rng, 2);
	for (unsigned int n = 0; n < 100000; n++) {
		uint64_t v = pl_rng_u64(&rng) >> (20 + pl_rng_below(&rng, 44));
		unsigned int i = 0;

		while (i < 63 && v > (uint64_t)1 << i)
			i++;
		counts[i]++;
		sum += v;
		pl_hist_add(&direct, v);
	}
	pl_hist_add_log2(&added, counts, 64, sum);
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		a += added.buckets[i];
		d += direct.buckets[i];
		same &= (i % 4 != 0 && i != PL_HIST_BUCKETS - 1) || a == d;
		low &= a <= d;
	}
	ok(same, "log2 counts are exact at powers of two and in total");
	ok(low, "and not high between them");
	eq(added.sum, direct.sum, "the sum is the caller's");
	pl_hist_add_log2(&beyond, (const uint64_t[64]){ [63] = 7 }, 64, 1);
	eq(beyond.buckets[PL_HIST_BUCKETS - 1], 7, "what is beyond the range is in the last");
}

int main(void)
{
	bounds();
	random_values();
	quantiles();
	log2_counts();
	return pl_test_done();
}
