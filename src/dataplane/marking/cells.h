/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes block records of counters and registers, for a point whose marker or meter is written as
 * tables. Names with the prefix P:
 *
 *   counters   P.packets, P.late, P.early, P.beyond, P.pulses   packets of the block, and of them
 *   registers  P.bytes (+ip.length), P.sum (+time)              sums over the packets
 *              P.first, P.pulse                                 time of the first packet, and pulse
 *
 * P.packets is needed, the others are optional. With method pulse P.packets and P.bytes are
 * registers: the running numbers at the pulse. Each has four times as many cells as there are flows
 * (values of the field mark): first the cells of blocks whose number modulo 4 is 0, then 1, 2, 3.
 * Counters and sums are never cleared; their values at the begin of a block are kept here. Times of
 * P.first and P.pulse (action first) are used when they lie in the block.
 *
 * Flows are the entries of a table that set a number by the action mark. The record has the values
 * of an entry's fields: zero for fields that the entry does not match, masked for fields that it
 * matches in part. Blocks under way when an entry was added are partial.
 */
#pragma once

#include "base/diag.h"
#include "mark/record.h"

struct pl_dp_pipeline;
struct pl_dp_block_cells;

/* Creates the reader, for a pipeline that has its cells and tables. -EINVAL with diag; -ENOMEM. */
int pl_dp_block_cells_new(struct pl_dp_block_cells **ret, struct pl_dp_pipeline *p,
	const char *prefix, const char *table, uint8_t method, struct pl_diag *diag);
void pl_dp_block_cells_free(struct pl_dp_block_cells *c);

/* Returns true when packets of these flows are counted behind the queues, at times ahead of now. */
bool pl_dp_block_cells_leave(const struct pl_dp_block_cells *c);

/* Begins all blocks now: earlier counts belong to no block. */
void pl_dp_block_cells_begin(struct pl_dp_block_cells *c);

/* Calls record() with the block's record of each flow, and begins the block after the next, whose
 * packets may come from now on. Returns the number of packets that belong to no block, because they
 * came after their cells were read. */
uint64_t pl_dp_block_cells_read(struct pl_dp_block_cells *c, const struct pl_mark_point *point,
	uint64_t block, void (*record)(void *arg, const struct pl_mark128 *record), void *arg);

/* Returns true when both read the same cells and flows, by name and size. */
bool pl_dp_block_cells_same(const struct pl_dp_block_cells *a, const struct pl_dp_block_cells *b);
/* Copies the state of another reader of the same cells. */
void pl_dp_block_cells_inherit(struct pl_dp_block_cells *c, const struct pl_dp_block_cells *old);
