/* SPDX-License-Identifier: BSD-2-Clause */
/* The truth about each packet of a simulation: its trace, and the records made of it. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/drop_event.h"
#include "dataplane/sim_state.h"
#include "record/path_id.h"

static bool told(const struct pl_dp_sim *s)
{
	return s->cfg.truth.path != NULL || s->cfg.truth.event != NULL;
}

struct pl_dp_trace *trace_of(const struct pl_dp_packet *pkt)
{
	return pkt->trace != NULL && pkt->trace->owner == pkt ? pkt->trace : NULL;
}

static struct pl_dp_trace *take(struct pl_dp_sim *s)
{
	struct pl_dp_trace *t = s->free;
	size_t hops = told(s) ? PL_DP_SIM_HOPS_MAX : 0;

	if (t != NULL) {
		s->free = t->next;
		return t;
	}
	t = malloc(sizeof(*t) + hops * sizeof(t->hops[0]));
	if (t == NULL) {
		s->account.untraced++;
		return NULL;
	}
	t->older = s->all;
	s->all = t;
	return t;
}

static void give_back(struct pl_dp_sim *s, struct pl_dp_trace *t)
{
	t->owner = NULL;
	t->next = s->free;
	s->free = t;
}

void trace_begin(struct pl_dp_sim *s, struct pl_dp_packet *pkt)
{
	struct pl_dp_trace *t = take(s);
	struct pl_layers layers;

	pkt->trace = t;
	if (t == NULL)
		return;
	t->owner = pkt;
	t->id = ++s->traces;
	t->born_ns = s->now;
	t->copy = false;
	t->n = 0;
	if (!told(s))
		return;
	t->tuple = (struct pl_flow){ .have = 0 };
	if (pl_layers_walk(&layers, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, true) ==
		PL_V_OK)
		t->tuple = layers.flow;
}

void trace_copy(struct pl_dp_sim *s, const struct pl_dp_packet *from, struct pl_dp_packet *copy)
{
	const struct pl_dp_trace *of = trace_of(from);
	struct pl_dp_trace *t;

	copy->trace = NULL;
	if (of == NULL)
		return;
	t = take(s);
	if (t == NULL)
		return;
	t->owner = copy;
	t->id = ++s->traces;
	t->born_ns = of->born_ns;
	t->tuple = of->tuple;
	t->copy = true;
	t->n = of->n;
	if (told(s))
		memcpy(t->hops, of->hops, of->n * sizeof(t->hops[0]));
	copy->trace = t;
	if (copy->flow != 0 && copy->flow <= s->n_flows)
		s->flows[copy->flow - 1].account.copied++;
}

/* Returns the present hop of the packet; NULL when none is kept. */
static struct trace_hop *hop_of(const struct pl_dp_sim *s, const struct pl_dp_packet *pkt)
{
	struct pl_dp_trace *t = trace_of(pkt);

	if (t == NULL || !told(s) || t->n == 0 || t->n != pkt->hops)
		return NULL;
	return &t->hops[t->n - 1];
}

void trace_arrived(struct pl_dp_sim *s, const struct sim_port *at, const struct pl_dp_packet *pkt)
{
	struct pl_dp_trace *t = trace_of(pkt);

	if (t == NULL || !told(s) || t->n == PL_DP_SIM_HOPS_MAX)
		return;
	t->hops[t->n++] = (struct trace_hop){
		.in_ns = s->now, .node = s->nodes[at->node].cfg.id, .in_port = at->number
	};
}

void trace_queued(struct pl_dp_sim *s, const struct pl_dp_packet *pkt)
{
	struct trace_hop *h = hop_of(s, pkt);

	if (h == NULL)
		return;
	h->out_port = pkt->out_port;
	h->queue = pkt->queue;
	h->depth_bytes = pkt->depth_bytes;
	h->queued = true;
}

void trace_left(struct pl_dp_sim *s, const struct pl_dp_packet *pkt, uint64_t true_ns)
{
	struct trace_hop *h = hop_of(s, pkt);

	if (h == NULL)
		return;
	h->out_ns = true_ns;
	h->latency_ns = pkt->out_ns - pkt->in_ns;
	h->tx_util = pkt->tx_util;
	h->left = true;
}

static void put_hops(const struct pl_dp_trace *t, struct pl_hop *hops, struct pl_path *path)
{
	uint64_t id = t->n, latency = 0;
	bool whole = t->n != 0;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct trace_hop *h = &t->hops[i];
		struct pl_hop *r = &hops[i];

		*r = (struct pl_hop){ .ts_ns = path->ts_ns,
			.report_id = path->report_id,
			.record_version = PL_RECORD_VERSION,
			.index = (uint8_t)i,
			.node = h->node,
			.ingress_port = h->in_port,
			.ingress_ts_ns = h->in_ns,
			.time_bits = 64,
			.present = PL_HOP_HAS_node | PL_HOP_HAS_ingress_port |
				   PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_time_bits };
		if (i > 0) {
			r->link_latency_ns = (int64_t)(h->in_ns - t->hops[i - 1].out_ns);
			r->clock = PL_CLOCK_OK;
			r->present |= PL_HOP_HAS_link_latency_ns | PL_HOP_HAS_clock;
		}
		if (h->queued) {
			r->egress_port = h->out_port;
			r->queue = h->queue;
			r->queue_depth = h->depth_bytes;
			r->present |=
				PL_HOP_HAS_egress_port | PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth;
			pl_hop_set_queue_bytes(r, h->depth_bytes);
		}
		if (h->left) {
			r->egress_ts_ns = h->out_ns;
			r->tx_util = h->tx_util;
			/* No latency if the clock was set back while the packet was in the node. */
			if (h->latency_ns <= UINT32_MAX) {
				r->hop_latency_ns = (uint32_t)h->latency_ns;
				r->present |= PL_HOP_HAS_hop_latency_ns;
			}
			r->present |= PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_tx_util;
		}
		latency += r->hop_latency_ns;
		whole = whole && (r->present & PL_HOP_HAS_hop_latency_ns) != 0;
		id = pl_path_id_step(id, r, r->present);
	}
	if (!whole || (path->flags & PL_FLAG_DROPPED) != 0)
		return;
	path->path_id = pl_path_id_end(id);
	path->latency_ns = latency;
	path->present |= PL_PATH_HAS_path_id | PL_PATH_HAS_latency_ns;
	for (unsigned int i = 0; i < t->n; i++) {
		hops[i].path_id = path->path_id;
		hops[i].present |= PL_HOP_HAS_path_id;
	}
}

static void tell_path(struct pl_dp_sim *s, const struct pl_dp_trace *t,
	const struct pl_dp_packet *pkt, bool dropped)
{
	const struct pl_flow *f = &t->tuple;
	struct pl_hop hops[PL_DP_SIM_HOPS_MAX];
	struct pl_path path = { .ts_ns = s->now,
		.mode = PL_MODE_MD,
		.hop_count = t->n,
		.record_version = PL_RECORD_VERSION,
		.report_id = t->id,
		.flow_seq = (uint32_t)pkt->serial,
		.flow_id = pkt->flow,
		.present = PL_PATH_HAS_flow_seq | PL_PATH_HAS_flow_id };

	if (s->cfg.truth.path == NULL)
		return;
	path.flags = (uint16_t)((dropped ? PL_FLAG_DROPPED : 0) | (t->copy ? PL_FLAG_COPY : 0));
	if (dropped) {
		path.drop_reason = pl_dp_drop_code(pkt->drop);
		path.present |= PL_PATH_HAS_drop_reason;
	}
	if (!pl_addr_is_unspecified(&f->src) || !pl_addr_is_unspecified(&f->dst)) {
		path.src = f->src;
		path.dst = f->dst;
		path.proto = f->proto;
		path.dscp = f->dscp;
		path.present |=
			PL_PATH_HAS_src | PL_PATH_HAS_dst | PL_PATH_HAS_proto | PL_PATH_HAS_dscp;
	}
	if ((f->have & PL_FLOW_PORTS) != 0) {
		path.sport = f->sport;
		path.dport = f->dport;
		path.present |= PL_PATH_HAS_sport | PL_PATH_HAS_dport;
	}
	pl_path_set_e2e_ts_ns(&path, t->born_ns);
	put_hops(t, hops, &path);
	s->cfg.truth.path(s->cfg.truth.arg, &path, hops);
}

static void tell_event(struct pl_dp_sim *s, const struct pl_dp_trace *t,
	const struct pl_dp_packet *pkt, const struct pl_dp_drop_place *place)
{
	struct pl_event e;

	if (s->cfg.truth.event == NULL)
		return;
	pl_dp_drop_event(&e, place, &t->tuple, pkt->drop);
	e.report_id = t->id;
	e.present |= PL_EVENT_HAS_report_id;
	s->cfg.truth.event(s->cfg.truth.arg, &e);
}

void trace_delivered(struct pl_dp_sim *s, const struct pl_dp_packet *pkt)
{
	struct pl_dp_trace *t = trace_of(pkt);

	if (t == NULL)
		return;
	tell_path(s, t, pkt, false);
	give_back(s, t);
}

void trace_dropped(struct pl_dp_sim *s, unsigned int node, const struct pl_dp_packet *pkt)
{
	struct pl_dp_trace *t = trace_of(pkt);
	const struct trace_hop *h = hop_of(s, pkt);
	/* At a host's own port, or in a node after the port was chosen. */
	const bool out = h == NULL || h->queued;
	const struct pl_dp_drop_place place = { .ts_ns = s->now,
		.node = s->nodes[node].cfg.id,
		.port = out ? pkt->out_port : h->in_port,
		.queue = pkt->queue,
		.came_in = !out };

	if (t == NULL)
		return;
	if (pkt->flow != 0 && pkt->flow <= s->n_flows)
		s->flows[pkt->flow - 1].account.dropped++;
	tell_event(s, t, pkt, &place);
	tell_path(s, t, pkt, true);
	give_back(s, t);
}

void trace_lost(struct pl_dp_sim *s, const struct sim_link *link, const struct pl_dp_packet *pkt)
{
	const struct sim_port *from = &s->ports[link->from], *to = &s->ports[link->to];
	struct pl_dp_trace *t = trace_of(pkt);
	const struct pl_dp_drop_place place = { .ts_ns = s->now,
		.on_link = true,
		.node = s->nodes[to->node].cfg.id,
		.port = to->number,
		.peer_node = s->nodes[from->node].cfg.id,
		.peer_port = from->number };

	if (t == NULL)
		return;
	if (pkt->flow != 0 && pkt->flow <= s->n_flows)
		s->flows[pkt->flow - 1].account.lost++;
	tell_event(s, t, pkt, &place);
	tell_path(s, t, pkt, true);
	give_back(s, t);
}
