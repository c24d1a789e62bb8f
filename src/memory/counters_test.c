/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: never too low, the bound holds, overflow adds nothing. */
#include "memory/counters.h"

#include <errno.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/test_memory.h"

static struct pl_counters make(uint32_t hash, uint64_t width, uint32_t rows, uint32_t shared)
{
	struct pl_store_params params = { .primitive = PL_COUNTERS,
		.hash = hash,
		.seed = hash == PL_HASH_DTA ? 0 : 3,
		.counters = { width, rows, shared } };
	struct pl_counters c;

	if (pl_counters_init(&c, &params, memory_for(&params)) < 0)
		abort();
	return c;
}

static struct pl_key key_of(const struct pl_counters *c, uint32_t k)
{
	return pl_counters_key(c, &k, sizeof(k));
}

static void dta_offsets(void)
{
	static const unsigned int want[] = { 173, 59, 129, 23 };
	struct pl_counters c = make(PL_HASH_DTA, 256, 4, 1);

	for (unsigned int n = 0; n < 4; n++)
		eq(pl_counters_offset(&c, key_of(&c, 1), n), 8 * want[n], "key 1, row %u", n);
	eq(pl_counters_add(&c, key_of(&c, 1), 5), 0);
	memeq(c.base + (size_t)8 * 173, "\x05\0\0\0\0\0\0\0", 8, "64 bits, little-endian");
	eq(pl_counters_get(&c, key_of(&c, 1)), 5);
	free(c.base);
}

/* A skewed stream against the true sums. */
static void bounds(uint32_t shared)
{
	enum { KEYS = 20000, ADDS = 400000 };
	struct pl_counters c = make(PL_HASH_PATHLINE, shared != 0 ? 40000 : 10000, 4, shared);
	static uint64_t truth[KEYS];
	unsigned int low = 0, beyond = 0;
	struct pl_rng rng;
	double total, sum = 0;

	memset(truth, 0, sizeof(truth));
	pl_rng_seed(&rng, 11);
	for (int i = 0; i < ADDS; i++) {
		uint32_t k = (uint32_t)(KEYS * pl_rng_unit(&rng) * pl_rng_unit(&rng));
		uint64_t v = pl_rng_below(&rng, 1500);

		truth[k] += v;
		sum += (double)v;
		pl_counters_add(&c, key_of(&c, k), v);
	}
	total = pl_counters_total(&c);
	ok(total == sum, "%s: the total is the sum of all increments",
		shared != 0 ? "shared" : "rows");
	for (uint32_t k = 0; k < KEYS; k++) {
		struct pl_estimate e = pl_counters_estimate(&c, key_of(&c, k), total);

		low += e.value < truth[k];
		beyond += (double)e.value - (double)truth[k] > e.error;
	}
	eq(low, 0, "never too low");
	/* Expected at most KEYS * e^-4 = 366. */
	ok(beyond <= KEYS * 0.0184, "%u of %d beyond the bound", beyond, KEYS);
	free(c.base);
}

static void overflow(void)
{
	struct pl_counters c = make(PL_HASH_PATHLINE, 1000, 4, 0);
	struct pl_key key = key_of(&c, 7);
	uint64_t *last = (void *)(c.base + pl_counters_offset(&c, key, 3));

	eq(pl_counters_add(&c, key, UINT64_MAX - 1), 0, "as large as it gets");
	eq(-pl_counters_add(&c, key, 2), EOVERFLOW, "and no larger");
	eq(pl_counters_get(&c, key), UINT64_MAX - 1, "nothing was added");
	eq(pl_counters_add(&c, key, 1), 0);
	eq(pl_counters_get(&c, key), UINT64_MAX);
	eq(pl_counters_add(&c, key, 0), 0);
	for (unsigned int row = 0; row < 3; row++)
		memset(c.base + pl_counters_offset(&c, key, row), 0, 8);
	*last = UINT64_MAX;
	eq(-pl_counters_add(&c, key, 1), EOVERFLOW, "the last row is full");
	for (unsigned int row = 0; row < 3; row++)
		memeq(c.base + pl_counters_offset(&c, key, row), "\0\0\0\0\0\0\0", 8,
			"row %u is as before", row);
	free(c.base);
}

int main(void)
{
	dta_offsets();
	bounds(0);
	bounds(1);
	overflow();
	return pl_test_done();
}
