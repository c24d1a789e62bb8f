/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rules into programs, and reads how often they matched. */
#include "tap/kernel_maps.h"

#include <string.h>

uint32_t pl_tap_ring_size(uint64_t bytes)
{
	uint32_t n = (uint32_t)PL_TAP_RING_LEAST;

	while (n < bytes)
		n *= 2;
	return n;
}

static void read_hits(
	const struct pl_tap_hits *hits, uint32_t set, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	(void)pl_each_add(hits->each, 0, hits->at + (size_t)set * (PL_TAP_RULES_MAX + 1), ret,
		PL_TAP_RULES_MAX + 1);
}

void pl_tap_sets_next(struct pl_tap_rule_set sets[PL_TAP_RULE_SETS], uint32_t *in_force,
	const struct pl_tap_rules *rules, uint16_t point, struct pl_tap_hits *hits)
{
	const uint32_t next = (*in_force + 1) % PL_TAP_RULE_SETS;
	struct pl_tap_rule_set *set = &sets[next];

	memset(set, 0, sizeof(*set));
	memcpy(set->rules, rules->rules, sizeof(set->rules));
	set->n = rules->n;
	set->point = point;
	if (hits != NULL) {
		memset(hits->before, 0, sizeof(hits->before));
		read_hits(hits, next, hits->before);
	}
	__atomic_store_n(in_force, next, __ATOMIC_RELEASE);
}

void pl_tap_hits_add(
	const struct pl_tap_hits *hits, uint32_t in_force, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	uint64_t now[PL_TAP_RULES_MAX + 1] = { 0 };

	read_hits(hits, in_force, now);
	for (size_t i = 0; i <= PL_TAP_RULES_MAX; i++)
		ret[i] += now[i] - hits->before[i];
}
