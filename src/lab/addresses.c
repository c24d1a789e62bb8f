/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives ports, interfaces and addresses to the nodes and links of a lab's network. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/topology.h"

static struct pl_addr v4(unsigned int a, unsigned int b, unsigned int c, unsigned int d)
{
	const uint8_t bytes[4] = { (uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d };

	return pl_addr_v4(bytes);
}

/* fd00:NET:0:K::LAST */
static struct pl_addr v6(unsigned int net, unsigned int k, unsigned int last)
{
	const uint8_t bytes[16] = { 0xfd, 0, (uint8_t)(net >> 8), (uint8_t)net, 0, 0,
		(uint8_t)(k >> 8), (uint8_t)k, 0, 0, 0, 0, 0, 0, (uint8_t)(last >> 8),
		(uint8_t)last };

	return pl_addr_v6(bytes);
}

/* Number of links between the two nodes of `link` that have a port already, plus one for `link`. */
static unsigned int count_parallel(const struct pl_lab_topology *t, unsigned int link)
{
	const struct pl_lab_link *l = &t->links[link];
	const struct pl_lab_node *node = &t->nodes[l->end[0].node];
	unsigned int n = 1;

	for (unsigned int i = 0; i < node->n_ports; i++) {
		const struct pl_lab_link *o = &t->links[node->links[i]];

		n += o->end[0].node == l->end[1].node || o->end[1].node == l->end[1].node;
	}
	return n;
}

static void name_interface(struct pl_lab_end *end, const char *peer, unsigned int parallel)
{
	if (parallel == 1)
		snprintf(end->interface, sizeof(end->interface), "%s", peer);
	else
		snprintf(end->interface, sizeof(end->interface), "%s.%u", peer, parallel % 100);
}

static int plug(struct pl_lab_topology *t, unsigned int link, struct pl_diag *diag)
{
	struct pl_lab_link *l = &t->links[link];
	unsigned int parallel = count_parallel(t, link);

	if (parallel > PL_LAB_PARALLEL_MAX) {
		pl_diag_set(diag, "more than %d links between '%s' and '%s'", PL_LAB_PARALLEL_MAX,
			t->nodes[l->end[0].node].name, t->nodes[l->end[1].node].name);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct pl_lab_end *e = &l->end[i];
		struct pl_lab_node *node = &t->nodes[e->node];

		if (node->n_ports == PL_LAB_PORTS_MAX) {
			pl_diag_set(
				diag, "'%s' has more than %d links", node->name, PL_LAB_PORTS_MAX);
			return -EINVAL;
		}
		node->links[node->n_ports++] = link;
		e->port = node->n_ports;
		/* A locally administered MAC address made of node and port number. */
		memcpy(e->mac,
			(const uint8_t[]){ 2, 0, (uint8_t)((e->node + 1) >> 8),
				(uint8_t)(e->node + 1), (uint8_t)(e->port >> 8), (uint8_t)e->port },
			sizeof(e->mac));
		name_interface(e, t->nodes[l->end[!i].node].name, parallel);
	}
	return 0;
}

static void give_addresses(struct pl_lab_topology *t)
{
	unsigned int n[2] = { 0, 0 }, forwarding = 0;

	for (unsigned int i = 0; i < t->n_links; i++) {
		struct pl_lab_link *l = &t->links[i];
		unsigned int a = t->nodes[l->end[0].node].kind, b = t->nodes[l->end[1].node].kind;
		unsigned int k, first;

		l->host = a == PL_LAB_HOST || b == PL_LAB_HOST;
		/* The end with the 0: the switch's or router's, or else the first. */
		first = l->host && a == PL_LAB_HOST && b != PL_LAB_HOST;
		k = n[l->host]++;
		for (unsigned int side = 0; side < 2; side++) {
			struct pl_lab_end *e = &l->end[side];

			e->v4 = v4(10, (l->host ? 1 : 128) + k / 256, k % 256, side ^ first);
			e->v6 = v6(l->host ? 1 : 2, k, side ^ first);
		}
	}
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		struct pl_lab_node *node = &t->nodes[i];

		if (node->kind != PL_LAB_HOST) {
			forwarding++;
			node->v4 = v4(10, 255, forwarding / 256, forwarding % 256);
			node->v6 = v6(0xff, 0, forwarding);
		} else if (node->n_ports > 0) {
			const struct pl_lab_link *l = &t->links[node->links[0]];
			const struct pl_lab_end *e = &l->end[l->end[1].node == i];

			node->v4 = e->v4;
			node->v6 = e->v6;
		}
	}
}

int pl_lab_number(struct pl_lab_topology *t, unsigned int *ret_link, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < t->n_links; i++) {
		int r = plug(t, i, diag);

		*ret_link = i;
		if (r < 0)
			return r;
	}
	give_addresses(t);
	return 0;
}

void pl_lab_link_text(const struct pl_lab_topology *t, const struct pl_lab_link *link,
	char ret[PL_LAB_LINK_TEXT_MAX])
{
	/* The interface is named after the peer, with a number on further parallel links: A-B.2. */
	snprintf(ret, PL_LAB_LINK_TEXT_MAX, "%s-%s", t->nodes[link->end[0].node].name,
		link->end[0].interface);
}
