/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table under the flow cache. A bucket is one line for eight flows: for each a tag out of its
 * hash, and the tick at which it is over unless a packet comes. Flows themselves lie apart, so that
 * search and scan touch one line for eight of them. A flow is in one of the two buckets that its
 * hash names.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/hash.h"
#include "flow/entry.h"
#include "record/icmp.h"

#define PL_FLOW_WAYS 8u
#define PL_FLOW_TICK 20 /* a tick is 2^20 ns, about a millisecond */

struct pl_flow_bucket {
	uint32_t tag[PL_FLOW_WAYS]; /* 0: slot is free */
	uint32_t due[PL_FLOW_WAYS]; /* tick at which the flow is over, modulo 2^32 */
};

_Static_assert(sizeof(struct pl_flow_bucket) == 64, "a bucket is one line");

/* Places that a key can have. */
struct pl_flow_place {
	uint32_t bucket[2];
	uint32_t tag;
};

static inline uint64_t pl_flow_key_side(
	const struct pl_addr *addr, uint16_t port, const uint64_t seed[4])
{
	uint64_t words[2];

	memcpy(words, addr->b, sizeof(words));
	return pl_hash_mix(words[1] ^ seed[0], pl_hash_mix(words[0] ^ seed[1], port ^ seed[2]));
}

static inline bool pl_flow_is_icmp(uint8_t proto)
{
	return proto == PL_ICMP_PROTO || proto == PL_ICMP6_PROTO;
}

/* The port at dst in the key: of an ICMP message with an answer it is the answer's type. */
static inline uint16_t pl_flow_key_dport(const struct pl_pkt96 *p)
{
	const int answer =
		pl_flow_is_icmp(p->proto) ? pl_icmp_answer(p->proto, p->sport) : PL_ICMP_NO_ANSWER;

	return answer != PL_ICMP_NO_ANSWER ? (uint16_t)answer : p->dport;
}

/* Hash of a packet's key, equal in both directions. Without the seed nobody can find collisions. */
static inline uint64_t pl_flow_key_hash(const struct pl_pkt96 *p, const uint64_t seed[4])
{
	return pl_hash_mix(pl_flow_key_side(&p->src, p->sport, seed) +
				   pl_flow_key_side(&p->dst, pl_flow_key_dport(p), seed),
		((uint64_t)p->vlan << 8 | p->proto) ^ seed[3]);
}

static inline struct pl_flow_place pl_flow_place_of(uint64_t hash, uint32_t n_buckets)
{
	return (struct pl_flow_place){
		.bucket = { (uint32_t)((hash >> 32) * n_buckets >> 32),
			(uint32_t)((uint64_t)(uint32_t)hash * n_buckets >> 32) },
		.tag = (uint32_t)(hash >> 16) | 1,
	};
}

/* Mask of the ways that have this tag: bit w for way w. */
static inline uint32_t pl_flow_matches(const struct pl_flow_bucket *b, uint32_t tag)
{
#ifdef __SSE2__
	const __m128i want = _mm_set1_epi32((int)tag);
	const __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)&b->tag[0]), want);
	const __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)&b->tag[4]), want);

	return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(low)) |
	       (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
#else
	uint32_t mask = 0;

	for (unsigned int w = 0; w < PL_FLOW_WAYS; w++)
		mask |= (uint32_t)(b->tag[w] == tag) << w;
	return mask;
#endif
}
