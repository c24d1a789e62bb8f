/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 of Ethernet, zlib and the ICRC of RoCE: reflected polynomial 0xEDB88320, initial value and
 * final XOR of all ones; "123456789" gives 0xCBF43926. Also the same register for any other
 * polynomial, for telemetry hashes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to begin with) over n bytes, as zlib's crc32() does. Uses carry-less
 * multiplication if the processor has it. */
uint32_t pl_crc32(uint32_t crc, const void *p, size_t n);

/* Computes the same by tables only, for machines without the instruction and for comparison. */
uint32_t pl_crc32_plain(uint32_t crc, const void *p, size_t n);

/*
 * A reflected 32-bit CRC of any polynomial, four bytes or one at a time. The register is bare:
 * begin with all ones and invert the end to get what pl_crc32 gives. Short keys share their
 * beginning this way.
 */
struct pl_crc32_table {
	uint32_t t[4][256];
};

/* `polynomial` is reflected, without the x^32 term: 0xEDB88320. */
void pl_crc32_table_init(struct pl_crc32_table *table, uint32_t polynomial);

/* Table of pl_crc32; made before main(). */
extern struct pl_crc32_table pl_crc32_ieee;

static inline uint32_t pl_crc32_step1(const struct pl_crc32_table *table, uint32_t reg, uint8_t b)
{
	return reg >> 8 ^ table->t[0][(reg ^ b) & 0xff];
}

/* Steps over four bytes, the first one lowest in `word`. */
static inline uint32_t pl_crc32_step4(
	const struct pl_crc32_table *table, uint32_t reg, uint32_t word)
{
	reg ^= word;
	return table->t[3][reg & 0xff] ^ table->t[2][reg >> 8 & 0xff] ^
	       table->t[1][reg >> 16 & 0xff] ^ table->t[0][reg >> 24];
}
