/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Postcards: the path of a flow, one value of 32 bits (a node) for each hop, in `copies` chunks
 * chosen by the flow's hash. A word is the value XOR a hash of flow and hop; hops behind the path's
 * end hold the blank value. A chunk is
 *
 *   PL_HASH_PATHLINE  0  4 * hops  words, little-endian
 *                        4         check value of flow and words, never 0
 *                     zeros up to the next power of two, above 64 the next multiple of 64
 *   PL_HASH_DTA       0  20        five words, big-endian; 12 bytes of zeros
 *
 * A query gives back the path on which all valid copies agree. A chunk is valid when its check
 * value fits (PL_HASH_PATHLINE) and, if a set of possible values is given, when its values are in
 * that set, with blanks only at the end. PL_HASH_DTA has no check value: there the set is what
 * tells a flow's chunk from another's, and it must be given.
 *
 * A foreign chunk looks valid with probability 2^-32 with a check value, ((set + 1) / 2^32)^hops
 * with a set.
 */
#pragma once

#include <assert.h>

#include "memory/hashing.h"
#include "memory/store.h"

#define PL_POSTCARD_BLANK 0xffffffffu /* no node; cannot be stored as one */

struct pl_postcards {
	struct pl_hashing hashing;
	uint64_t chunks;
	uint32_t hops, copies, chunk_bytes;
	uint32_t write_bytes; /* bytes that a remote writer writes of a chunk */
	uint8_t *base;        /* borrowed; NULL: geometry only */
};

/* Initializes the geometry, as pl_key_write_init does. */
int pl_postcards_init(struct pl_postcards *p, const struct pl_store_params *params, void *base);

/* ---- geometry ---- */

/* Hashes a flow. With PL_HASH_DTA a key of 32 bits is in network order. */
struct pl_key pl_postcards_key(const struct pl_postcards *p, const void *key, size_t key_bytes);

static inline uint64_t pl_postcards_offset(
	const struct pl_postcards *p, struct pl_key key, unsigned int copy)
{
	/* The published code hashes the key alone. */
	if (p->hashing.kind == PL_HASH_DTA)
		return (~(uint32_t)key.h & (p->chunks - 1)) * p->chunk_bytes;
	assert(copy < p->copies);
	return pl_key_slot(&p->hashing, key, copy, p->chunks) * p->chunk_bytes;
}

/* Makes the bytes of a chunk: chunk_bytes. Returns 0, or -EINVAL when n is 0 or above hops, or a
 * value is the blank. An unknown hop ends the path: gaps cannot be stored. */
int pl_postcards_image(const struct pl_postcards *p, struct pl_key key, const uint32_t *values,
	unsigned int n, void *ret_chunk);

/* ---- local put ---- */

int pl_postcards_put(
	const struct pl_postcards *p, struct pl_key key, const uint32_t *values, unsigned int n);

/* ---- read side ---- */

/* Set of values, built once, then only read. */
struct pl_value_set {
	uint32_t *table; /* open addressing; PL_POSTCARD_BLANK is empty */
	uint64_t mask;
	size_t n;
};

/* Builds a set; values may repeat. Returns 0, -ENOMEM, or -EINVAL when the blank is among the
 * values. */
int pl_value_set_init(struct pl_value_set *set, const uint32_t *values, size_t n);
void pl_value_set_done(struct pl_value_set *set);
bool pl_value_set_has(const struct pl_value_set *set, uint32_t value);

struct pl_postcards_result {
	enum pl_answer answer; /* ambiguous: valid copies disagree */
	unsigned int n;        /* hops of the path; 0 unless found */
	unsigned int copies;   /* valid chunks */
};

/* Writes the path's values, at most `hops`, to ret_values, source first. `set` may be NULL with
 * PL_HASH_PATHLINE; with PL_HASH_DTA nothing is found without a set. */
struct pl_postcards_result pl_postcards_get(const struct pl_postcards *p, struct pl_key key,
	const struct pl_value_set *set, uint32_t *ret_values);
/* Judges chunks read from elsewhere (query.h) in the same way: those of copy 0, 1, …, each aligned
 * to 8 bytes and write_bytes long, rounded up to 8. */
struct pl_postcards_result pl_postcards_judge(const struct pl_postcards *p, struct pl_key key,
	const void *const *chunks, const struct pl_value_set *set, uint32_t *ret_values);
