/* SPDX-License-Identifier: BSD-2-Clause */
/* A network address, in the form of every record and table: 16 bytes in network order, IPv4 as the
 * mapped form ::ffff:a.b.c.d (RFC 4291 2.5.5.2). All zero is "unspecified". */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct pl_addr {
	uint8_t b[16];
};

static inline struct pl_addr pl_addr_v4(const void *bytes)
{
	/* Two words as they lie in little-endian memory, not twelve bytes and four: hot paths build
	 * addresses and compare them at once, and a load that spans two stores waits for both. */
	uint64_t words[2] = { 0, 0xffff0000 };
	struct pl_addr a;
	uint32_t v4;

	memcpy(&v4, bytes, 4);
	words[1] |= (uint64_t)v4 << 32;
	memcpy(a.b, words, 16);
	return a;
}

static inline struct pl_addr pl_addr_v6(const void *bytes)
{
	struct pl_addr a;

	memcpy(a.b, bytes, 16);
	return a;
}

static inline bool pl_addr_is_v4(const struct pl_addr *a)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

static inline bool pl_addr_equal(const struct pl_addr *a, const struct pl_addr *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

static inline bool pl_addr_is_unspecified(const struct pl_addr *a)
{
	static const struct pl_addr zero;

	return pl_addr_equal(a, &zero);
}

/* Source that a packet counts for when senders share something: its IPv4 address, or its IPv6
 * network of 64 bits, because one host may have all addresses of that. All link-local addresses are
 * of one network, so each of them counts for itself. */
static inline struct pl_addr pl_addr_source(const struct pl_addr *a)
{
	struct pl_addr s = *a;

	if (!pl_addr_is_v4(a) && !(a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80))
		memset(s.b + 8, 0, 8);
	return s;
}

/* True when the first `bits` (0 to 128) of both are equal. */
static inline bool pl_addr_alike(
	const struct pl_addr *a, const struct pl_addr *b, unsigned int bits)
{
	const unsigned int whole = bits / 8, rest = bits % 8;

	return memcmp(a->b, b->b, whole) == 0 &&
	       (rest == 0 || ((a->b[whole] ^ b->b[whole]) >> (8 - rest)) == 0);
}

/* A prefix: addresses whose first `bits` (0 to 128) are those of `addr`; for IPv4 they include the
 * 96 of the mapped form, as in pl_parse_prefix. */
struct pl_prefix {
	struct pl_addr addr;
	uint8_t bits;
};

static inline bool pl_prefix_has(const struct pl_prefix *p, const struct pl_addr *a)
{
	return pl_addr_alike(&p->addr, a, p->bits);
}
