/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of the slots of a key-write store, which holds check values only: the writer in this process
 * notes the key of each slot that it writes, and a reader gets the key of a slot only when the slot
 * proves it: the check value and the value in it are those of that key, which has a copy there.
 * Another key with the same check value in the same slot would pass with a probability of 2^-32.
 *
 * Bounded: a table of at most 65536 slots, in which a slot that is noted takes the place of another
 * one that was noted before it; keys of up to 23 bytes. Beyond both a key is not known.
 *
 * One thread notes, any thread asks, without a lock: words that are of two keys prove nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/store.h"

#define PL_KEY_NAME_BYTES 40 /* length of the text, with its end */

struct pl_key_names;

/* Makes an empty table. Returns 0, -EINVAL when the store is no key-write store, or -ENOMEM. */
int pl_key_names_new(struct pl_key_names **ret, const struct pl_store_params *params);
void pl_key_names_free(struct pl_key_names *names);

/* Notes the key, as a report carries it, that is about to be written into the slot. */
void pl_key_names_note(struct pl_key_names *names, uint64_t slot, const void *key, size_t bytes);

/* Writes the key of a slot that holds this check value and value, as text: the key itself if it is
 * plain text (pl_text_plain), else 0x and its bytes in hexadecimal. *ret_first: slot of the key's
 * first copy, the same whichever copy was found. False when the key is not known, or its text has
 * more than 39 characters. */
bool pl_key_names_find(const struct pl_key_names *names, uint64_t slot, uint32_t check,
	const void *value, char ret_text[PL_KEY_NAME_BYTES], uint64_t *ret_first);
