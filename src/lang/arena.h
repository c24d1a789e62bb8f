/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is freed all at once: a query's plan. */
#pragma once

#include <stddef.h>

struct arena_part;

struct arena {
	struct arena_part *parts;
};

/* Zeroed, for any type; NULL without memory. */
void *pl_query_arena_new(struct arena *arena, size_t size);
/* The first n bytes of the text, terminated; NULL without memory. */
char *pl_query_arena_text(struct arena *arena, const char *text, size_t n);
void pl_query_arena_done(struct arena *arena);
