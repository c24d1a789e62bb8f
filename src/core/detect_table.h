/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding and making entries in the tables of detect_state.h. A key's hash gives its set, its home
 * way and its tag; a key is in its home way if that was free, so most searches take one comparison.
 * In a full set a new key replaces an idle entry, or one of the owner of most ways: the work for a
 * key is bounded whatever keys come.
 *
 * The hash is multilinear over 32-bit words (Lemire and Kaser, "Strongly universal string
 * hashing is fast", 2014: the HM variant) with secret random multipliers: its upper half is
 * universal, so nobody can choose keys for one set without knowing the secret. It uses 64-bit
 * multiplications only, because the kernel's virtual machine has no others.
 */
#pragma once

#include "core/detect_state.h"

#define PL_CORE_INLINE static inline __attribute__((always_inline))
#ifdef __bpf__ /* all functions of a program are in one section */
#define PL_CORE_COLD static __attribute__((noinline, unused))
#else
#define PL_CORE_COLD static __attribute__((noinline, cold, unused))
#endif

/* Global in the kernel program: the verifier checks it once, for all callers. */
#ifdef __bpf__
#define PL_CORE_ONCE __attribute__((noinline))
#else
#define PL_CORE_ONCE PL_CORE_COLD
#endif

#ifdef __bpf__ /* each compiler lacks the other's keyword */
#define PL_CORE_UNROLL _Pragma("unroll")
#else
#define PL_CORE_UNROLL _Pragma("GCC unroll 16")
#endif

typedef uint64_t __attribute__((may_alias)) pl_core_word;
typedef uint32_t __attribute__((may_alias)) pl_core_half;

#define PL_CORE_NOWHERE PL_CORE_WAYS

/* Hashes a key. words is a constant, at most 15. */
PL_CORE_INLINE uint64_t pl_core_hash(const uint64_t *secret, const void *key, unsigned int words)
{
	const pl_core_word *w = key;
	uint64_t h = secret[0];

#pragma GCC unroll 16
	for (unsigned int i = 0; i < words; i++)
		h += (uint64_t)((uint32_t)w[i] + secret[i + 1]) *
		     ((w[i] >> 32) + (secret[i + 1] << 32 | secret[i + 1] >> 32));
	return h;
}

/* Mixes a hash. Hashes of consecutive addresses or ports are a row of equal steps, which for some
 * secrets comes back to the same few sets long before it has met all. Folding and multiplication
 * break up the row. */
PL_CORE_INLINE uint64_t pl_core_mixed(uint64_t hash)
{
	return (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

/* Returns the home way of a key. */
PL_CORE_INLINE uint32_t pl_core_home(uint64_t hash)
{
	return (uint32_t)(pl_core_mixed(hash) >> 61);
}

PL_CORE_INLINE uint32_t pl_core_set_of(uint64_t hash, uint32_t mask)
{
	return (uint32_t)(pl_core_mixed(hash) >> 32) & mask;
}

/* Returns the tag of a hash: other bits than those that chose the set. Two keys with one set and
 * one tag are less likely than one in a hundred per table and year; then one of them is made again
 * with every report. */
PL_CORE_INLINE uint32_t pl_core_tag(uint64_t hash)
{
	return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32) | 1;
}

/* Converts a time to the unit of way words. */
PL_CORE_INLINE uint32_t pl_core_coarse(uint64_t ns)
{
	return (uint32_t)(ns >> 20);
}

/* Conditions as bits, without branches. When a loop chooses one of eight, its result is then a
 * single unknown number to the kernel's verifier; after branches the verifier would follow
 * eight. */
#ifdef __bpf__ /* the compiler would make branches of them */
#define PL_CORE_OPAQUE(v) __asm__ volatile("" : "+r"(v))
#else
#define PL_CORE_OPAQUE(v) (void)(v)
#endif

PL_CORE_INLINE uint64_t pl_core_sign_bit(uint64_t v)
{
	PL_CORE_OPAQUE(v);
	v >>= 63;
	PL_CORE_OPAQUE(v);
	return v;
}

PL_CORE_INLINE uint64_t pl_core_zero_bit(uint64_t v)
{
	return pl_core_sign_bit(v | -v) ^ 1;
}

PL_CORE_INLINE uint64_t pl_core_less_bit(uint32_t a, uint32_t b)
{
	return pl_core_sign_bit((uint64_t)a - b);
}

/* Returns the larger of two numbers below 2^63. */
PL_CORE_INLINE uint64_t pl_core_max(uint64_t a, uint64_t b)
{
	return b ^ ((a ^ b) & (pl_core_sign_bit(a - b) - 1));
}

/* Returns the time since a way was last seen; a clock that went back counts as no time. */
PL_CORE_INLINE uint32_t pl_core_age(uint32_t now, uint64_t way)
{
	uint64_t age = (uint64_t)(int64_t)(int32_t)(now - (uint32_t)way);

	return (uint32_t)(age & (pl_core_sign_bit(age) - 1));
}

PL_CORE_INLINE uint64_t pl_core_differ(const void *a, const void *b, unsigned int words)
{
	const pl_core_word *x = a, *y = b;
	uint64_t differ = 0;

	PL_CORE_UNROLL
	for (unsigned int i = 0; i < words; i++)
		differ |= x[i] ^ y[i];
	return differ;
}

PL_CORE_INLINE int pl_core_same(const void *a, const void *b, unsigned int words)
{
	return pl_core_differ(a, b, words) == 0;
}

/* Returns the way with the tag among eight, or PL_CORE_NOWHERE. */
PL_CORE_INLINE uint32_t pl_core_search(const uint64_t *way, uint32_t tag)
{
	uint64_t best = 0;

#pragma GCC unroll 8
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++) {
		uint64_t same = pl_core_zero_bit(way[i] >> 32 ^ tag);

		best = pl_core_max(best, (8 | i) & -same);
	}
	return best == 0 ? PL_CORE_NOWHERE : (uint32_t)best & (PL_CORE_WAYS - 1);
}

/* Returns the way of a key, or PL_CORE_NOWHERE. size and words are constants. */
PL_CORE_INLINE uint32_t pl_core_find(const uint64_t *way, const void *entries, unsigned int size,
	const void *key, unsigned int words, uint64_t hash)
{
	const char *e = entries;
	uint32_t at = pl_core_home(hash), tag = pl_core_tag(hash);

	if (__builtin_expect((uint32_t)(way[at] >> 32) != tag, 0)) {
		at = pl_core_search(way, tag);
		if (at >= PL_CORE_WAYS)
			return PL_CORE_NOWHERE;
	}
	return __builtin_expect(pl_core_same(e + at * size, key, words), 1) ? at : PL_CORE_NOWHERE;
}

/* Returns the source of a report, as pl_addr_source does, in one word: an IPv4 address in its
 * mapped form, the first half of an IPv6 address; of a link-local address the second half, folded
 * to 48 bits behind the prefix. 0: none, for packets that carry their telemetry themselves. */
PL_CORE_INLINE uint64_t pl_core_source(const void *addr)
{
	const pl_core_word *w = addr; /* little-endian */

	if ((w[0] | (uint32_t)(w[1] ^ 0xffff0000)) == 0)
		return w[1];
	return (w[0] & 0xc0ff) == 0x80fe ? (w[1] ^ w[1] >> 48) << 16 | 0x80fe : w[0];
}

/* Sets the time at which the entry was last seen. The time is stored only when it changes, so most
 * reports do not write the cache line. */
PL_CORE_INLINE void pl_core_heard(uint64_t *way, uint64_t now_ns)
{
	pl_core_half *low = (pl_core_half *)way; /* little-endian */
	uint32_t now = pl_core_coarse(now_ns);

	if (*low != now)
		*low = now;
}

/* Returns the way for a new key: its home when free, another free one, or the one last seen longest
 * ago (within the same millisecond: any, by the hash); never one that is BUSY. The caller claims it
 * and counts. */
PL_CORE_INLINE uint32_t pl_core_victim(const uint64_t *way, uint64_t hash, uint32_t now)
{
	uint32_t home = pl_core_home(hash);
	uint64_t best = 0;

#pragma GCC unroll 8
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++) {
		uint64_t tag = way[i] >> 32;
		uint64_t free = pl_core_zero_bit(tag);
		uint64_t k = (uint64_t)pl_core_age(now, way[i]) << 4 | 8 | (i ^ home);

		k |= free << 60 | (free & pl_core_zero_bit(i ^ home)) << 61;
		k &= pl_core_zero_bit(tag ^ PL_CORE_TAG_BUSY) - 1;
		best = pl_core_max(best, k);
	}
	return best == 0 ? PL_CORE_NOWHERE : ((uint32_t)best ^ home) & (PL_CORE_WAYS - 1);
}

/* Begin of every set. */
struct pl_core_ways {
	uint64_t way[PL_CORE_WAYS], owner[PL_CORE_WAYS];
};

/* Returns the number of ways, among `ways` (as bits), that the owner has. */
PL_CORE_INLINE uint64_t pl_core_held(const uint64_t *owner, uint64_t whose, uint32_t ways)
{
	uint64_t n = 0;

	PL_CORE_UNROLL
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++)
		n += pl_core_zero_bit(owner[i] ^ whose) & ways >> i;
	return n;
}

/* Arguments of pl_core_rival in one word: there are few registers for the arguments of a call. */
#define PL_CORE_RIVALS(ways, strict, hash, now)                                                    \
	((uint64_t)(now) << 32 | (uint64_t)pl_core_home(hash) << 16 |                              \
		(uint64_t)(strict) << PL_CORE_WAYS | (ways))
#define PL_CORE_ALL_WAYS ((1u << PL_CORE_WAYS) - 1)

/* Returns the way, among `ways`, whose entry an owner may replace: if some owner has more of them
 * than this one would have with one more, a way of the owner with most; else one of its own; else
 * any. Of these, the one last seen longest ago (within the same millisecond: any, by the hash),
 * never one that is BUSY. strict: a way of an owner with more, or PL_CORE_NOWHERE. */
PL_CORE_ONCE int pl_core_rival(const struct pl_core_ways *set, uint64_t whose, uint64_t rivals)
{
	const uint64_t *way, *owner;
	const uint32_t ways = rivals & PL_CORE_ALL_WAYS, now = (uint32_t)(rivals >> 32),
		       home = rivals >> 16 & (PL_CORE_WAYS - 1);
	const uint64_t strict = rivals >> PL_CORE_WAYS & 1;
	uint64_t held, best = 0;

	if (set == NULL)
		return PL_CORE_NOWHERE;
	way = set->way;
	owner = set->owner;
	held = pl_core_held(owner, whose, ways);

	PL_CORE_UNROLL
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++) {
		const uint64_t most = pl_core_held(owner, owner[i], ways);
		const uint64_t more = pl_core_sign_bit(held + 1 - most);
		const uint64_t own = pl_core_zero_bit(owner[i] ^ whose) & (strict ^ 1);
		uint64_t k = (uint64_t)pl_core_age(now, way[i]) << 4 | 8 | (i ^ home);

		k |= most << 40 & -(more | own);
		k &= -((ways >> i & 1) & (more | (strict ^ 1)));
		k &= pl_core_zero_bit((way[i] >> 32) ^ PL_CORE_TAG_BUSY) - 1;
		best = pl_core_max(best, k);
	}
	return best == 0 ? PL_CORE_NOWHERE : (int)(((uint32_t)best ^ home) & (PL_CORE_WAYS - 1));
}

/* Two times in one word, both as from pl_core_coarse. */
#define PL_CORE_TIMES(now, idle) ((uint64_t)(now) << 32 | (idle))

/* Returns the way for a new key of an owner, or PL_CORE_NOWHERE: that of pl_core_victim if it is
 * free or idle, else one of the owner of most ways (pl_core_rival). */
PL_CORE_ONCE int pl_core_room(
	const struct pl_core_ways *set, uint64_t hash, uint64_t whose, uint64_t times)
{
	const uint32_t now = (uint32_t)(times >> 32);
	uint32_t i;

	if (set == NULL)
		return PL_CORE_NOWHERE;
	i = pl_core_victim(set->way, hash, now);
	if (i < PL_CORE_WAYS && ((uint32_t)(set->way[i] >> 32) == 0 ||
					pl_core_age(now, set->way[i]) > (uint32_t)times))
		return (int)i;
	return pl_core_rival(set, whose, PL_CORE_RIVALS(PL_CORE_ALL_WAYS, 0, hash, now));
}

PL_CORE_INLINE int pl_core_swap(uint64_t *word, uint64_t old, uint64_t now)
{
	return __sync_val_compare_and_swap(word, old, now) == old;
}

/* Hides the way from all readers; true when this caller, and no concurrent one, did it. */
PL_CORE_INLINE int pl_core_claim(uint64_t *way, uint64_t old, uint32_t now)
{
	return pl_core_swap(way, old, (uint64_t)PL_CORE_TAG_BUSY << 32 | now);
}

/* Shows a claimed way, whose entry is filled, under its tag. */
PL_CORE_INLINE void pl_core_publish(uint64_t *way, uint64_t hash, uint32_t now)
{
	uint64_t busy = *way;

	/* A full barrier: a reader that sees the tag sees the whole entry. */
	(void)pl_core_swap(way, busy, (uint64_t)pl_core_tag(hash) << 32 | now);
}

/* Zeroes an entry; size is a constant. It works in pieces for which the compiler makes no call: the
 * kernel's machine has no memset. */
PL_CORE_INLINE void pl_core_clear(void *entry, unsigned int size)
{
	char *at = entry;

	while (size > 512) {
		__builtin_memset(at, 0, 512);
		__asm__ volatile("" ::: "memory");
		at += 512;
		size -= 512;
	}
	__builtin_memset(at, 0, size);
}

PL_CORE_INLINE void pl_core_copy(void *to, const void *from, unsigned int words)
{
	pl_core_word *x = to;
	const pl_core_word *y = from;

#pragma GCC unroll 8
	for (unsigned int i = 0; i < words; i++)
		x[i] = y[i];
}
