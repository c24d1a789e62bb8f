/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys to positions. A key is hashed once; the position of each copy and the check value follow
 * from that hash.
 *
 * PL_HASH_PATHLINE: h = XXH3-64(key, seed); position of copy n = multiply-shift of mix(h, (n + 1) *
 * 0xd1342543de82ef95). Copies are independent of each other, so that two keys that share one
 * position hardly ever share the next.
 *
 * PL_HASH_DTA: CRC-32 of the key bytes and then of the byte n, masked. A key of 32 bits is given
 * least significant byte first. A CRC is linear: position n is position 0 with some bits turned
 * that depend on n alone, so two keys that share one position share all of them, and further copies
 * do not help against each other's loss.
 */
#pragma once

#include <string.h>

#include "base/crc32.h"
#include "base/hash.h"
#include "memory/store.h"

struct pl_hashing {
	uint32_t kind; /* enum pl_store_hash */
	uint64_t seed;
};

/* A hashed key. PL_HASH_DTA: the CRC's bare register after the key. */
struct pl_key {
	uint64_t h;
};

static inline struct pl_key pl_key_make(
	const struct pl_hashing *hashing, const void *key, size_t key_bytes)
{
	uint32_t word;

	if (hashing->kind == PL_HASH_PATHLINE)
		return (struct pl_key){ pl_hash(key, key_bytes, hashing->seed) };
	if (key_bytes == sizeof(word)) {
		memcpy(&word, key, sizeof(word));
		return (struct pl_key){ pl_crc32_step4(&pl_crc32_ieee, ~0u, word) };
	}
	return (struct pl_key){ ~pl_crc32(0, key, key_bytes) };
}

/* Hashes a key of a value or counter as a report carries it: with PL_HASH_DTA a number of 32 bits,
 * most significant byte first in the report, is hashed least significant byte first. A key of
 * postcards is hashed in the order of the report. */
static inline struct pl_key pl_key_carried(
	const struct pl_hashing *hashing, const void *key, size_t key_bytes)
{
	uint32_t word;

	if (hashing->kind != PL_HASH_DTA || key_bytes != sizeof(word))
		return pl_key_make(hashing, key, key_bytes);
	memcpy(&word, key, sizeof(word));
	word = __builtin_bswap32(word);
	return pl_key_make(hashing, &word, sizeof(word));
}

/* Position 0 .. n_slots - 1 of copy `copy`. */
static inline uint64_t pl_key_slot(
	const struct pl_hashing *hashing, struct pl_key key, unsigned int copy, uint64_t n_slots)
{
	/* Multipliers far from each other: 1, 2, 3 would send copies to one slot a third too
	 * often. */
	const uint64_t apart = UINT64_C(0xd1342543de82ef95);

	if (hashing->kind == PL_HASH_PATHLINE)
		return (uint64_t)(((unsigned __int128)pl_hash_mix(key.h, (copy + 1) * apart) *
					  n_slots) >>
				  64);
	return ~pl_crc32_step1(&pl_crc32_ieee, (uint32_t)key.h, (uint8_t)copy) & (n_slots - 1);
}

/* Hash of 64-bit words that may all be in registers: bytes that were just stored word by word, and
 * loaded again across words, would have to wait for every store before them. Words are added in any
 * order; then the hash is ended. */
static inline uint64_t pl_words_hash_add(
	uint64_t hash, uint64_t seed, unsigned int i, uint64_t word)
{
	return hash ^
	       pl_hash_mix(word ^ seed, (2 * (uint64_t)i + 1) * UINT64_C(0xd1342543de82ef95));
}

static inline uint64_t pl_words_hash_end(uint64_t hash, uint64_t seed, unsigned int n)
{
	return pl_hash_mix(hash ^ seed, n);
}

/* Check value of a key and the n words that hold its data, with zero in place of the check value;
 * never 0. With PL_HASH_DTA the check value is of the key alone, and may be 0. */
static inline uint32_t pl_key_check(
	const struct pl_hashing *hashing, struct pl_key key, const uint64_t *words, unsigned int n)
{
	uint64_t seed, hash = 0;

	if (hashing->kind != PL_HASH_PATHLINE)
		return ~(uint32_t)key.h;
	seed = pl_hash_mix(key.h, UINT64_C(0x636865636b));
	for (unsigned int i = 0; i < n; i++)
		hash = pl_words_hash_add(hash, seed, i, words[i]);
	hash = pl_words_hash_end(hash, seed, n) >> 32;
	return hash != 0 ? (uint32_t)hash : 1;
}
