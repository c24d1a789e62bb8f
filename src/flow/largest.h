/* SPDX-License-Identifier: BSD-2-Clause */
/* The largest of the flows that are in a cache now. */
#pragma once

#include "flow/cache.h"

/*
 * Flows of the cache with the most bytes in both directions into ret, which has room for max: the
 * largest first; how many. Each is as the record that it would have if it ended now, with the end
 * reason 0. Flows that are over by the cache's clock, and whose records were not made yet, are left
 * out. Looks at the whole table: about a millisecond for each 10,000 flows in it.
 */
uint32_t pl_flow_cache_largest(
	const struct pl_flow_cache *cache, struct pl_flow288 *ret, uint32_t max);
/* Flows that the table has room for. */
uint32_t pl_flow_cache_room(const struct pl_flow_cache *cache);
/* The newest time of all packets, of the packets' time scale; 0 before the first one. */
uint64_t pl_flow_cache_clock(const struct pl_flow_cache *cache);
