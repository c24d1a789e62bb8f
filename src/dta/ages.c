/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps waiting entries in the order of their age, and a cache of them. */
#include "dta/ages.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

int pl_ages_init(struct pl_ages *a, uint32_t n)
{
	*a = (struct pl_ages){ calloc(n, sizeof(*a->age)), n, PL_AGES_NONE, PL_AGES_NONE };
	return a->age == NULL ? -ENOMEM : 0;
}

void pl_ages_done(struct pl_ages *a)
{
	free(a->age);
	a->age = NULL;
}

void pl_ages_stop(struct pl_ages *a, uint32_t i)
{
	struct pl_age *age = &a->age[i];

	if (!age->waiting)
		return;
	if (age->prev != PL_AGES_NONE)
		a->age[age->prev].next = age->next;
	else
		a->oldest = age->next;
	if (age->next != PL_AGES_NONE)
		a->age[age->next].prev = age->prev;
	else
		a->newest = age->prev;
	age->waiting = false;
}

void pl_ages_start(struct pl_ages *a, uint32_t i, uint64_t now_ns)
{
	pl_ages_stop(a, i);
	a->age[i] = (struct pl_age){ now_ns, a->newest, PL_AGES_NONE, true };
	if (a->newest != PL_AGES_NONE)
		a->age[a->newest].next = i;
	else
		a->oldest = i;
	a->newest = i;
}

int pl_cache_init(struct pl_cache *c, uint32_t rows)
{
	c->sets = (rows + PL_CACHE_WAYS - 1) / PL_CACHE_WAYS;
	c->hash = calloc((size_t)c->sets * PL_CACHE_WAYS, sizeof(*c->hash));
	if (pl_ages_init(&c->ages, c->sets * PL_CACHE_WAYS) < 0 || c->hash == NULL)
		return -ENOMEM;
	return 0;
}

void pl_cache_done(struct pl_cache *c)
{
	pl_ages_done(&c->ages);
	free(c->hash);
	c->hash = NULL;
}

uint32_t pl_cache_find(const struct pl_cache *c, uint64_t hash, bool *ret_found, bool *ret_taken)
{
	/* Mixed once more: a published store's hash is a CRC, whose bits choose the slot too. */
	uint32_t set = (uint32_t)(((unsigned __int128)pl_hash_mix(hash, 0x5e7) * c->sets) >> 64);
	uint32_t first = set * PL_CACHE_WAYS, best = first;

	*ret_found = true;
	*ret_taken = false;
	for (uint32_t i = first; i < first + PL_CACHE_WAYS; i++) {
		if (c->ages.age[i].waiting && c->hash[i] == hash)
			return i;
	}
	*ret_found = false;
	for (uint32_t i = first; i < first + PL_CACHE_WAYS; i++) {
		if (!c->ages.age[i].waiting)
			return i;
		if (c->ages.age[i].since_ns < c->ages.age[best].since_ns)
			best = i;
	}
	*ret_taken = true;
	return best;
}
