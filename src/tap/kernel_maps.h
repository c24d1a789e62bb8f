/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the loaders of programs with rules: rules in force, and sizes of rings. */
#pragma once

#include <stdint.h>

#include "bpf/tap_kernel.h"
#include "netio/program.h"
#include "tap/rules.h"

#define PL_TAP_RING_BYTES (UINT64_C(4) << 20) /* without ring= in the URI */
#define PL_TAP_RING_LEAST (UINT64_C(64) << 10)
#define PL_TAP_RING_MOST  (UINT64_C(1) << 30)

/* The program wakes user space at most once in WAKE_NS; user space also checks the ring after the
 * longer LOOK_NS. */
#define PL_TAP_WAKE_NS    1000000u
#define PL_TAP_LOOK_NS    2000000u

/* Returns the least power of two that is not below `bytes`, at least PL_TAP_RING_LEAST. */
uint32_t pl_tap_ring_size(uint64_t bytes);

/* Hits of rules (struct pl_tap_rule_hits), which begin at counter `at` of the values of `each`.
 * `before`: hits of the present set from earlier times in which it was in force. */
struct pl_tap_hits {
	struct pl_each *each;
	size_t at;
	uint64_t before[PL_TAP_RULES_MAX + 1];
};

/* Writes the rules into the next of the sets and puts it in force. hits: NULL when there are none. */
void pl_tap_sets_next(struct pl_tap_rule_set sets[PL_TAP_RULE_SETS], uint32_t *in_force,
	const struct pl_tap_rules *rules, uint16_t point, struct pl_tap_hits *hits);
/* Adds the hits of the set in force since it was put in force. */
void pl_tap_hits_add(
	const struct pl_tap_hits *hits, uint32_t in_force, uint64_t ret[PL_TAP_RULES_MAX + 1]);
