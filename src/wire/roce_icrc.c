/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the ICRC of a RoCE packet. */
#include <string.h>

#include "base/crc32.h"
#include "base/crc32_fold.h"
#include "wire/roce.h"

/* CRC-32 of the eight bytes of ones that stand for the local route header. */
#define AFTER_LRH 0x2144df1cu

/* Bytes copied to be masked: through the BTH, whatever is before it. */
#define COPIED    64

static void mask_ip6(uint8_t *p)
{
	p[0] |= 0x0f; /* traffic class, flow label */
	memset(p + 1, 0xff, 3);
	p[7] = 0xff; /* hop limit */
}

/* Sets ones where the packet may change on its way (annex A17.3.3; A16 for the GRH). */
static void mask(uint8_t *p, enum pl_roce_net kind)
{
	switch (kind) {
	case PL_ROCE_NET_IP4:
		p[1] = 0xff;             /* type of service */
		p[8] = 0xff;             /* TTL */
		memset(p + 10, 0xff, 2); /* header checksum */
		memset(p + 26, 0xff, 2); /* UDP checksum */
		p[28 + 4] = 0xff;        /* FECN, BECN, reserved */
		break;
	case PL_ROCE_NET_IP6:
		mask_ip6(p);
		memset(p + 46, 0xff, 2);
		p[48 + 4] = 0xff;
		break;
	case PL_ROCE_NET_GRH:
		mask_ip6(p);
		p[40 + 4] = 0xff;
		break;
	}
}

uint32_t pl_roce_icrc(const uint8_t *net, size_t n, enum pl_roce_net kind)
{
	const size_t copied = n < COPIED ? n : COPIED;
	uint8_t head[COPIED];
	uint32_t crc;

	memcpy(head, net, copied);
	mask(head, kind);
	crc = pl_crc32(AFTER_LRH, head, copied);
	return n > copied ? pl_crc32(crc, net + copied, n - copied) : crc;
}

static uint32_t tail(uint64_t first, uint64_t second)
{
	const uint64_t bytes[2] = { first, second };

	return ~pl_crc32(UINT32_MAX, bytes, sizeof(bytes)); /* the register begins with 0 */
}

/* ---- what the identification was ---- */

#define ID_AT 4 /* in the header; the fragment word is behind it */

/* Index of the table's entry with this highest byte; the highest bytes of the entries are all
 * different. */
static uint8_t entry[256];

__attribute__((constructor)) static void prepare_entries(void)
{
	struct pl_crc32_table ieee; /* the one of base/ may not be ready yet */

	pl_crc32_table_init(&ieee, 0xedb88320);
	for (unsigned int i = 0; i < 256; i++)
		entry[ieee.t[0][i] >> 24] = (uint8_t)i;
}

/* Returns the register as it was before n bytes of zero. */
static uint32_t back(uint32_t reg, size_t n)
{
	for (; n > 0; n--) {
		const uint8_t i = entry[reg >> 24];

		reg = (reg ^ pl_crc32_ieee.t[0][i]) << 8 | i;
	}
	return reg;
}

bool pl_roce_icrc_find_id(
	const uint8_t *net, size_t n, uint32_t icrc, uint16_t *ret_id, bool *ret_fragments)
{
	/* The XOR of two ICRCs is the register behind the XOR of the packets: four bytes and then
	 * zeros. */
	const uint32_t other = icrc ^ pl_roce_icrc(net, n, PL_ROCE_NET_IP4);
	const uint32_t word = other == 0 ? 0 : back(other, n - ID_AT);
	const uint32_t flags = word >> 16; /* 0x40: in the opposite order */

	*ret_id = (uint16_t)(word << 8 | (word >> 8 & 0xff));
	*ret_fragments = flags != 0;
	return flags == 0 || flags == 0x40;
}

#if defined(__x86_64__)

/*
 * Computes the ICRC of a common packet in place. Blocks of 16 bytes are counted from its end, so
 * that the first may begin up to 12 bytes before it, in the Ethernet header; these are cleared, and
 * the masked bytes set, while blocks are loaded. Each block is multiplied by the factor of its
 * distance from the last one, and none waits for another.
 */
#define BLOCKS 16 /* longer packets are copied */
#define MASKED 3  /* blocks with masked bytes: 33 bytes, and up to 12 before them */

static struct {
	uint64_t distance[BLOCKS]
			 [2]; /* x^(128 i + 32) and x^(128 i - 32) mod P, reflected, up by one */
	/* Indexed by the bytes before the packet, in words of four. */
	uint8_t keep[4][16], ones[4][MASKED][16], start[4][16];
	bool there;
} usual;

/* x^n mod P, reflected. */
static uint32_t power(unsigned int n)
{
	uint32_t v = 0x80000000;

	for (; n > 0; n--)
		v = v >> 1 ^ (-(v & 1) & 0xedb88320);
	return v;
}

__attribute__((constructor)) static void prepare(void)
{
	const uint32_t start = ~AFTER_LRH;

	for (unsigned int i = 1; i < BLOCKS; i++) {
		usual.distance[i][0] = (uint64_t)power(128 * i + 32) << 1;
		usual.distance[i][1] = (uint64_t)power(128 * i - 32) << 1;
	}
	for (unsigned int w = 0; w < 4; w++) {
		uint8_t ones[MASKED * 16] = { 0 };

		mask(ones + 4 * (size_t)w, PL_ROCE_NET_IP4);
		memcpy(usual.ones[w], ones, sizeof(ones));
		memset(usual.keep[w] + 4 * (size_t)w, 0xff, 16 - 4 * (size_t)w);
		memcpy(usual.start[w] + 4 * (size_t)w, &start, sizeof(start));
	}
	__builtin_cpu_init();
	usual.there = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

PL_CRC32_FOLDS static inline __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

PL_CRC32_FOLDS static uint32_t in_place(const uint8_t *net, size_t n)
{
	const size_t before = -n & 15, blocks = (n + before) / 16, w = before / 4;
	const uint8_t *p = net - before;
	const __m128i zero = _mm_setzero_si128();
	__m128i x = zero, b;

	for (size_t i = 0; i < MASKED; i++) {
		b = _mm_or_si128(load(p + 16 * i), load(usual.ones[w][i]));
		if (i == 0)
			b = _mm_xor_si128(
				_mm_and_si128(b, load(usual.keep[w])), load(usual.start[w]));
		x = pl_crc32_fold(b, load(usual.distance[blocks - 1 - i]), x);
	}
	for (size_t i = MASKED; i < blocks - 1; i++)
		x = pl_crc32_fold(load(p + 16 * i), load(usual.distance[blocks - 1 - i]), x);
	return ~pl_crc32_reduce(_mm_xor_si128(x, load(p + 16 * (blocks - 1))));
}

uint32_t pl_roce_icrc_ip4(const uint8_t *net, size_t n)
{
	if (usual.there && n > MASKED * 16 && n <= BLOCKS * 16 && (n & 3) == 0)
		return in_place(net, n);
	return pl_roce_icrc(net, n, PL_ROCE_NET_IP4);
}

PL_CRC32_FOLDS static uint32_t folded_tail(uint64_t first, uint64_t second)
{
	return pl_crc32_reduce(_mm_set_epi64x((long long)second, (long long)first));
}

uint32_t pl_roce_icrc_tail(uint64_t first, uint64_t second)
{
	return usual.there ? folded_tail(first, second) : tail(first, second);
}

#else

uint32_t pl_roce_icrc_ip4(const uint8_t *net, size_t n)
{
	return pl_roce_icrc(net, n, PL_ROCE_NET_IP4);
}

uint32_t pl_roce_icrc_tail(uint64_t first, uint64_t second)
{
	return tail(first, second);
}

#endif
