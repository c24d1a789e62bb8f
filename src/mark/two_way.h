/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two-way delay: that of a flow's block from one point to another, and of the block with the same
 * number of the flow in the opposite direction on its way back between them. What the points' clocks
 * differ by cancels (RFC 9341 3.2), so long as every packet is counted in its block.
 *
 * An engine without clock. Results come block by block: those of earlier blocks are forgotten when
 * one of a later block comes. Memory grows with the flows of a block.
 */
#pragma once

#include "mark/correlate.h"

struct pl_mark_two_way;

struct pl_mark_round {
	uint32_t has; /* PL_MARK_HAS_DELAY, PL_MARK_HAS_MEAN */
	int64_t delay_ns, mean_ns;
};

/* NULL: no memory. */
struct pl_mark_two_way *pl_mark_two_way_new(void);
/* NULL is fine. */
void pl_mark_two_way_free(struct pl_mark_two_way *t);

/*
 * A result on a link, which has the same number in both directions; back: of packets in the second
 * one. FlowMonIDs are left out, as they differ by direction. *ret: what it comes to with that of the
 * other direction, where that came before. False: no memory; later results may lack their partner.
 */
bool pl_mark_two_way_add(struct pl_mark_two_way *t, const struct pl_mark_result *result,
	uint32_t link, bool back, struct pl_mark_round *ret);
