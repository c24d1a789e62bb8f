/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of sketches: a reporter's part, which puts keys, and the estimate of a key in memory. */
#pragma once

#include <string.h>

#include "memory/sketch.h"

/* Adds one key: count-min adds `weight` in each row, HyperLogLog notes the key. */
static inline void sketch_add(const struct pl_sketch *s, struct pl_key key, uint64_t weight)
{
	if (s->kind == PL_SKETCH_HYPERLOGLOG) /* docs/formats/region.md; never above the largest */
		weight = (uint64_t)__builtin_clzll(pl_hash_mix(key.h, UINT64_C(0x72616e6b)) |
						   UINT64_C(1) << (64 - PL_SKETCH_RANK_MAX)) +
			 1;
	for (unsigned int row = 0; row < s->rows; row++) {
		uint64_t cells[PL_ROWS_MAX] = { 0 };

		memcpy((uint8_t *)cells + (size_t)row * s->cell_bytes, &weight, s->cell_bytes);
		(void)pl_sketch_merge(s, pl_key_slot(&s->hashing, key, row, s->columns), 1, cells);
	}
}

/* Marks columns 0 .. n - 1 as complete. */
static inline void sketch_complete(const struct pl_sketch *s, uint64_t n)
{
	memcpy(s->base, &n, sizeof(n));
}

/* The estimate by the smallest cell of a key, as pl_sketch_bound returns it. */
static inline int sketch_estimate(const struct pl_sketch *s, struct pl_key key, double total,
	struct pl_estimate *ret, bool *ret_saturated)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int row = 0; row < s->rows && s->kind == PL_SKETCH_COUNT_MIN; row++) {
		const uint64_t v = pl_sketch_cell(s, s->base + pl_sketch_offset(s, key, row));

		least = v < least ? v : least;
	}
	return pl_sketch_bound(s, least, total, ret, ret_saturated);
}
