/* SPDX-License-Identifier: BSD-2-Clause */
/* Lookups: entries in one hash table for each set of masks (tuple space search). */
#include "dataplane/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* A row of a chain: entries with the same masked value, best first. A tuple's slots have the first
 * row of each chain. */
struct row {
	struct pl_dp_entry *entry;
	uint32_t order; /* rank in the table, 0 is the best */
	bool last;      /* last of its chain */
};

struct tuple {
	uint32_t best; /* rank of its best entry */
	uint32_t slot_mask;
	uint32_t *slots; /* index of a chain's first row, from 1 on; 0: free */
	uint64_t mask[PL_DP_KEY_WORDS_MAX];
	uint8_t active[PL_DP_KEY_WORDS_MAX]; /* words with a mask other than 0 */
	unsigned int n_active;
};

struct pl_dp_lookup {
	struct row *rows;
	struct tuple *tuples;
	size_t n_tuples;
	uint32_t *slots;
	uint64_t seed;
};

/* ---- finding ---- */

static inline uint64_t hash_of(
	const struct tuple *t, const uint64_t *words, uint64_t *ret_masked, uint64_t seed)
{
	uint64_t h = seed;

	for (unsigned int i = 0; i < t->n_active; i++) {
		const unsigned int at = t->active[i];

		ret_masked[i] = words[at] & t->mask[at];
		h = pl_hash_mix(h, ret_masked[i]);
	}
	return h;
}

static inline bool same(const struct tuple *t, const struct pl_dp_entry *e, const uint64_t *masked)
{
	for (unsigned int i = 0; i < t->n_active; i++) {
		if (e->match.value[t->active[i]] != masked[i])
			return false;
	}
	return true;
}

static inline bool within(const struct pl_dp_match *m, const uint64_t *words)
{
	for (unsigned int i = 0; i < m->n_bounds; i++) {
		const struct pl_dp_bound *b = &m->bounds[i];
		const uint64_t v = words[b->at];

		if (b->window) {
			const uint64_t at = v % b->period;

			/* A window may wrap around the end of the period. */
			if ((at >= b->first ? at - b->first : at + (b->period - b->first)) >=
				b->last)
				return false;
		} else if (v < b->first || v > b->last) {
			return false;
		}
	}
	return true;
}

static const struct row *find_in(const struct pl_dp_lookup *l, const struct tuple *t,
	const uint64_t *words, uint32_t better_than)
{
	uint64_t masked[PL_DP_KEY_WORDS_MAX];
	uint32_t slot = (uint32_t)hash_of(t, words, masked, l->seed) & t->slot_mask;

	for (; t->slots[slot] != 0; slot = (slot + 1) & t->slot_mask) {
		const struct row *r = &l->rows[t->slots[slot] - 1];

		if (!same(t, r->entry, masked))
			continue;
		for (;; r++) {
			if (r->order >= better_than)
				return NULL;
			if (within(&r->entry->match, words))
				return r;
			if (r->last)
				return NULL;
		}
	}
	return NULL;
}

struct pl_dp_entry *pl_dp_lookup_find(const struct pl_dp_lookup *l, const uint64_t *words)
{
	const struct row *found = NULL;
	uint32_t order = UINT32_MAX;

	for (size_t i = 0; i < l->n_tuples && l->tuples[i].best < order; i++) {
		const struct row *r = find_in(l, &l->tuples[i], words, order);

		if (r != NULL) {
			found = r;
			order = r->order;
		}
	}
	return found != NULL ? found->entry : NULL;
}

/* ---- building ---- */

static int by_rank(const void *x, const void *y)
{
	const struct pl_dp_entry *a = ((const struct row *)x)->entry,
				 *b = ((const struct row *)y)->entry;

	if (a->match.priority != b->match.priority)
		return a->match.priority > b->match.priority ? -1 : 1;
	if (a->match.prefix != b->match.prefix)
		return a->match.prefix > b->match.prefix ? -1 : 1;
	return a->serial < b->serial ? -1 : 1;
}

/* Sorts by tuple, in it by chain, in that the best first. */
static int by_place(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	int d = memcmp(a->entry->match.mask, b->entry->match.mask, sizeof(a->entry->match.mask));

	if (d == 0)
		d = memcmp(a->entry->match.value, b->entry->match.value,
			sizeof(a->entry->match.value));
	if (d != 0)
		return d;
	return a->order < b->order ? -1 : 1;
}

static int by_best(const void *x, const void *y)
{
	const struct tuple *a = x, *b = y;

	return a->best < b->best ? -1 : 1;
}

static bool same_mask(const struct row *a, const struct row *b)
{
	return memcmp(a->entry->match.mask, b->entry->match.mask, sizeof(a->entry->match.mask)) ==
	       0;
}

static bool same_value(const struct row *a, const struct row *b)
{
	return memcmp(a->entry->match.value, b->entry->match.value,
		       sizeof(a->entry->match.value)) == 0;
}

static void put_chain(struct pl_dp_lookup *l, struct tuple *t, uint32_t first)
{
	uint64_t masked[PL_DP_KEY_WORDS_MAX];
	uint32_t slot = (uint32_t)hash_of(t, l->rows[first].entry->match.value, masked, l->seed) &
			t->slot_mask;

	while (t->slots[slot] != 0)
		slot = (slot + 1) & t->slot_mask;
	t->slots[slot] = first + 1;
}

/* Returns the number of slots for up to n chains, at most half full. */
static uint32_t slots_for(size_t n)
{
	uint32_t slots = 2;

	while (slots < n * 2)
		slots *= 2;
	return slots;
}

static void make_tuple(struct pl_dp_lookup *l, const struct pl_dp_key *key, struct tuple *t,
	uint32_t first, uint32_t n)
{
	t->slot_mask = slots_for(n) - 1;
	t->best = UINT32_MAX;
	memcpy(t->mask, l->rows[first].entry->match.mask, sizeof(t->mask));
	for (unsigned int w = 0; w < key->words; w++) {
		if (t->mask[w] != 0)
			t->active[t->n_active++] = (uint8_t)w;
	}
	for (uint32_t i = first; i < first + n; i++) {
		struct row *r = &l->rows[i];

		if (r->order < t->best)
			t->best = r->order;
		r->last = i + 1 == first + n || !same_value(r, r + 1);
		if (i == first || !same_value(r - 1, r))
			put_chain(l, t, i);
	}
}

static int make_tuples(struct pl_dp_lookup *l, const struct pl_dp_key *key, size_t n)
{
	size_t slots = 0, used = 0;

	for (size_t i = 0, first = 0; i < n; i++) {
		if (i + 1 < n && same_mask(&l->rows[i], &l->rows[i + 1]))
			continue;
		l->n_tuples++;
		slots += slots_for(i + 1 - first);
		first = i + 1;
	}
	l->tuples = calloc(l->n_tuples + 1, sizeof(*l->tuples));
	l->slots = calloc(slots + 1, sizeof(*l->slots));
	if (l->tuples == NULL || l->slots == NULL)
		return -ENOMEM;
	for (size_t i = 0, first = 0, k = 0; i < n; i++) {
		if (i + 1 < n && same_mask(&l->rows[i], &l->rows[i + 1]))
			continue;
		l->tuples[k].slots = l->slots + used;
		used += slots_for(i + 1 - first);
		make_tuple(l, key, &l->tuples[k++], (uint32_t)first, (uint32_t)(i + 1 - first));
		first = i + 1;
	}
	qsort(l->tuples, l->n_tuples, sizeof(*l->tuples), by_best);
	return 0;
}

int pl_dp_lookup_new(struct pl_dp_lookup **ret, const struct pl_dp_key *key,
	struct pl_dp_entry *const *entries, size_t n)
{
	struct pl_dp_lookup *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->seed = pl_hash_seed();
	l->rows = calloc(n + 1, sizeof(*l->rows));
	if (l->rows == NULL)
		goto fail;
	for (size_t i = 0; i < n; i++)
		l->rows[i].entry = entries[i];
	qsort(l->rows, n, sizeof(*l->rows), by_rank);
	for (size_t i = 0; i < n; i++)
		l->rows[i].order = (uint32_t)i;
	qsort(l->rows, n, sizeof(*l->rows), by_place);
	if (make_tuples(l, key, n) < 0)
		goto fail;
	*ret = l;
	return 0;
fail:
	pl_dp_lookup_free(l);
	return -ENOMEM;
}

void pl_dp_lookup_free(struct pl_dp_lookup *l)
{
	if (l == NULL)
		return;
	free(l->rows);
	free(l->tuples);
	free(l->slots);
	free(l);
}
