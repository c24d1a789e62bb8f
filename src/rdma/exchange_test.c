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
	test_compact();
	return pl_test_done();
}
