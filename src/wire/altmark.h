/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The AltMark option of IPv6 (RFC 9343): bits of alternate marking and the id of the flow, in
 * Hop-by-Hop or Destination Options. Type 0x12 (skip when unknown, no change on the way), length 4,
 * and one big-endian word: FlowMonID 20 bits, L (the colour), D (the packet whose delay is
 * measured), 10 reserved bits, which are 0 and ignored.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"

#define PL_ALTMARK_TYPE        0x12u
#define PL_ALTMARK_FLOW_ID_MAX 0xfffffu
#define PL_ALTMARK_BYTES       6u /* with its type and length it fills a header of 8 bytes */

struct pl_altmark {
	uint32_t flow_id; /* 20 bits */
	bool loss, delay; /* L, D */
};

enum pl_altmark_found {
	PL_ALTMARK_NONE,
	PL_ALTMARK_FOUND,
	PL_ALTMARK_BROKEN, /* the option has another length, or options reach beyond their header */
};

/* Finds the first AltMark option among the options of a header (pl_layers.hop_opts, dst_opts). */
enum pl_altmark_found pl_altmark_find(struct pl_altmark *ret, struct pl_cursor options);
