/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the header of a file of records. */
#include "record/record_file.h"

#include <string.h>

#include "base/clock_kind.h"

#define MAGIC   "PLRECORD"
#define VERSION 1u
#define NAME_AT 16
#define NAME    16 /* bytes of the name, with zeros behind it */

static void put_u32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get_u32(const uint8_t *from)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v |= (uint32_t)from[i] << 8 * i;
	return v;
}

void pl_record_file_make(uint8_t ret[PL_RECORD_FILE_BYTES], enum pl_flat_kind kind, uint32_t clocks)
{
	const char *name = pl_flat(kind)->name;

	memset(ret, 0, PL_RECORD_FILE_BYTES);
	memcpy(ret, MAGIC, 8);
	put_u32(ret + 8, VERSION);
	put_u32(ret + 12, pl_flat(kind)->size);
	memcpy(ret + NAME_AT, name, strnlen(name, NAME - 1));
	put_u32(ret + PL_RECORD_FILE_CLOCKS, clocks);
}

enum pl_record_file_verdict pl_record_file_read(const uint8_t bytes[PL_RECORD_FILE_BYTES],
	enum pl_flat_kind *ret_kind, uint32_t *ret_clocks)
{
	uint8_t made[PL_RECORD_FILE_BYTES];

	if (memcmp(bytes, MAGIC, 8) != 0)
		return PL_RECORD_FILE_NONE;
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		pl_record_file_make(made, (enum pl_flat_kind)kind, 0);
		if (memcmp(bytes, made, PL_RECORD_FILE_CLOCKS) != 0)
			continue;
		*ret_kind = (enum pl_flat_kind)kind;
		*ret_clocks = get_u32(bytes + PL_RECORD_FILE_CLOCKS) & ((1u << PL_STAMP_KINDS) - 1);
		return PL_RECORD_FILE_GOOD;
	}
	return PL_RECORD_FILE_BAD;
}
