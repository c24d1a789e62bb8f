/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes shortest paths of a lab's network, with all equal ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/topology.h"

static unsigned int peer_of(const struct pl_lab_topology *t, unsigned int link, unsigned int node)
{
	const struct pl_lab_link *l = &t->links[link];

	return l->end[l->end[0].node == node].node;
}

/* Returns the nearest reachable node that is not done; n_nodes: none. */
static unsigned int nearest(
	const struct pl_lab_topology *t, const uint32_t *distance, const bool *done)
{
	unsigned int best = t->n_nodes;

	for (unsigned int i = 0; i < t->n_nodes; i++) {
		if (!done[i] && distance[i] != UINT32_MAX &&
			(best == t->n_nodes || distance[i] < distance[best]))
			best = i;
	}
	return best;
}

/* Dijkstra (1959); a linear search is fast enough for a lab's network. */
void pl_lab_distances(const struct pl_lab_topology *t, unsigned int to, uint32_t *ret_distance)
{
	bool done[PL_LAB_NODES_MAX] = { false };
	unsigned int at = to;

	for (unsigned int i = 0; i < t->n_nodes; i++)
		ret_distance[i] = UINT32_MAX;
	ret_distance[to] = 0;
	for (; at < t->n_nodes; at = nearest(t, ret_distance, done)) {
		const struct pl_lab_node *node = &t->nodes[at];

		done[at] = true;
		/* Hosts do not forward. */
		if (node->kind == PL_LAB_HOST && at != to)
			continue;
		for (unsigned int i = 0; i < node->n_ports; i++) {
			unsigned int peer = peer_of(t, node->links[i], at);
			uint32_t d = ret_distance[at] + t->links[node->links[i]].cost;

			if (!t->links[node->links[i]].down && d < ret_distance[peer])
				ret_distance[peer] = d;
		}
	}
}

unsigned int pl_lab_next_hops(const struct pl_lab_topology *t, const uint32_t *distance,
	unsigned int from, unsigned int *ret_ports)
{
	const struct pl_lab_node *node = &t->nodes[from];
	unsigned int n = 0;

	if (distance[from] == UINT32_MAX || distance[from] == 0)
		return 0;
	for (unsigned int i = 0; i < node->n_ports; i++) {
		unsigned int peer = peer_of(t, node->links[i], from);

		if (!t->links[node->links[i]].down && distance[peer] != UINT32_MAX &&
			distance[peer] + t->links[node->links[i]].cost == distance[from] &&
			(t->nodes[peer].kind != PL_LAB_HOST || distance[peer] == 0))
			ret_ports[n++] = i + 1;
	}
	return n;
}

int pl_lab_check_connected(const struct pl_lab_topology *t, struct pl_diag *diag)
{
	uint32_t *distance = calloc(t->n_nodes + 1, sizeof(*distance));
	int r = 0;

	if (distance == NULL)
		return -ENOMEM;
	for (unsigned int a = 0; a < t->n_nodes && r == 0; a++) {
		if (t->nodes[a].kind != PL_LAB_HOST)
			continue;
		pl_lab_distances(t, a, distance);
		for (unsigned int b = 0; b < t->n_nodes && r == 0; b++) {
			if (distance[b] != UINT32_MAX)
				continue;
			pl_diag_set(diag, "there is no path from '%s' to '%s': add a link",
				t->nodes[a].name, t->nodes[b].name);
			r = -EINVAL;
		}
	}
	free(distance);
	return r;
}
