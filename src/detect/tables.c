/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and maps the tables of detection. */
#include "detect/tables.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

static const size_t set_size[PL_CORE_T_MAX] = {
#define TABLE(name, help) [PL_CORE_T_##name] = sizeof(struct pl_core_##name##_set),
	PL_CORE_TABLES(TABLE)
#undef TABLE
};

static const size_t entry_size[PL_CORE_T_MAX] = {
#define TABLE(name, help) [PL_CORE_T_##name] = sizeof(struct pl_core_##name),
	PL_CORE_TABLES(TABLE)
#undef TABLE
};

uint32_t pl_tables_sets(uint32_t entries)
{
	uint32_t n = 1;

	while ((uint64_t)n * PL_CORE_WAYS < entries)
		n *= 2;
	return n;
}

static void **place_of(struct pl_tables *t, unsigned int table)
{
	switch (table) {
#define TABLE(name, help)                                                                          \
	case PL_CORE_T_##name:                                                                     \
		return (void **)&t->name;
		PL_CORE_TABLES(TABLE)
#undef TABLE
	default:
		assert(false && "no such table");
		return NULL;
	}
}

/* Size of a table with its alignment. */
static size_t rounded(size_t bytes)
{
	size_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : 64;

	return (bytes + align - 1) / align * align;
}

int pl_tables_init(struct pl_tables *t, const uint32_t entries[PL_CORE_T_MAX])
{
	*t = (struct pl_tables){ 0 };
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++) {
		size_t bytes;
		void *p;

		t->sets[i] = pl_tables_sets(entries[i]);
		bytes = rounded(t->sets[i] * set_size[i]);
		/* Large pages for large tables, where the system has them: every set is on another
		 * small one. */
		p = aligned_alloc(bytes >= LARGE_PAGE ? LARGE_PAGE : 64, bytes);
		if (p == NULL) {
			pl_tables_done(t);
			return -ENOMEM;
		}
		if (bytes >= LARGE_PAGE)
			(void)madvise(p, bytes, MADV_HUGEPAGE);
		memset(p, 0, bytes);
		*place_of(t, i) = p;
	}
	return 0;
}

void pl_tables_borrow(
	struct pl_tables *t, void *const sets[PL_CORE_T_MAX], const uint32_t mask[PL_CORE_T_MAX])
{
	*t = (struct pl_tables){ .borrowed = true };
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++) {
		*place_of(t, i) = sets[i];
		t->sets[i] = mask[i] + 1;
	}
}

void pl_tables_done(struct pl_tables *t)
{
	for (unsigned int i = 0; i < PL_CORE_T_MAX && !t->borrowed; i++)
		free(*place_of(t, i));
	*t = (struct pl_tables){ 0 };
}

uint64_t pl_tables_memory(const uint32_t entries[PL_CORE_T_MAX])
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		sum += rounded(pl_tables_sets(entries[i]) * set_size[i]);
	return sum;
}

uint64_t *pl_tables_ways(const struct pl_tables *t, unsigned int table, uint32_t set)
{
	char *base = *place_of((struct pl_tables *)t, table);

	return (uint64_t *)(void *)(base + set * set_size[table]);
}

void *pl_tables_entry(const struct pl_tables *t, unsigned int table, uint32_t set, unsigned int w)
{
	char *base = *place_of((struct pl_tables *)t, table);

	return base + set * set_size[table] + 2 * PL_CORE_WAYS * sizeof(uint64_t) +
	       w * entry_size[table];
}
