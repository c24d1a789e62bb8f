/* SPDX-License-Identifier: BSD-2-Clause */
/* Sketches: a merge is the sketch of both streams; sums stop at the largest value and say so;
 * HyperLogLog errs as it should. */
#include "memory/sketch.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/test_memory.h"
#include "memory/test_sketch.h"

static struct pl_sketch make(uint32_t kind, uint64_t columns, uint32_t rows, uint32_t cell_bytes)
{
	struct pl_store_params params = { .primitive = PL_SKETCH,
		.hash = PL_HASH_PATHLINE,
		.seed = 21,
		.sketch = { columns, rows, cell_bytes, kind } };
	struct pl_sketch s;

	if (pl_sketch_init(&s, &params, memory_for(&params)) < 0)
		abort();
	return s;
}

static struct pl_key key_of(const struct pl_sketch *s, uint32_t k)
{
	return pl_sketch_key(s, &k, sizeof(k));
}

static const void *cells_of(const struct pl_sketch *s, uint64_t first, uint64_t n)
{
	return s->base + pl_sketch_place(s, first, n).offset;
}

static uint64_t bytes_of(const struct pl_sketch *s)
{
	return pl_sketch_place(s, 0, s->columns).bytes;
}

/* Two reporters' sketches, merged in runs of columns, against one of both streams. */
static void merging(uint32_t kind, uint32_t rows, uint32_t cell_bytes)
{
	enum { COLUMNS = 5000 };
	struct pl_sketch a = make(kind, COLUMNS, rows, cell_bytes);
	struct pl_sketch b = make(kind, COLUMNS, rows, cell_bytes);
	struct pl_sketch both = make(kind, COLUMNS, rows, cell_bytes);
	struct pl_sketch sum = make(kind, COLUMNS, rows, cell_bytes);
	unsigned int refused = 0;

	for (uint32_t i = 0; i < 50000; i++) {
		sketch_add(i % 3 == 0 ? &a : &b, key_of(&a, i % 9000), i);
		sketch_add(&both, key_of(&a, i % 9000), i);
	}
	for (uint64_t c = 0; c < COLUMNS; c += 8)
		refused += pl_sketch_merge(&sum, c, 8, cells_of(&a, c, 8)) != 0 ||
			   pl_sketch_merge(&sum, c, 8, cells_of(&b, c, 8)) != 0;
	eq(refused, 0);
	memeq(cells_of(&sum, 0, COLUMNS), cells_of(&both, 0, COLUMNS), bytes_of(&both),
		"kind %u, cells of %u: the merge is the sketch of both", kind, cell_bytes);
	eq(-pl_sketch_merge(&sum, COLUMNS - 1, 2, cells_of(&a, 0, 2)), ERANGE, "a column too far");
	eq(-pl_sketch_merge(&sum, UINT64_MAX, 2, cells_of(&a, 0, 2)), ERANGE,
		"a number that wraps");
	eq(pl_sketch_merge(&sum, COLUMNS, 0, NULL), 0, "no columns");
	memeq(cells_of(&sum, 0, COLUMNS), cells_of(&both, 0, COLUMNS), bytes_of(&both),
		"nothing changed");
	eq(pl_sketch_completed(&sum), 0);
	sketch_complete(&sum, COLUMNS);
	eq(pl_sketch_completed(&sum), COLUMNS);
	memeq(cells_of(&sum, 0, COLUMNS), cells_of(&both, 0, COLUMNS), bytes_of(&both),
		"the word of completion stands apart");
	free(a.base);
	free(b.base);
	free(both.base);
	free(sum.base);
}

static void count_min(void)
{
	enum { KEYS = 5000 };
	struct pl_sketch s = make(PL_SKETCH_COUNT_MIN, 3000, 4, 8);
	static uint64_t truth[KEYS];
	unsigned int low = 0, beyond = 0;
	struct pl_rng rng;
	double total, keys, error;

	pl_rng_seed(&rng, 4);
	for (int i = 0; i < 200000; i++) {
		uint32_t k = (uint32_t)(KEYS * pl_rng_unit(&rng) * pl_rng_unit(&rng));

		truth[k] += 10;
		sketch_add(&s, key_of(&s, k), 10);
	}
	total = pl_sketch_total(&s);
	ok(total == 2000000, "the total");
	for (uint32_t k = 0; k < KEYS; k++) {
		struct pl_estimate e;
		bool saturated;

		if (sketch_estimate(&s, key_of(&s, k), total, &e, &saturated) < 0 || saturated)
			ok(false, "key %u", k);
		low += e.value < truth[k];
		beyond += (double)(e.value - truth[k]) > e.error;
	}
	eq(low, 0, "never too low");
	ok(beyond <= KEYS * 0.0184, "%u of %d beyond the bound", beyond, KEYS);
	eq(-pl_sketch_cardinality(&s, &keys, &error), EINVAL, "counts are no HyperLogLog");
	free(s.base);
}

static void saturation(void)
{
	struct pl_sketch s = make(PL_SKETCH_COUNT_MIN, 100, 2, 4);
	struct pl_key key = key_of(&s, 1);
	struct pl_estimate e;
	bool saturated;

	sketch_add(&s, key, UINT32_MAX - 1);
	eq(sketch_estimate(&s, key, 0, &e, &saturated), 0);
	ok(e.value == UINT32_MAX - 1 && !saturated, "one below the largest");
	eq(pl_sketch_merge(&s, 0, 100, cells_of(&s, 0, 100)), 0, "merged with itself");
	eq(sketch_estimate(&s, key, 0, &e, &saturated), 0);
	ok(e.value == UINT32_MAX && saturated, "stops at the largest and says so");
	free(s.base);
}

static void cardinalities(void)
{
	static const uint32_t counts[] = { 0, 1, 10, 1000, 10000, 100000, 2000000 };
	struct pl_sketch s = make(PL_SKETCH_HYPERLOGLOG, 5000, 1, 1);
	double keys, error;
	struct pl_estimate e;
	uint32_t done = 0;
	bool saturated;
	uint8_t bad[2] = { 3, 62 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (uint32_t k = done / 2; k < counts[i]; k++) /* half of them again */
			sketch_add(&s, key_of(&s, k), 1);
		done = counts[i];
		eq(pl_sketch_cardinality(&s, &keys, &error), 0);
		ok(fabs(keys - done) <= 3 * error * done + 0.01 * (done <= 10),
			"%u keys: %.1f, standard error %.2f %%", done, keys, 100 * error);
	}
	eq(-pl_sketch_merge(&s, 0, 2, bad), EINVAL, "a register that no key makes");
	eq(-sketch_estimate(&s, key_of(&s, 1), 0, &e, &saturated), EINVAL, "has no sums");
	s.base[64] = 62;
	eq(-pl_sketch_cardinality(&s, &keys, &error), EBADMSG, "and a damaged one");
	free(s.base);
}

int main(void)
{
	merging(PL_SKETCH_COUNT_MIN, 4, 4);
	merging(PL_SKETCH_COUNT_MIN, 3, 8);
	merging(PL_SKETCH_HYPERLOGLOG, 1, 1);
	count_min();
	saturation();
	cardinalities();
	return pl_test_done();
}
