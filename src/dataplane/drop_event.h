/* SPDX-License-Identifier: BSD-2-Clause */
/* The event of a packet that ended, as the truth has it (dataplane/sim.h): of a simulation, and of
 * whoever carries real packets. */
#pragma once

#include "dataplane/packet.h"
#include "record/record.h"
#include "wire/layers.h"

/* In a node: where it came in, or the port and queue that it was for. On a link: node and port are
 * those at its far end, the peer's at the near one. */
struct pl_dp_drop_place {
	uint64_t ts_ns;
	uint32_t node, port, queue, peer_node, peer_port;
	bool on_link, came_in;
};

/* reason: enum pl_dp_drop. flow: of the packet, in which `have` says whether there are ports; all zero
 * when it has none. */
void pl_dp_drop_event(struct pl_event *ret, const struct pl_dp_drop_place *place,
	const struct pl_flow *flow, unsigned int reason);
