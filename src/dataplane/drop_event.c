/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the event of a dropped packet. */
#include "dataplane/drop_event.h"

void pl_dp_drop_event(struct pl_event *ret, const struct pl_dp_drop_place *place,
	const struct pl_flow *flow, unsigned int reason)
{
	*ret = (struct pl_event){ .ts_ns = place->ts_ns,
		.event = PL_EVENT_PACKET_DROP,
		.phase = PL_PHASE_ONCE,
		.record_version = PL_RECORD_VERSION,
		.node = place->node,
		.drop_reason = pl_dp_drop_code((enum pl_dp_drop)reason),
		.src = flow->src,
		.dst = flow->dst,
		.proto = flow->proto,
		.sport = flow->sport,
		.dport = flow->dport,
		.present = PL_EVENT_HAS_drop_reason | PL_EVENT_HAS_src | PL_EVENT_HAS_dst |
			   PL_EVENT_HAS_proto | PL_EVENT_HAS_node };
	if ((flow->have & PL_FLOW_PORTS) != 0)
		ret->present |= PL_EVENT_HAS_sport | PL_EVENT_HAS_dport;
	if (place->on_link) {
		pl_event_set_ingress_port(ret, place->port);
		pl_event_set_peer_node(ret, place->peer_node);
		pl_event_set_peer_port(ret, place->peer_port);
	} else if (place->came_in) {
		pl_event_set_ingress_port(ret, place->port);
	} else {
		ret->port = place->port;
		ret->queue = place->queue;
		ret->present |= PL_EVENT_HAS_port | PL_EVENT_HAS_queue;
	}
}
