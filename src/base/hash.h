/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash of our own tables: XXH3-64, inlined so that fixed lengths fold. Seed it when keys come from
 * the network: pl_hash with the process's random seed resists chosen collisions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t pl_hash(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

/* A good mix of two words: the 128-bit product folded (as in wyhash). */
static inline uint64_t pl_hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Random seed of this process, from the kernel; the same for its whole life. */
uint64_t pl_hash_seed(void);
