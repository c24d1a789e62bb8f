/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What alternate marking in the kernel (bpf/mark.bpf.c) and user space (hostmark/kernel.c) say to
 * each other. */
#pragma once

#include <stdint.h>

#include "core/tap_rules.h"
#include "mark/packet.h"
#include "mark/tick.h"

struct pl_mark_rules {
	uint32_t n;
	uint32_t reserved;
	struct pl_tap_rule rules[PL_TAP_RULES_MAX];
};

/* Per processor. */
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

/* What the process that reads had seen at its last block, for the next one. */
struct pl_mark_watch {
	int64_t ahead_ns;  /* of CLOCK_TAI before the monotonic clock */
	uint64_t turn_ns;  /* then, monotonic; 0: it did not look yet */
	uint64_t overflow; /* packets without room */
	uint64_t in_use;   /* packets that came to the marker with a bit set */
};

/* Of the pinned maps: flows (pl_mark_head), cells (pl_mark_cell), table (pl_mark_table) and state. */
#define PL_MARK_PINS_VERSION 2

/* What outlives the process that reads (pinned): the map pl_mark_state. */
struct pl_mark_state {
	uint32_t version; /* PL_MARK_PINS_VERSION; 0: nothing is kept yet */
	uint32_t zero;
	struct pl_mark_setup setup;
	struct pl_mark_watch watch;
	uint64_t rules;      /* a hash of them */
	uint64_t next_block; /* to be read; 0: none was yet */
	uint32_t flows_max;
	uint32_t leaving;
};
