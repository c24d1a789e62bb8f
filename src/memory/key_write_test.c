/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key-write: the bytes as published, votes, values that are torn, and the curves of success that
 * theory gives. The curves take a million keys a point: the standard error of the oldest tenth is
 * below 0.2 points.
 */
#include "memory/key_write.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "memory/test_memory.h"

static struct pl_store_params params_of(uint64_t slots, uint32_t value_bytes, uint32_t copies)
{
	return (struct pl_store_params){
		.primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 99,
		.key_write = { slots, value_bytes, copies },
	};
}

/* ---- as published ---- */

static void dta_bytes(void)
{
	static const unsigned int want[] = { 173, 59, 129, 23 };
	struct pl_store_params params = {
		.primitive = PL_KEY_WRITE, .hash = PL_HASH_DTA, .key_write = { 256, 4, 4 }
	};
	uint8_t *base = memory_for(&params);
	static const uint8_t value[4] = { 0xde, 0xad, 0xbe, 0xef };
	uint8_t got[4] = { 0 }, slot[8] = { 0x79, 0xb8, 0xf8, 0x99, 0xde, 0xad, 0xbe, 0xef },
		made[8];
	unsigned int used = 0;
	struct pl_key_write_result r;
	struct pl_key_write kw;
	struct pl_key key;
	uint32_t k = 1;

	eq(pl_key_write_init(&kw, &params, base), 0);
	key = pl_key_write_key(&kw, &k, sizeof(k));
	for (unsigned int n = 0; n < 4; n++)
		eq(pl_key_write_offset(&kw, key, n), 8 * want[n], "copy %u of key 1 in slot %u", n,
			want[n]);
	pl_key_write_image(&kw, key, value, made);
	memeq(made, slot, 8, "check value little-endian, value untouched");
	pl_key_write_put(&kw, key, value, 4);
	for (unsigned int n = 0; n < 4; n++)
		memeq(base + (size_t)8 * want[n], slot, 8, "written so");
	for (unsigned int i = 0; i < 256; i++)
		used += memcmp(base + (size_t)8 * i, "\0\0\0\0\0\0\0\0", 8) != 0;
	eq(used, 4, "and nothing else");
	r = pl_key_write_get(&kw, key, 4, got);
	ok(r.answer == PL_FOUND && r.votes == 4, "found with four votes");
	memeq(got, value, 4);
	k = 2;
	eq(pl_key_write_get(&kw, pl_key_write_key(&kw, &k, 4), 1, got).answer, PL_NOT_FOUND);
	free(base);
}

/* The one key whose CRC-32 is zero fits an empty slot. */
static void dta_zero_key(void)
{
	struct pl_store_params params = {
		.primitive = PL_KEY_WRITE, .hash = PL_HASH_DTA, .key_write = { 256, 4, 2 }
	};
	static const uint8_t zero_crc[4] = { 0x9d, 0x0a, 0xd9, 0x6d };
	uint8_t *base = memory_for(&params), got[4] = { 7, 7, 7, 7 };
	struct pl_key_write kw;
	struct pl_key key;

	eq(pl_key_write_init(&kw, &params, base), 0);
	key = pl_key_write_key(&kw, zero_crc, 4);
	eq(pl_key_check(&kw.hashing, key, NULL, 0), 0, "its check value is zero");
	eq(pl_key_write_get(&kw, key, 1, got).answer, PL_NOT_FOUND, "not found in an empty store");
	pl_key_write_put(&kw, key, "abcd", 2);
	eq(pl_key_write_get(&kw, key, 1, got).answer, PL_FOUND, "found when it is there");
	free(base);
}

/* ---- votes ---- */

static void votes(void)
{
	struct pl_store_params params = params_of(1000, 20, 4);
	uint8_t *base = memory_for(&params);
	uint8_t a[20] = "aaaaaaaaaaaaaaaaaaa", b[20] = "bbbbbbbbbbbbbbbbbbb", got[20];
	struct pl_key_write_result r;
	struct pl_key_write kw;
	struct pl_key key;

	eq(pl_key_write_init(&kw, &params, base), 0);
	key = pl_key_write_key(&kw, "a flow of thirteen", 18);
	eq(pl_key_write_get(&kw, key, 1, got).answer, PL_NOT_FOUND, "nothing there");
	pl_key_write_put(&kw, key, a, 4);
	pl_key_write_put(&kw, key, b, 1);
	r = pl_key_write_get(&kw, key, 1, got);
	ok(r.answer == PL_FOUND && r.votes == 3 && r.matches == 4, "three against one");
	memeq(got, a, 20);
	pl_key_write_put(&kw, key, b, 2);
	memset(got, 1, sizeof(got));
	r = pl_key_write_get(&kw, key, 1, got);
	ok(r.answer == PL_AMBIGUOUS && r.votes == 2, "two against two is said to be so");
	ok(got[0] == 1, "and gives no value");
	pl_key_write_put(&kw, key, b, 3);
	r = pl_key_write_get(&kw, key, 3, got);
	ok(r.answer == PL_FOUND && r.votes == 3, "three against one, three asked for");
	memeq(got, b, 20);
	eq(pl_key_write_get(&kw, key, 4, got).answer, PL_NOT_FOUND, "four asked for");
	free(base);
}

/* Any change of any bit of a slot, and any mix of two writes, is seen. */
static void torn(void)
{
	struct pl_store_params params = params_of(10, 44, 1);
	uint8_t *base = memory_for(&params), old[48], value[44], got[44];
	unsigned int seen = 0, mixed = 0, tried = 0;
	struct pl_key_write kw;
	struct pl_key key;
	uint8_t *slot;

	eq(pl_key_write_init(&kw, &params, base), 0);
	key = pl_key_write_key(&kw, "k", 1);
	slot = base + pl_key_write_offset(&kw, key, 0);
	memset(value, 0x11, sizeof(value));
	pl_key_write_put(&kw, key, value, 1);
	for (unsigned int bit = 0; bit < 48 * 8; bit++) {
		slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
		seen += pl_key_write_get(&kw, key, 1, got).answer == PL_NOT_FOUND;
		slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	eq(seen, 48 * 8, "each bit");
	memcpy(old, slot, sizeof(old));
	memset(value, 0x22, sizeof(value));
	pl_key_write_put(&kw, key, value, 1);
	for (unsigned int cut = 8; cut < 48; cut += 8) {
		uint8_t fresh[48];

		memcpy(fresh, slot, sizeof(fresh));
		memcpy(slot, old, cut);
		mixed += pl_key_write_get(&kw, key, 1, got).answer == PL_NOT_FOUND;
		memcpy(slot, fresh, sizeof(fresh));
		memcpy(slot + cut, old + cut, 48 - cut);
		mixed += pl_key_write_get(&kw, key, 1, got).answer == PL_NOT_FOUND;
		memcpy(slot, fresh, sizeof(fresh));
		tried += 2;
	}
	eq(mixed, tried, "each mix of two writes, by words");
	eq(pl_key_write_get(&kw, key, 1, got).answer, PL_FOUND, "and whole it is found");
	free(base);
}

static void batches(void)
{
	enum { N = 1000, V = 12 };
	struct pl_store_params params = params_of(100003, V, 3);
	uint8_t *base = memory_for(&params), *other = memory_for(&params);
	static uint8_t values[N * V], got[N * V];
	static struct pl_key_write_result results[N];
	static struct pl_key keys[N];
	struct pl_key_write one, many;
	unsigned int same = 0, found = 0;
	uint8_t value[V];
	uint64_t bytes;

	eq(pl_key_write_init(&one, &params, base), 0);
	eq(pl_key_write_init(&many, &params, other), 0);
	for (uint32_t i = 0; i < N; i++) {
		uint8_t name[40] = { 0 };

		memset(values + (size_t)i * V, (int)i, V);
		memcpy(values + (size_t)i * V, &i, 4);
		memcpy(name, &i, 4);
		keys[i] = pl_key_write_key(&one, name, i % 37 + 4);
		pl_key_write_put(&one, keys[i], values + (size_t)i * V, 3);
	}
	pl_key_write_put_batch(&many, keys, values, N);
	pl_store_bytes(&params, &bytes, NULL);
	memeq(other, base, bytes, "a batch writes what single puts write");
	pl_key_write_get_batch(&many, keys, N, 2, results, got);
	for (uint32_t i = 0; i < N; i++) {
		struct pl_key_write_result r = pl_key_write_get(&one, keys[i], 2, value);

		same += r.answer == results[i].answer && r.votes == results[i].votes &&
			(r.answer != PL_FOUND || memcmp(got + (size_t)i * V, value, V) == 0);
		found += r.answer == PL_FOUND && memcmp(value, values + (size_t)i * V, V) == 0;
	}
	eq(same, N, "and a batch reads what single gets read");
	ok(found > N * 98 / 100, "which is what was put, for %u of %d", found, N);
	free(base);
	free(other);
}

/* ---- theory ---- */

/* Share of keys found, of those of age alpha (the oldest twentieth), and of all. */
struct curve {
	double oldest, average;
	uint64_t wrong;
};

enum { BATCH = 1000 };

struct batch {
	struct pl_key keys[BATCH];
	uint32_t values[BATCH], got[BATCH];
	struct pl_key_write_result results[BATCH];
};

/* Keys number i and following. */
static void batch_of(const struct pl_key_write *kw, struct batch *b, uint64_t i)
{
	for (uint32_t j = 0; j < BATCH; j++) {
		uint32_t k = (uint32_t)(i + j) * 2654435761u;

		b->keys[j] = pl_key_write_key(kw, &k, 4);
		b->values[j] = (uint32_t)(i + j);
	}
}

static struct curve measure(uint32_t hash, uint64_t slots, double alpha, uint32_t copies)
{
	struct pl_store_params params = params_of(slots, 4, copies);
	uint64_t n = (uint64_t)(alpha * (double)slots), found = 0, found_old = 0;
	struct curve c = { .wrong = 0 };
	static struct batch b;
	struct pl_key_write kw;
	uint8_t *base;

	params.hash = hash;
	params.seed = hash == PL_HASH_DTA ? 0 : 99;
	base = memory_for(&params);
	if (pl_key_write_init(&kw, &params, base) < 0)
		abort();
	for (uint64_t i = 0; i < n; i += BATCH) {
		batch_of(&kw, &b, i);
		pl_key_write_put_batch(&kw, b.keys, b.values, i + BATCH < n ? BATCH : n - i);
	}
	for (uint64_t i = 0; i < 2 * n; i++) { /* behind n: keys that never were */
		if (i % BATCH == 0) {
			batch_of(&kw, &b, i);
			pl_key_write_get_batch(&kw, b.keys, BATCH, 1, b.results, b.got);
		}
		if (b.results[i % BATCH].answer != PL_FOUND)
			continue;
		c.wrong += i >= n || b.got[i % BATCH] != (uint32_t)i;
		found += i < n;
		found_old += i < n / 20;
	}
	free(base);
	c.oldest = 100 * (double)found_old / (double)(n / 20);
	c.average = 100 * (double)found / (double)n;
	return c;
}

/* 1 - p^N over ages from..to. */
static double theory(double from, double to, double copies)
{
	double sum = 0;
	int steps = 2000;

	for (int i = 0; i < steps; i++) {
		double a = from + (to - from) * (i + 0.5) / steps;

		sum += 1 - pow(1 - exp(-a * copies), copies);
	}
	return 100 * sum / steps;
}

static void curves(void)
{
	/* The table of the reference at its ends of age: percent for N = 1, 2, 4, 8, of the oldest
	 * key and on average. */
	static const struct {
		double alpha, oldest[4], average[4];
	} table[] = {
		{ 0.1, { 90.5, 96.7, 98.8, 99.2 }, { 95.2, 98.9, 99.7, 99.9 } },
		{ 0.4, { 67.0, 69.7, 59.4, 28.3 }, { 82.4, 87.8, 86.7, 75.4 } },
		{ 1.0, { 36.8, 25.2, 7.1, 0.3 }, { 63.2, 61.9, 50.3, 33.9 } },
	};
	uint64_t wrong = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (unsigned int k = 0; k < 4; k++) {
			double alpha = table[i].alpha;
			uint32_t copies = 1u << k;
			uint64_t slots = (uint64_t)(1000003 / alpha);
			struct curve c = measure(PL_HASH_PATHLINE, slots, alpha, copies);
			/* The oldest twentieth is a little younger than the oldest key. */
			double want = theory(alpha * 0.95, alpha, copies);

			ok(fabs(theory(alpha, alpha, copies) - table[i].oldest[k]) < 0.06,
				"alpha %.1f, %u copies: the formula is the table's", alpha, copies);
			ok(fabs(c.oldest - want) < 0.5, "oldest: %.2f %%, theory %.2f", c.oldest,
				want);
			ok(fabs(c.average - table[i].average[k]) < 0.5,
				"average: %.2f %%, theory %.1f", c.average, table[i].average[k]);
			wrong += c.wrong;
		}
	}
	eq(wrong, 0, "wrong answers in 24 million queries");
}

/*
 * With the published hash the position of copy n is that of copy 0 with bits turned that depend on
 * n alone. So a later key that takes one of a key's slots takes the other as well, and a second
 * copy does harm: a key survives if none of the later ones falls on its pair of slots, e^-2a,
 * instead of 1 - (1 - e^-2a)^2.
 */
static void dta_curve(void)
{
	double alpha = 1000003.0 / (1 << 21), want = 0;
	struct curve c = measure(PL_HASH_DTA, 1 << 21, alpha, 2);

	for (int i = 0; i < 2000; i++)
		want += 100 * exp(-2 * alpha * (i + 0.5) / 2000) / 2000;
	ok(fabs(c.average - want) < 0.5,
		"dta, 2 copies: %.2f %% found, %.2f expected, %.2f if copies were independent",
		c.average, want, theory(0, alpha, 2));
	eq(c.wrong, 0, "and no wrong answer");
}

/* The curves as a table for tools/plots, of the keys' mean: key_write_test curves */
static void print_curves(void)
{
	printf("# copies  keys per slot  found %%  theory %%  wrong\n");
	for (uint32_t copies = 1; copies <= 8; copies *= 2) {
		for (int tenth = 1; tenth <= 10; tenth++) {
			double alpha = tenth / 10.0;
			struct curve c = measure(
				PL_HASH_PATHLINE, (uint64_t)(1000003 / alpha), alpha, copies);

			printf("%" PRIu32 " %.1f %.2f %.2f %" PRIu64 "\n", copies, alpha, c.average,
				theory(0, alpha, copies), c.wrong);
		}
		printf("\n\n");
	}
}

/* As many keys as one likes, and as many that never were: key_write_test 10000000 */
static void no_wrong_answer(uint64_t keys)
{
	struct curve c = measure(PL_HASH_PATHLINE, (uint64_t)((double)keys / 0.4), 0.4, 2);

	ok(fabs(c.average - 87.8) < 0.5, "%" PRIu64 " keys: %.2f %% found, theory 87.8", keys,
		c.average);
	eq(c.wrong, 0, "no wrong answer in %" PRIu64 " queries", 2 * keys);
}

static void geometry_only(void)
{
	struct pl_store_params params = params_of(UINT64_C(1) << 40, 28, 2);
	struct pl_key_write kw;
	uint8_t slot[32];
	struct pl_key key;

	eq(pl_key_write_init(&kw, &params, NULL), 0, "32 TiB without memory");
	key = pl_key_write_key(&kw, "key", 3);
	ok(pl_key_write_offset(&kw, key, 1) + kw.slot_bytes <= UINT64_C(32) << 40,
		"offsets within");
	pl_key_write_image(&kw, key, "0123456789012345678901234567", slot);
	memeq(slot + 4, "0123456789012345678901234567", 28);
	params.primitive = PL_APPEND;
	eq(-pl_key_write_init(&kw, &params, NULL), EINVAL, "parameters of another primitive");
	params = params_of(64, 3, 2);
	params.hash = PL_HASH_DTA;
	params.seed = 0;
	eq(pl_key_write_init(&kw, &params, NULL), 0);
	eq(kw.write_bytes, 8, "a slot of one word is written whole");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "curves") == 0) {
		print_curves();
		return 0;
	}
	if (argc > 1) {
		no_wrong_answer(strtoull(argv[1], NULL, 10));
		return pl_test_done();
	}
	dta_bytes();
	dta_zero_key();
	votes();
	torn();
	batches();
	geometry_only();
	curves();
	dta_curve();
	return pl_test_done();
}
