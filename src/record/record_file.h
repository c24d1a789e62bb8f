/* SPDX-License-Identifier: BSD-2-Clause */
/* Header of a file of records with the clocks of their times (docs/formats/records-file.md). It has
 * 64 bytes, in front of the records; a file may lack it, and then the clock is unknown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_RECORD_FILE_BYTES  64
#define PL_RECORD_FILE_CLOCKS 32 /* offset of the clocks: a writer changes them in place */

/* Makes a header. clocks: bits 1 << enum pl_clock_kind of all records so far. */
void pl_record_file_make(
	uint8_t ret[PL_RECORD_FILE_BYTES], enum pl_flat_kind kind, uint32_t clocks);

enum pl_record_file_verdict {
	PL_RECORD_FILE_GOOD,
	PL_RECORD_FILE_NONE, /* no header: records begin here, or another header */
	PL_RECORD_FILE_BAD,  /* a header of another version, or of an unknown kind */
};

/* Reads a header from outside. If it is good, sets *ret_kind and *ret_clocks, without bits of
 * unknown clocks. */
enum pl_record_file_verdict pl_record_file_read(const uint8_t bytes[PL_RECORD_FILE_BYTES],
	enum pl_flat_kind *ret_kind, uint32_t *ret_clocks);
