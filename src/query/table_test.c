/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of keys that grows, is emptied in parts and fills again, against a list of its keys. */
#include "query/table.h"

#include <string.h>

#include "base/rng.h"
#include "base/test.h"

enum { KEYS = 8192, MOST = 3000, AT_ONCE = 300 };

static struct pl_rng rng;
/* Of each key its entry, TABLE_NONE: it is not in the table. */
static uint32_t entry_of[KEYS];

/* Three words, of which the last has the number. */
static const uint8_t *key_of(uint32_t number)
{
	static uint64_t key[3];

	key[0] = number % 3;
	key[1] = 0;
	key[2] = number;
	return (const uint8_t *)key;
}

/* Up to AT_ONCE keys in one call. Returns how many answers are not what the list says. */
static uint32_t add_some(struct table *t)
{
	static uint8_t keys[AT_ONCE * 24];
	uint32_t numbers[AT_ONCE], got[AT_ONCE], wrong = 0;
	const uint32_t n = 1 + (uint32_t)pl_rng_below(&rng, AT_ONCE);

	for (uint32_t k = 0; k < n; k++) {
		numbers[k] = (uint32_t)pl_rng_below(&rng, KEYS);
		memcpy(keys + (size_t)k * 24, key_of(numbers[k]), 24);
	}
	pl_query_table_add(t, keys, n, got);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t *entry = &entry_of[numbers[k]];

		if (*entry == TABLE_NONE)
			*entry = got[k];
		wrong += *entry != got[k];
		if (got[k] != TABLE_NONE)
			wrong += memcmp(table_at(t, got[k]), key_of(numbers[k]), 24) != 0;
		else
			wrong += t->live != MOST;
	}
	return wrong;
}

static void remove_some(struct table *t)
{
	uint32_t entries[AT_ONCE], n = 0;

	for (uint32_t tries = 0; tries < 2 * AT_ONCE && n < AT_ONCE; tries++) {
		uint32_t *entry = &entry_of[pl_rng_below(&rng, KEYS)];

		if (*entry == TABLE_NONE)
			continue;
		entries[n++] = *entry;
		*entry = TABLE_NONE;
	}
	pl_query_table_remove_all(t, entries, n);
}

static void remove_every(struct table *t)
{
	for (uint32_t k = 0; k < KEYS; k++) {
		if (entry_of[k] != TABLE_NONE)
			pl_query_table_remove(t, entry_of[k]);
		entry_of[k] = TABLE_NONE;
	}
}

/* Returns how many keys are not found as the list says. */
static uint32_t look(const struct table *t)
{
	uint32_t wrong = 0, live = 0;

	for (uint32_t k = 0; k < KEYS; k++) {
		wrong += pl_query_table_find(t, key_of(k)) != entry_of[k];
		live += entry_of[k] != TABLE_NONE;
	}
	return wrong + (live != t->live);
}

int main(void)
{
	struct table t;
	uint32_t wrong = 0, most = 0;

	pl_rng_seed(&rng, 1);
	memset(entry_of, 0xff, sizeof(entry_of));
	eq(pl_query_table_init(&t, MOST, 24, 40, 7), 0, "a table");
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t k = 0; k < 120; k++) {
			wrong += add_some(&t);
			if (k % 4 == 3)
				remove_some(&t);
			most = t.live > most ? t.live : most;
			if (k % 16 == 0)
				wrong += look(&t);
		}
		wrong += look(&t);
		remove_every(&t);
		wrong += look(&t);
		eq(t.live, 0, "nothing is left");
	}
	eq(most, MOST, "the table was full");
	eq(wrong, 0, "every key is where the list says");
	pl_query_table_done(&t);
	return pl_test_done();
}
