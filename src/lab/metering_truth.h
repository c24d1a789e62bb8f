/* SPDX-License-Identifier: BSD-2-Clause */
/* The truth of marked packets on each link by block and flow, of the last blocks, from the
 * simulation's records. Private to lab/metering.h. */
#pragma once

#include "lab/metering.h"
#include "mark/record.h"

/* Number of blocks kept. */
#define METERING_BLOCKS 16u

struct metering_truth_cell {
	struct pl_mark_flow flow;
	uint32_t direction; /* 2 * link + end */
	bool used;
	struct pl_lab_metering_truth sum;
};

/* The cells of one block: an open-addressed table that grows. */
struct metering_truth_block {
	uint64_t block;
	struct metering_truth_cell *cells;
	uint32_t n, room;
};

struct metering_truth {
	struct metering_truth_block blocks[METERING_BLOCKS];
};

void metering_truth_done(struct metering_truth *t);

/* Finds or makes the cell; a newer block replaces the oldest. NULL: no memory, or the block is
 * older than those kept. */
struct pl_lab_metering_truth *metering_truth_cell(struct metering_truth *t, uint64_t block,
	const struct pl_mark_flow *flow, uint32_t direction);

/* Sums the blocks (after, block] into *ret; known is false when one is no longer kept. */
void metering_truth_sum(const struct metering_truth *t, uint64_t after, uint64_t block,
	const struct pl_mark_flow *flow, uint32_t direction, struct pl_lab_metering_truth *ret);
