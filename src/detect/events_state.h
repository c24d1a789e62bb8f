/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a detector, for events.c (steps over records) and events_read.c (counts, routes, top
 * flows, raised levels). */
#pragma once

#include "detect/events.h"
#include "detect/flow_numbers.h"
#include "detect/tables.h"

#define PL_DETECT_CHUNK 64 /* most reports that are stepped together */

struct pl_detect {
	struct pl_core_env env;
	struct pl_detect_options options; /* options, with the defaults filled in */
	struct pl_cells exporters;        /* losses reported, of a decoder's exporters */
	struct pl_node_watch nodes;
	struct pl_flow_numbers numbers;
	/* Packets of pl_detect_unseen, now and at the previous check; and those of them that count
	 * against exporters. */
	uint64_t unseen, unseen_before, uncounted;
	struct pl_sweep sweep;
	uint64_t seed;
	bool levels; /* some rule needs hops */
	uint64_t hashes[PL_DETECT_CHUNK];
	struct pl_core_report reports[PL_DETECT_CHUNK];
};
