/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a walk finds: each change once, whatever the pieces it is made in and however many copies
 * there are; what was there before only when that is asked for; sums that agree with what was put.
 */
#include "memory/scan.h"

#include <errno.h>
#include <pthread.h>

#include "base/test.h"
#include "memory/counters.h"
#include "memory/postcards.h"
#include "memory/test_memory.h"

static struct pl_store_params key_write_of(uint64_t slots, uint32_t value_bytes, uint32_t copies)
{
	return (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { slots, value_bytes, copies } };
}

static struct pl_store_params counters_of(uint64_t width, uint32_t rows, bool shared)
{
	return (struct pl_store_params){ .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.counters = { width, rows, shared } };
}

static void put(const struct pl_key_write *kw, uint32_t key, const void *value)
{
	pl_key_write_put(kw, pl_key_write_key(kw, &key, sizeof(key)), value, kw->copies);
}

static uint8_t value[PL_VALUE_MAX];

/* A whole walk, so many slots at a time. Returns how many changes it found, and the sum of their
 * first bytes. */
static uint64_t walk(struct pl_scan *s, uint64_t piece, uint64_t *ret_sum)
{
	struct pl_scan_found f;
	uint64_t n = 0, budget;

	*ret_sum = 0;
	pl_scan_begin(s);
	while (!pl_scan_over(s)) {
		budget = piece;
		while (pl_scan_next(s, &budget, &f, value)) {
			n++;
			*ret_sum += f.bytes > 0 ? value[0] : f.increase;
		}
		if (budget > 0 && !pl_scan_over(s))
			return UINT64_MAX;
		while (pl_scan_settle(s, &f, value)) {
			n++;
			*ret_sum += value[0];
		}
	}
	return n;
}

static void last_values(uint32_t value_bytes, uint32_t copies, uint64_t piece)
{
	const struct pl_store_params p = key_write_of(100003, value_bytes, copies);
	void *base = memory_for(&p);
	struct pl_key_write kw;
	struct pl_scan s;
	uint8_t v[64] = { 1 };
	static bool taken[100003];
	uint64_t sum, keys = 500;

	memset(taken, 0, sizeof(taken));

	(void)pl_key_write_init(&kw, &p, base);
	put(&kw, 1000000, v);
	eq(pl_scan_init(&s, &p, base, true), 0);
	eq(walk(&s, piece, &sum), 0, "%u bytes, %u copies, by %llu: what was there is not new",
		value_bytes, copies, (unsigned long long)piece);
	for (uint32_t k = 0; k < 500; k++) {
		v[1] = (uint8_t)k;
		v[2] = (uint8_t)(k >> 8);
		put(&kw, k, v);
	}
	/* Where there is one copy, one of two keys in a slot is left. */
	for (uint32_t k = 0; k < 500 && copies == 1; k++) {
		bool *at =
			&taken[pl_key_write_offset(&kw, pl_key_write_key(&kw, &k, sizeof(k)), 0) /
				kw.slot_bytes];

		keys -= *at;
		*at = true;
	}
	eq(walk(&s, piece, &sum), keys, "each key once");
	eq(sum, keys, "with its value");
	eq(s.changed, s.found + s.repeated + s.keyed, "the account closes");
	eq(walk(&s, piece, &sum), 0, "nothing is new then");
	eq(s.in_use, s.changed + copies, "slots in use");
	v[0] = 2;
	put(&kw, 3, v);
	eq(walk(&s, piece, &sum), 1, "a key with another value");
	eq(sum, 2);
	v[0] = 3;
	put(&kw, 3, v);
	v[0] = 4;
	put(&kw, 3, v);
	eq(walk(&s, piece, &sum), 1, "the last value counts");
	eq(sum, 4);
	(void)walk(&s, piece, &sum);
	v[0] = 2;
	put(&kw, 3, v);
	eq(walk(&s, piece, &sum), 1, "a value that comes back is a change");
	pl_scan_done(&s);
	free(base);
}

static void beginnings(void)
{
	const struct pl_store_params p = key_write_of(64, 4, 1);
	void *base = memory_for(&p), *other = memory_for(&p);
	struct pl_key_write kw;
	struct pl_scan s;
	uint8_t v[4] = { 9 };
	uint64_t sum;

	(void)pl_key_write_init(&kw, &p, base);
	put(&kw, 1, v);
	eq(pl_scan_init(&s, &p, base, false), 0);
	ok(pl_scan_over(&s), "no walk has begun");
	eq(walk(&s, 7, &sum), 1, "what is there counts as new when it is asked for");
	(void)pl_key_write_init(&kw, &p, other);
	put(&kw, 1, v);
	pl_scan_rebase(&s, base, false);
	eq(walk(&s, 64, &sum), 0, "the same store at another address");
	pl_scan_rebase(&s, other, true);
	(void)walk(&s, 64, &sum);
	(void)walk(&s, 64, &sum);
	eq(s.changed, 2, "of another store all is new");
	pl_scan_done(&s);
	free(base);
	free(other);
}

static void sums(uint32_t rows, bool shared)
{
	const struct pl_store_params p = counters_of(997, rows, shared);
	void *base = memory_for(&p);
	struct pl_counters c;
	struct pl_scan s;
	uint64_t sum, added = 0;

	(void)pl_counters_init(&c, &p, base);
	eq(pl_scan_init(&s, &p, base, true), 0);
	(void)walk(&s, 100, &sum);
	for (unsigned int round = 0; round < 5; round++) {
		const uint64_t before = added;

		for (uint32_t k = 0; k < 300; k++) {
			(void)pl_counters_add(&c, pl_counters_key(&c, &k, sizeof(k)), k + round);
			added += k + round;
		}
		(void)walk(&s, 100, &sum);
		eq(sum, (added - before) * (shared ? rows : 1), "%u rows%s: what was added", rows,
			shared ? ", shared" : "");
	}
	eq(s.increase, added * (shared ? rows : 1), "in all");
	memset(base, 0, 997 * 8);
	eq(walk(&s, 100, &sum), 0, "emptied cells are no increase");
	ok(s.emptied > 0, "and are counted");
	pl_scan_done(&s);
	free(base);
}

static void postcards(void)
{
	const struct pl_store_params p = { .primitive = PL_POSTCARDS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.postcards = { 1024, 5, 1 } };
	void *base = memory_for(&p);
	const uint32_t hops[5] = { 1, 2, 3, 4, 5 };
	struct pl_postcards c;
	struct pl_scan s;
	uint64_t sum;
	uint32_t k = 1;

	(void)pl_postcards_init(&c, &p, base);
	eq(pl_scan_init(&s, &p, base, false), 0);
	eq(pl_postcards_put(&c, pl_postcards_key(&c, &k, sizeof(k)), hops, 5), 0);
	eq(walk(&s, 10, &sum), 0, "a path is not found without its flow");
	eq(s.keyed, 1, "but counted");
	eq(s.in_use, 1);
	eq(walk(&s, 10, &sum), 0);
	eq(s.keyed, 1, "once");
	pl_scan_done(&s);
	free(base);
}

/* A slot that a writer is in the midst of. */
static void half_written(void)
{
	const struct pl_store_params p = key_write_of(64, 28, 1);
	uint8_t *base = memory_for(&p), image[64], v[28];
	struct pl_key_write kw;
	struct pl_scan_found f;
	struct pl_scan s;
	struct pl_key key;
	uint64_t at, budget = 1000;
	uint32_t k = 5;

	(void)pl_key_write_init(&kw, &p, base);
	key = pl_key_write_key(&kw, &k, sizeof(k));
	at = pl_key_write_offset(&kw, key, 0);
	memset(v, 7, sizeof(v));
	pl_key_write_image(&kw, key, v, image);
	eq(pl_scan_init(&s, &p, base, false), 0);
	memcpy(base + at, image, 16);
	pl_scan_begin(&s);
	ok(!pl_scan_next(&s, &budget, &f, value) && s.n_waiting == 1, "it waits");
	memcpy(base + at, image, kw.slot_bytes);
	ok(!pl_scan_settle(&s, &f, value), "a half is not found");
	eq(s.unsettled, 1, "but counted");
	budget = 1000;
	pl_scan_begin(&s);
	ok(!pl_scan_next(&s, &budget, &f, value) && pl_scan_settle(&s, &f, value), "the whole is");
	memeq(value, v, sizeof(v), "as it was written");
	ok(!pl_scan_settle(&s, &f, value) && s.changed == 1, "once");
	pl_scan_done(&s);
	free(base);
}

struct race {
	struct pl_key_write kw;
	_Atomic bool stop;
};

/* Values whose bytes are all the same. */
static void *write_values(void *arg)
{
	struct race *r = arg;
	uint8_t v[4];

	for (uint32_t i = 0; !r->stop; i++) {
		memset(v, (int)(i % 251), sizeof(v));
		put(&r->kw, i % 64, v);
	}
	return NULL;
}

static void race(void)
{
	const struct pl_store_params p = key_write_of(256, 4, 2);
	void *base = memory_for(&p);
	struct race r = { .stop = false };
	struct pl_scan_found f;
	struct pl_scan s;
	uint64_t budget, torn = 0;
	pthread_t thread;

	(void)pl_key_write_init(&r.kw, &p, base);
	eq(pl_scan_init(&s, &p, base, false), 0);
	if (!ok(pthread_create(&thread, NULL, write_values, &r) == 0, "writer started"))
		return;
	for (unsigned int i = 0; i < 20000; i++) {
		pl_scan_begin(&s);
		budget = UINT64_MAX;
		while (pl_scan_next(&s, &budget, &f, value)) {
			for (unsigned int k = 1; k < 4; k++)
				torn += value[k] != value[0];
		}
	}
	r.stop = true;
	pthread_join(thread, NULL);
	eq(torn, 0, "no value is half another one (of %llu)", (unsigned long long)s.found);
	eq(s.changed, s.found + s.repeated, "the account closes under a writer");
	pl_scan_done(&s);
	free(base);
}

int main(void)
{
	const struct pl_store_params lists = { .primitive = PL_APPEND };
	struct pl_scan s;

	eq(pl_scan_init(&s, &lists, NULL, false), -EINVAL, "lists are read by their heads");
	last_values(4, 1, UINT64_MAX);
	last_values(4, 2, 100);
	last_values(28, 4, 1);
	last_values(60, 2, 99999);
	beginnings();
	sums(4, false);
	sums(2, true);
	postcards();
	half_written();
	race();
	return pl_test_done();
}
