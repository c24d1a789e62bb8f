/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data that alternate marking in the kernel (bpf/mark.bpf.c) and user space (hostmark/kernel.c)
 * exchange. */
#pragma once

#include <stdint.h>

#include "core/tap_rules.h"
#include "mark/packet.h"
#include "mark/tick.h"

/* Rules, and behind them the rules for packets whose ports and protocol could not be read: such a
 * packet is chosen if a rule may choose it. */
struct pl_mark_rules {
	uint32_t n; /* of each */
	uint32_t reserved;
	struct pl_tap_rule rules[2 * PL_TAP_RULES_MAX];
};

/* Counts of a processor. */
struct pl_mark_marker_counts {
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/mark_marker_counts.def"
#undef PL_STAT
};
struct pl_mark_meter_counts {
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/mark_meter_counts.def"
#undef PL_STAT
};
struct pl_mark_edge_counts {
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/mark_edge_counts.def"
#undef PL_STAT
};

/* One value of the map pl_mark_counts. */
struct pl_mark_counts {
	struct pl_mark_marker_counts marker;
	struct pl_mark_meter_counts meter;
	struct pl_mark_edge_counts edge;
};

/* Values that the reading process saw at its last block, kept for its next one. */
struct pl_mark_watch {
	int64_t ahead_ns;  /* CLOCK_TAI minus the monotonic clock */
	uint64_t turn_ns;  /* time of the last block, monotonic; 0: there was none */
	uint64_t overflow; /* packets without room */
	uint64_t in_use;   /* packets that reached the marker with a bit already set */
	uint64_t unread;   /* packets whose headers could not be read */
	/* Last block with packets without room, with a bit in use, with a clock that was set, with
	 * packets that passed uncounted. */
	uint64_t no_room_block, in_use_block, stepped_block, torn_block;
};

/* Version of the pinned maps: flows (pl_mark_head), cells (pl_mark_cell), table (pl_mark_table) and
 * state. */
#define PL_MARK_PINS_VERSION 4

/* State that outlives the reading process (pinned): the map pl_mark_state. */
struct pl_mark_state {
	uint32_t version; /* PL_MARK_PINS_VERSION; 0: nothing is kept yet */
	uint32_t zero;
	struct pl_mark_setup setup;
	struct pl_mark_watch watch;
	uint64_t rules;      /* hash of the rules */
	uint64_t next_block; /* next block to be read; 0: none was read yet */
	uint32_t flows_max;
	uint16_t leaving, role; /* role: enum pl_hostmark_role */
};
