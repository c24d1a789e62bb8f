/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key-write: the last value of a key, in `copies` slots chosen by its hash; newer keys overwrite
 * older ones. A slot is
 *
 *   0  4            check value; with PL_HASH_PATHLINE of key and value, never 0; with PL_HASH_DTA
 *      CRC-32 of the key
 *   4  value_bytes  the value as it was given
 *      zeros up to the slot's size: the next power of two, above 64 the next multiple of 64
 *
 * A query reads the slots of all copies and votes among the values whose check value fits. With
 * PL_HASH_PATHLINE a slot that is half written (a racing writer, a process killed, a lost packet)
 * does not fit its check value and does not vote; with PL_HASH_DTA that holds for values of up to 4
 * bytes, whose slot is one word.
 *
 * A key that was never written is found with a probability of at most copies / 2^32, when all slots
 * are in use.
 */
#pragma once

#include <assert.h>

#include "memory/hashing.h"
#include "memory/store.h"

struct pl_key_write {
	struct pl_hashing hashing;
	uint64_t slots;
	uint32_t value_bytes, slot_bytes, copies;
	uint32_t
		write_bytes; /* bytes that are written of a slot: check value and value, at least a word */
	uint8_t *base; /* borrowed; NULL: geometry only */
};

/* Initializes the geometry in the caller's memory; nothing is to be undone. `base` is the store's
 * first byte as mapped here (for reading only if put is not called), or NULL. Returns 0, or -EINVAL
 * when the parameters are not of a valid key-write store. */
int pl_key_write_init(struct pl_key_write *kw, const struct pl_store_params *params, void *base);

/* ---- geometry ---- */

static inline struct pl_key pl_key_write_key(
	const struct pl_key_write *kw, const void *key, size_t key_bytes)
{
	return pl_key_make(&kw->hashing, key, key_bytes);
}

/* Offset of copy n. */
static inline uint64_t pl_key_write_offset(
	const struct pl_key_write *kw, struct pl_key key, unsigned int copy)
{
	assert(copy < kw->copies);
	return pl_key_slot(&kw->hashing, key, copy, kw->slots) * kw->slot_bytes;
}

/* Makes the bytes of a slot: slot_bytes, of which the first write_bytes matter. */
void pl_key_write_image(
	const struct pl_key_write *kw, struct pl_key key, const void *value, void *ret_slot);

/* ---- local put ---- */

/* Writes `copies` copies, 1 to those of the store. */
void pl_key_write_put(
	const struct pl_key_write *kw, struct pl_key key, const void *value, unsigned int copies);

/* Writes n values, value_bytes apart, each with all copies. */
void pl_key_write_put_batch(const struct pl_key_write *kw, const struct pl_key *keys,
	const void *values, unsigned int n);

/* ---- read side ---- */

struct pl_key_write_result {
	enum pl_answer answer;
	/* slots that hold the value found; ambiguous: most slots that any value has */
	unsigned int votes;
	unsigned int matches; /* slots whose check value fits */
};

/* Reads all copies. Copies the value with the most votes to ret_value (value_bytes) if it has at
 * least `threshold` of them (1: plurality) and no other has as many; otherwise copies nothing.
 * Fewer votes than the threshold are PL_NOT_FOUND. */
struct pl_key_write_result pl_key_write_get(
	const struct pl_key_write *kw, struct pl_key key, unsigned int threshold, void *ret_value);

/* Judges slots read from elsewhere (query.h) in the same way: those of copy 0, 1, …, each aligned
 * to 8 bytes and write_bytes long, rounded up to 8. */
struct pl_key_write_result pl_key_write_judge(const struct pl_key_write *kw, struct pl_key key,
	const void *const *slots, unsigned int threshold, void *ret_value);

/* Looks n keys up at once, and prefetches their slots: results[i], and the value at ret_values + i
 * * value_bytes. */
void pl_key_write_get_batch(const struct pl_key_write *kw, const struct pl_key *keys,
	unsigned int n, unsigned int threshold, struct pl_key_write_result *ret_results,
	void *ret_values);

/* Reads slot i unchecked; false when it is empty. Without its key nobody can tell whether the slot
 * is whole. */
bool pl_key_write_slot(
	const struct pl_key_write *kw, uint64_t i, uint32_t *ret_check, void *ret_value);
