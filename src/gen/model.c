/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves packets of generated flows through the model of a network. */
#include "gen/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Time to drain one unit of depth: an 80-byte cell at 10 Gb/s. */
#define DRAIN_NS   64

#define ALL_FIELDS (PL_INT_HAS(PL_INT_F_MAX) - 1)

struct flow {
	struct pl_flow key;
	uint64_t hash;
	uint32_t seq;
	uint32_t path_of;  /* generation of the topology of its steps; 0: none yet */
	uint16_t from, to; /* nodes */
	uint16_t n_steps;
};

/* An event with its node, port and link found, and its state. */
struct event {
	const struct pl_gen_event *e;
	uint16_t node, link_a, link_b;
	uint16_t port;
	bool any_node;
	int queue;
	bool active;
	double level;      /* QUEUE: level of the build-up, 0 to 1 */
	uint64_t restarts; /* RESTART: occurrences so far */
	bool pending;
};

struct pl_model {
	const struct pl_gen_cfg *cfg;
	struct pl_topo *topo;
	struct pl_rng rng;
	uint32_t generation;
	struct flow *flows;
	struct pl_topo_step *steps; /* `stride` steps for each flow */
	unsigned int stride;
	int64_t clock_offset_ns[PL_TOPO_NODES_MAX];
	struct event events[PL_GEN_EVENTS_MAX];
	unsigned int n_events;
	uint64_t queue_max, latency_max;
};

static void make_address(struct pl_addr *ret, unsigned int ip, unsigned int edge, uint32_t host)
{
	if (ip == 6) {
		uint8_t b[16] = { 0xfd, 0x00, 0, 0, 0, 0, (uint8_t)(edge >> 8), (uint8_t)edge, 0, 0,
			0, 0, (uint8_t)(host >> 24), (uint8_t)(host >> 16), (uint8_t)(host >> 8),
			(uint8_t)host };

		*ret = pl_addr_v6(b);
	} else {
		uint8_t b[4] = { 10, (uint8_t)edge, (uint8_t)(host >> 8), (uint8_t)host };

		*ret = pl_addr_v4(b);
	}
}

static void make_flow(struct pl_model *m, uint32_t i)
{
	static const uint16_t services[] = { 443, 80, 53, 5201, 8080, 4420, 2049, 6379 };
	static const uint8_t classes[] = { 0, 0, 10, 26, 46 };
	const struct pl_gen_cfg *cfg = m->cfg;
	struct flow *f = &m->flows[i];
	unsigned int n = pl_topo_edges(m->topo);
	/* flow 0 crosses the whole network: events concern it by default */
	unsigned int from = i == 0 ? 0 : (unsigned int)pl_rng_below(&m->rng, n);
	unsigned int to = i == 0 ? n - 1 : (unsigned int)pl_rng_below(&m->rng, n > 1 ? n - 1 : 1);

	if (i != 0 && n > 1 && to >= from)
		to++;
	f->from = (uint16_t)pl_topo_edge(m->topo, from);
	f->to = (uint16_t)pl_topo_edge(m->topo, to);
	f->hash = pl_rng_u64(&m->rng);
	make_address(&f->key.src, cfg->inner_ip, from, 1 + i);
	make_address(&f->key.dst, cfg->inner_ip, to, 0x8000u + i);
	f->key.sport = (uint16_t)(1024 + pl_rng_below(&m->rng, 64000));
	f->key.dport = services[pl_rng_below(&m->rng, sizeof(services) / sizeof(services[0]))];
	f->key.dscp = classes[pl_rng_below(&m->rng, sizeof(classes))];
	if (cfg->proto == PL_GEN_PROTO_ICMP) { /* echo request */
		f->key.proto = cfg->inner_ip == 6 ? PL_IP_ICMPV6 : PL_IP_ICMP;
		f->key.sport = cfg->inner_ip == 6 ? 128 : 8;
		f->key.dport = 0;
	} else if (cfg->proto != PL_GEN_PROTO_AUTO)
		f->key.proto = cfg->proto == PL_GEN_PROTO_TCP ? PL_IP_TCP : PL_IP_UDP;
	else if (cfg->carrier == PL_GEN_TCP)
		f->key.proto = PL_IP_TCP;
	else if (cfg->carrier == PL_GEN_UDP)
		f->key.proto = PL_IP_UDP;
	else
		f->key.proto = pl_rng_below(&m->rng, 4) == 0 ? PL_IP_UDP : PL_IP_TCP;
	f->key.have = PL_FLOW_PORTS;
	if (cfg->inner == PL_GEN_VLAN || cfg->inner == PL_GEN_QINQ) {
		f->key.vlan = (uint16_t)(100 + i % 200);
		f->key.have |= PL_FLOW_VLAN;
	}
	if (cfg->inner == PL_GEN_VXLAN ||
		(cfg->mode != PL_GEN_XD &&
			(cfg->carrier == PL_GEN_GPE || cfg->carrier == PL_GEN_GENEVE))) {
		f->key.vni = 5000 + i % 64;
		f->key.have |= PL_FLOW_VNI;
	}
}

/* Present path of the flow; found again when the topology has changed. */
static const struct pl_topo_step *flow_path(struct pl_model *m, uint32_t flow, unsigned int *ret_n)
{
	struct flow *f = &m->flows[flow];
	struct pl_topo_step *steps = m->steps + (size_t)flow * m->stride;

	if (f->path_of != m->generation) {
		f->n_steps =
			(uint16_t)pl_topo_route(m->topo, f->from, f->to, f->hash, steps, m->stride);
		f->path_of = m->generation;
	}
	*ret_n = f->n_steps;
	return steps;
}

/* ---- events ---- */

static int resolve_node(struct pl_model *m, uint32_t id, struct pl_diag *diag)
{
	int n = pl_topo_node_by_id(m->topo, id);

	if (n < 0)
		pl_diag_set(diag, "event: the network has no node %u", id);
	return n;
}

static int resolve_link(struct pl_model *m, struct event *ev, struct pl_diag *diag)
{
	unsigned int n;
	const struct pl_topo_step *steps = flow_path(m, 0, &n);

	if (ev->e->link_a != 0 || ev->e->link_b != 0) {
		int a = resolve_node(m, ev->e->link_a, diag),
		    b = resolve_node(m, ev->e->link_b, diag);

		if (a < 0 || b < 0)
			return -EINVAL;
		ev->link_a = (uint16_t)a;
		ev->link_b = (uint16_t)b;
		if (pl_topo_link_set(m->topo, (unsigned int)a, (unsigned int)b, true) == 0)
			return 0;
		pl_diag_set(diag, "event: there is no link %u-%u", ev->e->link_a, ev->e->link_b);
		return -EINVAL;
	}
	for (unsigned int i = 0; i + 1 < n; i++) {
		if (pl_topo_survives(m->topo, m->flows[0].from, m->flows[0].to, steps[i].node,
			    steps[i + 1].node)) {
			ev->link_a = steps[i].node;
			ev->link_b = steps[i + 1].node;
			return 0;
		}
	}
	pl_diag_set(diag, "event path: flow 0 has only one way through this network");
	return -EINVAL;
}

static int resolve_event(struct pl_model *m, struct event *ev, struct pl_diag *diag)
{
	unsigned int n;
	const struct pl_topo_step *steps = flow_path(m, 0, &n);
	const struct pl_topo_step *middle = &steps[n / 2];
	int node;

	if (ev->e->kind == PL_GEN_EVENT_PATH)
		return resolve_link(m, ev, diag);
	if (n == 0) {
		pl_diag_set(diag, "event: flow 0 has no way through this network");
		return -EINVAL;
	}
	ev->any_node = ev->e->node == 0;
	ev->node = middle->node;
	ev->port = middle->egress_port;
	ev->queue = ev->e->queue;
	if (!ev->any_node) {
		node = resolve_node(m, ev->e->node, diag);
		if (node < 0)
			return -EINVAL;
		ev->node = (uint16_t)node;
		for (unsigned int i = 0; i < n; i++) {
			if (steps[i].node == node)
				ev->port = steps[i].egress_port;
		}
	}
	if (ev->e->port != 0)
		ev->port = (uint16_t)ev->e->port;
	return 0;
}

/* Time since the begin of an event's present occurrence. Returns false when it does not happen
 * now. */
static bool event_phase(const struct pl_gen_event *e, uint64_t after_ns, uint64_t *ret_since_ns)
{
	uint64_t since;

	if (after_ns < e->at_ns)
		return false;
	since = after_ns - e->at_ns;
	if (e->every_ns != 0)
		since %= e->every_ns;
	*ret_since_ns = since;
	return e->duration_ns == 0 || since < e->duration_ns;
}

/* Level of a build-up: it rises during its first three tenths, holds, and drains during the last
 * three. */
static double build_up(const struct pl_gen_event *e, uint64_t since_ns)
{
	double x;

	if (e->duration_ns == 0)
		return since_ns >= 1000000000u ? 1 : (double)since_ns / 1e9;
	x = (double)since_ns / (double)e->duration_ns;
	if (x < 0.3)
		return x / 0.3;
	return x > 0.7 ? (1 - x) / 0.3 : 1;
}

static void advance_event(struct pl_model *m, struct event *ev, uint64_t after_ns)
{
	uint64_t since = 0, times;
	bool active = event_phase(ev->e, after_ns, &since);

	switch (ev->e->kind) {
	case PL_GEN_EVENT_PATH:
		if (active != ev->active) {
			(void)pl_topo_link_set(m->topo, ev->link_a, ev->link_b, !active);
			m->generation++;
		}
		break;
	case PL_GEN_EVENT_QUEUE:
		ev->level = active ? build_up(ev->e, since) : 0;
		break;
	case PL_GEN_EVENT_RESTART:
		if (after_ns < ev->e->at_ns)
			break;
		times = ev->e->every_ns == 0 ? 1 : 1 + (after_ns - ev->e->at_ns) / ev->e->every_ns;
		ev->pending = times != ev->restarts;
		ev->restarts = times;
		break;
	case PL_GEN_EVENT_LOSS:
	case PL_GEN_EVENT_DROP:
	case PL_GEN_EVENT_KIND_MAX:
		break;
	}
	ev->active = active;
}

void pl_model_advance(struct pl_model *m, uint64_t after_ns)
{
	for (unsigned int i = 0; i < m->n_events; i++)
		advance_event(m, &m->events[i], after_ns);
}

double pl_model_loss(const struct pl_model *m, unsigned int node)
{
	double keep = 1 - m->cfg->loss;

	for (unsigned int i = 0; i < m->n_events; i++) {
		const struct event *ev = &m->events[i];

		if (ev->e->kind == PL_GEN_EVENT_LOSS && ev->active &&
			(ev->any_node || ev->node == node))
			keep *= 1 - ev->e->value;
	}
	return 1 - keep;
}

bool pl_model_restart(struct pl_model *m, unsigned int *ret_node)
{
	for (unsigned int i = 0; i < m->n_events; i++) {
		if (m->events[i].e->kind == PL_GEN_EVENT_RESTART && m->events[i].pending) {
			m->events[i].pending = false;
			*ret_node = m->events[i].node;
			return true;
		}
	}
	return false;
}

/* ---- packets ---- */

static double build_up_at(const struct pl_model *m, const struct pl_topo_step *s, uint32_t queue)
{
	double extra = 0;

	for (unsigned int i = 0; i < m->n_events; i++) {
		const struct event *ev = &m->events[i];

		if (ev->e->kind == PL_GEN_EVENT_QUEUE && ev->level > 0 && ev->node == s->node &&
			ev->port == s->egress_port &&
			(ev->queue < 0 || (uint32_t)ev->queue == queue))
			extra += ev->level * ev->e->value;
	}
	return extra;
}

/* Hop that drops the packet, or n when none does. */
static unsigned int drop_hop(
	struct pl_model *m, const struct pl_topo_step *steps, unsigned int n, uint8_t *ret_reason)
{
	*ret_reason = 80; /* "traffic manager", as Tofino counts */
	for (unsigned int i = 0; i < m->n_events; i++) {
		const struct event *ev = &m->events[i];

		if (ev->e->kind != PL_GEN_EVENT_DROP || !ev->active)
			continue;
		for (unsigned int h = 0; h < n; h++) {
			if (steps[h].node == ev->node && pl_rng_unit(&m->rng) < ev->e->value) {
				*ret_reason = ev->e->reason;
				return h;
			}
		}
	}
	if (m->cfg->drop > 0 && pl_rng_unit(&m->rng) < m->cfg->drop)
		return (unsigned int)pl_rng_below(&m->rng, n);
	return n;
}

static void make_hop(struct pl_model *m, const struct flow *f, const struct pl_topo_step *s,
	struct pl_int_hop *hop)
{
	const struct pl_gen_cfg *cfg = m->cfg;
	uint32_t queue = f->key.dscp >> 3;
	double extra = build_up_at(m, s, queue);
	uint64_t depth = pl_dist_draw(&cfg->queue, &m->rng, m->queue_max) + (uint64_t)extra;
	uint64_t latency =
		pl_dist_draw(&cfg->latency, &m->rng, m->latency_max) + (uint64_t)(extra * DRAIN_NS);

	/* the depth is limited by the queue's counter */
	if (depth > m->queue_max)
		depth = m->queue_max;
	if (latency > m->latency_max)
		latency = m->latency_max;
	*hop = (struct pl_int_hop){
		.have = ALL_FIELDS,
		.node = pl_topo_node_id(m->topo, s->node),
		.ingress_port = s->ingress_port,
		.egress_port = s->egress_port,
		.ingress_port2 = 1000u + s->ingress_port,
		.egress_port2 = 1000u + s->egress_port,
		.latency = (uint32_t)latency,
		.queue = queue,
		.queue_depth = (uint32_t)depth,
		.congestion_queue = queue,
		.congestion = (uint32_t)(depth / 2),
		.tx_util = (uint32_t)pl_dist_draw(&cfg->util, &m->rng, UINT32_MAX - 1),
		.buffer = 1,
		.buffer_depth = (uint32_t)(depth < 0xfffff ? depth * 2 : depth),
	};
	if (cfg->missing > 0) {
		for (int field = PL_INT_F_PORTS; field < PL_INT_F_MAX; field++) {
			if (pl_rng_unit(&m->rng) < cfg->missing)
				hop->have &= ~PL_INT_HAS(field);
		}
	}
}

/* Sets the times, backwards from the moment the packet left the network. */
static void set_times(struct pl_model *m, struct pl_model_packet *p, uint64_t now_ns)
{
	uint64_t t = now_ns;

	for (unsigned int i = p->n_hops; i-- > 0;) {
		struct pl_int_hop *hop = &p->hops[i];
		int64_t offset = m->clock_offset_ns[p->node[i]];

		hop->egress_ts = t + (uint64_t)offset;
		t -= hop->latency;
		hop->ingress_ts = t + (uint64_t)offset;
		t -= pl_dist_draw(&m->cfg->link, &m->rng, UINT32_MAX);
	}
}

bool pl_model_packet(struct pl_model *m, uint32_t flow, uint64_t now_ns, bool may_drop,
	struct pl_model_packet *ret)
{
	struct flow *f = &m->flows[flow];
	unsigned int n;
	const struct pl_topo_step *steps = flow_path(m, flow, &n);
	unsigned int last;

	ret->flow = flow;
	ret->flow_seq = f->seq++;
	ret->dropped = false;
	ret->drop_reason = 0;
	ret->n_hops = 0;
	if (n == 0)
		return false;
	last = may_drop ? drop_hop(m, steps, n, &ret->drop_reason) : n;
	if (last < n) {
		ret->dropped = true;
		n = last + 1;
	}
	ret->n_hops = n;
	for (unsigned int i = 0; i < n; i++) {
		ret->node[i] = steps[i].node;
		make_hop(m, f, &steps[i], &ret->hops[i]);
	}
	set_times(m, ret, now_ns);
	if (ret->dropped) /* it never left the network */
		ret->hops[n - 1].have &=
			~(PL_INT_HAS(PL_INT_F_LATENCY) | PL_INT_HAS(PL_INT_F_EGRESS_TS) |
				PL_INT_HAS(PL_INT_F_TX_UTIL));
	return true;
}

/* ---- life ---- */

int pl_model_new(struct pl_model **ret, const struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	struct pl_model *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	if (m == NULL)
		return -ENOMEM;
	m->cfg = cfg;
	m->generation = 1;
	/* the largest depth in a queue word with a queue id, without all ones */
	m->queue_max = cfg->dialect == PL_DIALECT_INTCOLLECTOR ? 0xfffe : 0xfffffe;
	/* v0.4 has 31 bits for a value; all ones mean that there is none. */
	m->latency_max = cfg->dialect == PL_DIALECT_V04 ? INT32_MAX - 1 : UINT32_MAX - 1;
	pl_rng_seed(&m->rng, cfg->seed);
	r = pl_topo_new(&m->topo, cfg->topology, pl_rng_u64(&m->rng), diag);
	if (r < 0)
		goto fail;
	m->stride = pl_topo_nodes(m->topo);
	if (m->stride > PL_TOPO_PATH_MAX)
		m->stride = PL_TOPO_PATH_MAX;
	r = -ENOMEM;
	m->flows = calloc(cfg->flows, sizeof(*m->flows));
	m->steps = calloc((size_t)cfg->flows * m->stride, sizeof(*m->steps));
	if (m->flows == NULL || m->steps == NULL)
		goto fail;
	for (unsigned int i = 0; i < pl_topo_nodes(m->topo); i++) {
		double x = 2 * pl_rng_unit(&m->rng) - 1;

		m->clock_offset_ns[i] = (int64_t)(x * (double)cfg->clock_offset_ns);
	}
	for (uint32_t i = 0; i < cfg->flows; i++)
		make_flow(m, i);
	for (unsigned int i = 0; i < cfg->n_events; i++) {
		m->events[i].e = &cfg->events[i];
		r = resolve_event(m, &m->events[i], diag);
		if (r < 0)
			goto fail;
		m->n_events++;
	}
	*ret = m;
	return 0;
fail:
	pl_model_free(m);
	return r;
}

void pl_model_free(struct pl_model *m)
{
	if (m == NULL)
		return;
	pl_topo_free(m->topo);
	free(m->flows);
	free(m->steps);
	free(m);
}

const struct pl_topo *pl_model_topology(const struct pl_model *m)
{
	return m->topo;
}

const struct pl_flow *pl_model_flow(const struct pl_model *m, uint32_t flow)
{
	assert(flow < m->cfg->flows);
	return &m->flows[flow].key;
}

uint32_t pl_model_generation(const struct pl_model *m)
{
	return m->generation;
}

struct pl_rng *pl_model_rng(struct pl_model *m)
{
	return &m->rng;
}
