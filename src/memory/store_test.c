/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parameters can be, how large their stores are, and the published hashes. */
#include "memory/store.h"

#include <errno.h>

#include "base/test.h"
#include "memory/counters.h"
#include "memory/key_write.h"

struct situation {
	const char *name;
	struct pl_store_params params;
	int want;
	uint64_t bytes;
};

#define PATHLINE .hash = PL_HASH_PATHLINE
#define DTA      .hash = PL_HASH_DTA
#define KW(...)  .primitive = PL_KEY_WRITE, .key_write = { __VA_ARGS__ }
#define AP(...)  .primitive = PL_APPEND, .append = { __VA_ARGS__ }
#define CO(...)  .primitive = PL_COUNTERS, .counters = { __VA_ARGS__ }
#define PO(...)  .primitive = PL_POSTCARDS, .postcards = { __VA_ARGS__ }
#define SK(...)  .primitive = PL_SKETCH, .sketch = { __VA_ARGS__ }

static const struct situation situations[] = {
	{ "dta's key-write", { DTA, KW(256, 4, 4) }, 0, 2048 },
	{ "values of 20 bytes in slots of 32", { PATHLINE, KW(1000, 20, 2) }, 0, 32000 },
	{ "one slot, rounded up to a line", { PATHLINE, KW(1, 4, 1) }, 0, 64 },
	{ "values of 61 bytes in two lines", { PATHLINE, KW(10, 61, 2) }, 0, 1280 },
	{ "a terabyte of slots", { PATHLINE, KW(UINT64_C(1) << 35, 28, 2) }, 0, UINT64_C(1) << 40 },
	{ "records", { PATHLINE, .content = PL_CONTENT_EVENT, KW(10, 128, 2) }, 0, 1920 },
	{ "records with something behind", { PATHLINE, .content = PL_CONTENT_PATH, KW(10, 136, 2) },
		0, 1920 },
	{ "records cut short", { PATHLINE, .content = PL_CONTENT_EVENT, KW(10, 127, 2) }, -EINVAL,
		0 },
	{ "records of packets cut short",
		{ PATHLINE, .content = PL_CONTENT_FLAT, AP(1024, 3, 63, 16, 1) }, -EINVAL, 0 },
	{ "content of no kind", { PATHLINE, .content = PL_CONTENT_MAX, KW(10, 128, 2) }, -EINVAL,
		0 },
	{ "no slots", { PATHLINE, KW(0, 4, 1) }, -EINVAL, 0 },
	{ "no value", { PATHLINE, KW(10, 0, 1) }, -EINVAL, 0 },
	{ "a value too long", { PATHLINE, KW(10, 1021, 1) }, -EINVAL, 0 },
	{ "no copies", { PATHLINE, KW(10, 4, 0) }, -EINVAL, 0 },
	{ "too many copies", { PATHLINE, KW(10, 4, 9) }, -EINVAL, 0 },
	{ "dta, 255 slots", { DTA, KW(255, 4, 4) }, -EINVAL, 0 },
	{ "dta, one slot", { DTA, KW(1, 4, 4) }, -EINVAL, 0 },
	{ "dta, 2^32 slots", { DTA, KW(UINT64_C(1) << 32, 4, 4) }, -EINVAL, 0 },
	{ "dta with a seed", { DTA, .seed = 1, KW(256, 4, 4) }, -EINVAL, 0 },
	{ "more than there can be", { PATHLINE, KW(UINT64_MAX, 4, 1) }, -EOVERFLOW, 0 },
	{ "a product that wraps", { PATHLINE, KW(UINT64_C(1) << 61, 4, 1) }, -EOVERFLOW, 0 },
	{ "no hash", { KW(256, 4, 4) }, -EINVAL, 0 },
	{ "no primitive", { PATHLINE }, -EINVAL, 0 },
	{ "primitive 6", { PATHLINE, .primitive = 6 }, -EINVAL, 0 },
	{ "a reserved word set", { PATHLINE, .zero = 1, KW(256, 4, 4) }, -EINVAL, 0 },
	{ "sealed events", { PATHLINE, .content = PL_CONTENT_EVENT, AP(1024, 3, 128, 16, 1) }, 0,
		UINT64_C(3) * (64 + 1024 * 136) },
	{ "dta's lists", { DTA, AP(256, 4, 4, 4, 0) }, 0, UINT64_C(4) * (64 + 1024) },
	{ "13 bytes, sealed", { PATHLINE, AP(64, 1, 13, 8, 1) }, 0, 64 + 64 * 24 },
	{ "13 bytes, bare", { PATHLINE, AP(64, 1, 13, 8, 0) }, -EINVAL, 0 },
	{ "slots that batches do not fill", { PATHLINE, AP(1023, 1, 64, 16, 1) }, -EINVAL, 0 },
	{ "as many slots as a batch", { PATHLINE, AP(16, 1, 64, 16, 1) }, -EINVAL, 0 },
	{ "no batch", { PATHLINE, AP(16, 1, 64, 0, 1) }, -EINVAL, 0 },
	{ "no lists", { PATHLINE, AP(16, 0, 64, 1, 1) }, -EINVAL, 0 },
	{ "half sealed", { PATHLINE, AP(16, 1, 64, 1, 2) }, -EINVAL, 0 },
	{ "too many long lists", { PATHLINE, AP(UINT64_C(1) << 40, UINT32_MAX, 64, 1, 1) },
		-EOVERFLOW, 0 },
	{ "four rows", { PATHLINE, CO(1000, 4, 0) }, 0, 32000 },
	{ "four rows in one", { PATHLINE, CO(1000, 4, 1) }, 0, 8000 },
	{ "dta, rows apart", { DTA, CO(1024, 4, 0) }, -EINVAL, 0 },
	{ "17 rows", { PATHLINE, CO(1000, 17, 0) }, -EINVAL, 0 },
	{ "no cells", { PATHLINE, CO(0, 4, 0) }, -EINVAL, 0 },
	{ "seven hops in 32 bytes", { PATHLINE, PO(100, 7, 2) }, 0, 3200 },
	{ "eight hops in 64 bytes", { PATHLINE, PO(100, 8, 2) }, 0, 6400 },
	{ "dta's postcards", { DTA, PO(256, 5, 1) }, 0, 8192 },
	{ "dta, two copies", { DTA, PO(256, 5, 2) }, -EINVAL, 0 },
	{ "dta, seven hops", { DTA, PO(256, 7, 1) }, -EINVAL, 0 },
	{ "32 hops", { PATHLINE, PO(100, 32, 2) }, -EINVAL, 0 },
	{ "count-min of 4 bytes", { PATHLINE, SK(1000, 4, 4, PL_SKETCH_COUNT_MIN) }, 0, 16064 },
	{ "HyperLogLog", { PATHLINE, SK(4096, 1, 1, PL_SKETCH_HYPERLOGLOG) }, 0, 4160 },
	{ "HyperLogLog of two rows", { PATHLINE, SK(4096, 2, 1, PL_SKETCH_HYPERLOGLOG) }, -EINVAL,
		0 },
	{ "HyperLogLog of wide registers", { PATHLINE, SK(4096, 1, 4, PL_SKETCH_HYPERLOGLOG) },
		-EINVAL, 0 },
	{ "cells of 2 bytes", { PATHLINE, SK(1000, 4, 2, PL_SKETCH_COUNT_MIN) }, -EINVAL, 0 },
	{ "a sketch of no kind", { PATHLINE, SK(1000, 4, 4, 3) }, -EINVAL, 0 },
	{ "a sketch by dta's hash", { DTA, SK(1024, 4, 4, PL_SKETCH_COUNT_MIN) }, -EINVAL, 0 },
};

static void sizes(void)
{
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		const struct situation *s = &situations[i];
		struct pl_diag diag = { .text = "" };
		uint64_t bytes = 0;
		int r = pl_store_bytes(&s->params, &bytes, &diag);

		ok(r == s->want && bytes == s->bytes && (r == 0) == (diag.text[0] == '\0'),
			"%s: %d, %" PRIu64 " bytes%s%s", s->name, r, bytes, r == 0 ? "" : ": ",
			diag.text);
	}
}

static void names(void)
{
	for (uint32_t p = PL_KEY_WRITE; p <= PL_SKETCH; p++)
		eq(pl_primitive_by_name(pl_primitive_name(p)), p, "%s", pl_primitive_name(p));
	ok(pl_primitive_name(0) == NULL && pl_primitive_name(6) == NULL);
	eq(pl_primitive_by_name("heap"), 0);
}

/* As published: CRC-32 of the key, least significant byte first, and of the copy's number behind
 * it. */
static void dta_vectors(void)
{
	static const struct {
		uint32_t key, check, slot[4];
	} vectors[] = {
		{ 1, 0x99F8B879, { 0xFB42DEAD, 0x8C45EE3B, 0x154CBF81, 0x624B8F17 } },
		{ 2, 0x8B4D1797, { 0xBCE2A47D, 0xCBE594EB, 0x52ECC551, 0x25EBF5C7 } },
		{ 1000, 0x30C90892, { 0xCC33D4ED, 0xBB34E47B, 0x223DB5C1, 0x553A8557 } },
		{ 0x0A000001, 0x792D5167, { 0x01AD3627, 0x76AA06B1, 0xEFA3570B, 0x98A4679D } },
	};
	const struct pl_hashing dta = { .kind = PL_HASH_DTA };

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct pl_key key = pl_key_make(&dta, &vectors[i].key, 4);

		eq(pl_key_check(&dta, key, NULL, 0), vectors[i].check, "check value of key %u",
			vectors[i].key);
		for (unsigned int n = 0; n < 4; n++) {
			eq(pl_key_slot(&dta, key, n, UINT64_C(1) << 32), vectors[i].slot[n],
				"key %u, copy %u", vectors[i].key, n);
			eq(pl_key_slot(&dta, key, n, 256), vectors[i].slot[n] & 255, "of 256");
		}
	}
}

/* Positions stay below the number of slots whatever it is, and all of them come up. */
static void positions(void)
{
	const struct pl_hashing own = { PL_HASH_PATHLINE, 77 };
	static const uint64_t counts[] = { 1, 3, 100, 1000003, UINT64_C(1) << 40 };
	unsigned int hits[100] = { 0 }, outside = 0, none = 0;

	for (uint32_t k = 0; k < 100000; k++) {
		struct pl_key key = pl_key_make(&own, &k, sizeof(k));

		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			outside += pl_key_slot(&own, key, k % 8, counts[i]) >= counts[i];
		hits[pl_key_slot(&own, key, 0, 100)]++;
	}
	eq(outside, 0, "positions are within the store");
	for (unsigned int i = 0; i < 100; i++)
		none += hits[i] < 800 || hits[i] > 1200; /* 1000 expected, deviation 31 */
	eq(none, 0, "and spread over it");
}

/* Copies of a key are in one slot as often as chance has it, and no more. */
static void independence(void)
{
	const struct pl_hashing own = { PL_HASH_PATHLINE, 0 };
	unsigned int same[3] = { 0 };

	for (uint64_t k = 0; k < 2000000; k++) {
		struct pl_key key = pl_key_make(&own, &k, sizeof(k));
		uint64_t at[3];

		for (unsigned int n = 0; n < 3; n++)
			at[n] = pl_key_slot(&own, key, n, 1000);
		same[0] += at[0] == at[1];
		same[1] += at[0] == at[2];
		same[2] += at[1] == at[2];
	}
	for (unsigned int i = 0; i < 3; i++) /* 2000 expected, deviation 45 */
		ok(same[i] > 1800 && same[i] < 2200, "pairs of copies in one slot: %u", same[i]);
}

int main(void)
{
	sizes();
	names();
	dta_vectors();
	positions();
	independence();
	return pl_test_done();
}
