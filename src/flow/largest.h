/* SPDX-License-Identifier: BSD-2-Clause */
/* Largest flows that are in a cache now. */
#pragma once

#include "flow/cache.h"

/* Writes the flows with the most bytes in both directions to ret, at most max, the largest first,
 * and returns how many they are. Each is the record that the flow would have if it ended now, with
 * the end reason 0. Flows that are over by the cache's clock, but have no record yet, are left out.
 * The call reads the whole table, which takes about a millisecond for each 10,000 flows in it. */
uint32_t pl_flow_cache_largest(
	const struct pl_flow_cache *cache, struct pl_flow288 *ret, uint32_t max);
/* Number of flows that the table has room for. */
uint32_t pl_flow_cache_room(const struct pl_flow_cache *cache);
/* Newest time of all packets, on the packets' time scale; 0 before the first packet. */
uint64_t pl_flow_cache_clock(const struct pl_flow_cache *cache);
