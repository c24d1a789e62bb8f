/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes CRC-32, by tables or by the processor's instructions. */
#include "base/crc32.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0xEDB88320u

struct pl_crc32_table pl_crc32_ieee;

/* Slices 4 to 7, behind the four of pl_crc32_ieee: the effect of a byte with 4 to 7 bytes after
 * it. */
static uint32_t far_slices[4][256];

void pl_crc32_table_init(struct pl_crc32_table *table, uint32_t polynomial)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t reg = i;

		for (int bit = 0; bit < 8; bit++)
			reg = reg >> 1 ^ (-(reg & 1) & polynomial);
		table->t[0][i] = reg;
	}
	for (int k = 1; k < 4; k++) {
		for (uint32_t i = 0; i < 256; i++)
			table->t[k][i] = pl_crc32_step1(table, table->t[k - 1][i], 0);
	}
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Steps the bare register over n bytes, eight at a time. */
static uint32_t slices(uint32_t reg, const uint8_t *p, size_t n)
{
	const struct pl_crc32_table *t = &pl_crc32_ieee;

	for (; n >= 8; n -= 8, p += 8) {
		uint32_t a = reg ^ load32(p);

		reg = pl_crc32_step4(t, 0, load32(p + 4)) ^ far_slices[3][a & 0xff] ^
		      far_slices[2][a >> 8 & 0xff] ^ far_slices[1][a >> 16 & 0xff] ^
		      far_slices[0][a >> 24];
	}
	if (n >= 4) {
		reg = pl_crc32_step4(t, reg, load32(p));
		n -= 4;
		p += 4;
	}
	for (; n > 0; n--)
		reg = pl_crc32_step1(t, reg, *p++);
	return reg;
}

uint32_t pl_crc32_plain(uint32_t crc, const void *p, size_t n)
{
	return ~slices(~crc, p, n);
}

#if defined(__x86_64__)

#include "base/crc32_fold.h"

#define PCLMUL PL_CRC32_FOLDS

PCLMUL static inline __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const void *)p);
}

/* Moves that many bytes into the register from below; with 16 and more everything is gone. Read
 * from the middle with an offset: -r moves bytes up by 16 - r, +r moves them down by r. */
static const uint8_t moves[48] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0x80,
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80 };

/* `x` and the r (1..15) bytes that end at `end`, of which at least 16 are there: the first r bytes
 * of x become a block of their own with zeros before them, the rest and the new bytes the block
 * behind it. */
PCLMUL static inline __m128i fold_tail(__m128i x, const uint8_t *end, size_t r)
{
	__m128i ahead = _mm_shuffle_epi8(x, load(moves + r));
	__m128i down = load(moves + 16 + r);
	__m128i rest = _mm_blendv_epi8(_mm_shuffle_epi8(x, down), load(end - 16), down);

	return pl_crc32_fold(ahead, PL_CRC32_FOLD_128, rest);
}

PCLMUL static uint32_t by_multiplication(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;
	__m128i x;

	if (n < 16)
		return ~slices(~crc, p, n);
	x = _mm_xor_si128(load(p), _mm_cvtsi32_si128((int)~crc));
	if (n >= 128) {
		__m128i b = load(p + 16), c = load(p + 32), d = load(p + 48);

		for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
			x = pl_crc32_fold(x, PL_CRC32_FOLD_512, load(p));
			b = pl_crc32_fold(b, PL_CRC32_FOLD_512, load(p + 16));
			c = pl_crc32_fold(c, PL_CRC32_FOLD_512, load(p + 32));
			d = pl_crc32_fold(d, PL_CRC32_FOLD_512, load(p + 48));
		}
		x = pl_crc32_fold(
			pl_crc32_fold(pl_crc32_fold(x, PL_CRC32_FOLD_128, b), PL_CRC32_FOLD_128, c),
			PL_CRC32_FOLD_128, d);
	} else {
		p += 16;
		n -= 16;
	}
	for (; n >= 16; p += 16, n -= 16)
		x = pl_crc32_fold(x, PL_CRC32_FOLD_128, load(p));
	if (n > 0)
		x = fold_tail(x, p + n, n);
	return ~pl_crc32_reduce(x);
}

static bool has_multiplication(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

#else

static uint32_t by_multiplication(uint32_t crc, const void *p, size_t n)
{
	return pl_crc32_plain(crc, p, n);
}

static bool has_multiplication(void)
{
	return false;
}

#endif

static bool multiplication;

/* Before main(), so that neither the tables nor the choice need a check at each call. */
__attribute__((constructor)) static void prepare(void)
{
	pl_crc32_table_init(&pl_crc32_ieee, POLYNOMIAL);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t reg = pl_crc32_ieee.t[3][i];

		for (int k = 0; k < 4; k++)
			far_slices[k][i] = reg = pl_crc32_step1(&pl_crc32_ieee, reg, 0);
	}
	multiplication = has_multiplication();
}

uint32_t pl_crc32(uint32_t crc, const void *p, size_t n)
{
	return multiplication ? by_multiplication(crc, p, n) : pl_crc32_plain(crc, p, n);
}
