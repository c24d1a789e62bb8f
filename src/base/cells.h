/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded hash table of cells: `cap` cells of one size in one array, found through an
 * open-addressing index (linear probing, at most half full, no tombstones). A cell begins with its
 * key and stays at its number until removed, so numbers may be kept across an insertion. One more
 * cell, number `cap`, is the caller's for keys without room. Nothing allocates after pl_cells_init.
 * One thread.
 *
 * The caller brings the hash (seeded: keys come from the network) and key length, which is a
 * constant where this is inlined; a key is at most 32 bytes long, and never all ones. The number of
 * a cell that was removed may be kept too: its key is all ones until the number is used again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/prefetch.h"

#define PL_CELL_NONE UINT32_MAX
#define PL_CELL_LIVE ((uint64_t)1 << 63)

struct pl_cells {
	uint8_t *cells;   /* (cap + 1) * size */
	uint64_t *slots;  /* upper half of the hash, cell number + 1; 0 = empty */
	uint64_t *hashes; /* hash of each cell; 0 = not in use */
	uint32_t *freed;  /* numbers below `high` that are not in use */
	uint32_t cap, mask;
	uint32_t high; /* numbers from here on were never used */
	uint32_t n_freed;
	uint32_t size;
	uint32_t sweep; /* position of the next sweep */
};

int pl_cells_init(struct pl_cells *t, uint32_t cap, uint32_t size); /* returns 0 or -ENOMEM */
void pl_cells_done(struct pl_cells *t);
uint64_t pl_cells_memory(uint32_t cap, uint32_t size);
void pl_cells_clear(struct pl_cells *t);
void pl_cells_copy(struct pl_cells *dst, const struct pl_cells *src); /* both of equal cap and
								       * size */

/* Makes a zeroed cell for this key, which must not have one; PL_CELL_NONE when all are in use. */
uint32_t pl_cells_insert(struct pl_cells *t, uint64_t hash, const void *key, size_t key_len);
void pl_cells_remove(struct pl_cells *t, uint32_t cell);

static inline void *pl_cells_at(const struct pl_cells *t, uint32_t cell)
{
	return t->cells + (size_t)cell * t->size;
}

static inline bool pl_cells_live(const struct pl_cells *t, uint32_t cell)
{
	return t->hashes[cell] != 0;
}

static inline uint32_t pl_cells_count(const struct pl_cells *t)
{
	return t->high - t->n_freed;
}

static inline void pl_cells_prefetch(const struct pl_cells *t, uint64_t hash)
{
	pl_prefetch(&t->slots[hash & t->mask]);
}

static inline uint32_t pl_cells_find(
	const struct pl_cells *t, uint64_t hash, const void *key, size_t key_len)
{
	uint32_t tag = (uint32_t)((hash | PL_CELL_LIVE) >> 32);

	for (uint32_t i = (uint32_t)hash & t->mask;; i = (i + 1) & t->mask) {
		uint64_t s = t->slots[i];

		if (s == 0)
			return PL_CELL_NONE;
		if ((uint32_t)(s >> 32) == tag &&
			memcmp(pl_cells_at(t, (uint32_t)s - 1), key, key_len) == 0)
			return (uint32_t)s - 1;
	}
}

/* Next cell in use from *pos on, which moves behind it; NULL at the end. */
void *pl_cells_next(const struct pl_cells *t, uint32_t *pos);
