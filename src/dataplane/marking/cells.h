/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks that tables count: of a point whose marker or meter is written as tables, the counters and
 * registers of a block to the block's record. By their prefix P:
 *
 *   counters   P.packets, P.late, P.early, P.beyond, P.pulses   packets of the block, and of them
 *   registers  P.bytes (+ip.length), P.sum (+time)              sums over the packets
 *              P.first, P.pulse                                 time of the first packet, and pulse
 *
 * P.packets is needed, the others may be absent. Of method pulse P.packets and P.bytes are registers:
 * the running numbers at the pulse. Each has four times as many cells as there are flows (numbers of
 * the field mark): those of the blocks whose number modulo 4 is 0, then 1, 2, 3. Counters and sums run
 * on and are never cleared; what they were before a block is kept here. Times of P.first and P.pulse
 * are of the block when they can be (action first).
 *
 * The flows are entries of a table that give packets a number by the action mark; of fields that an
 * entry does not match, or matches in part, the record has what it says. Blocks under way when an
 * entry came are partial.
 */
#pragma once

#include "base/diag.h"
#include "mark/record.h"

struct pl_dp_pipeline;
struct pl_dp_block_cells;

/* For a pipeline with its cells and tables. -EINVAL with diag; -ENOMEM. */
int pl_dp_block_cells_new(struct pl_dp_block_cells **ret, struct pl_dp_pipeline *p,
	const char *prefix, const char *table, uint8_t method, struct pl_diag *diag);
void pl_dp_block_cells_free(struct pl_dp_block_cells *c);

/* From now on counts are of this block and the next: all before is not. */
void pl_dp_block_cells_begin(struct pl_dp_block_cells *c);

/* Tells a record of the block for each flow, and makes its successor's successor begin: from now on
 * its packets may come. Packets that came to the cells since those were read are of no block: their
 * number. */
uint64_t pl_dp_block_cells_read(struct pl_dp_block_cells *c, const struct pl_mark_point *point,
	uint64_t block, void (*record)(void *arg, const struct pl_mark128 *record), void *arg);

/* Whether both read the same cells and flows, by name and size. */
bool pl_dp_block_cells_same(const struct pl_dp_block_cells *a, const struct pl_dp_block_cells *b);
/* Takes what was kept from another that is the same; both go on. */
void pl_dp_block_cells_inherit(struct pl_dp_block_cells *c, const struct pl_dp_block_cells *old);
