/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes records of marked traffic, counts of points (mark128/1) or loss and delay (seg192/1), to a
 * file and to the outputs of a tap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_MARK_OUTS_MAX  8
#define PL_MARK_OUT_BATCH 64u

struct pl_tap_out;

struct pl_mark_out {
	enum pl_flat_kind kind;
	const char *const *to; /* URIs as of tapout/tap_out.h */
	size_t n_to;
	const char *write; /* a file to write with all records, or NULL */
	/* Private. */
	struct pl_tap_out *outs[PL_MARK_OUTS_MAX];
	unsigned int n_outs;
	_Alignas(8) uint8_t batch[PL_MARK_OUT_BATCH * PL_FLAT_BYTES_MAX];
	uint32_t n_batch;
	uint8_t *kept;       /* heap: of the file */
	size_t n_kept, room; /* bytes */
	bool no_memory;
};

/* Opens the outputs. The structure is zero but for the members before the private ones. Returns 0,
 * or prints the error and returns an exit code. */
int pl_mark_out_open(struct pl_mark_out *out);
/* Takes a record of the kind. */
void pl_mark_out_put(struct pl_mark_out *out, const void *record);
/* Writes the file, and sends the records that wait. Prints the error and returns false when records
 * were lost. */
bool pl_mark_out_end(struct pl_mark_out *out);
void pl_mark_out_close(struct pl_mark_out *out);
