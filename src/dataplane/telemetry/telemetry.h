/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of telemetry actions about their node and its INT domain: numbers, units, and how INT is
 * announced. Times and queue depths come from the packet (dataplane/packet.h), in ns and bytes;
 * written values are in the node's units, which the specifications leave open (INT 2.1, 5.7). By
 * default a node uses ns, bytes and percent.
 *
 * Egress values (departure, hop latency, utilization) and those of the queue exist once the packet
 * has left its queue (out_ns is set), the queue's also when it had no room; an action that runs
 * earlier writes "not available" instead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/packet.h"
#include "wire/int.h"

struct pl_dp_port_ids {
	uint16_t level1; /* physical port */
	uint32_t level2; /* logical port */
	uint16_t mtu;    /* MTU of IP packets; 0: no limit but IP's */
};

enum pl_dp_occupancy { PL_DP_IN_BYTES, PL_DP_IN_PACKETS, PL_DP_IN_CELLS };

struct pl_dp_node {
	uint32_t id;
	uint64_t id_wide; /* IOAM, 56 bits */
	/* Indexed by port number; a port from n_ports on has its number on both levels, and no
	 * limit. Owned by the caller. */
	const struct pl_dp_port_ids *ports;
	uint32_t n_ports;
	uint8_t occupancy;     /* enum pl_dp_occupancy */
	uint16_t cell_bytes;   /* PL_DP_IN_CELLS; 0: 80 */
	bool us, latency_us;   /* timestamps, hop latency in us instead of ns */
	uint32_t util_full;    /* value of full utilization; 0: 100 */
	bool have_buffer;      /* the node's queues share a buffer: */
	uint8_t buffer;        /* its number, */
	uint32_t buffer_bytes; /* and its fill level, updated by the owner of the queues */
};

const struct pl_dp_port_ids *pl_dp_node_port(const struct pl_dp_node *n, uint16_t port);

/* Returns true when the packet's output port is known: it was chosen, and the packet was not
 * dropped for another cause before its queue. */
bool pl_dp_chose_port(const struct pl_dp_packet *pkt);
/* Computes the node's values about a packet; they saturate below all ones, which means "not
 * available". */
void pl_dp_node_hop(
	struct pl_int_hop *ret, const struct pl_dp_node *n, const struct pl_dp_packet *pkt);

enum pl_dp_int_outcome {
#define PL_DP_INT(id, name, text) PL_DP_INT_##id,
#include "dataplane/telemetry/int_outcomes.def"
#undef PL_DP_INT
	PL_DP_INT_MAX,
};

const char *pl_dp_int_outcome_name(enum pl_dp_int_outcome o);

/* Announcements of INT (INT 0.5 4.5, 1.0 4.5, 2.1 5.5): any of these that are set. */
#define PL_DP_BY_DSCP   0x01
#define PL_DP_BY_PORT   0x02 /* UDP destination port: 0.5, 2.1 */
#define PL_DP_BY_MARKER 0x04 /* 64 bits behind the transport header: 1.0, 2.1 */
#define PL_DP_BY_TUNNEL 0x08 /* VXLAN-GPE, Geneve, GRE */

struct pl_dp_int_domain {
	uint8_t by;              /* PL_DP_BY_*; 0: DSCP and tunnels */
	uint8_t dscp, dscp_mask; /* INT: (DSCP & mask) == dscp; mask 0: 0x17 of all six bits */
	uint16_t port;           /* 0: 33122 */
	uint64_t marker;         /* 0: 0xaaaaaaaabbbbbbbb */
	uint16_t gre_ethertype;  /* 0: 0x88b5 */
	uint16_t geneve_class;   /* 0: 0x0103 */
	bool tcp_before_options; /* INT follows the first 20 bytes of TCP */
	struct pl_int_hints hints;
};

/* Returns the domain with defaults for values that are 0. */
struct pl_dp_int_domain pl_dp_int_domain(const struct pl_dp_int_domain *domain);
