/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of entries by key, of a fixed size: open addressing over slots of 8 bytes, linear probing,
 * entries of their own. An entry begins with the key, `key_bytes` of it, a multiple of 8; what is
 * behind is the user's, zeroed when the entry is added. Entries are numbered from 0; the numbers stay.
 *
 * All memory is allocated at first, but only as many slots are used as the entries need, so that
 * few groups lie close together; room for half of the most slots is kept for when their number
 * doubles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

struct table {
	uint64_t *slots; /* hash in the upper 32 bits; entry + 1 in the lower, 0: empty */
	uint8_t *entries;
	uint32_t mask, most; /* slots in use - 1; slots allocated */
	uint32_t max, used, live;
	uint32_t touched;   /* entries from here on are still zeros */
	uint32_t free_list; /* removed entries, linked through their first word; + 1 */
	uint32_t key_bytes, entry_bytes;
	uint64_t seed;
};

/* Makes a table. entry_bytes includes the key; both are multiples of 8. Returns -ENOMEM. */
int pl_query_table_init(
	struct table *t, uint32_t max, uint32_t key_bytes, uint32_t entry_bytes, uint64_t seed);
void pl_query_table_done(struct table *t);
uint64_t pl_query_table_bytes(const struct table *t);

static inline uint8_t *table_at(const struct table *t, uint32_t entry)
{
	return t->entries + (size_t)entry * t->entry_bytes;
}

/* Returns true when the entries do not fit in the second level of the cache: then each is
 * prefetched. */
static inline bool pl_query_table_far(const struct table *t)
{
	return (uint64_t)t->live * (t->entry_bytes + 16) > 256 * 1024;
}

/* Finds or adds the entries of n keys, up to 1024, which lie key_bytes apart. TABLE_NONE: no
 * room. */
void pl_query_table_add(struct table *t, const void *keys, uint32_t n, uint32_t *ret_entries);
/* As pl_query_table_add for keys made of a first word and one column of 1, 2, 4, 8 or 16 bytes,
 * read in place: of record number sel[k], or k with sel NULL, at column + number * stride. */
void pl_query_table_add_column(struct table *t, uint64_t first, const uint8_t *column,
	size_t stride, uint32_t width, const uint16_t *sel, uint32_t n, uint32_t *ret_entries);
/* Finds the entry of a key; TABLE_NONE: not there. */
uint32_t pl_query_table_find(const struct table *t, const void *key);
void pl_query_table_remove(struct table *t, uint32_t entry);
/* Removes n entries, with less waiting for memory. */
void pl_query_table_remove_all(struct table *t, const uint32_t *entries, uint32_t n);
