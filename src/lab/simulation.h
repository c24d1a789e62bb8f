/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lab's network in simulated time (dataplane/sim.h), for machines without namespaces, and for
 * time that passes faster. Switches and routers forward by shortest paths and are INT nodes
 * (sources and sinks at the ports of hosts, transits between); hosts send; every switch has a
 * separate link for its reports to one collector. It includes the traffic of the topology's story;
 * faults.h changes its links.
 */
#pragma once

#include "dataplane/sim.h"
#include "lab/topology.h"
#include "record/packet.h"

/* Rate of links without a rate. */
#define PL_LAB_SIMULATION_RATE_BPS UINT64_C(1000000000)

struct pl_lab_simulation_cfg {
	uint64_t seed, start_ns;
	uint64_t duration_ns; /* how long hosts send */
	double rate;          /* packets per second of all flows together, Poisson */
	unsigned int
		flows;  /* between hosts that the seed chooses; UDP, source ports from 30000 on */
	uint32_t bytes; /* size of a frame */
	struct pl_dp_truth_ops truth;
	/* Gets each block record of a point (pl_lab_point) of a topology with marking; may be
	 * NULL. */
	void (*block)(void *arg, const struct pl_mark128 *record);
	/* Gets each report that arrives at the collector, as an Ethernet frame. */
	void (*collect)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_lab_simulation;

/* Makes a simulation; node ids count from 1 in the topology's order. The topology may be freed
 * afterwards. -EINVAL with diag, -ENOMEM. */
int pl_lab_simulation_new(struct pl_lab_simulation **ret, const struct pl_lab_topology *t,
	const struct pl_lab_simulation_cfg *cfg, struct pl_diag *diag);
void pl_lab_simulation_free(struct pl_lab_simulation *s);
/* Adds flows that model the traffic, from start_ns to stop_ns of simulated time (0: until hosts
 * stop): UDP or TCP packets by patterns (dataplane/traffic.h), without congestion control, hence no
 * bulk. Flow numbers, one for each sender, begin at *ret_first. -EINVAL with diag, -ENOMEM. */
int pl_lab_simulation_send(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const struct pl_lab_traffic *traffic, uint64_t start_ns, uint64_t stop_ns,
	uint32_t *ret_first, struct pl_diag *diag);
/* Changes a link from now on, like pl_lab_wires_impair. -EINVAL, -ENOENT with diag. */
int pl_lab_simulation_impair(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const char *link, const char *const *words, unsigned int n, struct pl_diag *diag);
/* Sets all links as in a topology with the same nodes and links, also impaired ones. Adds a line to
 * `out` for each changed link (change.h). -EINVAL with diag. */
struct pl_buf;
int pl_lab_simulation_become(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	struct pl_buf *out, struct pl_diag *diag);
/* Replaces the switches' routes by the shortest paths of the topology, without links that are down.
 * A switch's entries all change between two packets. To be called from timers, or between runs.
 * -ENOSPC, -ENOMEM, -EINVAL with diag. */
int pl_lab_simulation_reroute(
	struct pl_lab_simulation *s, const struct pl_lab_topology *t, struct pl_diag *diag);
/* Returns the switch of a topology node; NULL for a host. */
struct pl_dp_sim_switch *pl_lab_simulation_switch(struct pl_lab_simulation *s, unsigned int node);
struct pl_dp_sim *pl_lab_simulation_sim(struct pl_lab_simulation *s);
/* Gets the sender at an end (0, 1) of a topology link: its simulation node and port, and the
 * simulation's link in that direction. */
void pl_lab_simulation_sender(const struct pl_lab_simulation *s, unsigned int link,
	unsigned int end, unsigned int *ret_node, unsigned int *ret_port, unsigned int *ret_link);
/* Appends the counters of all links and flows (truth_account.h). */
struct pl_lab_truth_account;
void pl_lab_simulation_truth(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	struct pl_lab_truth_account *ret);
