/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the packets that are reported. */
#include "dataplane/telemetry/report_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/cursor.h"

#define FLOWS_USUAL    4096
#define INTERVAL_USUAL UINT64_C(1000000000)

struct flow {
	uint64_t key; /* 0: free */
	uint64_t path, at_ns;
	uint32_t latency[PL_DP_FILTER_HOPS];
	uint8_t hops;
};

struct pl_dp_flow_change {
	struct pl_dp_flow_change_config config;
	uint32_t mask;
	struct flow flows[];
};

int pl_dp_flow_change_new(
	struct pl_dp_flow_change **ret, const struct pl_dp_flow_change_config *config)
{
	uint32_t n = config->flows != 0 ? config->flows : FLOWS_USUAL;
	struct pl_dp_flow_change *c;

	if (n < 2 || (n & (n - 1)) != 0 || n > UINT32_C(1) << 24)
		return -EINVAL;
	c = calloc(1, sizeof(*c) + n * sizeof(c->flows[0]));
	if (c == NULL)
		return -ENOMEM;
	c->config = *config;
	c->mask = n - 1;
	*ret = c;
	return 0;
}

void pl_dp_flow_change_free(struct pl_dp_flow_change *c)
{
	free(c);
}

/* Returns the flow's key, never 0: a hash of addresses, protocol and ports in this direction, and
 * VLAN. Ports are those before the source: the announcing port is the same for all flows. */
static uint64_t flow_key(
	const struct pl_dp_packet *pkt, const struct pl_dp_int_found *f, uint64_t seed)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const bool inside = f->in.npt == 2;
	uint32_t at = h->l3, n = 0, l4 = inside ? f->end : h->l4, ports;
	uint64_t key = seed ^ (inside ? f->in.proto : h->proto);

	if (h->l3 == PL_DP_NONE)
		return 1;
	if (h->ip_version == 4) {
		at += 12;
		n = 8;
	} else {
		at += 8;
		n = 32;
	}
	if (at + n <= pkt->len)
		key = pl_hash(pkt->data + at, n, key);
	if (l4 != PL_DP_NONE && l4 + 4u <= pkt->len) {
		ports = pl_be32(pkt->data + l4);
		if (f->by == PL_DP_BY_PORT && !inside && f->in.have_dport)
			ports = (ports & 0xffff0000) | f->in.dport;
		key = pl_hash_mix(key, ports);
	}
	if (h->vlan != PL_DP_NONE && h->vlan + 4u <= pkt->len)
		key = pl_hash_mix(key, pl_be16(pkt->data + h->vlan + 2) & 0xfff);
	return key | 1;
}

/* Reads the path and each hop's latency from the stack. */
static void read_stack(const struct pl_dp_int_found *f, struct flow *ret)
{
	const struct pl_int_layout *l = f->in.layout;
	const uint8_t *block = f->in.stack;
	unsigned int n = l != NULL && block != NULL ? f->in.hops : 0;

	ret->path = n;
	ret->hops = (uint8_t)n;
	for (unsigned int i = 0; i < n; i++, block += 4 * (size_t)l->words) {
		if (l->off[PL_INT_F_NODE] != PL_INT_NO_OFFSET)
			ret->path = pl_hash_mix(ret->path, pl_be32(block + l->off[PL_INT_F_NODE]));
		if (l->off[PL_INT_F_PORTS] != PL_INT_NO_OFFSET)
			ret->path = pl_hash_mix(ret->path, pl_be32(block + l->off[PL_INT_F_PORTS]));
		if (i < PL_DP_FILTER_HOPS && l->off[PL_INT_F_LATENCY] != PL_INT_NO_OFFSET)
			ret->latency[i] = pl_be32(block + l->off[PL_INT_F_LATENCY]);
	}
}

static bool latency_moved(const struct flow *old, const struct flow *new, uint32_t by)
{
	unsigned int n = new->hops < PL_DP_FILTER_HOPS ? new->hops : PL_DP_FILTER_HOPS;

	if (old->hops != new->hops)
		return true;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t a = old->latency[i], b = new->latency[i];

		/* all ones: the node had no value to compare */
		if (a != UINT32_MAX && b != UINT32_MAX && (a > b ? a - b : b - a) >= by)
			return true;
	}
	return false;
}

bool pl_dp_flow_change(struct pl_dp_flow_change *c, const struct pl_dp_packet *pkt,
	const struct pl_dp_int_found *found, uint64_t now_ns)
{
	const struct pl_dp_flow_change_config *g = &c->config;
	struct flow now = { .key = flow_key(pkt, found, g->seed), .at_ns = now_ns };
	uint32_t at = (uint32_t)(now.key >> 32) & c->mask;
	struct flow *old;

	if (!g->path && g->latency == 0 && g->interval_ns == 0)
		return true;
	read_stack(found, &now);
	/* Two places; if both are other flows', the one reported longer ago is replaced. */
	old = &c->flows[at];
	if (old->key != now.key) {
		struct flow *other = &c->flows[at ^ 1];

		if (other->key == now.key || other->key == 0 ||
			(old->key != 0 && other->at_ns < old->at_ns))
			old = other;
	}
	if (old->key == now.key && !(g->path && old->path != now.path) &&
		!(g->latency != 0 && latency_moved(old, &now, g->latency)) &&
		!(g->interval_ns != 0 && now_ns - old->at_ns >= g->interval_ns))
		return false;
	*old = now;
	return true;
}

int pl_dp_queue_watch_init(struct pl_dp_queue_watch *w,
	const struct pl_dp_queue_watch_config *config, uint32_t n_ports)
{
	*w = (struct pl_dp_queue_watch){ .config = *config, .n_ports = n_ports };
	if (w->config.reset_bytes == 0)
		w->config.reset_bytes = config->threshold_bytes / 2;
	if (w->config.interval_ns == 0)
		w->config.interval_ns = INTERVAL_USUAL;
	w->queues = calloc((size_t)n_ports * PL_DP_WATCH_CLASSES, sizeof(*w->queues));
	return w->queues == NULL ? -ENOMEM : 0;
}

void pl_dp_queue_watch_done(struct pl_dp_queue_watch *w)
{
	free(w->queues);
	w->queues = NULL;
}

bool pl_dp_queue_watch(struct pl_dp_queue_watch *w, const struct pl_dp_packet *pkt, uint64_t now_ns)
{
	const struct pl_dp_queue_watch_config *c = &w->config;
	struct pl_dp_queue_state *q;

	if (pkt->out_port >= w->n_ports || pkt->queue >= PL_DP_WATCH_CLASSES)
		return false;
	q = &w->queues[pkt->out_port * PL_DP_WATCH_CLASSES + pkt->queue];
	if (pkt->depth_bytes < c->threshold_bytes) {
		if (pkt->depth_bytes < c->reset_bytes)
			q->breached = false;
		/* Between reset and threshold a breach continues. */
		if (!q->breached)
			return false;
	} else {
		q->breached = true;
	}
	if (now_ns - q->since_ns >= c->interval_ns) {
		q->since_ns = now_ns;
		q->sent = 0;
	}
	if (c->quota != 0 && q->sent >= c->quota) {
		w->held++;
		return false;
	}
	q->sent++;
	return true;
}
