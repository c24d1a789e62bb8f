/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of the slots of a key-write store, which holds check values only: the writer in this process
 * stores the key of each slot that it writes. A reader gets the key of a slot only when the slot
 * matches it: its check value and value must be those of the key, which must have a copy there.
 * Another key with the same check value in the same slot would pass with a probability of 2^-32.
 *
 * The table holds the keys of at most 65536 slots, where a new one replaces an older one, and keys
 * of up to 23 bytes; other keys are not known.
 *
 * One thread writes and any thread reads, without a lock: a mixture of two keys does not match.
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
