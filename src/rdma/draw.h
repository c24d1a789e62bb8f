/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that nobody can guess: queue pairs, keys, first packet numbers. Full width, from the
 * kernel's generator. */
#pragma once

#include <sys/random.h>

#include "rdma/index.h"

/* Returns `wanted`, or for 0 a random number within the mask (never 0 or 1) that is not in the
 * index; 0 when `wanted` is taken, or the kernel gave no random numbers. */
static inline uint32_t pl_rdma_draw(
	const struct pl_rdma_index *index, uint32_t wanted, uint32_t mask)
{
	uint32_t n = wanted;

	if (wanted != 0)
		return pl_rdma_index_find(index, wanted) == PL_RDMA_INDEX_NONE ? wanted : 0;
	do {
		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			return 0;
		n &= mask;
	} while (n < 2 || pl_rdma_index_find(index, n) != PL_RDMA_INDEX_NONE);
	return n;
}
