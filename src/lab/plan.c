/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the steps that build a lab from its topology. */
#include "lab/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/program.h"

/* Sysctls of a node's namespace, set before it has interfaces. */
static const struct setting {
	const char *sysctl, *value;
	bool forwarding; /* for routers only */
} settings[] = {
	/* No link-local addresses: the kernel sends no packets of its own. */
	{ "net.ipv6.conf.default.addr_gen_mode", "1", false },
	{ "net.ipv6.conf.default.accept_dad", "0", false },
	{ "net.ipv6.conf.default.router_solicitations", "0", false },
	{ "net.ipv4.ip_forward", "1", true },
	{ "net.ipv6.conf.all.forwarding", "1", true },
	/* Equal paths are chosen by a hash of addresses, ports and protocol. */
	{ "net.ipv4.fib_multipath_hash_policy", "1", true },
	{ "net.ipv6.fib_multipath_hash_policy", "1", true },
	/* No limit of ICMP errors, so that traceroute gets all answers. */
	{ "net.ipv4.icmp_ratelimit", "0", true },
	{ "net.ipv6.icmp.ratelimit", "0", true },
};

/* For switches and wires: packets are the program's; the kernel gets no addresses and stays
 * silent. */
static const struct setting silence = { "net.ipv6.conf.default.disable_ipv6", "1", false };

static bool is_switch(const struct pl_lab_plan *p, unsigned int node)
{
	return node < p->t->n_nodes && p->t->nodes[node].kind == PL_LAB_SWITCH;
}

static struct pl_lab_step *add(struct pl_lab_plan *p, enum pl_lab_step_kind kind)
{
	struct pl_lab_step *more = p->steps;

	if (p->n == p->room) {
		size_t room = p->room == 0 ? 256 : 2 * p->room;

		more = realloc(more, room * sizeof(*more));
		if (more == NULL)
			return NULL;
		p->steps = more;
		p->room = room;
	}
	more[p->n] = (struct pl_lab_step){ .kind = kind };
	return &more[p->n++];
}

static int add_setting(struct pl_lab_plan *p, unsigned int node, const struct setting *of)
{
	struct pl_lab_step *s = add(p, PL_LAB_SYSCTL);

	if (s == NULL)
		return -ENOMEM;
	s->node = node;
	s->sysctl = of->sysctl;
	s->value = of->value;
	return 0;
}

static int add_namespace(struct pl_lab_plan *p, unsigned int node)
{
	struct pl_lab_step *s = add(p, PL_LAB_NETNS);
	bool forwarding = p->t->nodes[node].kind == PL_LAB_ROUTER;

	if (s == NULL)
		return -ENOMEM;
	s->node = node;
	if (is_switch(p, node))
		return add_setting(p, node, &silence);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (settings[i].forwarding && !forwarding)
			continue;
		if (add_setting(p, node, &settings[i]) < 0)
			return -ENOMEM;
	}
	for (unsigned int six = 0; six < 2 && forwarding; six++) {
		s = add(p, PL_LAB_ADDRESS);
		if (s == NULL)
			return -ENOMEM;
		s->node = node;
		s->loopback = true;
		s->addr = six ? p->t->nodes[node].v6 : p->t->nodes[node].v4;
		s->bits = six ? 128 : 32;
	}
	return 0;
}

/* Adds the namespace in which the keeper carries frames between nodes; its kernel is silent. */
static int add_wires(struct pl_lab_plan *p)
{
	struct pl_lab_step *s = add(p, PL_LAB_NETNS);

	if (s == NULL)
		return -ENOMEM;
	s->node = p->t->n_nodes;
	return add_setting(p, p->t->n_nodes, &silence);
}

static struct pl_lab_step *add_at(
	struct pl_lab_plan *p, enum pl_lab_step_kind kind, unsigned int link, unsigned int side)
{
	struct pl_lab_step *s = add(p, kind);

	if (s != NULL) {
		s->link = link;
		s->side = side;
		s->node = p->t->links[link].end[side].node;
	}
	return s;
}

/* Adds an end at a switch, used by its program; between switches with a larger MTU, for INT. */
static int add_switch_end(struct pl_lab_plan *p, unsigned int link, unsigned int side)
{
	if (is_switch(p, p->t->links[link].end[!side].node)) {
		struct pl_lab_step *s = add_at(p, PL_LAB_MTU, link, side);

		if (s == NULL)
			return -ENOMEM;
		s->bits = PL_LAB_SWITCH_MTU;
	}
	return add_at(p, PL_LAB_UP, link, side) == NULL ? -ENOMEM : 0;
}

static int add_end(struct pl_lab_plan *p, unsigned int link, unsigned int side)
{
	const struct pl_lab_end *e = &p->t->links[link].end[side],
				*peer = &p->t->links[link].end[!side];
	struct pl_lab_step *s;

	if (add_at(p, PL_LAB_OFFLOAD, link, side) == NULL)
		return -ENOMEM;
	if (is_switch(p, e->node))
		return add_switch_end(p, link, side);
	for (unsigned int six = 0; six < 2; six++) {
		s = add_at(p, PL_LAB_ADDRESS, link, side);
		if (s == NULL)
			return -ENOMEM;
		s->addr = six ? e->v6 : e->v4;
		s->bits = six ? 127 : 31;
	}
	if (add_at(p, PL_LAB_UP, link, side) == NULL)
		return -ENOMEM;
	for (unsigned int six = 0; six < 2; six++) {
		s = add_at(p, PL_LAB_NEIGHBOUR, link, side);
		if (s == NULL)
			return -ENOMEM;
		s->addr = six ? peer->v6 : peer->v4;
	}
	if (p->t->links[link].quality.bare && p->t->links[link].quality.rate_bps != 0 &&
		add_at(p, PL_LAB_RATE, link, side) == NULL)
		return -ENOMEM;
	return 0;
}

static int add_link(struct pl_lab_plan *p, unsigned int link)
{
	const bool bare = p->t->links[link].quality.bare;
	int r = bare && add_at(p, PL_LAB_VETH, link, 0) == NULL ? -ENOMEM : 0;

	for (unsigned int side = 0; side < 2 && r == 0; side++) {
		if (!bare && add_at(p, PL_LAB_WIRE, link, side) == NULL)
			r = -ENOMEM;
		if (r == 0)
			r = add_end(p, link, side);
	}
	return r;
}

static int add_route(struct pl_lab_plan *p, unsigned int node, const struct pl_addr *to,
	unsigned int bits, const unsigned int *ports, unsigned int n)
{
	struct pl_lab_step *s = add(p, PL_LAB_ROUTE);
	unsigned int *more = p->ports;

	if (s == NULL)
		return -ENOMEM;
	if (p->n_ports + n > p->ports_room) {
		size_t room = 2 * p->ports_room + n + 256;

		more = realloc(more, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		p->ports = more;
		p->ports_room = room;
	}
	memcpy(more + p->n_ports, ports, n * sizeof(*ports));
	s->node = node;
	s->addr = *to;
	s->bits = bits;
	s->first_port = (unsigned int)p->n_ports;
	s->n_ports = n;
	p->n_ports += n;
	return 0;
}

/* Returns the first address of a link's /31 or /127. */
static struct pl_addr network_of(const struct pl_addr *a)
{
	struct pl_addr net = *a;

	net.b[15] &= 0xfe;
	return net;
}

static int add_both(struct pl_lab_plan *p, unsigned int node, const struct pl_addr *v4,
	unsigned int v4_bits, const struct pl_addr *v6, unsigned int v6_bits,
	const unsigned int *ports, unsigned int n)
{
	int r = add_route(p, node, v4, v4_bits, ports, n);

	return r == 0 ? add_route(p, node, v6, v6_bits, ports, n) : r;
}

/* Adds routes of all routers to a host's links, or to a router's loopback. The kernel knows the
 * routes to its own links. */
static int add_routes_to(struct pl_lab_plan *p, unsigned int to, uint32_t *distance)
{
	const struct pl_lab_topology *t = p->t;
	const struct pl_lab_node *dst = &t->nodes[to];
	unsigned int ports[PL_LAB_PORTS_MAX];
	int r = 0;

	/* Neither node has an address to which other nodes send. */
	if (dst->kind == PL_LAB_SWITCH || dst->collector)
		return 0;
	pl_lab_distances(t, to, distance);
	for (unsigned int i = 0; i < t->n_nodes && r == 0; i++) {
		unsigned int n = pl_lab_next_hops(t, distance, i, ports);

		if (t->nodes[i].kind != PL_LAB_ROUTER || n == 0)
			continue;
		if (dst->kind != PL_LAB_HOST) {
			r = add_both(p, i, &dst->v4, 32, &dst->v6, 128, ports, n);
			continue;
		}
		for (unsigned int k = 0; k < dst->n_ports && r == 0; k++) {
			const struct pl_lab_link *l = &t->links[dst->links[k]];
			struct pl_addr v4 = network_of(&l->end[0].v4),
				       v6 = network_of(&l->end[0].v6);

			if (l->end[0].node != i && l->end[1].node != i)
				r = add_both(p, i, &v4, 31, &v6, 127, ports, n);
		}
	}
	return r;
}

/* Adds a host's default route, by all its switches and routers. */
static int add_default(struct pl_lab_plan *p, unsigned int node)
{
	static const uint8_t zero[16];
	const struct pl_lab_topology *t = p->t;
	const struct pl_lab_node *host = &t->nodes[node];
	const struct pl_addr v4 = pl_addr_v4(zero), v6 = pl_addr_v6(zero);
	unsigned int ports[PL_LAB_PORTS_MAX], n = 0;

	for (unsigned int i = 0; i < host->n_ports; i++) {
		const struct pl_lab_link *l = &t->links[host->links[i]];

		if (t->nodes[l->end[l->end[0].node == node].node].kind != PL_LAB_HOST)
			ports[n++] = i + 1;
	}
	return n == 0 ? 0 : add_both(p, node, &v4, 0, &v6, 0, ports, n);
}

static int add_routes(struct pl_lab_plan *p)
{
	uint32_t *distance = calloc(p->t->n_nodes, sizeof(*distance));
	int r = distance == NULL ? -ENOMEM : 0;

	for (unsigned int i = 0; i < p->t->n_nodes && r == 0; i++) {
		if (p->t->nodes[i].kind == PL_LAB_HOST && !p->t->nodes[i].collector)
			r = add_default(p, i);
	}
	for (unsigned int i = 0; i < p->t->n_nodes && r == 0; i++)
		r = add_routes_to(p, i, distance);
	free(distance);
	return r;
}

/* Copies the text into the plan and frees the buffer. Returns the copy, NULL without memory. */
static const char *keep_text(struct pl_lab_plan *p, struct pl_buf *text)
{
	char **more = realloc(p->texts, (p->n_texts + 1) * sizeof(*more));

	if (more == NULL) {
		pl_buf_done(text);
		return NULL;
	}
	p->texts = more;
	more[p->n_texts] = text->failed || text->data == NULL ? NULL : strdup(text->data);
	pl_buf_done(text);
	return more[p->n_texts] == NULL ? NULL : more[p->n_texts++];
}

/* Adds the file NODE.yaml in the lab's folder, and the node's program that reads it. */
static int add_program(
	struct pl_lab_plan *p, unsigned int node, const char *program, struct pl_buf *text)
{
	const char *name = p->t->nodes[node].name;
	struct pl_lab_step *s = add(p, PL_LAB_FILE);
	struct pl_buf words = { 0 };

	if (s == NULL)
		return -ENOMEM;
	s->node = node;
	s->text = keep_text(p, text);
	pl_buf_printf(&words, "%s.yaml", name);
	s->file = keep_text(p, &words);
	if (s->text == NULL || s->file == NULL)
		return -ENOMEM;
	s = add(p, PL_LAB_RUN);
	if (s == NULL)
		return -ENOMEM;
	pl_buf_init(&words);
	pl_buf_printf(&words, "exec pathline %s -c %s.yaml", program, name);
	s->node = node;
	s->command = keep_text(p, &words);
	s->serves = true;
	return s->command == NULL ? -ENOMEM : 0;
}

/* The history takes 26 MB: enough for most labs, and /run has room for it. */
void pl_lab_collector_text(const char *source, const char *listen, struct pl_buf *out)
{
	pl_buf_printf(out, "sources:\n  - uri: %s\n", source);
	pl_buf_str(out,
		"outputs:\n  - type: region\n    path: history\n"
		"    keep: {events: 4096, paths: 16384, hops: 65536, flows: 4096, queues: 4096, drops: 1024}\n");
	pl_buf_printf(out, "web: {listen: \"%s\", socket: %s.sock}\n", listen, PL_LAB_COLLECTOR);
}

static int add_programs(struct pl_lab_plan *p, struct pl_diag *diag)
{
	const struct pl_lab_topology *t = p->t;
	uint32_t *distances = calloc((size_t)t->n_nodes * t->n_nodes, sizeof(*distances));
	const struct pl_lab_program program = { .t = t, .distances = distances, .real = true };
	int r = distances == NULL ? -ENOMEM : 0;

	for (unsigned int i = 0; i < t->n_nodes && r == 0; i++)
		pl_lab_distances(t, i, distances + (size_t)i * t->n_nodes);
	for (unsigned int i = t->n_nodes; i-- > 0 && r == 0;) {
		struct pl_buf text = { 0 };

		if (is_switch(p, i))
			r = pl_lab_program_text(&program, i, &text);
		else if (t->nodes[i].collector)
			pl_lab_collector_text("udp://:32766", "127.0.0.1:8400", &text);
		else
			continue;
		if (r == 0)
			r = add_program(p, i, is_switch(p, i) ? "switch" : "run", &text);
		pl_buf_done(&text);
		if (r == -ENOSPC)
			pl_diag_set(diag, "switch '%s' has more than 256 sets of equal paths",
				t->nodes[i].name);
	}
	free(distances);
	return r;
}

static int add_commands(struct pl_lab_plan *p)
{
	for (unsigned int i = 0; i < p->t->n_commands; i++) {
		const struct pl_lab_command *c = &p->t->commands[i];
		struct pl_lab_step *s = add(p, PL_LAB_RUN);

		if (s == NULL)
			return -ENOMEM;
		s->node = c->node;
		s->command = c->text;
		s->of = c;
	}
	return 0;
}

int pl_lab_plan_make(struct pl_lab_plan *ret, const struct pl_lab_topology *t, struct pl_diag *diag)
{
	char name[PL_LAB_LINK_TEXT_MAX];
	int r = 0;

	*ret = (struct pl_lab_plan){ .t = t };
	for (unsigned int i = 0; i < t->n_links; i++) {
		ret->wires |= !t->links[i].quality.bare;
		if (!t->links[i].quality.bare ||
			(t->links[i].quality.delay_ns == 0 && t->links[i].quality.loss <= 0))
			continue;
		pl_lab_link_text(t, &t->links[i], name);
		pl_diag_set(diag,
			"link %s is bare: such links have a rate and a queue, but no delay and no loss",
			name);
		return -EOPNOTSUPP;
	}
	if (ret->wires)
		r = add_wires(ret);
	for (unsigned int i = 0; i < t->n_nodes && r == 0; i++)
		r = add_namespace(ret, i);
	for (unsigned int i = 0; i < t->n_links && r == 0; i++)
		r = add_link(ret, i);
	if (r == 0)
		r = add_routes(ret);
	if (r == 0)
		r = add_programs(ret, diag);
	if (r == 0)
		r = add_commands(ret);
	if (r == 0)
		return 0;
	if (r == -ENOMEM)
		pl_diag_set(diag, "out of memory");
	pl_lab_plan_done(ret);
	return r;
}

void pl_lab_plan_done(struct pl_lab_plan *p)
{
	free(p->steps);
	free(p->ports);
	for (size_t i = 0; i < p->n_texts; i++)
		free(p->texts[i]);
	free(p->texts);
	*p = (struct pl_lab_plan){ .t = NULL };
}
