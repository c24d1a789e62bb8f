/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds, adds and removes the cells of a bounded hash table. */
#include "base/cells.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define KEY_WIPED 32 /* longest key */

/* A power of two, at least twice the cells, so that a probe always meets an empty slot. */
static uint64_t slot_count(uint32_t cap)
{
	uint64_t n = 8;

	while (n < 2 * (uint64_t)cap)
		n *= 2;
	return n;
}

uint64_t pl_cells_memory(uint32_t cap, uint32_t size)
{
	return ((uint64_t)cap + 1) * size + slot_count(cap) * sizeof(uint64_t) +
	       cap * (sizeof(uint64_t) + sizeof(uint32_t));
}

int pl_cells_init(struct pl_cells *t, uint32_t cap, uint32_t size)
{
	assert(cap > 0 && cap <= 1U << 26);
	*t = (struct pl_cells){ .cap = cap, .size = size, .mask = (uint32_t)(slot_count(cap) - 1) };
	t->cells = calloc((size_t)cap + 1, size);
	t->slots = calloc((size_t)t->mask + 1, sizeof(*t->slots));
	t->hashes = calloc(cap, sizeof(*t->hashes));
	t->freed = calloc(cap, sizeof(*t->freed));
	if (t->cells == NULL || t->slots == NULL || t->hashes == NULL || t->freed == NULL) {
		pl_cells_done(t);
		return -ENOMEM;
	}
	return 0;
}

void pl_cells_done(struct pl_cells *t)
{
	free(t->cells);
	free(t->slots);
	free(t->hashes);
	free(t->freed);
	*t = (struct pl_cells){ 0 };
}

void pl_cells_clear(struct pl_cells *t)
{
	memset(t->cells, 0, (size_t)t->high * t->size);
	memset(pl_cells_at(t, t->cap), 0, t->size);
	memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof(*t->slots));
	memset(t->hashes, 0, t->high * sizeof(*t->hashes));
	t->high = 0;
	t->n_freed = 0;
	t->sweep = 0;
}

void pl_cells_copy(struct pl_cells *dst, const struct pl_cells *src)
{
	assert(dst->cap == src->cap && dst->size == src->size && dst->mask == src->mask);
	memcpy(dst->cells, src->cells, (size_t)src->high * src->size);
	memcpy(pl_cells_at(dst, dst->cap), pl_cells_at(src, src->cap), src->size);
	memcpy(dst->slots, src->slots, ((size_t)src->mask + 1) * sizeof(*src->slots));
	memcpy(dst->hashes, src->hashes, src->high * sizeof(*src->hashes));
	if (dst->high > src->high)
		memset(dst->hashes + src->high, 0, (dst->high - src->high) * sizeof(*dst->hashes));
	memcpy(dst->freed, src->freed, src->n_freed * sizeof(*src->freed));
	dst->high = src->high;
	dst->n_freed = src->n_freed;
	dst->sweep = src->sweep;
}

uint32_t pl_cells_insert(struct pl_cells *t, uint64_t hash, const void *key, size_t key_len)
{
	uint32_t cell, i;

	assert(key_len <= t->size);
	if (t->n_freed > 0)
		cell = t->freed[--t->n_freed];
	else if (t->high < t->cap)
		cell = t->high++;
	else
		return PL_CELL_NONE;
	hash |= PL_CELL_LIVE;
	for (i = (uint32_t)hash & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask)
		;
	t->slots[i] = (hash & 0xffffffff00000000u) | (cell + 1);
	t->hashes[cell] = hash;
	memset(pl_cells_at(t, cell), 0, t->size);
	memcpy(pl_cells_at(t, cell), key, key_len);
	return cell;
}

void pl_cells_remove(struct pl_cells *t, uint32_t cell)
{
	uint32_t hole, i;

	assert(cell < t->high && t->hashes[cell] != 0);
	hole = (uint32_t)t->hashes[cell] & t->mask;
	while ((uint32_t)t->slots[hole] != cell + 1)
		hole = (hole + 1) & t->mask;
	/* Closes the gap: moves a following slot into the hole if its home position allows that. */
	for (i = (hole + 1) & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask) {
		uint32_t home = (uint32_t)t->hashes[(uint32_t)t->slots[i] - 1] & t->mask;

		if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole] = 0;
	t->hashes[cell] = 0;
	/* A caller that kept the cell's number finds no valid key there. */
	memset(pl_cells_at(t, cell), 0xff, t->size < KEY_WIPED ? t->size : KEY_WIPED);
	t->freed[t->n_freed++] = cell;
}

void *pl_cells_next(const struct pl_cells *t, uint32_t *pos)
{
	while (*pos < t->high) {
		uint32_t cell = (*pos)++;

		if (t->hashes[cell] != 0)
			return pl_cells_at(t, cell);
	}
	return NULL;
}
