/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdma/exchange.h"

#include <errno.h>

#include "base/crc32.h"
#include "base/test.h"

static const struct pl_exchange good = { .service = 0x20,
	.gid = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 1, 1 } },
	.mac = { 2, 0, 0, 0, 0, 9 },
	.pkey = 0xffff,
	.va = 0x7f0000000000,
	.bytes = UINT64_C(1) << 40,
	.key = 0x12345678,
	.qpn = 0xabcdef,
	.psn = 0x123456,
	.mtu = 1024,
	.depth = 16,
	.access = 6,
	.name = "last values of every flo" };

/* A message with a store's parameters, and every way in which those can be wrong. */
static void test_store(void)
{
	struct pl_exchange x, with = good;
	uint8_t bytes[PL_EXCHANGE_STORE_BYTES + 8];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	uint32_t crc;
	size_t used;

	with.store = (struct pl_store_params){ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 0x1122334455667788,
		.key_write = { .slots = 1000, .value_bytes = 4, .copies = 2 } };
	with.has_store = true;
	with.epoch = 7;
	with.region_id = 0xfedcba9876543210;
	with.refusal = PL_EXCHANGE_NO_RIGHT;
	ok(pl_store_bytes(&with.store, &with.bytes, NULL) == 0, "a store");
	pl_exchange_put(&b, &with);
	eq(b.len, PL_EXCHANGE_STORE_BYTES);
	memeq(bytes + 116, "\1\0\0\0\1\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 16,
		"its parameters are as in the file");
	for (size_t n = 0; n < b.len; n++)
		eq(pl_exchange_get(&x, pl_cursor(bytes, n), &used), 0, "%zu bytes of it", n);
	ok(pl_exchange_get(&x, pl_cursor(bytes, sizeof(bytes)), &used) == 1 && used == 184 &&
			memcmp(&x, &with, sizeof(x)) == 0,
		"and back");
	for (size_t i = 100; i < PL_EXCHANGE_STORE_BYTES; i++) {
		bytes[i] ^= 1;
		eq(pl_exchange_get(&x, pl_cursor(bytes, b.len), &used), (uint64_t)-EBADMSG,
			"byte %zu altered", i);
		bytes[i] ^= 1;
	}
	bytes[116 + 24] ^= 1; /* other slots: another length */
	crc = __builtin_bswap32(pl_crc32(0, bytes + 100, 80));
	memcpy(bytes + 180, &crc, 4);
	eq(pl_exchange_get(&x, pl_cursor(bytes, b.len), &used), (uint64_t)-EBADMSG,
		"parameters that do not fit the length");
	bytes[116] = 0;
	crc = __builtin_bswap32(pl_crc32(0, bytes + 100, 80));
	memcpy(bytes + 180, &crc, 4);
	eq(pl_exchange_get(&x, pl_cursor(bytes, b.len), &used), (uint64_t)-EBADMSG,
		"parameters of no store");
	streq(pl_exchange_refusal_text(PL_EXCHANGE_NO_STORE), "there is no store of this name");
	streq(pl_exchange_refusal_text(99), "refused");
	for (uint8_t i = 0; i <= PL_EXCHANGE_FAILED; i++) {
		for (uint8_t j = 0; j < i; j++)
			ok(strcmp(pl_exchange_refusal_text(i), pl_exchange_refusal_text(j)) != 0,
				"refusals %u and %u are told apart", j, i);
	}
}

static void test_versioned(void)
{
	static const struct {
		size_t at;
		uint8_t value;
		int want;
		const char *name;
	} cases[] = { { 0, 'Q', -EBADMSG, "magic" }, { 4, 2, -EPROTO, "version" },
		{ 5, 0x60, -EBADMSG, "service" }, { 7, 99, -EBADMSG, "length" },
		{ 60, 1, -EBADMSG, "queue pair" }, { 64, 1, -EBADMSG, "number" },
		{ 69, 1, -EBADMSG, "MTU" }, { 71, 8, -EBADMSG, "access" },
		{ 32, 0xff, 1, "a high address" }, { 72, 0xff, -EBADMSG, "name" },
		{ 72, 7, -EBADMSG, "control character" },
		{ 80, 0, -EBADMSG, "text behind the name's end" } };
	uint8_t bytes[200];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	struct pl_exchange x;
	size_t used;

	pl_exchange_put(&b, &good);
	eq(b.len, PL_EXCHANGE_BYTES);
	memeq(bytes, "PLRX\1\x20\0\x64", 8, "its beginning");
	memeq(bytes + 56, "\x12\x34\x56\x78\0\xab\xcd\xef\0\x12\x34\x56\4\0\x10\6last", 20,
		"its numbers");
	for (size_t n = 0; n < b.len; n++)
		eq(pl_exchange_get(&x, pl_cursor(bytes, n), &used), 0, "%zu bytes of it", n);
	ok(pl_exchange_get(&x, pl_cursor(bytes, 150), &used) == 1 && used == 100 &&
			memcmp(&x, &good, sizeof(x)) == 0,
		"and back");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t was = bytes[cases[i].at];

		bytes[cases[i].at] = cases[i].value;
		if (cases[i].want != 1 || cases[i].at != 4) {
			uint32_t crc = __builtin_bswap32(pl_crc32(0, bytes, 96));

			memcpy(bytes + 96, &crc, 4);
		}
		ok(pl_exchange_get(&x, pl_cursor(bytes, 100), &used) == cases[i].want, "%s",
			cases[i].name);
		bytes[cases[i].at] = was;
	}
	x = good;
	x.va = UINT64_MAX - 10;
	b = pl_build(bytes, sizeof(bytes));
	pl_exchange_put(&b, &x);
	eq(pl_exchange_get(&x, pl_cursor(bytes, 100), &used), -EBADMSG, "end beyond 2^64");
	b = pl_build(bytes, sizeof(bytes));
	pl_exchange_put(&b, &good);
	bytes[7] = 120; /* a later form, longer */
	{
		uint32_t crc = __builtin_bswap32(pl_crc32(0, bytes, 96));

		memcpy(bytes + 96, &crc, 4);
	}
	eq(pl_exchange_get(&x, pl_cursor(bytes, 119), &used), 0);
	ok(pl_exchange_get(&x, pl_cursor(bytes, 130), &used) == 1 && used == 120, "a longer form");
	for (size_t at = 8; at < 100; at++) {
		bytes[at] ^= 1;
		if (pl_exchange_get(&x, pl_cursor(bytes, 130), &used) != -EBADMSG)
			ok(false, "a turned bit at %zu", at);
		bytes[at] ^= 1;
	}
}

static void test_compact(void)
{
	/* Written by hand from the published form. */
	static const uint8_t want[] = "\0\0\x55\x6e\xb0\x6b\x48\0\x58\1\1\1\0\0\2\x63\0\0"
				      "\0\0\0\0\0\0\0\0\0\0\xff\xff\12\1\1\2";
	struct pl_exchange x = { .va = 0x556eb06b4800,
		.key = 0x58010101,
		.qpn = 0x263,
		.gid = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 1, 2 } } };
	struct pl_exchange y = { .psn = 5 };
	uint8_t bytes[64];
	struct pl_build b = pl_build(bytes, sizeof(bytes));

	pl_exchange_put_compact(&b, &x);
	eq(b.len, PL_EXCHANGE_COMPACT_BYTES);
	memeq(bytes, want, b.len, "34 bytes");
	eq(pl_exchange_get_compact(&y, pl_cursor(bytes, 33)), 0);
	ok(pl_exchange_get_compact(&y, pl_cursor(bytes, 34)) == 1 && y.va == x.va &&
			y.key == x.key && y.qpn == x.qpn && y.psn == 5 &&
			pl_addr_equal(&y.gid, &x.gid),
		"and back");
	bytes[12] = 1;
	ok(pl_exchange_get_compact(&y, pl_cursor(bytes, 34)) < 0, "no queue pair has 25 bits");
}

int main(void)
{
	test_versioned();
	test_store();
	test_compact();
	return pl_test_done();
}
