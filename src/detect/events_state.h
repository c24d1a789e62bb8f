/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a detector, shared by what steps it and what reads it. */
#pragma once

#include "detect/events.h"
#include "detect/flow_numbers.h"
#include "detect/tables.h"

#define PL_DETECT_CHUNK 64 /* reports that are stepped together, at most */

struct pl_detect {
	struct pl_core_env env;
	struct pl_detect_options options; /* with the defaults filled in */
	struct pl_cells exporters;        /* losses told, of a decoder's exporters */
	struct pl_node_watch nodes;
	struct pl_flow_numbers numbers;
	/* pl_detect_unseen, now and at the look before; of them those to hold against exporters. */
	uint64_t unseen, unseen_before, uncounted;
	struct pl_sweep sweep;
	uint64_t seed;
	bool levels; /* any hop is of interest */
	uint64_t hashes[PL_DETECT_CHUNK];
	struct pl_core_report reports[PL_DETECT_CHUNK];
};
