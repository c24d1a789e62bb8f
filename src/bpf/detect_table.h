/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding and making entries in the tables of detect_state.h. A key's hash gives its set, its home way and
 * its tag; a key stands in its home way when that was free, so most searches are one comparison. When a
 * set is full the entry heard of longest ago makes room: work per key is bounded whatever comes.
 *
 * The hash is multilinear over 32-bit words (Lemire and Kaser, "Strongly universal string hashing is fast",
 * 2014: the HM variant) with secret random multipliers: its upper half is universal, so whoever does
 * not know the secret cannot aim at a set. 64-bit multiplications only: the kernel's machine has no others.
 */
#pragma once

#include "bpf/detect_state.h"

#define PL_CORE_INLINE static inline __attribute__((always_inline))
#ifdef __bpf__ /* one section for all functions of a program */
#define PL_CORE_COLD static __attribute__((noinline, unused))
#else
#define PL_CORE_COLD static __attribute__((noinline, cold, unused))
#endif

typedef uint64_t __attribute__((may_alias)) pl_core_word;
typedef uint32_t __attribute__((may_alias)) pl_core_half;

#define PL_CORE_NOWHERE PL_CORE_WAYS

/* words is a constant, at most PL_CORE_SECRETS - 1. */
PL_CORE_INLINE uint32_t pl_core_hash(const uint64_t *secret, const void *key, unsigned int words)
{
	const pl_core_word *w = key;
	uint64_t h = secret[0];

#pragma GCC unroll 16
	for (unsigned int i = 0; i < words; i++)
		h += (uint64_t)((uint32_t)w[i] + secret[i + 1]) *
		     ((w[i] >> 32) + (secret[i + 1] << 32 | secret[i + 1] >> 32));
	return (uint32_t)(h >> 32);
}

PL_CORE_INLINE uint32_t pl_core_tag(uint32_t hash)
{
	return hash | 1;
}

PL_CORE_INLINE uint32_t pl_core_home(uint32_t hash)
{
	return hash >> 29;
}

/* now in the unit of way words */
PL_CORE_INLINE uint32_t pl_core_coarse(uint64_t ns)
{
	return (uint32_t)(ns >> 20);
}

/* Since a way was heard of; a clock that went back counts as no time. */
PL_CORE_INLINE uint32_t pl_core_age(uint32_t now, uint64_t way)
{
	int32_t age = (int32_t)(now - (uint32_t)way);

	return age < 0 ? 0 : (uint32_t)age;
}

PL_CORE_INLINE int pl_core_same(const void *a, const void *b, unsigned int words)
{
	const pl_core_word *x = a, *y = b;
	uint64_t differ = 0;

#pragma GCC unroll 8
	for (unsigned int i = 0; i < words; i++)
		differ |= x[i] ^ y[i];
	return differ == 0;
}

/* The way of a key, or PL_CORE_NOWHERE. size and words are constants. */
PL_CORE_INLINE uint32_t pl_core_find(const uint64_t *way, const void *entries, unsigned int size,
	const void *key, unsigned int words, uint32_t hash)
{
	const char *e = entries;
	uint32_t home = pl_core_home(hash), tag = pl_core_tag(hash);

	if (__builtin_expect((uint32_t)(way[home] >> 32) == tag, 1) &&
		__builtin_expect(pl_core_same(e + home * size, key, words), 1))
		return home;
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++) {
		if ((uint32_t)(way[i] >> 32) == tag && pl_core_same(e + i * size, key, words))
			return i;
	}
	return PL_CORE_NOWHERE;
}

/* The entry was heard of. Stored only when it changes: most reports leave the line clean. */
PL_CORE_INLINE void pl_core_heard(uint64_t *way, uint64_t now_ns)
{
	pl_core_half *low = (pl_core_half *)way; /* little-endian */
	uint32_t now = pl_core_coarse(now_ns);

	if (*low != now)
		*low = now;
}

/*
 * The way for a new key: its home, another free one, or the one heard of longest ago (never one BUSY). The
 * caller looks at ret_old, claims it and counts.
 */
PL_CORE_INLINE uint32_t pl_core_victim(
	const uint64_t *way, uint32_t hash, uint32_t now, uint64_t *ret_old)
{
	uint32_t home = pl_core_home(hash), best = PL_CORE_NOWHERE, oldest = 0;
	uint64_t old = way[home];

	if ((uint32_t)(old >> 32) == 0) {
		*ret_old = old;
		return home;
	}
	old = 0;
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++) {
		uint64_t w = way[i];
		uint32_t age;

		if ((uint32_t)(w >> 32) == PL_CORE_TAG_BUSY)
			continue;
		age = (uint32_t)(w >> 32) == 0 ? UINT32_MAX : pl_core_age(now, w);
		if (best != PL_CORE_NOWHERE && age <= oldest)
			continue;
		best = i;
		oldest = age;
		old = w;
	}
	*ret_old = old;
	return best;
}

PL_CORE_INLINE int pl_core_swap(uint64_t *word, uint64_t old, uint64_t now)
{
	return __sync_val_compare_and_swap(word, old, now) == old;
}

/* Takes the way out of everybody's sight. */
PL_CORE_INLINE int pl_core_claim(uint64_t *way, uint64_t old, uint32_t now)
{
	return pl_core_swap(way, old, (uint64_t)PL_CORE_TAG_BUSY << 32 | now);
}

/* Shows a claimed way, filled by now, under its tag; and takes it back, empty. */
PL_CORE_INLINE void pl_core_publish(uint64_t *way, uint32_t hash, uint32_t now)
{
	uint64_t busy = *way;

	/* A full barrier: the entry is whole for whoever sees the tag. */
	(void)pl_core_swap(way, busy, (uint64_t)pl_core_tag(hash) << 32 | now);
}

/* Zeroes an entry, word by word: its size is a constant, but more than the compiler inlines. */
PL_CORE_INLINE void pl_core_clear(void *entry, unsigned int size)
{
	pl_core_word *w = entry;

	for (unsigned int i = 0; i < size / 8; i++) {
		w[i] = 0;
		__asm__ volatile(
			"" ::
				: "memory"); /* no call of memset: the kernel's machine has none */
	}
}

PL_CORE_INLINE void pl_core_copy(void *to, const void *from, unsigned int words)
{
	pl_core_word *x = to;
	const pl_core_word *y = from;

#pragma GCC unroll 8
	for (unsigned int i = 0; i < words; i++)
		x[i] = y[i];
}
