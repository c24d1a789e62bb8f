/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plan of the live-frame generator (bpf/live.bpf.c): the bytes of each frame that it writes. */
#pragma once

#include <stdint.h>

#define PL_LIVE_FRAME_MAX  1024
#define PL_LIVE_FIELDS_MAX 16
#define PL_LIVE_ROW_BYTES  64

enum pl_live_kind {
	PL_LIVE_ROW,   /* bytes of the frame's row of the table */
	PL_LIVE_COUNT, /* 32 bits in network order that count up with each frame; len is 4 */
};

struct pl_live_field {
	uint16_t offset; /* offset in the frame */
	uint8_t len;     /* 1, 2, 4 or 8 */
	uint8_t kind;    /* enum pl_live_kind */
	uint16_t at;     /* offset in the row, a multiple of len */
	uint16_t zero;
};

struct pl_live_plan {
	/* 64-bit words at the frame's beginning that are written each time */
	uint32_t restore_words;
	uint32_t row_mask; /* rows - 1 */
	uint32_t nfields;
	uint32_t in_order; /* 1: rows one after the other, 0: at random */
	uint32_t window;   /* most frames ahead of those taken; 0: no limit */
	struct pl_live_field fields[PL_LIVE_FIELDS_MAX];
};
