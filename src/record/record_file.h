/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a file of records that says which clock their times are of (docs/formats/records-file.md).
 * Of 64 bytes, in front of the records; a file may do without, and then nobody knows the clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_RECORD_FILE_BYTES  64
#define PL_RECORD_FILE_CLOCKS 32 /* where the clocks stand: a writer changes them in place */

/* clocks: bits 1 << enum pl_clock_kind of all records so far. */
void pl_record_file_make(
	uint8_t ret[PL_RECORD_FILE_BYTES], enum pl_flat_kind kind, uint32_t clocks);

enum pl_record_file_verdict {
	PL_RECORD_FILE_GOOD,
	PL_RECORD_FILE_NONE, /* records begin here, or another header */
	PL_RECORD_FILE_BAD,  /* a header of another version, or of no kind that is known */
};

/* Bytes are from outside. Good: *ret_kind and *ret_clocks are set; bits of no known clock are left
 * out. */
enum pl_record_file_verdict pl_record_file_read(const uint8_t bytes[PL_RECORD_FILE_BYTES],
	enum pl_flat_kind *ret_kind, uint32_t *ret_clocks);
