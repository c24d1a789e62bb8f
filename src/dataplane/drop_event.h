/* SPDX-License-Identifier: BSD-2-Clause */
/* The event of a dropped packet, as in the truth of a simulation (dataplane/sim.h); also for
 * programs that forward real packets. */
#pragma once

#include "dataplane/packet.h"
#include "record/record.h"
#include "wire/layers.h"

/* Place of a drop. In a node: the ingress port, or the output port and queue. On a link: node and
 * port are those at its remote end, the peer's those at the near end. */
struct pl_dp_drop_place {
	uint64_t ts_ns;
	uint32_t node, port, queue, peer_node, peer_port;
	bool on_link, came_in;
};

/* Builds the event. reason: enum pl_dp_drop. flow: of the packet, whose `have` says whether there
 * are ports; all zero when the packet has none. */
void pl_dp_drop_event(struct pl_event *ret, const struct pl_dp_drop_place *place,
	const struct pl_flow *flow, unsigned int reason);
