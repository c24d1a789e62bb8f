/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates memory that is freed all at once. */
#include "lang/arena.h"

#include <stdlib.h>

struct arena_part {
	struct arena_part *next;
	_Alignas(16) char data[];
};

void *pl_query_arena_new(struct arena *arena, size_t size)
{
	struct arena_part *part = calloc(1, sizeof(*part) + size);

	if (part == NULL)
		return NULL;
	part->next = arena->parts;
	arena->parts = part;
	return part->data;
}

void pl_query_arena_done(struct arena *arena)
{
	while (arena->parts != NULL) {
		struct arena_part *next = arena->parts->next;

		free(arena->parts);
		arena->parts = next;
	}
}
