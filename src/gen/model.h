/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of the network: its flows, and for each packet the path, the latency and queue depth at
 * each node, and the node that drops it. Deterministic by cfg.seed; independent of formats.
 */
#pragma once

#include "gen/gen.h"
#include "gen/topology.h"

struct pl_model_packet {
	uint32_t flow, flow_seq;
	unsigned int n_hops; /* up to the node that dropped the packet */
	bool dropped;        /* dropped by the last of the hops */
	uint8_t drop_reason;
	uint16_t node[PL_GEN_HOPS_MAX]; /* index in the topology, for each hop */
	struct pl_int_hop hops[PL_GEN_HOPS_MAX];
};

struct pl_model;

/* cfg has its defaults filled in and must outlive the model. */
int pl_model_new(struct pl_model **ret, const struct pl_gen_cfg *cfg, struct pl_diag *diag);
void pl_model_free(struct pl_model *m);

const struct pl_topo *pl_model_topology(const struct pl_model *m);
const struct pl_flow *pl_model_flow(const struct pl_model *m, uint32_t flow);

/* Applies the events up to this time after the start. */
void pl_model_advance(struct pl_model *m, uint64_t after_ns);

/* Ratio of its reports that a node loses now. */
double pl_model_loss(const struct pl_model *m, unsigned int node);

/* Returns true once for every node whose exporter restarts, at the time of the last advance. */
bool pl_model_restart(struct pl_model *m, unsigned int *ret_node);

/*
 * Makes a packet of the flow that leaves the network at now_ns. Returns false when the flow has no
 * path through the network at present.
 */
bool pl_model_packet(struct pl_model *m, uint32_t flow, uint64_t now_ns, bool may_drop,
	struct pl_model_packet *ret);

/* Number of the topology's state, from 1: as long as it is unchanged, the paths of flows are
 * unchanged. */
uint32_t pl_model_generation(const struct pl_model *m);

struct pl_rng *pl_model_rng(struct pl_model *m);
