/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of slots: those that a slot proves are known by every copy; another value, another key's
 * slot, one that was noted and not written, keys that are too long and those whose place another
 * slot took are not known, and none is ever named wrongly.
 */
#include "memory/key_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "memory/key_write.h"

static struct pl_store_params params = { .primitive = PL_KEY_WRITE,
	.hash = PL_HASH_PATHLINE,
	.seed = 3,
	.key_write = { 4096, 4, 2 } };
static struct pl_key_write kw;
static struct pl_key_names *names;
static uint64_t store[4096];

static void begin(unsigned int hash, uint64_t slots)
{
	pl_key_names_free(names);
	params.hash = hash;
	params.seed = hash == PL_HASH_DTA ? 0 : 3;
	params.key_write.slots = slots;
	memset(store, 0, sizeof(store));
	if (pl_key_write_init(&kw, &params, store) < 0 || pl_key_names_new(&names, &params) < 0)
		exit(1);
}

static void note(const void *key, size_t n)
{
	const struct pl_key k = pl_key_carried(&kw.hashing, key, n);

	for (unsigned int i = 0; i < kw.copies; i++)
		pl_key_names_note(names, pl_key_write_offset(&kw, k, i) / kw.slot_bytes, key, n);
}

static void put(const void *key, size_t n, uint32_t value)
{
	pl_key_write_put(&kw, pl_key_carried(&kw.hashing, key, n), &value, kw.copies);
}

static uint64_t slot_of(const void *key, size_t n, unsigned int copy)
{
	return pl_key_write_offset(&kw, pl_key_carried(&kw.hashing, key, n), copy) / kw.slot_bytes;
}

/* "": it is not known; else its text. */
static const char *name_of(uint64_t slot, uint64_t *ret_first)
{
	static char text[PL_KEY_NAME_BYTES];
	uint32_t check, value;

	text[0] = '\0';
	if (!pl_key_write_slot(&kw, slot, &check, &value) ||
		!pl_key_names_find(names, slot, check, &value, text, ret_first))
		text[0] = '\0';
	return text;
}

static void texts(void)
{
	static const struct {
		const char *key;
		size_t n;
		const char *text;
	} cases[] = {
		{ "host7", 5, "host7" },
		{ "\x0a\x00\x00\x01", 4, "0x0a000001" },
		{ "0x41", 4, "0x30783431" },
		{ "a b", 3, "0x612062" },
		{ "abcdefghijklmnopqrstuvw", 23, "abcdefghijklmnopqrstuvw" },
		{ "abcdefghijklmnopqrstuvwx", 24, "" },
		{ "\x01"
		  "23456789012345678",
			18, "0x013233343536373839303132333435363738" },
		{ "\x01"
		  "234567890123456789",
			19, "" },
	};

	for (unsigned int hash = 0; hash < 2; hash++) {
		begin(hash == 0 ? PL_HASH_PATHLINE : PL_HASH_DTA, 4096);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			const char *key = cases[i].key;
			const size_t n = cases[i].n;
			uint64_t first = 0;

			note(key, n);
			put(key, n, 7);
			for (unsigned int copy = 0; copy < kw.copies; copy++) {
				const char *is = name_of(slot_of(key, n, copy), &first);

				ok(strcmp(is, cases[i].text) == 0 &&
						(is[0] == '\0' || first == slot_of(key, n, 0)),
					"key %zu, copy %u: %s", i, copy, is);
			}
		}
	}
}

/* What does not prove itself. */
static void unknown(void)
{
	const uint64_t slot_a = (begin(PL_HASH_PATHLINE, 4096), slot_of("a", 1, 0));
	uint64_t first;
	uint32_t check, value;
	char text[PL_KEY_NAME_BYTES];

	put("a", 1, 7);
	ok(name_of(slot_a, &first)[0] == '\0', "a key that was not noted");
	note("a", 1);
	ok(strcmp(name_of(slot_a, &first), "a") == 0, "and that was");
	ok(pl_key_write_slot(&kw, slot_a, &check, &value), "its slot");
	value++;
	ok(!pl_key_names_find(names, slot_a, check, &value, text, &first), "another value");
	ok(!pl_key_names_find(names, slot_a + 1, check, &value, text, &first), "another slot");
	/* Another process, or an older run, wrote another key there. */
	pl_key_names_note(names, slot_a, "b", 1);
	ok(name_of(slot_a, &first)[0] == '\0', "a key that is noted, and another one in the slot");
	pl_key_names_note(names, slot_a, "abcdefghijklmnopqrstuvwxyz", 26);
	ok(name_of(slot_a, &first)[0] == '\0', "a key that is too long");
	params.primitive = PL_COUNTERS;
	struct pl_key_names *none;
	eq(pl_key_names_new(&none, &params), -EINVAL, "counters have no keys");
	params.primitive = PL_KEY_WRITE;
}

/* Many keys in few slots: each name is that of the key that was written last, or absent. */
static void shared(void)
{
	unsigned int known = 0, wrong = 0;
	uint64_t first;

	begin(PL_HASH_PATHLINE, 4096);
	for (uint32_t k = 1; k <= 8192; k++) {
		note(&k, 4);
		put(&k, 4, k);
	}
	for (uint64_t slot = 0; slot < 4096; slot++) {
		char want[16];
		uint32_t check, value;
		const char *is;

		if (!pl_key_write_slot(&kw, slot, &check, &value))
			continue;
		snprintf(want, sizeof(want), "0x%02x%02x%02x%02x", value & 255, value >> 8 & 255,
			value >> 16 & 255, value >> 24);
		is = name_of(slot, &first);
		known += is[0] != '\0';
		wrong += is[0] != '\0' && strcmp(is, want) != 0;
	}
	eq(wrong, 0, "no slot has the name of another key");
	ok(known > 4000, "and most have their own: %u", known);
}

int main(void)
{
	texts();
	unknown();
	shared();
	pl_key_names_free(names);
	return pl_test_done();
}
