/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a simulation, for sim.c (nodes, links, steps) and sim_truth.c (traces, records). */
#pragma once

#include "base/hash.h"
#include "dataplane/agenda.h"
#include "dataplane/sim.h"
#include "wire/layers.h"

#define NO_LINK UINT32_MAX

/* A packet's hop at one node; times are true. */
struct trace_hop {
	uint64_t in_ns, out_ns, latency_ns; /* latency_ns by the node's clock */
	uint32_t node;                      /* id of the node */
	uint32_t depth_bytes, tx_util;
	uint16_t in_port, out_port, queue;
	bool queued, left; /* it entered a queue; it left it */
};

struct pl_dp_trace {
	struct pl_dp_packet *owner; /* the traced packet; NULL: free */
	struct pl_dp_trace *next;   /* next free one */
	struct pl_dp_trace *older;  /* next in the list of all */
	uint64_t id, born_ns;
	struct pl_flow tuple;
	bool copy;
	uint8_t n;
	struct trace_hop hops[]; /* PL_DP_SIM_HOPS_MAX of them when the truth has a listener */
};

struct sim_port {
	struct pl_dp_port *port;
	uint32_t node, thing, link; /* link: the one that leaves it */
	uint16_t number;
	/* Packet that left the queue and is not sent yet, and its length at dequeue. */
	const struct pl_dp_packet *sending;
	uint32_t sending_len;
};

struct sim_link {
	struct pl_dp_link *link;
	uint32_t from, to, thing; /* from, to: ports */
};

struct sim_node {
	struct pl_dp_sim_node_cfg cfg;
	uint32_t *ports; /* index of the port by number, plus 1; 0: none */
	uint32_t n_ports;
};

struct sim_flow {
	struct pl_dp_flow_account account;
	uint64_t highest[2]; /* highest serial that arrived, of each direction */
};

enum thing_kind { THING_PORT, THING_LINK, THING_TIMER };

struct sim_thing {
	enum thing_kind kind;
	uint32_t index;
	void (*fn)(void *arg);
	void *arg;
};

struct pl_dp_sim {
	struct pl_dp_sim_cfg cfg;
	uint64_t now;
	struct pl_dp_pool *pool;
	struct pl_dp_agenda agenda;
	struct sim_thing *things;
	struct sim_node *nodes;
	struct sim_port *ports;
	struct sim_link *links;
	struct sim_flow *flows; /* flow n at n - 1 */
	uint32_t n_things, n_nodes, n_ports, n_links, n_flows;
	struct pl_dp_trace *free, *all;
	uint64_t traces; /* last id given */
	struct pl_dp_sim_account account;
	struct pl_dp_sim_watch watch;
};

static inline struct sim_port *sim_port_of(
	const struct pl_dp_sim *s, unsigned int node, unsigned int number)
{
	const struct sim_node *n = node < s->n_nodes ? &s->nodes[node] : NULL;

	if (n == NULL || number >= n->n_ports || n->ports[number] == 0)
		return NULL;
	return &s->ports[n->ports[number] - 1];
}

/* ---- sim_truth.c ---- */

void trace_begin(struct pl_dp_sim *s, struct pl_dp_packet *pkt);
/* Returns the packet's own trace; NULL for packets that nodes created. */
struct pl_dp_trace *trace_of(const struct pl_dp_packet *pkt);
void trace_copy(struct pl_dp_sim *s, const struct pl_dp_packet *from, struct pl_dp_packet *copy);
void trace_arrived(struct pl_dp_sim *s, const struct sim_port *at, const struct pl_dp_packet *pkt);
void trace_queued(struct pl_dp_sim *s, const struct pl_dp_packet *pkt);
/* The packet's out_ns is by the node's clock already, true_ns is not. */
void trace_left(struct pl_dp_sim *s, const struct pl_dp_packet *pkt, uint64_t true_ns);
/* End of a packet: delivered, dropped by a node for pkt->drop, or lost on a link. */
void trace_delivered(struct pl_dp_sim *s, const struct pl_dp_packet *pkt);
void trace_dropped(struct pl_dp_sim *s, unsigned int node, const struct pl_dp_packet *pkt);
void trace_lost(struct pl_dp_sim *s, const struct sim_link *link, const struct pl_dp_packet *pkt);
