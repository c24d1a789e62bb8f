/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers to places: an open-addressed table from 32-bit keys other than 0 (queue pair numbers,
 * region keys) to indexes of an array. At most half full, linear probing, removal by moving what
 * follows. The keys are chosen here, so no peer can make them collide.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define PL_RDMA_INDEX_NONE UINT32_MAX

struct pl_rdma_index {
	struct pl_rdma_index_cell {
		uint32_t key, place; /* key 0: empty */
	} * cells;
	unsigned int shift; /* 32 - log2 of the number of cells */
};

/* Makes an index for at most n keys. Returns false without memory. */
static inline bool pl_rdma_index_init(struct pl_rdma_index *index, uint32_t n)
{
	unsigned int bits = 1;

	while (UINT64_C(1) << bits < UINT64_C(2) * n)
		bits++;
	index->shift = 32 - bits;
	index->cells = calloc((size_t)1 << bits, sizeof(*index->cells));
	return index->cells != NULL;
}

static inline void pl_rdma_index_done(struct pl_rdma_index *index)
{
	free(index->cells);
	index->cells = NULL;
}

static inline uint32_t pl_rdma_index_mask(const struct pl_rdma_index *index)
{
	return UINT32_MAX >> index->shift;
}

static inline uint32_t pl_rdma_index_home(const struct pl_rdma_index *index, uint32_t key)
{
	return key * 0x9e3779b1u >> index->shift;
}

/* Finds the cell of the key, or the empty one for it. */
static inline struct pl_rdma_index_cell *pl_rdma_index_cell(
	const struct pl_rdma_index *index, uint32_t key)
{
	const uint32_t mask = pl_rdma_index_mask(index);
	uint32_t i = pl_rdma_index_home(index, key);

	while (index->cells[i].key != key && index->cells[i].key != 0)
		i = (i + 1) & mask;
	return &index->cells[i];
}

/* Returns PL_RDMA_INDEX_NONE for a key that is not there, as key 0 always is. */
static inline uint32_t pl_rdma_index_find(const struct pl_rdma_index *index, uint32_t key)
{
	const struct pl_rdma_index_cell *cell = pl_rdma_index_cell(index, key);

	return cell->key != 0 ? cell->place : PL_RDMA_INDEX_NONE;
}

/* Adds a key that is not 0 and not there yet. */
static inline void pl_rdma_index_add(struct pl_rdma_index *index, uint32_t key, uint32_t place)
{
	assert(key != 0 && pl_rdma_index_cell(index, key)->key == 0);
	*pl_rdma_index_cell(index, key) = (struct pl_rdma_index_cell){ key, place };
}

static inline void pl_rdma_index_remove(struct pl_rdma_index *index, uint32_t key)
{
	const uint32_t mask = pl_rdma_index_mask(index);
	struct pl_rdma_index_cell *cell = pl_rdma_index_cell(index, key);
	uint32_t hole, i;

	if (cell->key == 0)
		return;
	hole = (uint32_t)(cell - index->cells);
	for (i = (hole + 1) & mask; index->cells[i].key != 0; i = (i + 1) & mask) {
		uint32_t home = pl_rdma_index_home(index, index->cells[i].key);

		/* An entry may move back when its home is not behind the hole. */
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			index->cells[hole] = index->cells[i];
			hole = i;
		}
	}
	index->cells[hole] = (struct pl_rdma_index_cell){ 0 };
}
