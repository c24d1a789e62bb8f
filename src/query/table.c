/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the groups of a query by their keys, in memory allocated before. */
#include "query/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/prefetch.h"
#include "query/query.h"

/* Slots of an empty table. */
#define LEAST      256

/* Number of keys that are prefetched at once: with their slots and entries they fill half of the
 * first level of the cache. */
#define AHEAD      128

/* ---- memory ---- */

/* Smaller arrays come from the heap, larger ones are mapped: untouched pages take no memory. */
#define MAPPED     65536u

/* Arrays use large pages behind the first one: a larger array is read at random, and would wait for
 * the addresses of small pages. */
#define LARGE_PAGE (2u << 20)

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* Allocates zeroed memory, aligned to a cache line. */
static void *set_aside(uint64_t bytes)
{
	void *p;

	if (bytes < MAPPED) {
		p = aligned_alloc(64, rounded(bytes));
		return p != NULL ? memset(p, 0, rounded(bytes)) : NULL;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	/* Works without large pages too, more slowly. */
	if (bytes > 2 * (uint64_t)LARGE_PAGE)
		(void)madvise((uint8_t *)p + LARGE_PAGE, bytes - LARGE_PAGE, MADV_HUGEPAGE);
	return p;
}

static void give_back(void *p, uint64_t bytes)
{
	if (bytes < MAPPED)
		free(p);
	else if (p != NULL)
		munmap(p, bytes);
}

static uint64_t slot_bytes(const struct table *t)
{
	return (uint64_t)t->most * 3 / 2 * sizeof(*t->slots);
}

static uint64_t all_entry_bytes(const struct table *t)
{
	return (uint64_t)t->max * t->entry_bytes;
}

int pl_query_table_init(
	struct table *t, uint32_t max, uint32_t key_bytes, uint32_t entry_bytes, uint64_t seed)
{
	uint64_t slots = LEAST;

	assert(key_bytes % 8 == 0 && entry_bytes % 8 == 0);
	*t = (struct table){
		.max = max, .key_bytes = key_bytes, .entry_bytes = entry_bytes, .seed = seed
	};
	while (slots < (uint64_t)max * 2)
		slots *= 2;
	if (slots > (uint64_t)1 << 31)
		return -ENOMEM;
	t->mask = LEAST - 1;
	t->most = (uint32_t)slots;
	t->slots = set_aside(slot_bytes(t));
	t->entries = set_aside(all_entry_bytes(t));
	return t->slots != NULL && t->entries != NULL ? 0 : -ENOMEM;
}

void pl_query_table_done(struct table *t)
{
	give_back(t->slots, slot_bytes(t));
	give_back(t->entries, all_entry_bytes(t));
}

uint64_t pl_query_table_bytes(const struct table *t)
{
	return slot_bytes(t) + all_entry_bytes(t);
}

/* ---- keys ---- */

/* Hashes a key of whole words. 32 bits of the hash are used, which are in the slot: neither growth
 * nor removal has to read the keys of other entries. */
static inline uint32_t hash_words(const void *key, uint32_t bytes, uint64_t seed)
{
	const uint8_t *p = key;
	uint64_t h = seed, w[2];

	for (; bytes >= 16; bytes -= 16, p += 16) {
		memcpy(w, p, 16);
		h = pl_hash_mix(h ^ w[0], w[1]);
	}
	if (bytes > 0) {
		memcpy(w, p, 8);
		h = pl_hash_mix(h ^ w[0], seed);
	}
	return (uint32_t)h;
}

static inline bool same_words(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
	uint64_t x, y, differ = 0;

#pragma GCC unroll 6
	for (uint32_t i = 0; i < bytes; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		differ |= x ^ y;
	}
	return differ == 0;
}

static inline uint32_t home_of(const struct table *t, uint64_t slot)
{
	return (uint32_t)(slot >> 32) & t->mask;
}

/* Doubles the slots. The old ones are moved behind them meanwhile. */
static void grow(struct table *t)
{
	const uint32_t n = t->mask + 1;
	uint64_t *old = t->slots + 2 * (size_t)n;

	memcpy(old, t->slots, n * sizeof(*old));
	memset(t->slots, 0, n * sizeof(*old));
	t->mask = 2 * n - 1;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i;

		if (old[k] == 0)
			continue;
		for (i = home_of(t, old[k]); t->slots[i] != 0;)
			i = (i + 1) & t->mask;
		t->slots[i] = old[k];
	}
	memset(old, 0, n * sizeof(*old));
}

static uint32_t new_entry(struct table *t, const void *key)
{
	uint32_t entry = t->free_list;
	uint8_t *at;

	if (entry != 0) {
		at = table_at(t, --entry);
		memcpy(&t->free_list, at, sizeof(t->free_list));
	} else if (t->used < t->max) {
		entry = t->used++;
		at = table_at(t, entry);
	} else {
		return TABLE_NONE;
	}
	if (entry < t->touched)
		memset(at + t->key_bytes, 0, t->entry_bytes - t->key_bytes);
	else
		t->touched = entry + 1;
	memcpy(at, key, t->key_bytes);
	t->live++;
	return entry;
}

static inline __attribute__((always_inline)) uint32_t find_or_add(
	struct table *t, const uint8_t *key, uint32_t key_bytes, uint32_t hash)
{
	for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		const uint64_t slot = t->slots[i];
		uint32_t entry;

		if (slot == 0) {
			entry = new_entry(t, key);
			if (entry != TABLE_NONE)
				t->slots[i] = (uint64_t)hash << 32 | (entry + 1);
			return entry;
		}
		entry = (uint32_t)slot - 1;
		if (slot >> 32 == hash && same_words(table_at(t, entry), key, key_bytes))
			return entry;
	}
}

/* Prefetches the lines of an entry, of a large one its first 128 bytes. */
static inline void ask_for_entry(const struct table *t, uint32_t entry)
{
	const uint8_t *at = table_at(t, entry);
	const uint32_t bytes = t->entry_bytes < 128 ? t->entry_bytes : 128;

	pl_prefetch_write(at);
	if (bytes > 64)
		pl_prefetch_write(at + 64);
	pl_prefetch_write(at + bytes - 1);
}

/* Adds keys in three passes, so that the memory for each is on its way when the next pass needs
 * it. */
static inline __attribute__((always_inline)) void add_some(
	struct table *t, const uint8_t *keys, uint32_t n, uint32_t *ret, uint32_t key_bytes)
{
	uint32_t hashes[AHEAD];
	const bool far = pl_query_table_far(t);

	for (uint32_t k = 0; k < n; k++) {
		hashes[k] = hash_words(keys + (size_t)k * key_bytes, key_bytes, t->seed);
		if (far)
			pl_prefetch(&t->slots[hashes[k] & t->mask]);
	}
	for (uint32_t k = 0; far && k < n; k++) {
		const uint32_t entry = (uint32_t)t->slots[hashes[k] & t->mask];

		if (entry != 0)
			ask_for_entry(t, entry - 1);
	}
	for (uint32_t k = 0; k < n; k++)
		ret[k] = find_or_add(t, keys + (size_t)k * key_bytes, key_bytes, hashes[k]);
}

static inline __attribute__((always_inline)) void add(
	struct table *t, const uint8_t *keys, uint32_t n, uint32_t *ret, uint32_t key_bytes)
{
	for (uint32_t done = 0; done < n; done += AHEAD)
		add_some(t, keys + (size_t)done * key_bytes, n - done < AHEAD ? n - done : AHEAD,
			ret + done, key_bytes);
}

static void make_room(struct table *t, uint32_t n)
{
	/* Half of the slots stay empty, whatever keys the batch has. */
	while (t->mask + 1 < t->most && ((uint64_t)t->live + n) * 2 > t->mask + 1)
		grow(t);
}

/* The words of a key behind its first, kept in registers: a wide load after a narrow store would
 * wait. */
struct words {
	uint64_t a, b;
};

static inline __attribute__((always_inline)) struct words load_column(
	const uint8_t *p, uint32_t width)
{
	struct words w = { 0, 0 };
	uint16_t half;
	uint32_t word;

	if (width == 1) {
		w.a = *p;
	} else if (width == 2) {
		memcpy(&half, p, 2);
		w.a = half;
	} else if (width == 4) {
		memcpy(&word, p, 4);
		w.a = word;
	} else {
		memcpy(&w.a, p, 8);
		if (width > 8)
			memcpy(&w.b, p + 8, 8);
	}
	return w;
}

/* Hashes a key like hash_words(). */
static inline __attribute__((always_inline)) uint32_t hash_column(
	const struct table *t, uint64_t first, struct words w, uint32_t width)
{
	const uint64_t h = pl_hash_mix(t->seed ^ first, w.a);

	return (uint32_t)(width > 8 ? pl_hash_mix(h ^ w.b, t->seed) : h);
}

/* Finds the entry of the key when its first slot has it; TABLE_NONE: the other slots have to be
 * searched. */
static inline __attribute__((always_inline)) uint32_t first_entry(
	const struct table *t, uint64_t first, struct words w, uint32_t width, uint32_t hash)
{
	const uint64_t slot = t->slots[hash & t->mask];
	const uint32_t entry = (uint32_t)slot - 1;
	uint64_t there[3];

	if (slot == 0 || slot >> 32 != hash)
		return TABLE_NONE;
	memcpy(there, table_at(t, entry), width > 8 ? 24 : 16);
	if (there[0] != first || there[1] != w.a || (width > 8 && there[2] != w.b))
		return TABLE_NONE;
	return entry;
}

/* Adds keys like add_some(), without making them. */
static inline __attribute__((always_inline)) void add_column(struct table *t, uint64_t first,
	const uint8_t *column, size_t stride, const uint16_t *sel, uint32_t n, uint32_t *ret,
	uint32_t width)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct words w =
			load_column(column + (sel != NULL ? sel[k] : k) * stride, width);
		const uint32_t hash = hash_column(t, first, w, width);

		/* The same record of the next batch, if there is one. */
		if (sel == NULL)
			pl_prefetch((const void *)((uintptr_t)column +
						   ((size_t)k + PL_QUERY_BATCH) * stride));
		ret[k] = first_entry(t, first, w, width, hash);
		if (ret[k] == TABLE_NONE) {
			const uint64_t key[3] = { first, w.a, w.b };

			ret[k] = find_or_add(t, (const uint8_t *)key, width > 8 ? 24 : 16, hash);
		}
	}
}

#define ADD_COLUMN(bytes)                                                                          \
	do {                                                                                       \
		if (sel == NULL)                                                                   \
			add_column(t, first, column, stride, NULL, n, ret_entries, bytes);         \
		else                                                                               \
			add_column(t, first, column, stride, sel, n, ret_entries, bytes);          \
	} while (0)

void pl_query_table_add_column(struct table *t, uint64_t first, const uint8_t *column,
	size_t stride, uint32_t width, const uint16_t *sel, uint32_t n, uint32_t *ret_entries)
{
	make_room(t, n);
	switch (width) {
	case 1:
		ADD_COLUMN(1);
		break;
	case 2:
		ADD_COLUMN(2);
		break;
	case 4:
		ADD_COLUMN(4);
		break;
	case 8:
		ADD_COLUMN(8);
		break;
	default:
		ADD_COLUMN(16);
		break;
	}
}

void pl_query_table_add(struct table *t, const void *keys, uint32_t n, uint32_t *ret_entries)
{
	make_room(t, n);
	/* Lengths of one small column, one address, two addresses and a 5-tuple. */
	switch (t->key_bytes) {
	case 8:
		add(t, keys, n, ret_entries, 8);
		break;
	case 16:
		add(t, keys, n, ret_entries, 16);
		break;
	case 24:
		add(t, keys, n, ret_entries, 24);
		break;
	case 40:
		add(t, keys, n, ret_entries, 40);
		break;
	case 48:
		add(t, keys, n, ret_entries, 48);
		break;
	default:
		add(t, keys, n, ret_entries, t->key_bytes);
		break;
	}
}

uint32_t pl_query_table_find(const struct table *t, const void *key)
{
	const uint32_t hash = hash_words(key, t->key_bytes, t->seed);

	for (uint32_t i = hash & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask) {
		const uint32_t entry = (uint32_t)t->slots[i] - 1;

		if (t->slots[i] >> 32 == hash && same_words(table_at(t, entry), key, t->key_bytes))
			return entry;
	}
	return TABLE_NONE;
}

/* ---- removal ---- */

/* Moves slots behind the freed one up where possible, so that no mark for a removed entry is
 * needed. */
static void close_gap(struct table *t, uint32_t gap)
{
	for (uint32_t i = (gap + 1) & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask) {
		if (((i - home_of(t, t->slots[i])) & t->mask) >= ((i - gap) & t->mask)) {
			t->slots[gap] = t->slots[i];
			gap = i;
		}
	}
	t->slots[gap] = 0;
}

static void remove_hashed(struct table *t, uint32_t entry, uint32_t hash)
{
	uint8_t *at = table_at(t, entry);
	uint32_t i = hash & t->mask;

	while ((uint32_t)t->slots[i] != entry + 1)
		i = (i + 1) & t->mask;
	close_gap(t, i);
	memcpy(at, &t->free_list, sizeof(t->free_list));
	t->free_list = entry + 1;
	if (--t->live == 0) {
		/* Entries of an emptied table are allocated from the beginning again, so that they
		 * lie close together. */
		t->used = 0;
		t->free_list = 0;
		t->mask = LEAST - 1;
	}
}

void pl_query_table_remove(struct table *t, uint32_t entry)
{
	remove_hashed(t, entry, hash_words(table_at(t, entry), t->key_bytes, t->seed));
}

void pl_query_table_remove_all(struct table *t, const uint32_t *entries, uint32_t n)
{
	uint32_t hashes[AHEAD];

	for (uint32_t done = 0, some; done < n; done += some) {
		some = n - done < AHEAD ? n - done : AHEAD;
		for (uint32_t k = 0; k < some; k++) {
			hashes[k] =
				hash_words(table_at(t, entries[done + k]), t->key_bytes, t->seed);
			pl_prefetch_write(&t->slots[hashes[k] & t->mask]);
		}
		for (uint32_t k = 0; k < some; k++)
			remove_hashed(t, entries[done + k], hashes[k]);
	}
}
