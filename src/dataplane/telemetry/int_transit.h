/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT transit: the node pushes its block onto the stack of a packet that carries INT-MD, as the
 * packet leaves its queue. INT 0.5 4.6, 1.0 4.6, 2.1 5.7. Values that the node does not have,
 * instructions that it does not know, and domain-specific words are all ones. With the checksum
 * complement (bit 15; 1.0, 2.1) the transport's checksum stays and the block compensates, else the
 * checksum is updated.
 *
 * Nothing is pushed, and the packet is forwarded, when no hops remain (E is set), when the packet
 * would exceed the MTU of its port (M is set in 1.0 and 2.1), when a length field is full (E is
 * set), and in fragments. Only hops that push are counted in the header.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

struct pl_dp_int_transit {
	struct pl_dp_int_domain domain; /* pl_dp_int_domain() was applied */
	struct pl_int_cache cache;
};

void pl_dp_int_transit_init(struct pl_dp_int_transit *t, const struct pl_dp_int_domain *domain);
/* Pushes the node's block. Bytes behind the stack are never changed. */
enum pl_dp_int_outcome pl_dp_int_transit(
	struct pl_dp_int_transit *t, const struct pl_dp_node *node, struct pl_dp_packet *pkt);

/* As pl_dp_int_transit, within an open edit whose INT was found; updates *found. */
enum pl_dp_int_outcome pl_dp_int_push(
	struct pl_dp_int_found *found, const struct pl_dp_node *node, struct pl_dp_edit *e);

/* Returns the bytes by which the IP packet may still grow, by the MTU of its output port. */
uint32_t pl_dp_int_room(const struct pl_dp_node *node, const struct pl_dp_edit *e);
