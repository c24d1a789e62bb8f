/* SPDX-License-Identifier: BSD-2-Clause */
/* Postcards: the published hashes, paths short and full, copies that disagree, chunks of others. */
#include "memory/postcards.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/test_memory.h"

static struct pl_postcards make(uint32_t hash, uint64_t chunks, uint32_t hops, uint32_t copies)
{
	struct pl_store_params params = { .primitive = PL_POSTCARDS,
		.hash = hash,
		.seed = hash == PL_HASH_DTA ? 0 : 8,
		.postcards = { chunks, hops, copies } };
	struct pl_postcards p;

	if (pl_postcards_init(&p, &params, memory_for(&params)) < 0)
		abort();
	return p;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void dta_vectors(void)
{
	static const struct {
		uint8_t key[4];
		uint32_t chunk, hop[5];
	} vectors[] = {
		{ { 0, 0, 0, 1 }, 0x5643EF8A,
			{ 0xFFFDD680, 0x119CA20C, 0x55F952F3, 0xF4B8DA4A, 0xFE06C36C } },
		{ { 10, 0, 0, 1 }, 0x39FE0FEE,
			{ 0xFF08A50C, 0xED1FB692, 0x58B45875, 0x2D2A23DA, 0xE0D4B8DB } },
	};
	struct pl_postcards p = make(PL_HASH_DTA, 1 << 16, 5, 1);
	static const uint32_t zeros[5];
	uint8_t chunk[32];

	for (size_t i = 0; i < 2; i++) {
		struct pl_key key = pl_postcards_key(&p, vectors[i].key, 4);

		eq(pl_postcards_offset(&p, key, 0), 32 * (uint64_t)(vectors[i].chunk & 0xffff),
			"chunk of key %08x", be32(vectors[i].key));
		eq(pl_postcards_image(&p, key, zeros, 5, chunk), 0);
		for (unsigned int hop = 0; hop < 5; hop++)
			eq(be32(chunk + (size_t)4 * hop), vectors[i].hop[hop], "hash of hop %u",
				hop + 1);
		memeq(chunk + 20, "\0\0\0\0\0\0\0\0\0\0\0", 12, "and zeros");
	}
	free(p.base);
}

static void paths(uint32_t hash, uint32_t hops, uint32_t copies)
{
	struct pl_postcards p = make(hash, 256, hops, copies);
	uint32_t path[PL_HOPS_MAX], got[PL_HOPS_MAX], nodes[100], stranger[1] = { 5000 };
	struct pl_postcards_result r;
	unsigned int good = 0;
	struct pl_value_set set;
	struct pl_key key = pl_postcards_key(&p, "flow", 4);

	for (uint32_t i = 0; i < 100; i++)
		nodes[i] = i;
	eq(pl_value_set_init(&set, nodes, 100), 0);
	eq(pl_postcards_get(&p, key, &set, got).answer, PL_NOT_FOUND, "nothing there");
	for (unsigned int n = 1; n <= hops; n++) {
		for (unsigned int i = 0; i < n; i++)
			path[i] = (7 * n + i) % 100;
		memset(got, 0xee, sizeof(got));
		if (pl_postcards_put(&p, key, path, n) != 0)
			continue;
		r = pl_postcards_get(&p, key, &set, got);
		good += r.answer == PL_FOUND && r.n == n && r.copies == copies &&
			memcmp(got, path, 4 * n) == 0;
	}
	eq(good, hops, "paths of 1 to %u hops, %u copies", hops, copies);
	eq(-pl_postcards_put(&p, key, path, 0), EINVAL, "no path");
	eq(-pl_postcards_put(&p, key, path, hops + 1), EINVAL, "a hop too many");
	path[0] = PL_POSTCARD_BLANK;
	eq(-pl_postcards_put(&p, key, path, 1), EINVAL, "the blank is no node");
	r = pl_postcards_get(&p, key, &set, got);
	ok(r.answer == PL_FOUND && r.n == hops, "what was refused changed nothing");
	eq(pl_postcards_get(&p, pl_postcards_key(&p, "WOLF", 4), &set, got).answer, PL_NOT_FOUND,
		"another flow");
	r = pl_postcards_get(&p, key, NULL, got);
	eq(r.answer, hash == PL_HASH_DTA ? PL_NOT_FOUND : PL_FOUND, "without a set of nodes");
	pl_postcards_put(&p, key, stranger, 1);
	eq(pl_postcards_get(&p, key, &set, got).answer, PL_NOT_FOUND, "a node that cannot be");
	pl_value_set_done(&set);
	free(p.base);
}

static void disagreement(void)
{
	struct pl_postcards p = make(PL_HASH_PATHLINE, 1000, 7, 2);
	static const uint32_t a[3] = { 1, 2, 3 }, b[3] = { 1, 4, 3 };
	uint32_t got[7] = { 99 };
	uint8_t old[32];
	struct pl_postcards_result r;
	struct pl_key key = pl_postcards_key(&p, "tuple", 5);
	uint8_t *first = p.base + pl_postcards_offset(&p, key, 0);

	pl_postcards_put(&p, key, a, 3);
	memcpy(old, first, sizeof(old));
	pl_postcards_put(&p, key, b, 3);
	memcpy(first, old, sizeof(old));
	r = pl_postcards_get(&p, key, NULL, got);
	ok(r.answer == PL_AMBIGUOUS && r.n == 0 && r.copies == 2, "two copies disagree");
	eq(got[0], 99, "and nothing is given");
	memset(first, 0, sizeof(old));
	r = pl_postcards_get(&p, key, NULL, got);
	ok(r.answer == PL_FOUND && r.copies == 1 && memcmp(got, b, 12) == 0, "one copy is enough");
	for (unsigned int bit = 0; bit < 32 * 8; bit++) {
		uint8_t *at = p.base + pl_postcards_offset(&p, key, 1) + bit / 8;

		*at ^= (uint8_t)(1 << bit % 8);
		if (pl_postcards_get(&p, key, NULL, got).answer != PL_NOT_FOUND)
			ok(false, "bit %u", bit);
		*at ^= (uint8_t)(1 << bit % 8);
	}
	ok(pl_postcards_get(&p, key, NULL, got).answer == PL_FOUND,
		"each bit of a chunk is covered");
	free(p.base);
}

/* A chunk of DTA's without check value: foreign chunks do not pass for paths of known nodes. */
static void foreign_chunks(uint32_t hash)
{
	enum { FLOWS = 200000, NODES = 1000 };
	struct pl_postcards p = make(hash, 1 << 16, 5, 1);
	uint32_t nodes[NODES], path[5], got[5];
	unsigned int found = 0, wrong = 0;
	struct pl_value_set set;

	for (uint32_t i = 0; i < NODES; i++)
		nodes[i] = i * 77;
	eq(pl_value_set_init(&set, nodes, NODES), 0);
	for (uint32_t f = 0; f < 2 * FLOWS; f++) {
		struct pl_key key = pl_postcards_key(&p, &f, 4);

		for (uint32_t i = 0; i < 5; i++)
			path[i] = nodes[(f + i) % NODES];
		if (f < FLOWS)
			pl_postcards_put(&p, key, path, 2 + f % 4);
	}
	for (uint32_t f = 0; f < 2 * FLOWS; f++) {
		struct pl_key key = pl_postcards_key(&p, &f, 4);
		struct pl_postcards_result r = pl_postcards_get(&p, key, &set, got);

		if (r.answer == PL_NOT_FOUND)
			continue;
		found++;
		wrong += f >= FLOWS || r.n != 2 + f % 4 || got[1] != nodes[(f + 1) % NODES];
	}
	/* A bijection of the keys fills every chunk; a hash 1 - e^-3.05 of them. */
	ok(found > 60000, "%u flows found in 65536 chunks", found);
	eq(wrong, 0, "no foreign chunk taken for a flow's");
	pl_value_set_done(&set);
	free(p.base);
}

/* alpha = 0.1, two copies: the oldest of a flow's chunks are gone with p^2, 3.3 %. */
static void success(void)
{
	enum { FLOWS = 500000 };
	struct pl_postcards p = make(PL_HASH_PATHLINE, FLOWS * 10, 7, 2);
	unsigned int lost = 0, old = FLOWS / 20;
	const uint32_t path[2] = { 1, 2 };
	uint32_t got[7];
	double share;

	for (uint32_t f = 0; f < FLOWS; f++)
		pl_postcards_put(&p, pl_postcards_key(&p, &f, 4), path, 2);
	for (uint32_t f = 0; f < old; f++)
		lost += pl_postcards_get(&p, pl_postcards_key(&p, &f, 4), NULL, got).answer !=
			PL_FOUND;
	share = 100.0 * lost / old;
	ok(fabs(share - 3.15) < 0.5, "%.2f %% of the oldest are gone, theory 3.15", share);
	free(p.base);
}

static void sets(void)
{
	static const uint32_t bad[] = { 1, PL_POSTCARD_BLANK };
	uint32_t values[1000];
	unsigned int wrong = 0;
	struct pl_value_set set;

	for (uint32_t i = 0; i < 1000; i++)
		values[i] = i / 2 * 1000003;
	eq(pl_value_set_init(&set, values, 1000), 0);
	eq(set.n, 500, "repeats count once");
	for (uint32_t i = 0; i < 1000; i++)
		wrong +=
			!pl_value_set_has(&set, values[i]) || pl_value_set_has(&set, values[i] + 1);
	eq(wrong, 0);
	pl_value_set_done(&set);
	eq(-pl_value_set_init(&set, bad, 2), EINVAL, "the blank is no value");
	ok(!pl_value_set_has(&set, 1), "a set that is not");
	eq(pl_value_set_init(&set, NULL, 0), 0);
	ok(!pl_value_set_has(&set, 0), "an empty one");
	pl_value_set_done(&set);
}

int main(void)
{
	dta_vectors();
	paths(PL_HASH_PATHLINE, 7, 2);
	paths(PL_HASH_PATHLINE, 31, 8);
	paths(PL_HASH_DTA, 5, 1);
	disagreement();
	foreign_chunks(PL_HASH_DTA);
	foreign_chunks(PL_HASH_PATHLINE);
	success();
	sets();
	return pl_test_done();
}
