/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the lists of an append store. */
#include "memory/append.h"

#include <assert.h>
#include <errno.h>

#include "memory/words.h"

int pl_append_init(struct pl_append *a, const struct pl_store_params *params, void *base)
{
	uint64_t bytes;

	if (params->primitive != PL_APPEND || pl_store_bytes(params, &bytes, NULL) < 0)
		return -EINVAL;
	*a = (struct pl_append){
		.seed = params->seed,
		.slots = params->append.slots,
		.list_stride = bytes / params->append.lists,
		.lists = params->append.lists,
		.entry_bytes = params->append.entry_bytes,
		.entry_stride = pl_append_entry_stride(
			params->append.entry_bytes, params->append.sealed != 0),
		.batch_max = params->append.batch_max,
		.sealed = params->append.sealed != 0,
		.base = base,
	};
	return 0;
}

/* ---- geometry ---- */

static uint64_t slot_offset(const struct pl_append *a, uint32_t list, uint64_t slot)
{
	return list * a->list_stride + PL_APPEND_RING_AT + slot * a->entry_stride;
}

unsigned int pl_append_place(const struct pl_append *a, uint32_t list, uint64_t first, uint64_t n,
	struct pl_extent ret[2])
{
	uint64_t slot = first % a->slots, fit = a->slots - slot;

	assert(list < a->lists && n <= a->slots);
	ret[0] = (struct pl_extent){ slot_offset(a, list, slot),
		(n < fit ? n : fit) * a->entry_stride };
	if (n <= fit)
		return 1;
	ret[1] = (struct pl_extent){ slot_offset(a, list, 0), (n - fit) * a->entry_stride };
	return 2;
}

/* Seed of the check value of an entry. */
static inline uint64_t seal_seed(const struct pl_append *a, uint32_t list, uint64_t number)
{
	return pl_hash_mix(a->seed ^ list, number);
}

/* Number and check value as they stand behind the entry: of the hash over its words. */
static inline uint64_t seal_of(uint64_t hash, uint64_t seed, unsigned int n, uint64_t number)
{
	hash = pl_words_hash_end(hash, seed, n);
	/* The bit distinguishes a complete entry from memory that was never written. */
	return (hash | UINT64_C(1) << 32) >> 32 << 32 | (uint32_t)number;
}

/* Words of an entry, without its seal. */
static inline unsigned int entry_words(const struct pl_append *a)
{
	return (a->entry_bytes + 7) / 8;
}

void pl_append_image(const struct pl_append *a, uint32_t list, uint64_t number, const void *entry,
	void *ret_image)
{
	uint64_t seed = seal_seed(a, list, number), hash = 0, seal;
	unsigned int n = entry_words(a);

	memset(ret_image, 0, a->entry_stride);
	memcpy(ret_image, entry, a->entry_bytes);
	if (!a->sealed)
		return;
	for (unsigned int i = 0; i < n; i++)
		hash = pl_words_hash_add(hash, seed, i,
			pl_word_gather((const uint8_t *)entry + 8 * i, a->entry_bytes - 8 * i));
	seal = seal_of(hash, seed, n, number);
	memcpy((uint8_t *)ret_image + a->entry_stride - PL_APPEND_SEAL_BYTES, &seal, sizeof(seal));
}

/* ---- local put ---- */

static inline void write_entry(const struct pl_append *a, uint32_t list, uint64_t number,
	uint8_t *to, const uint8_t *entry)
{
	uint64_t seed = seal_seed(a, list, number), hash = 0, *words = (void *)to;
	unsigned int n = entry_words(a);

	if (!a->sealed) {
		pl_words32_store(to, entry, a->entry_bytes);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		uint64_t word = pl_word_gather(entry + (size_t)8 * i, a->entry_bytes - 8 * i);

		hash = pl_words_hash_add(hash, seed, i, word);
		__atomic_store_n(&words[i], word, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&words[n], seal_of(hash, seed, n, number), __ATOMIC_RELAXED);
}

/* Writes at most batch_max entries, then the head. */
static void put_batch(
	const struct pl_append *a, uint32_t list, uint64_t number, const uint8_t *entries, size_t n)
{
	uint64_t slot = number % a->slots;
	uint8_t *begin;

	assert(a->base != NULL && n <= a->batch_max);
	begin = a->base + list * a->list_stride;
	/* The head published before is seen before the entries written now: the reader's margin of
	 * batch_max entries counts on it. */
	pl_words_release();
	for (size_t i = 0; i < n; i++) {
		write_entry(a, list, number + i, begin + PL_APPEND_RING_AT + slot * a->entry_stride,
			entries + i * a->entry_bytes);
		slot = slot + 1 == a->slots ? 0 : slot + 1;
	}
	__atomic_store_n((uint64_t *)(void *)begin, number + n, __ATOMIC_RELEASE);
}

uint64_t pl_append_put(const struct pl_append *a, uint32_t list, const void *entries, size_t n)
{
	uint64_t first, number;

	assert(list < a->lists);
	first = number = pl_append_head(a, list);
	while (n > 0) {
		size_t m = n < a->batch_max ? n : a->batch_max;

		put_batch(a, list, number,
			(const uint8_t *)entries + (number - first) * a->entry_bytes, m);
		number += m;
		n -= m;
	}
	return first;
}

void pl_append_publish(const struct pl_append *a, uint32_t list, uint64_t head)
{
	void *word = a->base + list * a->list_stride;

	__atomic_store_n((uint64_t *)word, head, __ATOMIC_RELEASE);
}

/* ---- read side ---- */

uint64_t pl_append_head(const struct pl_append *a, uint32_t list)
{
	const void *head = a->base + list * a->list_stride;

	return __atomic_load_n((const uint64_t *)head, __ATOMIC_ACQUIRE);
}

static uint64_t oldest_of(const struct pl_append *a, uint64_t head)
{
	uint64_t kept = a->slots - a->batch_max;

	return head > kept ? head - kept : 0;
}

uint64_t pl_append_oldest(const struct pl_append *a, uint32_t list)
{
	return oldest_of(a, pl_append_head(a, list));
}

void pl_append_reader_init(
	struct pl_append_reader *r, const struct pl_append *a, uint32_t list, uint64_t from)
{
	assert(list < a->lists);
	*r = (struct pl_append_reader){ .a = a, .list = list, .cursor = from };
}

/* Copies a sealed entry. Returns whether it is complete and has this number. */
static bool copy_sealed(
	const struct pl_append *a, uint32_t list, uint64_t number, const uint8_t *from, uint8_t *to)
{
	uint64_t seed = seal_seed(a, list, number), hash = 0;
	const uint64_t *words = (const void *)from;
	unsigned int n = entry_words(a);

	for (unsigned int i = 0; i < n; i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

		hash = pl_words_hash_add(hash, seed, i, word);
		pl_word_scatter(to + (size_t)8 * i, word, a->entry_bytes - 8 * i);
	}
	return __atomic_load_n(&words[n], __ATOMIC_RELAXED) == seal_of(hash, seed, n, number);
}

bool pl_append_take(const struct pl_append *a, uint32_t list, uint64_t number, const void *image,
	void *ret_entry)
{
	if (a->sealed)
		return copy_sealed(a, list, number, image, ret_entry);
	memcpy(ret_entry, image, a->entry_bytes);
	return true;
}

uint64_t pl_append_oldest_of(const struct pl_append *a, uint64_t head)
{
	return oldest_of(a, head);
}

/* Copies n unsealed entries, which may go around the ring's end. */
static void copy_bare(
	const struct pl_append *a, uint32_t list, uint64_t number, uint8_t *to, size_t n)
{
	struct pl_extent part[2];
	unsigned int parts = pl_append_place(a, list, number, n, part);

	for (unsigned int i = 0; i < parts; i++) {
		pl_words32_load(to, a->base + part[i].offset, part[i].bytes);
		to += part[i].bytes;
	}
}

/* Moves the cursor to where entries begin that are not overwritten. Returns the head. */
static uint64_t catch_up(struct pl_append_reader *r)
{
	uint64_t head = pl_append_head(r->a, r->list), oldest = oldest_of(r->a, head);

	if (head < r->cursor) {
		r->head_resets++;
		r->cursor = oldest;
	} else if (r->cursor < oldest) {
		r->overrun += oldest - r->cursor;
		r->cursor = oldest;
	}
	return head;
}

#define RUN 64u /* sealed entries read before the head is read again */

/* Returns how many of the n entries just copied were overwritten meanwhile; these are the first
 * ones. */
static size_t overwritten(struct pl_append_reader *r, size_t n)
{
	uint64_t oldest;

	pl_words_acquire();
	oldest = oldest_of(r->a, pl_append_head(r->a, r->list));
	return oldest <= r->cursor ? 0 : oldest - r->cursor < n ? oldest - r->cursor : n;
}

static size_t read_bare(struct pl_append_reader *r, uint8_t *to, uint64_t *numbers, size_t n)
{
	size_t gone;

	copy_bare(r->a, r->list, r->cursor, to, n);
	gone = overwritten(r, n);
	if (gone > 0)
		memmove(to, to + gone * r->a->entry_bytes, (n - gone) * r->a->entry_bytes);
	for (size_t i = gone; numbers != NULL && i < n; i++)
		numbers[i - gone] = r->cursor + i;
	r->overrun += gone;
	r->cursor += n;
	return n - gone;
}

static size_t read_sealed(struct pl_append_reader *r, uint8_t *to, uint64_t *numbers, size_t n)
{
	const struct pl_append *a = r->a;
	const uint8_t *ring = a->base + r->list * a->list_stride + PL_APPEND_RING_AT;
	uint64_t slot = r->cursor % a->slots;
	size_t got = 0, bad = 0, gone;
	bool torn[RUN];

	n = n < RUN ? n : RUN;
	for (size_t i = 0; i < n; i++) {
		torn[i] = !copy_sealed(a, r->list, r->cursor + i, ring + slot * a->entry_stride,
			to + got * a->entry_bytes);
		if (!torn[i]) {
			if (numbers != NULL)
				numbers[got] = r->cursor + i;
			got++;
		}
		slot = slot + 1 == a->slots ? 0 : slot + 1;
	}
	/* A copied entry with a matching seal is good even if its slot has been overwritten since;
	 * one without was overwritten, or is damaged. */
	gone = got < n ? overwritten(r, n) : 0;
	for (size_t i = 0; i < n; i++)
		bad += torn[i] && i >= gone;
	r->damaged += bad;
	r->overrun += n - got - bad;
	r->cursor += n;
	return got;
}

size_t pl_append_read(
	struct pl_append_reader *r, void *ret_entries, uint64_t *ret_numbers, size_t n)
{
	uint8_t *to = ret_entries;
	uint64_t head = catch_up(r);
	size_t got = 0;

	while (got < n && r->cursor < head) {
		size_t left = head - r->cursor < n - got ? head - r->cursor : n - got;
		uint64_t *numbers = ret_numbers != NULL ? ret_numbers + got : NULL;

		got += r->a->sealed ? read_sealed(r, to + got * r->a->entry_bytes, numbers, left)
				    : read_bare(r, to + got * r->a->entry_bytes, numbers, left);
	}
	return got;
}

bool pl_append_whole(const struct pl_append *a, uint32_t list, uint64_t number)
{
	const uint8_t *at = a->base + slot_offset(a, list, number % a->slots);
	const void *half = at + a->entry_stride - PL_APPEND_SEAL_BYTES;
	uint8_t entry[PL_ENTRY_MAX + 8];

	return a->sealed &&
	       __atomic_load_n((const uint32_t *)half, __ATOMIC_RELAXED) == (uint32_t)number &&
	       copy_sealed(a, list, number, at, entry);
}

uint64_t pl_append_unpublished(const struct pl_append *a, uint32_t list)
{
	uint64_t head = pl_append_head(a, list), n = 0;
	uint8_t entry[PL_ENTRY_MAX + 8];

	while (a->sealed && n < a->slots &&
		copy_sealed(a, list, head + n,
			a->base + slot_offset(a, list, (head + n) % a->slots), entry))
		n++;
	return n;
}
