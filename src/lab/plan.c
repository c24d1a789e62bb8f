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

/* Adds a step of a node. Without memory the plan has failed, and a step outside of it is returned. */
static struct pl_lab_step *add(struct pl_lab_plan *p, enum pl_lab_step_kind kind, unsigned int node)
{
	if (p->n == p->room) {
		const size_t room = p->room == 0 ? 256 : 2 * p->room;
		struct pl_lab_step *more = realloc(p->steps, room * sizeof(*more));

		if (more == NULL) {
			p->failed = true;
			return &p->lost;
		}
		p->steps = more;
		p->room = room;
	}
	p->steps[p->n] = (struct pl_lab_step){ .kind = kind, .node = node };
	return &p->steps[p->n++];
}

static void add_setting(struct pl_lab_plan *p, unsigned int node, const struct setting *of)
{
	struct pl_lab_step *s = add(p, PL_LAB_SYSCTL, node);

	s->sysctl = of->sysctl;
	s->value = of->value;
}

static void add_namespace(struct pl_lab_plan *p, unsigned int node)
{
	const struct pl_lab_node *n = &p->t->nodes[node];
	const bool forwarding = n->kind == PL_LAB_ROUTER;

	add(p, PL_LAB_NETNS, node);
	if (is_switch(p, node)) {
		add_setting(p, node, &silence);
		return;
	}
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (!settings[i].forwarding || forwarding)
			add_setting(p, node, &settings[i]);
	}
	for (unsigned int six = 0; six < 2 && forwarding; six++) {
		struct pl_lab_step *s = add(p, PL_LAB_ADDRESS, node);

		s->loopback = true;
		s->addr = six ? n->v6 : n->v4;
		s->bits = six ? 128 : 32;
	}
}

/* Adds the namespace in which the keeper carries frames between nodes; its kernel is silent. */
static void add_wires(struct pl_lab_plan *p)
{
	add(p, PL_LAB_NETNS, p->t->n_nodes);
	add_setting(p, p->t->n_nodes, &silence);
}

static struct pl_lab_step *add_at(
	struct pl_lab_plan *p, enum pl_lab_step_kind kind, unsigned int link, unsigned int side)
{
	struct pl_lab_step *s = add(p, kind, p->t->links[link].end[side].node);

	s->link = link;
	s->side = side;
	return s;
}

static void add_end(struct pl_lab_plan *p, unsigned int link, unsigned int side)
{
	const struct pl_lab_quality *q = &p->t->links[link].quality;
	const struct pl_lab_end *e = &p->t->links[link].end[side],
				*peer = &p->t->links[link].end[!side];

	add_at(p, PL_LAB_OFFLOAD, link, side);
	if (is_switch(p, e->node)) {
		/* The end is the program's; between switches it has a larger MTU, for INT. */
		if (is_switch(p, peer->node))
			add_at(p, PL_LAB_MTU, link, side)->bits = PL_LAB_SWITCH_MTU;
		add_at(p, PL_LAB_UP, link, side);
		return;
	}
	for (unsigned int six = 0; six < 2; six++) {
		struct pl_lab_step *s = add_at(p, PL_LAB_ADDRESS, link, side);

		s->addr = six ? e->v6 : e->v4;
		s->bits = six ? 127 : 31;
	}
	add_at(p, PL_LAB_UP, link, side);
	for (unsigned int six = 0; six < 2; six++)
		add_at(p, PL_LAB_NEIGHBOUR, link, side)->addr = six ? peer->v6 : peer->v4;
	if (q->bare && q->rate_bps != 0)
		add_at(p, PL_LAB_RATE, link, side);
}

static void add_link(struct pl_lab_plan *p, unsigned int link)
{
	const bool bare = p->t->links[link].quality.bare;

	if (bare)
		add_at(p, PL_LAB_VETH, link, 0);
	for (unsigned int side = 0; side < 2; side++) {
		if (!bare)
			add_at(p, PL_LAB_WIRE, link, side);
		add_end(p, link, side);
	}
}

static void add_route(struct pl_lab_plan *p, unsigned int node, const struct pl_addr *to,
	unsigned int bits, const unsigned int *ports, unsigned int n)
{
	struct pl_lab_step *s = add(p, PL_LAB_ROUTE, node);

	if (p->n_ports + n > p->ports_room) {
		const size_t room = 2 * p->ports_room + n + 256;
		unsigned int *more = realloc(p->ports, room * sizeof(*more));

		if (more == NULL) {
			p->failed = true;
			return;
		}
		p->ports = more;
		p->ports_room = room;
	}
	memcpy(p->ports + p->n_ports, ports, n * sizeof(*ports));
	s->addr = *to;
	s->bits = bits;
	s->first_port = (unsigned int)p->n_ports;
	s->n_ports = n;
	p->n_ports += n;
}

/* Returns the first address of a link's /31 or /127. */
static struct pl_addr network_of(const struct pl_addr *a)
{
	struct pl_addr net = *a;

	net.b[15] &= 0xfe;
	return net;
}

static void add_both(struct pl_lab_plan *p, unsigned int node, const struct pl_addr *v4,
	unsigned int v4_bits, const struct pl_addr *v6, unsigned int v6_bits,
	const unsigned int *ports, unsigned int n)
{
	add_route(p, node, v4, v4_bits, ports, n);
	add_route(p, node, v6, v6_bits, ports, n);
}

/* Adds routes of all routers to a host's links, or to a router's loopback. The kernel knows the
 * routes to its own links. */
static void add_routes_to(struct pl_lab_plan *p, unsigned int to, uint32_t *distance)
{
	const struct pl_lab_topology *t = p->t;
	const struct pl_lab_node *dst = &t->nodes[to];
	unsigned int ports[PL_LAB_PORTS_MAX];

	/* Neither node has an address to which other nodes send. */
	if (dst->kind == PL_LAB_SWITCH || dst->collector)
		return;
	pl_lab_distances(t, to, distance);
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		unsigned int n = pl_lab_next_hops(t, distance, i, ports);

		if (t->nodes[i].kind != PL_LAB_ROUTER || n == 0)
			continue;
		if (dst->kind != PL_LAB_HOST) {
			add_both(p, i, &dst->v4, 32, &dst->v6, 128, ports, n);
			continue;
		}
		for (unsigned int k = 0; k < dst->n_ports; k++) {
			const struct pl_lab_link *l = &t->links[dst->links[k]];
			struct pl_addr v4 = network_of(&l->end[0].v4),
				       v6 = network_of(&l->end[0].v6);

			if (l->end[0].node != i && l->end[1].node != i)
				add_both(p, i, &v4, 31, &v6, 127, ports, n);
		}
	}
}

/* Adds a host's default route, by all its switches and routers. */
static void add_default(struct pl_lab_plan *p, unsigned int node)
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
	if (n > 0)
		add_both(p, node, &v4, 0, &v6, 0, ports, n);
}

static void add_routes(struct pl_lab_plan *p)
{
	uint32_t *distance = calloc(p->t->n_nodes, sizeof(*distance));

	if (distance == NULL) {
		p->failed = true;
		return;
	}
	for (unsigned int i = 0; i < p->t->n_nodes; i++) {
		if (p->t->nodes[i].kind == PL_LAB_HOST && !p->t->nodes[i].collector)
			add_default(p, i);
	}
	for (unsigned int i = 0; i < p->t->n_nodes; i++)
		add_routes_to(p, i, distance);
	free(distance);
}

/* Copies the text into the plan and frees the buffer. Returns the copy, NULL without memory. */
static const char *keep_text(struct pl_lab_plan *p, struct pl_buf *text)
{
	char **more = realloc(p->texts, (p->n_texts + 1) * sizeof(*more));
	char *copy = NULL;

	if (more != NULL) {
		p->texts = more;
		copy = text->failed || text->data == NULL ? NULL : strdup(text->data);
	}
	pl_buf_done(text);
	if (copy != NULL)
		p->texts[p->n_texts++] = copy;
	else
		p->failed = true;
	return copy;
}

/* Adds the file NODE.yaml in the lab's folder, and the node's program that reads it. */
static void add_program(
	struct pl_lab_plan *p, unsigned int node, const char *program, struct pl_buf *text)
{
	const char *name = p->t->nodes[node].name;
	struct pl_lab_step *s = add(p, PL_LAB_FILE, node);
	struct pl_buf words = { 0 };

	s->text = keep_text(p, text);
	pl_buf_printf(&words, "%s.yaml", name);
	s->file = keep_text(p, &words);
	s = add(p, PL_LAB_RUN, node);
	pl_buf_init(&words);
	pl_buf_printf(&words, "exec pathline %s -c %s.yaml", program, name);
	s->command = keep_text(p, &words);
	s->serves = true;
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
			add_program(p, i, is_switch(p, i) ? "switch" : "run", &text);
		pl_buf_done(&text);
		if (r == -ENOSPC)
			pl_diag_set(diag, "switch '%s' has more than 256 sets of equal paths",
				t->nodes[i].name);
	}
	free(distances);
	return r;
}

static void add_commands(struct pl_lab_plan *p)
{
	for (unsigned int i = 0; i < p->t->n_commands; i++) {
		const struct pl_lab_command *c = &p->t->commands[i];
		struct pl_lab_step *s = add(p, PL_LAB_RUN, c->node);

		s->command = c->text;
		s->of = c;
	}
}

int pl_lab_plan_make(struct pl_lab_plan *ret, const struct pl_lab_topology *t, struct pl_diag *diag)
{
	char name[PL_LAB_LINK_TEXT_MAX];
	int r;

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
		add_wires(ret);
	for (unsigned int i = 0; i < t->n_nodes; i++)
		add_namespace(ret, i);
	for (unsigned int i = 0; i < t->n_links; i++)
		add_link(ret, i);
	add_routes(ret);
	r = add_programs(ret, diag);
	add_commands(ret);
	if (r == 0 && ret->failed)
		r = -ENOMEM;
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
