/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Last values and paths that are read while they are overwritten: each answer is, to the byte, one
 * that was put under that key by then; nothing is torn. Under the thread sanitizer it also shows
 * that writers and readers meet in atomic words only.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/test_memory.h"

#define KEYS 8u /* few, so that both ends are at the same ones */
#if defined(__SANITIZE_THREAD__)
#define ROUNDS 5000u
#else
#define ROUNDS 40000u
#endif
#define BATCH 4u

/* What a reader found. */
struct seen {
	uint64_t asked, found, ambiguous, wrong, slots;
};

struct race {
	struct pl_key_write kw;
	struct pl_postcards p;
	_Atomic uint64_t begun; /* the round that the writer is at */
	_Atomic bool over;
	struct seen seen[2];
	_Atomic unsigned int readers;
};

static void yield_sometimes(uint64_t round)
{
	/* So that the others come to run on a busy machine too, in the middle of things. */
	if (round % 256 == 0)
		sched_yield();
}

/* ---- key-write ---- */

/* The value of a key in a round: its number, and bytes that follow from both. */
static void value_of(uint32_t key, uint64_t round, uint8_t *value, uint32_t bytes)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, round << 8 | key);
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t word = i == 0 ? round << 8 | key : pl_rng_u64(&rng);

		memcpy(value + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

/* The round that the value says it is of is what its bytes must follow from. */
static bool is_of(
	uint32_t key, uint64_t begun, const uint8_t *value, uint32_t bytes, uint8_t *scratch)
{
	uint64_t word = 0;

	memcpy(&word, value, bytes < 8 ? bytes : 8);
	if ((word & 0xff) != key || word >> 8 > begun)
		return false;
	value_of(key, word >> 8, scratch, bytes);
	return memcmp(value, scratch, bytes) == 0;
}

static struct pl_key kw_key(const struct race *race, uint32_t key)
{
	return pl_key_write_key(&race->kw, &key, sizeof(key));
}

static void *read_values(void *arg)
{
	static _Thread_local uint8_t values[KEYS * PL_VALUE_MAX], scratch[PL_VALUE_MAX];
	struct race *race = arg;
	unsigned int me = atomic_fetch_add(&race->readers, 1);
	struct pl_key_write_result results[KEYS];
	struct seen s = { 0 };
	struct pl_key keys[KEYS];
	uint32_t check, bytes = race->kw.value_bytes;

	for (uint32_t k = 0; k < KEYS; k++)
		keys[k] = kw_key(race, k);
	while (!atomic_load(&race->over)) {
		pl_key_write_get_batch(&race->kw, keys, KEYS, 1, results, values);
		for (uint32_t k = 0; k < KEYS; k++) {
			s.asked++;
			s.ambiguous += results[k].answer == PL_AMBIGUOUS;
			if (results[k].answer != PL_FOUND)
				continue;
			s.found++;
			s.wrong += !is_of(k, atomic_load(&race->begun), values + (size_t)k * bytes,
				bytes, scratch);
		}
		/* Whoever dumps reads slots without their keys. */
		for (uint64_t i = 0; i < race->kw.slots; i++)
			s.slots += pl_key_write_slot(&race->kw, i, &check, scratch);
	}
	race->seen[me] = s;
	return NULL;
}

/* One by one in odd rounds, by a batch in even ones. */
static void write_values(struct race *race)
{
	static uint8_t values[BATCH * PL_VALUE_MAX];
	const struct pl_key_write *kw = &race->kw;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		uint32_t first = (uint32_t)(round % (KEYS / BATCH)) * BATCH;
		struct pl_key keys[BATCH];

		atomic_store(&race->begun, round);
		for (uint32_t i = 0; i < BATCH; i++) {
			keys[i] = kw_key(race, first + i);
			value_of(first + i, round, values + (size_t)i * kw->value_bytes,
				kw->value_bytes);
		}
		if (round % 4 < 2) {
			pl_key_write_put_batch(kw, keys, values, BATCH);
		} else {
			for (uint32_t i = 0; i < BATCH; i++)
				pl_key_write_put(kw, keys[i], values + (size_t)i * kw->value_bytes,
					kw->copies);
		}
		yield_sometimes(round);
	}
}

static void judge(struct race *race, const char *what)
{
	struct seen s = race->seen[0];

	s.asked += race->seen[1].asked;
	s.found += race->seen[1].found;
	s.ambiguous += race->seen[1].ambiguous;
	s.wrong += race->seen[1].wrong;
	printf("# %s: %" PRIu64 " asked, %" PRIu64 " found, %" PRIu64 " ambiguous\n", what, s.asked,
		s.found, s.ambiguous);
	eq(s.wrong, 0, "%s: never a wrong or torn answer", what);
	ok(s.asked > 0, "%s: while it was written", what);
}

static void race_of(struct race *race, void *(*read)(void *), void (*write)(struct race *))
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read, race);
	while (atomic_load(&race->readers) < 2)
		sched_yield();
	write(race);
	atomic_store(&race->over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void key_write(uint32_t hash, uint32_t value_bytes, uint32_t copies)
{
	struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = hash,
		.seed = hash == PL_HASH_DTA ? 0 : 7,
		.key_write = { hash == PL_HASH_DTA ? 64 : 61, value_bytes, copies } };
	struct race race = { .over = false };
	unsigned int last = 0;
	uint8_t value[PL_VALUE_MAX], scratch[PL_VALUE_MAX];
	char what[64];

	if (pl_key_write_init(&race.kw, &params, memory_for(&params)) < 0)
		abort();
	race_of(&race, read_values, write_values);
	snprintf(what, sizeof(what), "%s values of %u bytes, %u copies",
		hash == PL_HASH_DTA ? "dta" : "pathline", value_bytes, copies);
	judge(&race, what);
	/* When it is quiet, the last value of each key that was not overwritten by another is
	 * there. */
	for (uint32_t k = 0; k < KEYS; k++)
		last += pl_key_write_get(&race.kw, kw_key(&race, k), 1, value).answer == PL_FOUND &&
			is_of(k, ROUNDS, value, value_bytes, scratch);
	ok(last >= KEYS / 2, "%s: %u of %u in the end", what, last, KEYS);
	free(race.kw.base);
}

/* ---- postcards ---- */

static unsigned int path_of(uint32_t key, uint64_t round, uint32_t hops, uint32_t *values)
{
	unsigned int n = 1 + (unsigned int)(round % hops);

	for (unsigned int i = 0; i < n; i++)
		values[i] = (uint32_t)(round << 8) | key << 4 | i;
	return n;
}

static struct pl_key nic_key(const struct race *race, uint32_t key)
{
	return pl_postcards_key(&race->p, &key, sizeof(key));
}

static void *read_paths(void *arg)
{
	struct race *race = arg;
	unsigned int me = atomic_fetch_add(&race->readers, 1);
	uint32_t path[PL_HOPS_MAX], want[PL_HOPS_MAX];
	struct seen s = { 0 };

	while (!atomic_load(&race->over)) {
		for (uint32_t k = 0; k < KEYS; k++) {
			const struct pl_postcards_result r =
				pl_postcards_get(&race->p, nic_key(race, k), NULL, path);

			s.asked++;
			s.ambiguous += r.answer == PL_AMBIGUOUS;
			if (r.answer != PL_FOUND)
				continue;
			s.found++;
			s.wrong += r.n != path_of(k, path[0] >> 8, race->p.hops, want) ||
				   memcmp(path, want, r.n * sizeof(want[0])) != 0;
		}
	}
	race->seen[me] = s;
	return NULL;
}

static void write_paths(struct race *race)
{
	uint32_t values[PL_HOPS_MAX];

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		uint32_t key = (uint32_t)(round * 5 % KEYS);
		unsigned int n = path_of(key, round, race->p.hops, values);

		if (pl_postcards_put(&race->p, nic_key(race, key), values, n) < 0)
			abort();
		yield_sometimes(round);
	}
}

static void postcards(uint32_t hops, uint32_t copies)
{
	struct pl_store_params params = { .primitive = PL_POSTCARDS,
		.hash = PL_HASH_PATHLINE,
		.seed = 8,
		.postcards = { 67, hops, copies } };
	uint32_t values[PL_HOPS_MAX], want[PL_HOPS_MAX];
	struct race race = { .over = false };
	unsigned int last = 0;
	char what[64];

	if (pl_postcards_init(&race.p, &params, memory_for(&params)) < 0)
		abort();
	race_of(&race, read_paths, write_paths);
	snprintf(what, sizeof(what), "paths of %u hops, %u copies", hops, copies);
	judge(&race, what);
	for (uint32_t k = 0; k < KEYS; k++) {
		struct pl_postcards_result r =
			pl_postcards_get(&race.p, nic_key(&race, k), NULL, values);

		last += r.answer == PL_FOUND && r.n == path_of(k, values[0] >> 8, hops, want) &&
			values[0] >> 8 > ROUNDS - KEYS;
	}
	ok(last >= KEYS / 2, "%s: %u of %u in the end", what, last, KEYS);
	free(race.p.base);
}

int main(void)
{
	/* A single copy has no others to outvote it when it is torn: only its check value tells. */
	key_write(PL_HASH_PATHLINE, 28, 1);
	key_write(PL_HASH_PATHLINE, 904, 1);
	key_write(PL_HASH_PATHLINE, 4, 1);
	key_write(PL_HASH_PATHLINE, 128, 4);
	key_write(PL_HASH_PATHLINE, 904, 2);
	/* Without a check value over the value only what one word holds is safe. */
	key_write(PL_HASH_DTA, 4, 1);
	postcards(5, 1);
	postcards(31, 1);
	postcards(7, 2);
	postcards(31, 4);
	return pl_test_done();
}
