/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection of sources that guess: a count by source address of packets that look like guesses at
 * queue pairs, keys and packet numbers, in a table of fixed size. A source over the limit within a
 * second is a suspect until it has been quiet for ten. Of sources that share a place in the table
 * the one with fewer guesses loses it, so a source that guesses fast stays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/hash.h"

#define PL_GUARD_KINDS    4
#define PL_GUARD_SOURCES  256
#define PL_GUARD_LIMIT    100 /* guesses in a second that make a suspect */
#define PL_GUARD_SECOND   UINT64_C(1000000000)
#define PL_GUARD_QUIET_NS (10 * PL_GUARD_SECOND)

struct pl_guard_source {
	struct pl_addr addr;
	uint64_t since_ns;              /* begin of the present second */
	uint64_t last_ns;               /* time of the last guess */
	uint64_t total;                 /* number of guesses; 0: the place is free */
	uint64_t kinds[PL_GUARD_KINDS]; /* guesses by kind */
	uint32_t guesses;               /* in the present second */
	bool suspect, told;             /* told: the alarm was fetched */
};

struct pl_guard {
	uint64_t seed;
	struct pl_guard_source sources[PL_GUARD_SOURCES];
};

static inline struct pl_guard_source *pl_guard_place(struct pl_guard *g, const struct pl_addr *addr)
{
	return &g->sources[pl_hash(addr->b, sizeof(addr->b), g->seed) % PL_GUARD_SOURCES];
}

static inline bool pl_guard_suspects(
	struct pl_guard *g, const struct pl_addr *addr, uint64_t now_ns)
{
	const struct pl_guard_source *s = pl_guard_place(g, addr);

	return s->suspect && pl_addr_equal(&s->addr, addr) &&
	       now_ns - s->last_ns < PL_GUARD_QUIET_NS;
}

/* Counts a guess of a kind. Returns true when it made the source a suspect. */
static inline bool pl_guard_guess(
	struct pl_guard *g, const struct pl_addr *addr, unsigned int kind, uint64_t now_ns)
{
	struct pl_guard_source *s = pl_guard_place(g, addr);
	const bool known = s->total > 0 && pl_addr_equal(&s->addr, addr);

	if (!known || now_ns - s->last_ns >= PL_GUARD_QUIET_NS) {
		/* Another source that still guesses has the place: its count is worn down one by
		 * one. */
		if (!known && s->guesses > 1 && now_ns - s->last_ns < PL_GUARD_SECOND) {
			s->guesses--;
			return false;
		}
		*s = (struct pl_guard_source){ .addr = *addr, .since_ns = now_ns };
	}
	if (now_ns - s->since_ns >= PL_GUARD_SECOND) {
		s->since_ns = now_ns;
		s->guesses = 0;
	}
	s->last_ns = now_ns;
	s->total++;
	s->kinds[kind]++;
	if (++s->guesses < PL_GUARD_LIMIT || s->suspect)
		return false;
	s->suspect = true;
	return true;
}
