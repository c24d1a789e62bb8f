/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of entries by key, of a fixed size: open addressing over slots of 8 bytes, linear probing,
 * entries of their own. An entry begins with the key, `key_bytes` of it, a multiple of 8; what is
 * behind is the user's, zeroed when the entry is added. Entries are numbered from 0; the numbers stay.
 *
 * All memory is set aside at first, but of the slots only as many are used as the entries need, so
 * that few groups lie close together; half of the most is beside them for when their number doubles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

struct table {
	uint64_t *slots; /* hash in the upper 32 bits; entry + 1 in the lower, 0: empty */
	uint8_t *entries;
	uint32_t mask, most; /* slots in use - 1; those there are */
	uint32_t max, used, live;
	uint32_t touched;   /* entries from here on are zeros still */
	uint32_t free_list; /* of removed entries, through their first word; + 1 */
	uint32_t key_bytes, entry_bytes;
	uint64_t seed;
};

/* -ENOMEM. entry_bytes counts the key in; both are multiples of 8. */
int pl_query_table_init(
	struct table *t, uint32_t max, uint32_t key_bytes, uint32_t entry_bytes, uint64_t seed);
void pl_query_table_done(struct table *t);
uint64_t pl_query_table_bytes(const struct table *t);

static inline uint8_t *table_at(const struct table *t, uint32_t entry)
{
	return t->entries + (size_t)entry * t->entry_bytes;
}

/* Whether the entries are too many for the second level of the cache: then the memory of each is
 * asked for ahead. */
static inline bool pl_query_table_far(const struct table *t)
{
	return (uint64_t)t->live * (t->entry_bytes + 16) > 256 * 1024;
}

/* The entries of n keys, up to 1024, which lie key_bytes apart; added where they are not there.
 * TABLE_NONE where there was no room. */
void pl_query_table_add(struct table *t, const void *keys, uint32_t n, uint32_t *ret_entries);
/* The same for keys that are a first word and one column of 1, 2, 4, 8 or 16 bytes, read where it
 * stands: of record number sel[k], or k with sel NULL, at column + number * stride. */
void pl_query_table_add_column(struct table *t, uint64_t first, const uint8_t *column,
	size_t stride, uint32_t width, const uint16_t *sel, uint32_t n, uint32_t *ret_entries);
/* The entry of one key; TABLE_NONE when it is not there. */
uint32_t pl_query_table_find(const struct table *t, const void *key);
void pl_query_table_remove(struct table *t, uint32_t entry);
/* The same of n entries, with less waiting. */
void pl_query_table_remove_all(struct table *t, const uint32_t *entries, uint32_t n);
