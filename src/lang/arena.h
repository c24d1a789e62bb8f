/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a query's plan, freed all at once. */
#pragma once

#include <stddef.h>

struct arena_part;

struct arena {
	struct arena_part *parts;
};

/* Allocates zeroed memory, for any type; NULL when out of memory. */
void *pl_query_arena_new(struct arena *arena, size_t size);
void pl_query_arena_done(struct arena *arena);
