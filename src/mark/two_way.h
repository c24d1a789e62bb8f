/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two-way delay: the sum of the delay of a flow's block from one point to another, and of the delay
 * on the way back of the block with the same number, of the flow in the opposite direction. The
 * difference of the points' clocks cancels out (RFC 9341 3.2), as long as every packet is counted
 * in its block.
 *
 * The engine has no clock. Results come block by block: those of earlier blocks are dropped when
 * one of a later block comes. Memory grows with the flows of a block.
 */
#pragma once

#include "mark/correlate.h"

struct pl_mark_two_way;

struct pl_mark_round {
	uint32_t has; /* PL_MARK_HAS_DELAY, PL_MARK_HAS_MEAN */
	int64_t delay_ns, mean_ns;
};

/* Makes an engine; NULL when out of memory. */
struct pl_mark_two_way *pl_mark_two_way_new(void);
/* Frees the engine; NULL is fine. */
void pl_mark_two_way_free(struct pl_mark_two_way *t);

/* Adds a result of a link, which has the same number in both directions; back: packets in the
 * second direction. Flows with FlowMonIDs are left out, because these differ by direction. *ret:
 * the sum with the result of the other direction, if that came before. False when out of memory;
 * later results may lack their partner. */
bool pl_mark_two_way_add(struct pl_mark_two_way *t, const struct pl_mark_result *result,
	uint32_t link, bool back, struct pl_mark_round *ret);
