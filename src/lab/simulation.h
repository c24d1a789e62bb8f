/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lab's network in simulated time (dataplane/sim.h), for machines that have no namespaces, and
 * for time that passes faster: switches and routers forward by shortest paths and are INT nodes
 * (sources and sinks at the ports of hosts, transits between), hosts send, and every switch has a
 * link to a collector of its own for its reports, beside the network. Traffic of
 * the topology's story is part of it, its links are changed by faults.h.
 */
#pragma once

#include "dataplane/sim.h"
#include "lab/topology.h"
#include "record/packet.h"

/* Of a link of which the topology does not say it. */
#define PL_LAB_SIMULATION_RATE_BPS UINT64_C(1000000000)

struct pl_lab_simulation_cfg {
	uint64_t seed, start_ns;
	uint64_t duration_ns; /* hosts send for so long */
	double rate;          /* packets per second of all flows together, Poisson */
	unsigned int
		flows;  /* between hosts that the seed chooses; UDP, source ports from 30000 on */
	uint32_t bytes; /* of a frame */
	struct pl_dp_truth_ops truth;
	/* A block record of a point (pl_lab_point) of a topology with marking. NULL: nobody is
	 * told. */
	void (*block)(void *arg, const struct pl_mark128 *record);
	/* A report as it comes to the collector, Ethernet frame. */
	void (*collect)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_lab_simulation;

/* Ids of nodes count from 1 in the topology's order. -EINVAL with diag, -ENOMEM. The topology may go. */
int pl_lab_simulation_new(struct pl_lab_simulation **ret, const struct pl_lab_topology *t,
	const struct pl_lab_simulation_cfg *cfg, struct pl_diag *diag);
void pl_lab_simulation_free(struct pl_lab_simulation *s);
/* Flows that are as the traffic, from a true time to another (0: until hosts stop), of UDP or TCP
 * packets by patterns (dataplane/traffic.h): no congestion control, and so no bulk. Its numbers, one
 * for each sender, begin at *ret_first. -EINVAL with diag, -ENOMEM. */
int pl_lab_simulation_send(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const struct pl_lab_traffic *traffic, uint64_t start_ns, uint64_t stop_ns,
	uint32_t *ret_first, struct pl_diag *diag);
/* The tuple of a flow, by its number; NULL: there is none. */
const struct pl_flow *pl_lab_simulation_flow(const struct pl_lab_simulation *s, uint32_t flow);
/* Changes a link from now on, as pl_lab_wires_impair does. -EINVAL, -ENOENT with diag. */
int pl_lab_simulation_impair(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const char *link, const char *const *words, unsigned int n, struct pl_diag *diag);
/* Links become what a topology with the same nodes and links says, also those that were impaired. A line
 * for each that is changed (change.h). -EINVAL with diag. */
struct pl_buf;
int pl_lab_simulation_become(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	struct pl_buf *out, struct pl_diag *diag);
/* Switches forward by the shortest paths of the topology as it is now, with links that are down: all
 * entries of a switch change between two packets. From timers, or between runs. -ENOSPC, -ENOMEM,
 * -EINVAL with diag. */
int pl_lab_simulation_reroute(
	struct pl_lab_simulation *s, const struct pl_lab_topology *t, struct pl_diag *diag);
/* Of a node of the topology; NULL: it is a host. */
struct pl_dp_sim_switch *pl_lab_simulation_switch(struct pl_lab_simulation *s, unsigned int node);
struct pl_dp_sim *pl_lab_simulation_sim(struct pl_lab_simulation *s);
/* Who sends by an end (0, 1) of a link of the topology: node and port of the simulation, and its link
 * in that direction. */
void pl_lab_simulation_sender(const struct pl_lab_simulation *s, unsigned int link,
	unsigned int end, unsigned int *ret_node, unsigned int *ret_port, unsigned int *ret_link);
