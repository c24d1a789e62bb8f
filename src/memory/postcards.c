/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the chunks of a postcard store. */
#include "memory/postcards.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "memory/words.h"

#define CHUNK_MAX 128u /* PL_HOPS_MAX words and a check value */
#define DTA_HOPS  5u

/* The published code hashes each hop by a polynomial of its own (here without the x^32 term, most
 * significant bit first). The first and the last are multiples of powers of x: 8 and 3 of their
 * bits never change. */
static const uint32_t dta_polynomials[DTA_HOPS] = { 0x1E12A700, 0x65B96595, 0x49CF878B, 0x36518F0D,
	0x7A40A908 };
static struct pl_crc32_table dta_tables[DTA_HOPS];

static void make_dta_tables(void)
{
	for (unsigned int i = 0; i < DTA_HOPS; i++) {
		uint32_t reflected = 0;

		for (unsigned int bit = 0; bit < 32; bit++)
			reflected |= (dta_polynomials[i] >> bit & 1) << (31 - bit);
		pl_crc32_table_init(&dta_tables[i], reflected);
	}
}

int pl_postcards_init(struct pl_postcards *p, const struct pl_store_params *params, void *base)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t bytes;
	bool dta;

	if (params->primitive != PL_POSTCARDS || pl_store_bytes(params, &bytes, NULL) < 0)
		return -EINVAL;
	dta = params->hash == PL_HASH_DTA;
	if (dta)
		pthread_once(&once, make_dta_tables);
	*p = (struct pl_postcards){
		.hashing = { params->hash, params->seed },
		.chunks = params->postcards.chunks,
		.hops = params->postcards.hops,
		.copies = params->postcards.copies,
		.chunk_bytes = pl_postcards_chunk_bytes(params->hash, params->postcards.hops),
		.write_bytes = 4 * params->postcards.hops + (dta ? 0 : 4),
		.base = base,
	};
	return 0;
}

/* DTA: the CRC's register below, the key's four bytes above, which the hops' hashes begin with
 * again. */
struct pl_key pl_postcards_key(const struct pl_postcards *p, const void *key, size_t key_bytes)
{
	uint32_t word;

	if (p->hashing.kind == PL_HASH_PATHLINE)
		return pl_key_make(&p->hashing, key, key_bytes);
	if (key_bytes == sizeof(word))
		memcpy(&word, key, sizeof(word));
	else
		word = __builtin_bswap32(pl_crc32(0, key, key_bytes));
	return (struct pl_key){ pl_crc32_step4(&pl_crc32_ieee, ~0u, word) | (uint64_t)word << 32 };
}

/* Mask with which the values of hops 2 * pair (lower half) and the next are XORed, in the order of
 * memory. */
static inline uint64_t pair_mask(const struct pl_postcards *p, struct pl_key key, unsigned int pair)
{
	uint32_t mask[2] = { 0, 0 };

	if (p->hashing.kind == PL_HASH_PATHLINE)
		return pl_hash_mix(key.h, 0x100 + pair);
	for (unsigned int k = 0; k < 2 && 2 * pair + k < DTA_HOPS; k++)
		mask[k] = ~pl_crc32_step4(&dta_tables[2 * pair + k], ~0u, (uint32_t)(key.h >> 32));
	return mask[0] | (uint64_t)mask[1] << 32;
}

/* Between the wire's order and ours, two hops at once; its own inverse. */
static inline uint64_t turned(const struct pl_postcards *p, uint64_t pair)
{
	if (p->hashing.kind != PL_HASH_DTA)
		return pair;
	pair = __builtin_bswap64(pair);
	return pair >> 32 | pair << 32;
}

/* Keeps the halves of a pair that are hops: the last pair may have one. */
static inline uint64_t hops_of(const struct pl_postcards *p, unsigned int pair, uint64_t v)
{
	return 2 * pair + 1 < p->hops ? v : (uint32_t)v;
}

/* Words with hops in them, and words with anything in them: the check value stands behind the last
 * hop. */
static inline unsigned int n_pairs(const struct pl_postcards *p)
{
	return (p->hops + 1) / 2;
}

static inline unsigned int n_words(const struct pl_postcards *p)
{
	return (p->write_bytes + 7) / 8;
}

/* The word and the place in it where the check value is. */
static inline unsigned int check_shift(const struct pl_postcards *p)
{
	return p->hops % 2 * 32;
}

/* The words of a chunk but for its check value. */
static int make_words(const struct pl_postcards *p, struct pl_key key, const uint32_t *values,
	unsigned int n, uint64_t words[CHUNK_MAX / 8])
{
	if (n == 0 || n > p->hops)
		return -EINVAL;
	words[n_words(p) - 1] = 0;
	for (unsigned int i = 0; i < n_pairs(p); i++) {
		uint64_t pair = 0;

		for (unsigned int k = 0; k < 2; k++) {
			bool known = 2 * i + k < n;
			uint32_t value = known ? values[2 * i + k] : PL_POSTCARD_BLANK;

			if (known && value == PL_POSTCARD_BLANK)
				return -EINVAL;
			pair |= (uint64_t)value << 32 * k;
		}
		words[i] = hops_of(p, i, turned(p, pair ^ pair_mask(p, key, i)));
	}
	if (p->hashing.kind == PL_HASH_PATHLINE)
		words[p->hops / 2] |= (uint64_t)pl_key_check(&p->hashing, key, words, n_words(p))
				      << check_shift(p);
	return 0;
}

int pl_postcards_image(const struct pl_postcards *p, struct pl_key key, const uint32_t *values,
	unsigned int n, void *ret_chunk)
{
	uint64_t words[CHUNK_MAX / 8];
	int r = make_words(p, key, values, n, words);

	if (r < 0)
		return r;
	memset(ret_chunk, 0, p->chunk_bytes);
	memcpy(ret_chunk, words, p->write_bytes);
	return 0;
}

int pl_postcards_put(
	const struct pl_postcards *p, struct pl_key key, const uint32_t *values, unsigned int n)
{
	uint64_t words[CHUNK_MAX / 8];
	int r = make_words(p, key, values, n, words);

	for (unsigned int c = 0; r == 0 && c < p->copies; c++)
		pl_words_store(p->base + pl_postcards_offset(p, key, c), words, 8 * n_words(p));
	return r;
}

/* ---- sets of values ---- */

static uint64_t set_slot(const struct pl_value_set *set, uint32_t value)
{
	return pl_hash_mix(value, 0) & set->mask;
}

int pl_value_set_init(struct pl_value_set *set, const uint32_t *values, size_t n)
{
	uint64_t size = 16;

	*set = (struct pl_value_set){ .n = 0 };
	while (size < 2 * (uint64_t)n)
		size *= 2;
	set->table = malloc(size * sizeof(*set->table));
	if (set->table == NULL)
		return -ENOMEM;
	set->mask = size - 1;
	memset(set->table, 0xff, size * sizeof(*set->table));
	for (size_t i = 0; i < n; i++) {
		uint64_t at = set_slot(set, values[i]);

		if (values[i] == PL_POSTCARD_BLANK) {
			pl_value_set_done(set);
			return -EINVAL;
		}
		while (set->table[at] != PL_POSTCARD_BLANK && set->table[at] != values[i])
			at = (at + 1) & set->mask;
		set->n += set->table[at] != values[i];
		set->table[at] = values[i];
	}
	return 0;
}

void pl_value_set_done(struct pl_value_set *set)
{
	free(set->table);
	*set = (struct pl_value_set){ .n = 0 };
}

bool pl_value_set_has(const struct pl_value_set *set, uint32_t value)
{
	uint64_t at;

	if (set->table == NULL || value == PL_POSTCARD_BLANK)
		return false;
	for (at = set_slot(set, value); set->table[at] != PL_POSTCARD_BLANK;
		at = (at + 1) & set->mask) {
		if (set->table[at] == value)
			return true;
	}
	return false;
}

/* ---- read side ---- */

/* Number of hops of the chunk's path; 0 when the chunk is of another flow, or not whole. */
static unsigned int decode(const struct pl_postcards *p, struct pl_key key, uint64_t *words,
	const struct pl_value_set *set, uint32_t *ret_values)
{
	unsigned int n = 0;

	if (p->hashing.kind == PL_HASH_PATHLINE) {
		uint32_t check = (uint32_t)(words[p->hops / 2] >> check_shift(p));

		words[p->hops / 2] -= (uint64_t)check << check_shift(p);
		if (check == 0 || check != pl_key_check(&p->hashing, key, words, n_words(p)))
			return 0;
	} else if (set == NULL) {
		return 0;
	}
	for (unsigned int i = 0; i < p->hops; i++) {
		uint64_t pair = turned(p, words[i / 2]) ^ pair_mask(p, key, i / 2);
		uint32_t value = (uint32_t)(pair >> i % 2 * 32);

		if (value == PL_POSTCARD_BLANK)
			continue;
		if (n < i || (set != NULL && !pl_value_set_has(set, value)))
			return 0;
		ret_values[n++] = value;
	}
	return n;
}

struct pl_postcards_result pl_postcards_judge(const struct pl_postcards *p, struct pl_key key,
	const void *const *chunks, const struct pl_value_set *set, uint32_t *ret_values)
{
	struct pl_postcards_result result = { .answer = PL_NOT_FOUND };
	uint32_t values[PL_HOPS_MAX], first[PL_HOPS_MAX];
	uint64_t words[CHUNK_MAX / 8] = { 0 };
	unsigned int first_n = 0;

	for (unsigned int c = 0; c < p->copies; c++) {
		unsigned int n;

		pl_words_load(words, chunks[c], 8 * n_words(p));
		n = decode(p, key, words, set, values);
		if (n == 0)
			continue;
		if (result.copies++ == 0) {
			memcpy(first, values, n * sizeof(*values));
			first_n = n;
			result.answer = PL_FOUND;
		} else if (n != first_n || memcmp(values, first, n * sizeof(*values)) != 0) {
			result.answer = PL_AMBIGUOUS;
		}
	}
	if (result.answer == PL_FOUND) {
		memcpy(ret_values, first, first_n * sizeof(*first));
		result.n = first_n;
	}
	return result;
}

struct pl_postcards_result pl_postcards_get(const struct pl_postcards *p, struct pl_key key,
	const struct pl_value_set *set, uint32_t *ret_values)
{
	const void *chunks[PL_COPIES_MAX];

	for (unsigned int c = 0; c < p->copies; c++)
		chunks[c] = p->base + pl_postcards_offset(p, key, c);
	return pl_postcards_judge(p, key, chunks, set, ret_values);
}
