/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches of a simulation from files (dataplane/conf.h), and a whole leaf-spine network of
 * them. */
#pragma once

#include "dataplane/pipeline.h"
#include "dataplane/program.h"
#include "dataplane/sim.h"

struct pl_dp_sim_switch;

/* Sets the receiver of block records of the switch's points (dataplane/marking/marking.h), before
 * the first run. */
struct pl_dp_sim_blocks {
	void (*block)(void *arg, const struct pl_mark128 *record);
	void *arg;
};
void pl_dp_sim_switch_blocks(struct pl_dp_sim_switch *w, const struct pl_dp_sim_blocks *blocks);

/* Adds a node with the program's id and ports, all configured as `ports` (pl_dp_sim_port_set
 * changes one). The program may be freed then. -EINVAL with diag, -ENOMEM. Free it before the
 * simulation. */
int pl_dp_sim_switch_new(struct pl_dp_sim_switch **ret, struct pl_dp_sim *sim,
	const struct pl_dp_program *program, const struct pl_dp_port_cfg *ports,
	const struct pl_dp_extern *const *externs, struct pl_diag *diag);
void pl_dp_sim_switch_free(struct pl_dp_sim_switch *w);
unsigned int pl_dp_sim_switch_node(const struct pl_dp_sim_switch *w);
/* Returns the pipeline, whose entries may be changed between runs and from timers. */
struct pl_dp_pipeline *pl_dp_sim_switch_pipeline(struct pl_dp_sim_switch *w);

#define PL_DP_FABRIC_MAX 64 /* most leaves, spines, and hosts of a leaf */

/*
 * Leaves, each linked to all spines, with hosts:
 *
 *   leaf i (from 1)    id 100 + i; port h to its host h, port hosts + j to spine j, and when there is
 *                      a collector, port hosts + spines + 1 to it
 *   spine j            id 200 + j; port i to leaf i
 *   host h of leaf i   10.0.i.h/16, MAC 02:00:00:00:i:h
 *   collector          10.1.0.1, MAC 02:00:00:01:00:01, port i to leaf i
 *
 * Flows are spread over spines by their hash, the same in both directions; packets from spines to
 * the collector go by leaf 1.
 */
struct pl_dp_fabric_cfg {
	unsigned int leaves, spines, hosts;
	struct pl_dp_port_cfg host_ports, leaf_ports, spine_ports;
	struct pl_dp_link_cfg link;
	bool collector;
	/* Tables beside the routes, as YAML items of `tables`, indented by two; NULL: none. In the
	 * text "@i" is replaced by the number of the leaf or spine, "@h" by the number of hosts of
	 * a leaf. */
	const char *leaf_tables, *spine_tables;
	/* Receive callbacks of hosts, and of the collector. */
	void (*receive)(void *arg, const struct pl_dp_packet *pkt);
	void (*collect)(void *arg, const struct pl_dp_packet *pkt);
	void *arg;
};

struct pl_dp_fabric {
	struct pl_dp_fabric_cfg cfg;
	struct pl_dp_sim_switch *leaf[PL_DP_FABRIC_MAX], *spine[PL_DP_FABRIC_MAX];
	unsigned int host[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX]; /* nodes by [leaf][host], from 0 */
	unsigned int collector;
	/* Links from leaf to spine; the next number is the reverse direction. */
	unsigned int up[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
	/* Links from host to leaf; the next number is the reverse direction. */
	unsigned int access[PL_DP_FABRIC_MAX][PL_DP_FABRIC_MAX];
};

/* Builds the network. -EINVAL with diag, -ENOMEM; call pl_dp_fabric_done in any case. */
int pl_dp_fabric_init(struct pl_dp_fabric *f, struct pl_dp_sim *sim,
	const struct pl_dp_fabric_cfg *cfg, struct pl_diag *diag);
void pl_dp_fabric_done(struct pl_dp_fabric *f);
struct pl_addr pl_dp_fabric_addr(unsigned int leaf, unsigned int host); /* numbers from 1 */
void pl_dp_fabric_mac(uint8_t ret[6], unsigned int leaf, unsigned int host);
