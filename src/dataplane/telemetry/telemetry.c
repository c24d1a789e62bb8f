/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes a node's values about a packet, in the node's units. */
#include "dataplane/telemetry/telemetry.h"

#define MAX_24       0xfffffeu
#define MAX_32       0xfffffffeu
#define CELL_USUAL   80
#define UNKNOWN_PORT 0xffffu
#define NS_PER_US    1000

const struct pl_dp_port_ids *pl_dp_node_port(const struct pl_dp_node *n, uint16_t port)
{
	return port < n->n_ports ? &n->ports[port] : NULL;
}

static uint32_t most(uint64_t v, uint32_t max)
{
	return v > max ? max : (uint32_t)v;
}

static uint32_t occupancy(const struct pl_dp_node *n, const struct pl_dp_packet *pkt)
{
	uint32_t cell = n->cell_bytes != 0 ? n->cell_bytes : CELL_USUAL;

	switch (n->occupancy) {
	case PL_DP_IN_PACKETS:
		return most(pkt->depth_packets, MAX_24);
	case PL_DP_IN_CELLS:
		return most(((uint64_t)pkt->depth_bytes + cell - 1) / cell, MAX_24);
	default:
		return most(pkt->depth_bytes, MAX_24);
	}
}

/* Returns true when the packet reached its queue: it left it, or there was no room. */
static bool met_queue(const struct pl_dp_packet *pkt)
{
	return pkt->out_ns != 0 || pkt->drop == PL_DP_DROP_QUEUE;
}

bool pl_dp_chose_port(const struct pl_dp_packet *pkt)
{
	if (met_queue(pkt))
		return true;
	return pkt->out_port != 0 && pkt->out_port < UNKNOWN_PORT &&
	       (pkt->drop == PL_DP_GOES_ON || pkt->drop == PL_DP_DROP_MTU ||
		       pkt->drop == PL_DP_DROP_PORT);
}

void pl_dp_node_hop(
	struct pl_int_hop *ret, const struct pl_dp_node *n, const struct pl_dp_packet *pkt)
{
	const struct pl_dp_port_ids *in = pl_dp_node_port(n, pkt->in_port),
				    *out = pl_dp_node_port(n, pkt->out_port);
	bool chose = pl_dp_chose_port(pkt);

	*ret = (struct pl_int_hop){
		.have = PL_INT_HAS(PL_INT_F_NODE) | PL_INT_HAS(PL_INT_F_PORTS) |
			PL_INT_HAS(PL_INT_F_INGRESS_TS) | PL_INT_HAS(PL_INT_F_PORTS2),
		.node = n->id,
		.ingress_port = in != NULL ? in->level1 : pkt->in_port,
		.ingress_port2 = in != NULL ? in->level2 : pkt->in_port,
		.egress_port = !chose        ? UNKNOWN_PORT
			       : out != NULL ? out->level1
					     : pkt->out_port,
		.egress_port2 = !chose        ? UINT32_MAX
				: out != NULL ? out->level2
					      : pkt->out_port,
		.ingress_ts = n->us ? pkt->in_ns / NS_PER_US : pkt->in_ns,
	};
	if (met_queue(pkt)) {
		ret->have |= PL_INT_HAS(PL_INT_F_QUEUE);
		ret->queue = pkt->queue;
		ret->queue_depth = occupancy(n, pkt);
	}
	if (n->have_buffer) {
		ret->have |= PL_INT_HAS(PL_INT_F_BUFFER);
		ret->buffer = n->buffer;
		ret->buffer_depth = most(n->buffer_bytes, MAX_24);
	}
	if (pkt->out_ns != 0) {
		uint64_t latency = pkt->out_ns - pkt->in_ns;

		ret->have |= PL_INT_HAS(PL_INT_F_EGRESS_TS) | PL_INT_HAS(PL_INT_F_TX_UTIL);
		/* No latency if the clock was set back meanwhile. */
		if (pkt->out_ns >= pkt->in_ns)
			ret->have |= PL_INT_HAS(PL_INT_F_LATENCY);
		ret->latency = most(n->latency_us ? latency / NS_PER_US : latency, MAX_32);
		ret->egress_ts = n->us ? pkt->out_ns / NS_PER_US : pkt->out_ns;
		ret->tx_util = most(
			(uint64_t)pkt->tx_util * (n->util_full != 0 ? n->util_full : 100) >> 16,
			MAX_32);
	}
}

const char *pl_dp_int_outcome_name(enum pl_dp_int_outcome o)
{
	static const char *const names[] = {
#define PL_DP_INT(id, name, text) name,
#include "dataplane/telemetry/int_outcomes.def"
#undef PL_DP_INT
	};

	return o < PL_DP_INT_MAX ? names[o] : "?";
}

struct pl_dp_int_domain pl_dp_int_domain(const struct pl_dp_int_domain *domain)
{
	struct pl_dp_int_domain d = *domain;

	if (d.by == 0)
		d.by = PL_DP_BY_DSCP | PL_DP_BY_TUNNEL;
	if (d.dscp_mask == 0) {
		d.dscp_mask = 0x3f;
		if (d.dscp == 0)
			d.dscp = 0x17;
	}
	/* Bits outside of the mask announce nothing, and no packet could match them. */
	d.dscp &= d.dscp_mask;
	if (d.port == 0)
		d.port = 33122;
	if (d.marker == 0)
		d.marker = UINT64_C(0xaaaaaaaabbbbbbbb);
	if (d.gre_ethertype == 0)
		d.gre_ethertype = 0x88b5;
	if (d.geneve_class == 0)
		d.geneve_class = 0x0103;
	return d;
}
