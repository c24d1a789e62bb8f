/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network of nodes and links for generated telemetry, and the paths through it. Pure: no sockets,
 * no clock. Described by a text:
 *
 *   chain:N          N nodes in a row; hosts at both ends
 *   ring:N           N nodes in a circle; hosts at every node
 *   leaf-spine:LxS   L leaves, each linked to S spines; hosts at the leaves
 *   fat-tree:K       K pods (K even) of K/2 edge and K/2 aggregation nodes, (K/2)^2 cores
 *   random:N[,D]     N nodes, connected, D links per node on average (default 3); hosts everywhere
 *   links:A-B,C-D…[;hosts:A,D…]   as listed, node ids in decimal; hosts everywhere unless listed.
 *                                 White
 *                    space counts as a comma, so that a file of lines works too
 *
 * Node ids count from 1 (or are as listed). Ports of a node count from 1 in the order of its links;
 * the port behind them leads to its hosts. Shortest paths; among equals the flow's hash decides at
 * every node (ECMP). Longest path: PL_TOPO_PATH_MAX nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

#define PL_TOPO_NODES_MAX 1024
#define PL_TOPO_LINKS_MAX 8192
#define PL_TOPO_PATH_MAX  64

struct pl_topo_step {
	uint16_t node; /* index, not id */
	uint16_t ingress_port, egress_port;
};

struct pl_topo;

/* seed: for random:. Returns -EINVAL with diag, -ENOMEM. */
int pl_topo_new(struct pl_topo **ret, const char *text, uint64_t seed, struct pl_diag *diag);
void pl_topo_free(struct pl_topo *topo);

unsigned int pl_topo_nodes(const struct pl_topo *topo);
uint32_t pl_topo_node_id(const struct pl_topo *topo, unsigned int node);
int pl_topo_node_by_id(const struct pl_topo *topo, uint32_t id); /* -ENOENT */
unsigned int pl_topo_edges(const struct pl_topo *topo);          /* nodes with hosts */
unsigned int pl_topo_edge(const struct pl_topo *topo, unsigned int i);

/*
 * Finds the path from one node to another. Returns the number of steps, the first being `from`, or
 * 0 when there is no path (or it is longer than max).
 */
unsigned int pl_topo_route(const struct pl_topo *topo, unsigned int from, unsigned int to,
	uint64_t hash, struct pl_topo_step *ret_steps, unsigned int max);

/* Takes the link between two nodes down or up, and finds all shortest paths again. Returns -ENOENT
 * when there is no such link. */
int pl_topo_link_set(struct pl_topo *topo, unsigned int a, unsigned int b, bool up);

/* Returns true when b can be reached from a while the link (x, y) is down. */
bool pl_topo_survives(
	struct pl_topo *topo, unsigned int a, unsigned int b, unsigned int x, unsigned int y);
