/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation of a network: its parts and its steps. */
#include "dataplane/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/sim_state.h"

#define PACKETS_MAX  65536
#define PACKET_BYTES 2048
/* A host has one port. */
#define HOST_PORT    1

const struct pl_stats pl_dp_flow_stats = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_dp_flow_account, __VA_ARGS__)
#include "dataplane/flow_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_dp_flow_account) / sizeof(uint64_t),
};

int pl_dp_sim_new(struct pl_dp_sim **ret, const struct pl_dp_sim_cfg *cfg)
{
	struct pl_dp_sim *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->cfg = *cfg;
	s->now = cfg->start_ns;
	r = pl_dp_pool_new(&s->pool,
		PL_DP_HEADROOM + (cfg->packet_bytes != 0 ? cfg->packet_bytes : PACKET_BYTES),
		cfg->packets_max != 0 ? cfg->packets_max : PACKETS_MAX);
	if (r != 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void pl_dp_sim_free(struct pl_dp_sim *s)
{
	struct pl_dp_trace *t;

	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->n_links; i++)
		pl_dp_link_free(s->links[i].link);
	for (uint32_t i = 0; i < s->n_ports; i++)
		pl_dp_port_free(s->ports[i].port);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		free(s->nodes[i].ports);
	while ((t = s->all) != NULL) {
		s->all = t->older;
		free(t);
	}
	free(s->links);
	free(s->ports);
	free(s->nodes);
	free(s->flows);
	free(s->things);
	pl_dp_agenda_done(&s->agenda);
	pl_dp_pool_free(s->pool);
	free(s);
}

uint64_t pl_dp_sim_now(const struct pl_dp_sim *s)
{
	return s->now;
}

struct pl_dp_pool *pl_dp_sim_pool(struct pl_dp_sim *s)
{
	return s->pool;
}

uint64_t pl_dp_sim_seed(const struct pl_dp_sim *s)
{
	return s->cfg.seed;
}

/* ---- what it is made of ---- */

/* Makes room for one more of n items; arrays grow when n is a power of two. */
static int room(void **array, uint32_t n, size_t size)
{
	void *bigger;

	if (n != 0 && (n & (n - 1)) != 0)
		return 0;
	bigger = reallocarray(*array, n == 0 ? 1 : (size_t)n * 2, size);
	if (bigger == NULL)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

#define ROOM(array, n) room((void **)&(array), n, sizeof(*(array)))

static int add_thing(struct pl_dp_sim *s, struct sim_thing thing, uint32_t *ret)
{
	if (ROOM(s->things, s->n_things) != 0 || pl_dp_agenda_add(&s->agenda, ret) != 0)
		return -ENOMEM;
	s->things[s->n_things++] = thing;
	return 0;
}

int pl_dp_sim_node(
	struct pl_dp_sim *s, const struct pl_dp_sim_node_cfg *cfg, unsigned int *ret_node)
{
	if (!cfg->host && cfg->ops.ingress == NULL)
		return -EINVAL;
	if (ROOM(s->nodes, s->n_nodes) != 0)
		return -ENOMEM;
	s->nodes[s->n_nodes] = (struct sim_node){ .cfg = *cfg };
	*ret_node = s->n_nodes++;
	return 0;
}

static int number_port(struct sim_node *n, unsigned int number, uint32_t port)
{
	if (number >= n->n_ports) {
		uint32_t *ports = reallocarray(n->ports, number + 1, sizeof(*ports));

		if (ports == NULL)
			return -ENOMEM;
		for (uint32_t i = n->n_ports; i <= number; i++)
			ports[i] = 0;
		n->ports = ports;
		n->n_ports = number + 1;
	}
	n->ports[number] = port + 1;
	return 0;
}

int pl_dp_sim_port(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag)
{
	struct sim_port port = { .node = node, .number = (uint16_t)number, .link = NO_LINK };
	int r;

	if (node >= s->n_nodes || number >= PL_DP_SIM_PORTS_MAX ||
		sim_port_of(s, node, number) != NULL) {
		pl_diag_set(diag,
			"port %u of node %u: no such node, or the number is taken or not "
			"below %u",
			number, node, PL_DP_SIM_PORTS_MAX);
		return -EINVAL;
	}
	if (ROOM(s->ports, s->n_ports) != 0)
		return -ENOMEM;
	r = pl_dp_port_new(&port.port, cfg, diag);
	if (r != 0)
		return r;
	r = add_thing(
		s, (struct sim_thing){ .kind = THING_PORT, .index = s->n_ports }, &port.thing);
	if (r == 0)
		r = number_port(&s->nodes[node], number, s->n_ports);
	if (r != 0) {
		pl_dp_port_free(port.port);
		return r;
	}
	s->ports[s->n_ports++] = port;
	return 0;
}

static int add_link(struct pl_dp_sim *s, struct sim_port *from, const struct sim_port *to,
	const struct pl_dp_link_cfg *cfg, struct pl_diag *diag)
{
	struct sim_link link = { .from = (uint32_t)(from - s->ports),
		.to = (uint32_t)(to - s->ports) };
	int r;

	if (ROOM(s->links, s->n_links) != 0)
		return -ENOMEM;
	r = pl_dp_link_new(&link.link, cfg, pl_hash_mix(s->cfg.seed, s->n_links), diag);
	if (r != 0)
		return r;
	r = add_thing(
		s, (struct sim_thing){ .kind = THING_LINK, .index = s->n_links }, &link.thing);
	if (r != 0) {
		pl_dp_link_free(link.link);
		return r;
	}
	from->link = s->n_links;
	s->links[s->n_links++] = link;
	return 0;
}

int pl_dp_sim_link(struct pl_dp_sim *s, unsigned int a, unsigned int a_port, unsigned int b,
	unsigned int b_port, const struct pl_dp_link_cfg *cfg, unsigned int *ret_link,
	struct pl_diag *diag)
{
	struct sim_port *from = sim_port_of(s, a, a_port), *to = sim_port_of(s, b, b_port);
	int r;

	if (from == NULL || to == NULL || from == to || from->link != NO_LINK ||
		to->link != NO_LINK) {
		pl_diag_set(diag,
			"port %u of node %u and port %u of node %u: one does not exist or has "
			"a link",
			a_port, a, b_port, b);
		return -EINVAL;
	}
	*ret_link = s->n_links;
	r = add_link(s, from, to, cfg, diag);
	if (r == 0)
		r = add_link(s, to, from, cfg, diag);
	return r;
}

static void port_due(struct pl_dp_sim *s, struct sim_port *p)
{
	uint64_t at = pl_dp_port_next(p->port);

	pl_dp_agenda_set(&s->agenda, p->thing, at < s->now ? s->now : at);
}

int pl_dp_sim_port_set(struct pl_dp_sim *s, unsigned int node, unsigned int number,
	const struct pl_dp_port_cfg *cfg, struct pl_diag *diag)
{
	struct sim_port *p = sim_port_of(s, node, number);
	int r;

	if (p == NULL) {
		pl_diag_set(diag, "node %u has no port %u", node, number);
		return -EINVAL;
	}
	r = pl_dp_port_set(p->port, cfg, diag);
	if (r == 0)
		port_due(s, p);
	return r;
}

int pl_dp_sim_link_set(struct pl_dp_sim *s, unsigned int link, const struct pl_dp_link_cfg *cfg,
	struct pl_diag *diag)
{
	if (link >= s->n_links) {
		pl_diag_set(diag, "there is no link %u", link);
		return -EINVAL;
	}
	return pl_dp_link_set(s->links[link].link, cfg, diag);
}

struct pl_dp_clock *pl_dp_sim_clock(struct pl_dp_sim *s, unsigned int node)
{
	return node < s->n_nodes ? &s->nodes[node].cfg.clock : NULL;
}

int pl_dp_sim_timer(struct pl_dp_sim *s, void (*fn)(void *arg), void *arg, uint32_t *ret_timer)
{
	return add_thing(
		s, (struct sim_thing){ .kind = THING_TIMER, .fn = fn, .arg = arg }, ret_timer);
}

void pl_dp_sim_arm(struct pl_dp_sim *s, uint32_t timer, uint64_t at_ns)
{
	pl_dp_agenda_set(&s->agenda, timer, at_ns < s->now ? s->now : at_ns);
}

int pl_dp_sim_flow(struct pl_dp_sim *s, uint32_t *ret_flow)
{
	if (ROOM(s->flows, s->n_flows) != 0)
		return -ENOMEM;
	s->flows[s->n_flows] = (struct sim_flow){ .highest = { 0, 0 } };
	*ret_flow = ++s->n_flows;
	return 0;
}

/* ---- its steps ---- */

static void drop(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt)
{
	pl_dp_sim_dropped(s, node, pkt);
	pl_dp_packet_free(pkt);
}

void pl_dp_sim_dropped(struct pl_dp_sim *s, unsigned int node, const struct pl_dp_packet *pkt)
{
	s->account.dropped[pkt->drop < PL_DP_DROP_MAX ? pkt->drop : 0]++;
	trace_dropped(s, node, pkt);
}

/* Returns the packet's flow; NULL: it has none, or a node created it. */
static struct pl_dp_flow_account *flow_of(struct pl_dp_sim *s, const struct pl_dp_packet *pkt)
{
	if (pkt->flow == 0 || pkt->flow > s->n_flows || trace_of(pkt) == NULL)
		return NULL;
	return &s->flows[pkt->flow - 1].account;
}

void pl_dp_sim_send(struct pl_dp_sim *s, unsigned int host, struct pl_dp_packet *pkt)
{
	struct pl_dp_flow_account *f;

	pkt->born_ns = s->now;
	pkt->out_port = HOST_PORT;
	s->account.sent++;
	trace_begin(s, pkt);
	f = flow_of(s, pkt);
	if (f != NULL) {
		f->sent++;
		f->sent_bytes += pkt->len;
	}
	pl_dp_sim_out(s, host, pkt);
}

void pl_dp_sim_set_watch(struct pl_dp_sim *s, const struct pl_dp_sim_watch *watch)
{
	s->watch = watch != NULL ? *watch : (struct pl_dp_sim_watch){ .pass = NULL };
}

void pl_dp_sim_out(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt)
{
	struct sim_port *p = sim_port_of(s, node, pkt->out_port);
	const struct pl_dp_sim_ops *ops = &s->nodes[node].cfg.ops;

	if (trace_of(pkt) == NULL) {
		pkt->flow = 0;
		s->account.made++;
	}
	if (p == NULL || p->link == NO_LINK) {
		pkt->drop = PL_DP_DROP_PORT;
		drop(s, node, pkt);
		return;
	}
	if (s->watch.pass != NULL)
		s->watch.pass(s->watch.arg, node, p->number, true, pkt);
	if (pl_dp_port_enqueue(p->port, pkt, s->now)) {
		trace_queued(s, pkt);
		port_due(s, p);
		return;
	}
	trace_queued(s, pkt);
	if (ops->refused != NULL)
		ops->refused(ops->arg, pkt);
	else
		drop(s, node, pkt);
}

void pl_dp_sim_wire(struct pl_dp_sim *s, unsigned int node, struct pl_dp_packet *pkt)
{
	struct sim_port *p = sim_port_of(s, node, pkt->out_port);
	struct pl_dp_packet *copy;
	struct sim_link *l;
	uint64_t last_bit_ns;

	if (p == NULL || p->link == NO_LINK) {
		pkt->drop = PL_DP_DROP_PORT;
		drop(s, node, pkt);
		return;
	}
	/* A packet that did not wait in the queue is charged for its whole length now. */
	last_bit_ns = pl_dp_port_grew(
		p->port, (int32_t)pkt->len - (p->sending == pkt ? (int32_t)p->sending_len : 0));
	p->sending = NULL;
	l = &s->links[p->link];
	if (!pl_dp_link_send(l->link, pkt, last_bit_ns, &copy)) {
		s->account.dropped[PL_DP_DROP_LINK]++;
		trace_lost(s, l, pkt);
		pl_dp_packet_free(pkt);
		return;
	}
	if (copy != NULL)
		trace_copy(s, pkt, copy);
	pl_dp_agenda_set(&s->agenda, l->thing, pl_dp_link_next(l->link));
}

static void port_turn(struct pl_dp_sim *s, uint32_t index)
{
	struct pl_dp_packet *pkt;

	/* Ports are accessed by index: a node may add ports, which moves the array. */
	while ((pkt = pl_dp_port_dequeue(s->ports[index].port, s->now)) != NULL) {
		struct sim_port *p = &s->ports[index];
		const struct sim_node *n = &s->nodes[p->node];
		uint64_t true_ns = pkt->out_ns;

		p->sending = pkt;
		p->sending_len = pkt->len;
		pkt->out_ns = pl_dp_clock_read(&n->cfg.clock, true_ns);
		trace_left(s, pkt, true_ns);
		if (n->cfg.ops.egress != NULL)
			n->cfg.ops.egress(n->cfg.ops.arg, pkt);
		else
			pl_dp_sim_wire(s, p->node, pkt);
		s->ports[index].sending = NULL;
	}
	port_due(s, &s->ports[index]);
}

void pl_dp_sim_arrived(struct pl_dp_sim *s, const struct pl_dp_packet *pkt)
{
	struct pl_dp_flow_account *f = flow_of(s, pkt);

	s->account.delivered++;
	if (f != NULL) {
		uint64_t took = s->now - pkt->born_ns,
			 *highest = &s->flows[pkt->flow - 1].highest[pkt->serial >> 63];

		f->delivered++;
		f->delivered_bytes += pkt->len;
		f->latency_ns += took;
		f->latency_max_ns = took > f->latency_max_ns ? took : f->latency_max_ns;
		if (pkt->serial < *highest && !trace_of(pkt)->copy)
			f->reordered++;
		*highest = pkt->serial > *highest ? pkt->serial : *highest;
	}
	trace_delivered(s, pkt);
}

static void deliver(struct pl_dp_sim *s, struct sim_port *at, struct pl_dp_packet *pkt)
{
	const struct pl_dp_sim_ops *ops = &s->nodes[at->node].cfg.ops;

	pl_dp_sim_arrived(s, pkt);
	if (ops->receive != NULL)
		ops->receive(ops->arg, pkt);
	pl_dp_packet_free(pkt);
}

static void arrive(struct pl_dp_sim *s, struct sim_port *at, struct pl_dp_packet *pkt)
{
	const struct sim_node *n = &s->nodes[at->node];

	pkt->in_port = at->number;
	if (s->watch.pass != NULL)
		s->watch.pass(s->watch.arg, at->node, at->number, false, pkt);
	if (n->cfg.host) {
		deliver(s, at, pkt);
		return;
	}
	pkt->in_ns = pl_dp_clock_read(&n->cfg.clock, s->now);
	pkt->out_ns = 0;
	pkt->out_port = 0;
	pkt->queue = 0;
	pkt->mark = 0;
	pkt->own = false;
	pkt->colour = 0;
	pkt->value = 0;
	pkt->depth_bytes = pkt->depth_packets = pkt->tx_util = 0;
	trace_arrived(s, at, pkt);
	/* Ends a loop without TTL, which would never end where links take no time. */
	if (pkt->hops == UINT8_MAX) {
		pkt->drop = PL_DP_DROP_TTL;
		drop(s, at->node, pkt);
		return;
	}
	pkt->hops++;
	n->cfg.ops.ingress(n->cfg.ops.arg, pkt);
}

static void link_turn(struct pl_dp_sim *s, uint32_t index)
{
	struct pl_dp_packet *pkt;

	while ((pkt = pl_dp_link_recv(s->links[index].link, s->now)) != NULL)
		arrive(s, &s->ports[s->links[index].to], pkt);
	pl_dp_agenda_set(&s->agenda, s->links[index].thing, pl_dp_link_next(s->links[index].link));
}

void pl_dp_sim_run(struct pl_dp_sim *s, uint64_t until_ns)
{
	uint32_t thing = 0;
	uint64_t at;

	while ((at = pl_dp_agenda_first(&s->agenda, &thing)) <= until_ns &&
		at != PL_DP_AGENDA_NEVER) {
		const struct sim_thing t = s->things[thing];

		s->now = at;
		s->account.events++;
		pl_dp_agenda_set(&s->agenda, thing, PL_DP_AGENDA_NEVER);
		switch (t.kind) {
		case THING_PORT:
			port_turn(s, t.index);
			break;
		case THING_LINK:
			link_turn(s, t.index);
			break;
		case THING_TIMER:
			t.fn(t.arg);
			break;
		}
	}
	s->now = until_ns > s->now ? until_ns : s->now;
}

/* ---- reading ---- */

uint64_t pl_dp_sim_node_ns(const struct pl_dp_sim *s, unsigned int node)
{
	return pl_dp_clock_read(&s->nodes[node].cfg.clock, s->now);
}

uint32_t pl_dp_sim_flows(const struct pl_dp_sim *s)
{
	return s->n_flows;
}

const struct pl_dp_flow_account *pl_dp_sim_flow_account(const struct pl_dp_sim *s, uint32_t flow)
{
	return flow != 0 && flow <= s->n_flows ? &s->flows[flow - 1].account : NULL;
}

const struct pl_dp_link *pl_dp_sim_link_at(const struct pl_dp_sim *s, unsigned int link)
{
	return link < s->n_links ? s->links[link].link : NULL;
}

const struct pl_dp_port *pl_dp_sim_port_at(
	const struct pl_dp_sim *s, unsigned int node, unsigned int number)
{
	const struct sim_port *p = sim_port_of(s, node, number);

	return p != NULL ? p->port : NULL;
}

const struct pl_dp_sim_account *pl_dp_sim_account(const struct pl_dp_sim *s)
{
	return &s->account;
}
