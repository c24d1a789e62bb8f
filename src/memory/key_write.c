/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the slots of a key-write store. */
#include "memory/key_write.h"

#include <errno.h>

#include "base/prefetch.h"
#include "memory/words.h"

#define SLOT_MAX (4 + PL_VALUE_MAX)
#define GROUP    32u /* keys of a batch whose slots are prefetched together */

int pl_key_write_init(struct pl_key_write *kw, const struct pl_store_params *params, void *base)
{
	uint64_t bytes;

	if (params->primitive != PL_KEY_WRITE || pl_store_bytes(params, &bytes, NULL) < 0)
		return -EINVAL;
	*kw = (struct pl_key_write){
		.hashing = { params->hash, params->seed },
		.slots = params->key_write.slots,
		.value_bytes = params->key_write.value_bytes,
		.slot_bytes = pl_key_write_slot_bytes(params->key_write.value_bytes),
		.copies = params->key_write.copies,
		/* A slot of one word is written as one, so that nobody reads half of it. */
		.write_bytes =
			params->key_write.value_bytes < 4 ? 8 : 4 + params->key_write.value_bytes,
		.base = base,
	};
	return 0;
}

/* The words of a slot that hold something. */
static inline uint32_t n_words(const struct pl_key_write *kw)
{
	return (kw->write_bytes + 7) / 8;
}

static inline void make_words(const struct pl_key_write *kw, struct pl_key key, const void *value,
	uint64_t words[SLOT_MAX / 8])
{
	const uint8_t *v = value;
	uint32_t left = kw->value_bytes, n = n_words(kw);

	words[0] = pl_word_gather(v, left < 4 ? left : 4) << 32;
	for (uint32_t i = 1; i < n; i++)
		words[i] = pl_word_gather(v + 8 * i - 4, left + 4 - 8 * i);
	words[0] |= pl_key_check(&kw->hashing, key, words, n);
}

static void take_value(const struct pl_key_write *kw, const uint64_t *words, uint8_t *ret_value)
{
	uint32_t left = kw->value_bytes, n = n_words(kw), at = 0;

	for (uint32_t i = 0; i < n && left > 0; i++, at += 8) {
		uint64_t next = i + 1 < n ? words[i + 1] : 0;

		pl_word_scatter(ret_value + at, words[i] >> 32 | next << 32, left);
		left -= left < 8 ? left : 8;
	}
}

void pl_key_write_image(
	const struct pl_key_write *kw, struct pl_key key, const void *value, void *ret_slot)
{
	uint64_t words[SLOT_MAX / 8];

	make_words(kw, key, value, words);
	memset(ret_slot, 0, kw->slot_bytes);
	memcpy(ret_slot, words, kw->write_bytes);
}

void pl_key_write_put(
	const struct pl_key_write *kw, struct pl_key key, const void *value, unsigned int copies)
{
	uint64_t words[SLOT_MAX / 8];

	make_words(kw, key, value, words);
	for (unsigned int n = 0; n < copies; n++)
		pl_words_store(kw->base + pl_key_write_offset(kw, key, n), words, 8 * n_words(kw));
}

static inline unsigned int group_end(unsigned int from, unsigned int n)
{
	return n - from < GROUP ? n : from + GROUP;
}

static inline __attribute__((always_inline)) void fetch_slots(
	const struct pl_key_write *kw, const struct pl_key *keys, unsigned int n, bool write)
{
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int c = 0; c < kw->copies; c++)
			pl_prefetch_all(kw->base + pl_key_write_offset(kw, keys[i], c),
				kw->write_bytes, write);
	}
}

void pl_key_write_put_batch(const struct pl_key_write *kw, const struct pl_key *keys,
	const void *values, unsigned int n)
{
	for (unsigned int from = 0; from < n; from += GROUP) {
		const unsigned int to = group_end(from, n);

		fetch_slots(kw, keys + from, to - from, true);
		for (unsigned int i = from; i < to; i++)
			pl_key_write_put(kw, keys[i],
				(const uint8_t *)values + (size_t)i * kw->value_bytes, kw->copies);
	}
}

/* State of a query: the different values and their votes. */
struct poll {
	uint64_t words[PL_COPIES_MAX][SLOT_MAX / 8];
	unsigned int votes[PL_COPIES_MAX], n;
};

/* True when the slot's copy is of the key, and whole. */
static inline bool fits(const struct pl_key_write *kw, struct pl_key key, uint64_t *words)
{
	uint32_t check = (uint32_t)words[0], n = n_words(kw);
	uint64_t any = 0;
	bool same;

	if (kw->hashing.kind == PL_HASH_PATHLINE) {
		if (check == 0)
			return false; /* empty: spares the hash */
		words[0] -= check;
		same = check == pl_key_check(&kw->hashing, key, words, n);
		words[0] += check;
		return same;
	}
	for (uint32_t i = 0; i < n; i++)
		any |= words[i];
	/* An empty slot fits the key whose CRC is zero. */
	return check == pl_key_check(&kw->hashing, key, words, n) && any != 0;
}

static inline bool same_words(const uint64_t *a, const uint64_t *b, uint32_t n)
{
	uint64_t differ = 0;

	for (uint32_t i = 0; i < n; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

static inline void vote(const struct pl_key_write *kw, struct poll *p)
{
	for (unsigned int i = 0; i < p->n; i++) {
		if (same_words(p->words[i], p->words[p->n], n_words(kw))) {
			p->votes[i]++;
			return;
		}
	}
	p->votes[p->n++] = 1;
}

/* The value with the most votes; NULL when another has as many. */
static const uint64_t *winner(const struct poll *p, unsigned int *ret_votes)
{
	unsigned int best = 0;
	bool tie = false;

	for (unsigned int i = 1; i < p->n; i++) {
		if (p->votes[i] > p->votes[best]) {
			best = i;
			tie = false;
		} else if (p->votes[i] == p->votes[best]) {
			tie = true;
		}
	}
	*ret_votes = p->votes[best];
	return tie ? NULL : p->words[best];
}

struct pl_key_write_result pl_key_write_judge(const struct pl_key_write *kw, struct pl_key key,
	const void *const *slots, unsigned int threshold, void *ret_value)
{
	struct pl_key_write_result result = { .answer = PL_NOT_FOUND };
	const uint64_t *words;
	struct poll p;

	p.n = 0;
	for (unsigned int c = 0; c < kw->copies; c++) {
		pl_words_load(p.words[p.n], slots[c], 8 * n_words(kw));
		if (!fits(kw, key, p.words[p.n]))
			continue;
		result.matches++;
		vote(kw, &p);
	}
	if (p.n == 0)
		return result;
	words = winner(&p, &result.votes);
	if (result.votes < threshold)
		return result;
	result.answer = words == NULL ? PL_AMBIGUOUS : PL_FOUND;
	if (words != NULL)
		take_value(kw, words, ret_value);
	return result;
}

struct pl_key_write_result pl_key_write_get(
	const struct pl_key_write *kw, struct pl_key key, unsigned int threshold, void *ret_value)
{
	const void *slots[PL_COPIES_MAX];

	for (unsigned int c = 0; c < kw->copies; c++)
		slots[c] = kw->base + pl_key_write_offset(kw, key, c);
	return pl_key_write_judge(kw, key, slots, threshold, ret_value);
}

void pl_key_write_get_batch(const struct pl_key_write *kw, const struct pl_key *keys,
	unsigned int n, unsigned int threshold, struct pl_key_write_result *ret_results,
	void *ret_values)
{
	for (unsigned int from = 0; from < n; from += GROUP) {
		const unsigned int to = group_end(from, n);

		fetch_slots(kw, keys + from, to - from, false);
		for (unsigned int i = from; i < to; i++)
			ret_results[i] = pl_key_write_get(kw, keys[i], threshold,
				(uint8_t *)ret_values + (size_t)i * kw->value_bytes);
	}
}

bool pl_key_write_slot(
	const struct pl_key_write *kw, uint64_t i, uint32_t *ret_check, void *ret_value)
{
	uint64_t words[SLOT_MAX / 8] = { 0 }, any = 0;

	assert(i < kw->slots);
	pl_words_load(words, kw->base + i * kw->slot_bytes, 8 * n_words(kw));
	for (uint32_t k = 0; k < n_words(kw); k++)
		any |= words[k];
	if (any == 0)
		return false;
	*ret_check = (uint32_t)words[0];
	take_value(kw, words, ret_value);
	return true;
}
