/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting entries, numbered from 0 and in the order of their age, so that the oldest is known at
 * once; and a bounded cache of entries by hash, in sets of four, where a new entry replaces the
 * oldest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PL_AGES_NONE UINT32_MAX

struct pl_age {
	uint64_t since_ns;
	uint32_t prev, next; /* PL_AGES_NONE at the ends */
	bool waiting;
};

struct pl_ages {
	struct pl_age *age;
	uint32_t n;
	uint32_t oldest, newest;
};

/* Returns -ENOMEM. */
int pl_ages_init(struct pl_ages *a, uint32_t n);
void pl_ages_done(struct pl_ages *a);

/* Starts or restarts the wait of an entry, which is then the youngest. */
void pl_ages_start(struct pl_ages *a, uint32_t i, uint64_t now_ns);
/* Ends the wait of an entry; nothing happens when it does not wait. */
void pl_ages_stop(struct pl_ages *a, uint32_t i);

/* Time at which the oldest has waited for wait_ns; UINT64_MAX when nothing waits. */
static inline uint64_t pl_ages_due_ns(const struct pl_ages *a, uint64_t wait_ns)
{
	uint64_t since;

	if (a->oldest == PL_AGES_NONE)
		return UINT64_MAX;
	since = a->age[a->oldest].since_ns;
	return since > UINT64_MAX - wait_ns ? UINT64_MAX : since + wait_ns;
}

struct pl_cache {
	struct pl_ages ages;
	uint64_t *hash; /* hash of each row that waits */
	uint32_t sets;
};

#define PL_CACHE_WAYS 4u

/* Makes a cache of at least `rows` rows, a multiple of four. Returns -ENOMEM. */
int pl_cache_init(struct pl_cache *c, uint32_t rows);
void pl_cache_done(struct pl_cache *c);

/* Finds the row of a hash, or the row that it would take: a free one, or (*ret_taken) one whose
 * content must leave first. *ret_found is true when the hash has the row. */
uint32_t pl_cache_find(const struct pl_cache *c, uint64_t hash, bool *ret_found, bool *ret_taken);

/* Gives the row to the hash. */
static inline void pl_cache_take(struct pl_cache *c, uint32_t row, uint64_t hash, uint64_t now_ns)
{
	c->hash[row] = hash;
	pl_ages_start(&c->ages, row, now_ns);
}
