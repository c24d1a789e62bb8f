/* SPDX-License-Identifier: BSD-2-Clause */
/* Remembers keys of slots, and proves them. */
#include "memory/key_names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/key_write.h"
#include "record/record.h"

enum { ENTRIES_MAX = 65536, KEY_WORDS = 3, KEY_MAX = 8 * KEY_WORDS - 1 };

/* The first byte of the key's words is its length. */
struct entry {
	_Atomic uint64_t slot; /* slot + 1; 0: none */
	_Atomic uint64_t key[KEY_WORDS];
};

struct pl_key_names {
	struct pl_key_write kw; /* geometry only */
	uint64_t mask;
	struct entry entries[];
};

int pl_key_names_new(struct pl_key_names **ret, const struct pl_store_params *params)
{
	struct pl_key_names *names;
	struct pl_key_write kw;
	uint64_t n = 64;

	if (params->primitive != PL_KEY_WRITE || pl_key_write_init(&kw, params, NULL) < 0)
		return -EINVAL;
	while (n < kw.slots && n < ENTRIES_MAX)
		n *= 2;
	names = calloc(1, sizeof(*names) + n * sizeof(struct entry));
	if (names == NULL)
		return -ENOMEM;
	names->kw = kw;
	names->mask = n - 1;
	*ret = names;
	return 0;
}

void pl_key_names_free(struct pl_key_names *names)
{
	free(names);
}

static uint64_t at_of(const struct pl_key_names *names, uint64_t slot)
{
	return slot & names->mask; /* keys choose their slots by hash */
}

void pl_key_names_note(struct pl_key_names *names, uint64_t slot, const void *key, size_t bytes)
{
	struct entry *e = &names->entries[at_of(names, slot)];
	uint8_t text[8 * KEY_WORDS] = { (uint8_t)bytes };
	uint64_t words[KEY_WORDS];

	/* A key that is too long is not known, nor is the one that it replaces. */
	if (bytes <= KEY_MAX)
		memcpy(text + 1, key, bytes);
	else
		slot = UINT64_MAX;
	memcpy(words, text, sizeof(words));
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		atomic_store_explicit(&e->key[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&e->slot, slot + 1, memory_order_relaxed);
}

/* True when the slot holds this value of this key. */
static bool proves(const struct pl_key_write *kw, struct pl_key key, uint64_t slot, uint32_t check,
	const void *value)
{
	uint8_t image[PL_VALUE_MAX + 128];
	uint32_t is;
	bool here = false;

	for (unsigned int i = 0; i < kw->copies; i++)
		here = here || pl_key_write_offset(kw, key, i) == slot * kw->slot_bytes;
	if (!here)
		return false;
	pl_key_write_image(kw, key, value, image);
	memcpy(&is, image, sizeof(is));
	return is == check;
}

static bool put_text(char dst[PL_KEY_NAME_BYTES], const uint8_t *key, size_t n)
{
	bool plain = n > 0 && !(n > 1 && key[0] == '0' && key[1] == 'x');

	for (size_t i = 0; i < n; i++)
		plain = plain && pl_text_plain((char)key[i]);
	if (plain ? n >= PL_KEY_NAME_BYTES : 2 + 2 * n >= PL_KEY_NAME_BYTES)
		return false;
	if (plain) {
		memcpy(dst, key, n);
		dst[n] = '\0';
		return true;
	}
	memcpy(dst, "0x", 3);
	for (size_t i = 0; i < n; i++)
		snprintf(dst + 2 + 2 * i, 3, "%02x", key[i]);
	return true;
}

bool pl_key_names_find(const struct pl_key_names *names, uint64_t slot, uint32_t check,
	const void *value, char ret_text[PL_KEY_NAME_BYTES], uint64_t *ret_first)
{
	const struct entry *e = &names->entries[at_of(names, slot)];
	uint8_t text[8 * KEY_WORDS];
	uint64_t words[KEY_WORDS];
	struct pl_key key;

	if (atomic_load_explicit(&e->slot, memory_order_relaxed) != slot + 1)
		return false;
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		words[i] = atomic_load_explicit(&e->key[i], memory_order_relaxed);
	memcpy(text, words, sizeof(text));
	if (text[0] > KEY_MAX)
		return false;
	key = pl_key_carried(&names->kw.hashing, text + 1, text[0]);
	if (!proves(&names->kw, key, slot, check, value) || !put_text(ret_text, text + 1, text[0]))
		return false;
	*ret_first = pl_key_write_offset(&names->kw, key, 0) / names->kw.slot_bytes;
	return true;
}
