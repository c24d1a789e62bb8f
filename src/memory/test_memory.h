/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of primitives: the memory of a store. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "memory/store.h"

/* Returns zeroed memory for a store; ends the test when it cannot be. */
static inline void *memory_for(const struct pl_store_params *params)
{
	uint64_t bytes;
	void *p;

	if (pl_store_bytes(params, &bytes, NULL) < 0)
		abort();
	p = aligned_alloc(64, bytes);
	if (p == NULL)
		abort();
	memset(p, 0, bytes);
	return p;
}
