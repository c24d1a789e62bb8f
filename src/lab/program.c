/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the configurations of a network's switches. */
#include "lab/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"

#define GROUPS_MAX 256
#define GROUP_NAME 24

/* State while a configuration is made. */
struct maker {
	const struct pl_lab_program *p;
	const struct pl_lab_topology *t;
	unsigned int node;
	struct pl_buf groups[GROUPS_MAX];
	char names[GROUPS_MAX][GROUP_NAME];
	unsigned int n_groups;
};

/* Returns the node's own end, or the peer's, of the link at its port (from 1). */
static const struct pl_lab_end *end_of(
	const struct pl_lab_topology *t, unsigned int node, unsigned int port, bool peer)
{
	const struct pl_lab_link *l = &t->links[t->nodes[node].links[port - 1]];

	return &l->end[(l->end[0].node != node) ^ peer];
}

/* Returns true when the port leads out of the switches. */
static bool is_edge(const struct pl_lab_program *p, unsigned int node, unsigned int port)
{
	const unsigned int kind = p->t->nodes[end_of(p->t, node, port, true)->node].kind;

	/* In a simulation routers are switches, too. */
	return p->real ? kind != PL_LAB_SWITCH : kind == PL_LAB_HOST;
}

/* Returns the port of the link to the collector; 0: none, and no telemetry. */
static unsigned int management_port(const struct pl_lab_topology *t, unsigned int node)
{
	unsigned int port = t->nodes[node].n_ports;

	while (port > 0 && !t->nodes[end_of(t, node, port, true)->node].collector)
		port--;
	return port;
}

/* ---- routes ---- */

static void put_hop(const struct maker *m, unsigned int port, struct pl_buf *out)
{
	const uint8_t *mac;

	if (!m->p->real) {
		pl_buf_printf(out, "forward %u", port);
		return;
	}
	mac = end_of(m->t, m->node, port, true)->mac;
	pl_buf_printf(out, "route %u %02x:%02x:%02x:%02x:%02x:%02x", port, mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
}

/* Names a group after its ports, "ports_3_4", or their hash when that is too long: groups with the
 * same name always have the same members. */
static void name_group(const unsigned int *ports, unsigned int n, char ret[GROUP_NAME])
{
	int len = snprintf(ret, GROUP_NAME, "ports");

	for (unsigned int i = 0; i < n && len < GROUP_NAME; i++)
		len += snprintf(ret + len, GROUP_NAME - (size_t)len, "_%u", ports[i]);
	if (len >= GROUP_NAME)
		snprintf(ret, GROUP_NAME, "ports_%016llx",
			(unsigned long long)pl_hash(ports, n * sizeof(*ports), 0));
}

/* Appends what forwards by one of these ports: an action, or `select` of a group, which is kept in
 * m->groups. */
static int put_way(struct maker *m, const unsigned int *ports, unsigned int n, struct pl_buf *out)
{
	struct pl_buf members;
	unsigned int g = 0;

	if (n == 1) {
		put_hop(m, ports[0], out);
		pl_buf_chr(out, '\n');
		return 0;
	}
	pl_buf_init(&members);
	for (unsigned int i = 0; i < n; i++) {
		pl_buf_str(&members, i > 0 ? ", " : " ");
		/* YAML: the colons of a MAC address need quotes. */
		pl_buf_str(&members, m->p->real ? "\"" : "");
		put_hop(m, ports[i], &members);
		pl_buf_str(&members, m->p->real ? "\"" : "");
	}
	if (members.failed) {
		pl_buf_done(&members);
		return -ENOMEM;
	}
	while (g < m->n_groups && strcmp(m->groups[g].data, members.data) != 0)
		g++;
	if (g == GROUPS_MAX) {
		pl_buf_done(&members);
		return -ENOSPC;
	}
	if (g == m->n_groups) {
		name_group(ports, n, m->names[g]);
		m->groups[m->n_groups++] = members;
	} else {
		pl_buf_done(&members);
	}
	pl_buf_printf(out, "select %s\n", m->names[g]);
	return 0;
}

static int put_route(struct maker *m, const struct pl_addr *to, const unsigned int *ports,
	unsigned int n, struct pl_buf *out)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, to);
	pl_buf_printf(out, "      - ip.dst=%s/%u -> ", text, pl_addr_is_v4(to) ? 32 : 128);
	return put_way(m, ports, n, out);
}

static int put_routes_to(struct maker *m, const struct pl_addr *v4, const struct pl_addr *v6,
	const unsigned int *ports, unsigned int n, struct pl_buf *out)
{
	int r = put_route(m, v4, ports, n, out);

	return r == 0 ? put_route(m, v6, ports, n, out) : r;
}

/* Appends routes to every address of a host, over the host's own link where the switch has one. */
static int put_routes_to_links(struct maker *m, unsigned int to, const unsigned int *ports,
	unsigned int n, struct pl_buf *out)
{
	const struct pl_lab_node *host = &m->t->nodes[to];
	int r = 0;

	for (unsigned int k = 1; k <= host->n_ports && r == 0; k++) {
		const struct pl_lab_end *own = end_of(m->t, to, k, false),
					*peer = end_of(m->t, to, k, true);

		r = peer->node == m->node
			    ? put_routes_to(m, &own->v4, &own->v6, &peer->port, 1, out)
			    : put_routes_to(m, &own->v4, &own->v6, ports, n, out);
	}
	return r;
}

static int put_routes(struct maker *m, struct pl_buf *out)
{
	unsigned int ports[PL_LAB_PORTS_MAX], n;
	int r = 0;

	/* A node has an IPv4 and an IPv6 address per link. */
	pl_buf_printf(out,
		"  - name: routes\n    key: [ ip.dst prefix ]\n    size: %u\n    entries:\n",
		2 * (m->t->n_nodes + m->t->n_links) + 1024);
	for (unsigned int to = 0; r == 0 && to < m->t->n_nodes; to++) {
		const struct pl_lab_node *dst = &m->t->nodes[to];

		if (dst->collector ||
			(m->p->real ? dst->kind == PL_LAB_SWITCH : dst->kind != PL_LAB_HOST))
			continue;
		n = pl_lab_next_hops(
			m->t, m->p->distances + (size_t)to * m->t->n_nodes, m->node, ports);
		if (n == 0)
			continue;
		r = m->p->real && dst->kind == PL_LAB_HOST
			    ? put_routes_to_links(m, to, ports, n, out)
			    : put_routes_to(m, &dst->v4, &dst->v6, ports, n, out);
	}
	return r;
}

/* ---- telemetry ---- */

/* Sets the arguments of actions for the reports' destination, followed by `more`. */
static void put_target(const struct maker *m, const char *more, char ret[240])
{
	const struct pl_lab_node *n = &m->t->nodes[m->node];
	char from[PL_ADDR_TEXT_MAX], to[PL_ADDR_TEXT_MAX];
	const struct pl_lab_end *peer;
	const unsigned int port = management_port(m->t, m->node);

	if (!m->p->real) {
		snprintf(ret, 240, "to=192.0.2.1 from=198.18.%u.%u out=%u mac=02:00:00:00:00:01%s",
			m->node / 250, m->node % 250 + 1, n->n_ports + 1, more);
		return;
	}
	peer = end_of(m->t, m->node, port, true);
	pl_format_addr(to, &peer->v4);
	pl_format_addr(from, &end_of(m->t, m->node, port, false)->v4);
	snprintf(ret, 240, "to=%s from=%s out=%u mac=%02x:%02x:%02x:%02x:%02x:%02x%s", to, from,
		port, peer->mac[0], peer->mac[1], peer->mac[2], peer->mac[3], peer->mac[4],
		peer->mac[5], more);
}

/* Packets from outside the switches have mark 1 until they leave the node. */
static void put_telemetry(const struct maker *m, struct pl_buf *out)
{
	const struct pl_lab_node *n = &m->t->nodes[m->node];
	/* A simulation reports each packet; a lab only changes, so that the collector keeps up. */
	const char *which = m->p->real ? " path latency=100000 interval=10ms" : "";
	char to[240], source[80];

	put_target(m, " report=2.0", to);
	snprintf(source, sizeof(source), "int_source version=%s instructions=0x%04x",
		pl_lab_int_versions[m->t->int_version], m->t->int_fields);
	pl_buf_str(out, "  - name: edge\n    key: [ port.in exact ]\n    entries:\n");
	for (unsigned int p = 1; p <= n->n_ports; p++)
		pl_buf_printf(out, "      - port.in=%u -> mark %d\n", p, is_edge(m->p, m->node, p));
	pl_buf_printf(out, "  - name: drops\n    miss: \"report kind=drop %s\"\n", to);
	pl_buf_str(out, "  - name: telemetry\n    stage: egress\n"
			"    key: [ mark exact, port.out exact ]\n    entries:\n");
	for (unsigned int p = 1; p <= n->n_ports; p++) {
		const bool edge = is_edge(m->p, m->node, p);

		if (p == management_port(m->t, m->node))
			continue;
		for (unsigned int mark = 0; mark < 2; mark++)
			pl_buf_printf(out, "      - \"mark=%u port.out=%u -> %s%s%s%s\"\n", mark, p,
				mark == 1 ? source : "int_transit", edge ? "; int_sink " : "",
				edge ? to : "", edge ? which : "");
	}
}

/* ---- the file ---- */

static void put_ports(const struct maker *m, struct pl_buf *out)
{
	const struct pl_lab_node *n = &m->t->nodes[m->node];

	pl_buf_str(out, "ports:\n");
	/* A simulation has no such interfaces: the names only fill the uri. */
	for (unsigned int p = 1; p <= n->n_ports + 1 && !m->p->real; p++)
		pl_buf_printf(out, "  - { number: %u, uri: \"packet:sim%u\", mtu: 9600 }\n", p, p);
	for (unsigned int p = 1; p <= n->n_ports && m->p->real; p++) {
		const struct pl_lab_quality *q = &m->t->links[n->links[p - 1]].quality;

		const struct pl_lab_end *e = end_of(m->t, m->node, p, false);
		char v4[PL_ADDR_TEXT_MAX], v6[PL_ADDR_TEXT_MAX];

		pl_format_addr(v4, &e->v4);
		pl_format_addr(v6, &e->v6);
		pl_buf_printf(out,
			"  - { number: %u, uri: \"packet:%s\", mtu: %d, addresses: [ %s, \"%s\" ], icmp: 10000",
			p, e->interface, PL_LAB_SWITCH_MTU, v4, v6);
		if (q->rate_bps != 0)
			pl_buf_printf(out, ", rate: %llu, queues: [ { limit: %lluB } ]",
				(unsigned long long)q->rate_bps,
				(unsigned long long)q->queue_bytes);
		pl_buf_str(out, " }\n");
	}
}

/* ---- alternate marking ---- */

static void put_point(const struct maker *m, unsigned int port, bool out, struct pl_buf *buf)
{
	const bool marks = !out && is_edge(m->p, m->node, port);

	pl_buf_printf(buf, "    - { number: %u, port: %u, direction: %s, role: %s, by: %s }\n",
		pl_lab_point(m->node + 1, port, out), port, out ? "out" : "in",
		marks ? "marker" : "meter", pl_lab_marking_bys[m->t->marking.by]);
}

/* Appends the alternate marking. A lab's records go to the collector and a file in its folder; a
 * simulation's to its caller. */
static void put_marking(const struct maker *m, struct pl_buf *out)
{
	const struct pl_lab_node *n = &m->t->nodes[m->node];
	const struct pl_lab_marking *k = &m->t->marking;
	const unsigned int management = management_port(m->t, m->node);
	char to[240];

	if (k->method == 0)
		return;
	pl_buf_printf(out,
		"marking:\n  method: %s\n  period: %lluns\n  bits: [ \"%s\"%s%s%s ]\n"
		"  clock_error: %lluns\n  delay: %lluns\n  deviation: %lluns\n",
		pl_lab_marking_methods[k->method], (unsigned long long)k->period_ns, k->bits[0],
		k->bits[1][0] != '\0' ? ", \"" : "", k->bits[1], k->bits[1][0] != '\0' ? "\"" : "",
		(unsigned long long)k->clock_error_ns, (unsigned long long)k->delay_ns,
		(unsigned long long)k->deviation_ns);
	if (m->p->real && management != 0) {
		put_target(m, "", to);
		pl_buf_printf(out, "  send: \"%s\"\n", to);
	}
	if (m->p->real)
		pl_buf_printf(out, "  to: [ \"file:%s.mark128\" ]\n", n->name);
	pl_buf_str(out, "  points:\n");
	for (unsigned int port = 1; port <= n->n_ports; port++) {
		if (port == management)
			continue;
		put_point(m, port, false, out);
		put_point(m, port, true, out);
	}
}

/* Appends a wrong clock: nanoseconds, and ppm in thousandths. */
static void put_clock(const struct pl_lab_node *n, struct pl_buf *out)
{
	const uint64_t drift =
		(uint64_t)(n->clock_drift_ppb < 0 ? -n->clock_drift_ppb : n->clock_drift_ppb);

	if (n->clock_offset_ns == 0 && n->clock_drift_ppb == 0)
		return;
	pl_buf_printf(out, "clock: { offset: \"%lldns\", drift: \"%s%llu.%03llu\" }\n",
		(long long)n->clock_offset_ns, n->clock_drift_ppb < 0 ? "-" : "",
		(unsigned long long)(drift / 1000), (unsigned long long)(drift % 1000));
}

static int put_all(struct maker *m, struct pl_buf *routes, struct pl_buf *out)
{
	const struct pl_lab_node *n = &m->t->nodes[m->node];
	int r = put_routes(m, routes);

	pl_buf_printf(out, "name: %s\nid: %u\n", n->name, m->node + 1);
	if (m->p->real)
		pl_buf_printf(out, "control: %s.sock\ntruth: truth-%s\n", n->name, n->name);
	put_clock(n, out);
	put_ports(m, out);
	put_marking(m, out);
	if (m->n_groups > 0)
		pl_buf_str(out, "groups:\n");
	for (unsigned int g = 0; g < m->n_groups; g++)
		pl_buf_printf(
			out, "  - { name: %s, members: [%s ] }\n", m->names[g], m->groups[g].data);
	pl_buf_str(out, "tables:\n");
	if (m->p->real ? management_port(m->t, m->node) != 0 : m->t->telemetry == PL_LAB_INT)
		put_telemetry(m, out);
	if (r == 0 && routes->failed)
		r = -ENOMEM;
	if (r == 0)
		pl_buf_add(out, routes->data, routes->len);
	return r == 0 && out->failed ? -ENOMEM : r;
}

int pl_lab_program_text(const struct pl_lab_program *p, unsigned int node, struct pl_buf *out)
{
	struct maker *m = calloc(1, sizeof(*m));
	struct pl_buf routes;
	int r;

	if (m == NULL)
		return -ENOMEM;
	*m = (struct maker){ .p = p, .t = p->t, .node = node };
	pl_buf_init(&routes);
	r = put_all(m, &routes, out);
	pl_buf_done(&routes);
	for (unsigned int g = 0; g < m->n_groups; g++)
		pl_buf_done(&m->groups[g]);
	free(m);
	return r;
}
