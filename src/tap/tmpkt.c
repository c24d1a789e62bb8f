/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the header of tmpkt/1. */
#include "tap/tmpkt.h"

#include <string.h>

#include "wire/cursor.h"

#define MAGIC       0x314b5054u /* "TPK1" */
#define VERSION     1

/* The byte of the kind holds the number of the kind, and above it that of the clock. */
#define KIND_MASK   0x1f
#define CLOCK_SHIFT 5

/* Numbers of kinds in datagrams. 4 is the beginning of a packet, which pathline never sends; 11 was
 * a record of flows that was never released. */
static const uint8_t numbers[PL_FLAT_MAX] = { [PL_FLAT_PKT64] = 1,
	[PL_FLAT_PKT96] = 2,
	[PL_FLAT_DNS64] = 3,
	[PL_FLAT_FLOW128] = 5,
	[PL_FLAT_MARK128] = 6,
	[PL_FLAT_SEG192] = 7,
	[PL_FLAT_LINK128] = 8,
	[PL_FLAT_SENT128] = 9,
	[PL_FLAT_DROP168] = 10,
	[PL_FLAT_FLOW288] = 12 };

/* Returns the kind of a number, or PL_FLAT_MAX. */
static enum pl_flat_kind kind_of(uint8_t number)
{
	int kind = 0;

	while (kind < PL_FLAT_MAX && numbers[kind] != number)
		kind++;
	return (enum pl_flat_kind)kind;
}

static uint32_t le32(const uint8_t *p)
{
	return __builtin_bswap32(pl_be32(p));
}

static uint64_t le64(const uint8_t *p)
{
	return __builtin_bswap64(pl_be64(p));
}

enum pl_tmpkt_fault pl_tmpkt_parse(
	struct pl_tmpkt *ret, const uint8_t **ret_records, const void *data, size_t len)
{
	struct pl_cursor c = pl_cursor(data, len);
	const uint8_t *p = pl_cursor_take(&c, PL_TMPKT_HEADER_BYTES);
	uint16_t count;

	if (p == NULL)
		return PL_TMPKT_SHORT;
	if (le32(p) != MAGIC)
		return PL_TMPKT_MAGIC;
	if (p[4] != VERSION)
		return PL_TMPKT_VERSION;
	if (kind_of(p[5] & KIND_MASK) == PL_FLAT_MAX)
		return PL_TMPKT_KIND;
	count = __builtin_bswap16(pl_be16(p + 6));
	*ret = (struct pl_tmpkt){ .kind = kind_of(p[5] & KIND_MASK),
		.clock = (enum pl_clock_kind)(p[5] >> CLOCK_SHIFT),
		.count = count,
		.exporter = le32(p + 8),
		.seq = le32(p + 12),
		.base_ns = le64(p + 16),
		.hash = le64(p + 24) };
	if (pl_cursor_left(&c) != (size_t)count * pl_flat(ret->kind)->size)
		return PL_TMPKT_LENGTH;
	*ret_records = c.pos;
	return PL_TMPKT_OK;
}

void pl_tmpkt_put(uint8_t dst[PL_TMPKT_HEADER_BYTES], const struct pl_tmpkt *header)
{
	const uint32_t magic = MAGIC;

	memcpy(dst, &magic, 4);
	dst[4] = VERSION;
	dst[5] = (uint8_t)(numbers[header->kind] | (unsigned int)header->clock << CLOCK_SHIFT);
	memcpy(dst + 6, &header->count, 2);
	memcpy(dst + 8, &header->exporter, 4);
	memcpy(dst + 12, &header->seq, 4);
	memcpy(dst + 16, &header->base_ns, 8);
	memcpy(dst + 24, &header->hash, 8);
}

uint32_t pl_tmpkt_fits(enum pl_flat_kind kind, size_t bytes)
{
	return bytes < PL_TMPKT_HEADER_BYTES
		       ? 0
		       : (uint32_t)((bytes - PL_TMPKT_HEADER_BYTES) / pl_flat(kind)->size);
}
