/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT transit: the node pushes its block onto the stack of a packet that carries INT-MD, as the
 * packet leaves its queue. INT 0.5 4.6, 1.0 4.6, 2.1 5.7. What the node does not have, and
 * instructions that it does not know, are all ones; so are domain-specific words. With a checksum
 * complement asked for (bit 15; 1.0, 2.1) the transport's checksum stays and the block evens it out,
 * else the checksum is brought up to date.
 *
 * Nothing is pushed, and the packet goes on, when the hop budget is used up (E is set), when it would
 * exceed the MTU of its port (M is set in 1.0 and 2.1), when a length field is full (E is set), and
 * in fragments. Only hops that push are counted in the header.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

struct pl_dp_int_transit {
	struct pl_dp_int_domain domain; /* pl_dp_int_domain() was applied */
	struct pl_int_cache cache;
	uint64_t outcomes[PL_DP_INT_MAX];
};

void pl_dp_int_transit_init(struct pl_dp_int_transit *t, const struct pl_dp_int_domain *domain);
/* One outcome, counted. The bytes behind the stack are never touched. */
enum pl_dp_int_outcome pl_dp_int_transit(
	struct pl_dp_int_transit *t, const struct pl_dp_node *node, struct pl_dp_packet *pkt);

/* The same within an open edit whose INT was found; *found then is where it stands now. */
enum pl_dp_int_outcome pl_dp_int_push(
	struct pl_dp_int_found *found, const struct pl_dp_node *node, struct pl_dp_edit *e);

/* Bytes the IP packet may still grow on its way out by the packet's port. */
uint32_t pl_dp_int_room(const struct pl_dp_node *node, const struct pl_dp_edit *e);
