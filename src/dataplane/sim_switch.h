/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches of a simulation that a file describes (dataplane/conf.h): their pipelines, and a whole
 * leaf-spine network of them. */
#pragma once

#include "dataplane/pipeline.h"
#include "dataplane/program.h"
#include "dataplane/sim.h"

struct pl_dp_sim_switch;

/* Block records of its points (dataplane/marking/marking.h); set before the first run. */
struct pl_dp_sim_blocks {
	void (*block)(void *arg, const struct pl_mark128 *record);
	void *arg;
};
void pl_dp_sim_switch_blocks(struct pl_dp_sim_switch *w, const struct pl_dp_sim_blocks *blocks);

/* Adds a node with the program's id and ports, all as `ports` says (pl_dp_sim_port_set changes one).
 * The program may go then. -EINVAL with diag, -ENOMEM. Freed before the simulation. */
int pl_dp_sim_switch_new(struct pl_dp_sim_switch **ret, struct pl_dp_sim *sim,
	const struct pl_dp_program *program, const struct pl_dp_port_cfg *ports,
	const struct pl_dp_extern *const *externs, struct pl_diag *diag);
void pl_dp_sim_switch_free(struct pl_dp_sim_switch *w);
unsigned int pl_dp_sim_switch_node(const struct pl_dp_sim_switch *w);
/* Its entries may be changed between runs and from timers. */
struct pl_dp_pipeline *pl_dp_sim_switch_pipeline(struct pl_dp_sim_switch *w);

#define PL_DP_FABRIC_MAX 64 /* leaves, spines, hosts of a leaf */

/*
 * Leaves, each linked to all spines, with hosts:
 *
 *   leaf i (from 1)    id 100 + i; port h to its host h, port hosts + j to spine j, and when there is
 *                      a collector, port hosts + spines + 1 to it
 *   spine j            id 200 + j; port i to leaf i
 *   host h of leaf i   10.0.i.h/16, MAC 02:00:00:00:i:h
 *   collector          10.1.0.1, MAC 02:00:00:01:00:01, port i to leaf i
 *
 * Flows are spread over spines by their hash, the same way there and back; what spines send to the
 * collector goes by leaf 1.
 */
struct pl_dp_fabric_cfg {
	unsigned int leaves, spines, hosts;
	struct pl_dp_port_cfg host_ports, leaf_ports, spine_ports;
	struct pl_dp_link_cfg link;
	bool collector;
	/* Tables beside the routes, as YAML items of `tables`, two columns in; NULL: none. In text
	 * "@i" is the number of the leaf or spine, "@h" that of hosts of a leaf. */
	const char *leaf_tables, *spine_tables;
	/* Of hosts, and of the collector. */
	void (*receive)(void *arg, const struct pl_dp_packet *pkt);
	void (*collect)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_dp_fabric {
	struct pl_dp_fabric_cfg cfg;
	struct pl_dp_sim_switch *leaf[PL_DP_FABRIC_MAX], *spine[PL_DP_FABRIC_MAX];
	unsigned int host[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX]; /* [leaf][host], from 0: nodes */
	unsigned int collector;
	/* From leaf to spine; the next number is the way back. */
	unsigned int up[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
	/* From host to leaf; the next number is the way back. */
	unsigned int access[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
};

/* -EINVAL with diag, -ENOMEM; pl_dp_fabric_done either way. */
int pl_dp_fabric_init(struct pl_dp_fabric *f, struct pl_dp_sim *sim,
	const struct pl_dp_fabric_cfg *cfg, struct pl_diag *diag);
void pl_dp_fabric_done(struct pl_dp_fabric *f);
struct pl_addr pl_dp_fabric_addr(unsigned int leaf, unsigned int host); /* from 1 */
void pl_dp_fabric_mac(uint8_t ret[6], unsigned int leaf, unsigned int host);
