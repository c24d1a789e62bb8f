/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seeded random generator: the same seed gives the same run on every machine. xoshiro256** by
 * Blackman and Vigna (2018), seeded through splitmix64. Not for secrets.
 */
#pragma once

#include <math.h>
#include <stdint.h>

struct pl_rng {
	uint64_t s[4];
};

static inline void pl_rng_seed(struct pl_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9e3779b97f4a7c15u);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		rng->s[i] = z ^ (z >> 31);
	}
}

static inline uint64_t pl_rng_u64(struct pl_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t m = s[1] * 5;
	uint64_t result = ((m << 7) | (m >> 57)) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

/* Uniform in [0, n); n must not be 0. (Multiply-shift: bias below n / 2^64.) */
static inline uint64_t pl_rng_below(struct pl_rng *rng, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)pl_rng_u64(rng) * n) >> 64);
}

/* Uniform in [0, 1). */
static inline double pl_rng_unit(struct pl_rng *rng)
{
	return (double)(pl_rng_u64(rng) >> 11) * 0x1p-53;
}

/* Exponential with the given mean. */
static inline double pl_rng_exp(struct pl_rng *rng, double mean)
{
	return -log1p(-pl_rng_unit(rng)) * mean;
}
