/* SPDX-License-Identifier: BSD-2-Clause */
/* What the direct parser settled, held against the records that decode/ makes of the same
 * packet. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/decode.h"
#include "detect/direct.h"

/* The first difference by name, or NULL. */
static inline const char *direct_hop_differs(const struct pl_core_hop *h,
	const struct pl_path *path, const struct pl_hop *hops, unsigned int i)
{
	const uint32_t own = PL_HOP_HAS_path_id;
	const struct pl_hop *r = &hops[i];
	uint32_t before = 0;

	if (h->present != (r->present & ~own))
		return "present";
	if (h->node != r->node || h->ingress_port != r->ingress_port ||
		h->egress_port != r->egress_port)
		return "node and ports";
	if (h->hop_latency_ns != r->hop_latency_ns)
		return "hop latency";
	if (h->queue_depth != r->queue_depth || h->queue != r->queue)
		return "queue";
	if (h->tx_util != r->tx_util || h->buffer_depth != r->buffer_depth ||
		h->buffer != r->buffer)
		return "utilization and buffer";
	if (h->link_latency_ns != (uint64_t)r->link_latency_ns || h->clock != r->clock)
		return "link latency";
	if (h->index != r->index)
		return "index";
	if (i > 0 && ((path->flags & PL_FLAG_PARTIAL) == 0 || (r->present & PL_HOP_HAS_clock) != 0))
		before = r[-1].present & (PL_HOP_HAS_node | PL_HOP_HAS_egress_port);
	if (h->before_present != before)
		return "the hop before";
	if (before != 0 && (h->before_node != r[-1].node || h->before_port != r[-1].egress_port))
		return "the hop before";
	return NULL;
}

static inline const char *direct_flow_differs(
	const struct pl_core_report *r, const struct pl_path *path)
{
	const struct pl_flow_key *k = &r->flow;

	if (!pl_addr_equal(&k->src, &path->src) || !pl_addr_equal(&k->dst, &path->dst))
		return "flow addresses";
	if (k->sport != path->sport || k->dport != path->dport || k->proto != path->proto)
		return "flow ports";
	if (k->vlan != path->vlan || k->vni != path->vni)
		return "flow network";
	if (((k->has & PL_FLOW_KEY_HAS_PORTS) != 0) != ((path->present & PL_PATH_HAS_sport) != 0) ||
		((k->has & PL_FLOW_KEY_HAS_VLAN) != 0) !=
			((path->present & PL_PATH_HAS_vlan) != 0) ||
		((path->present & PL_PATH_HAS_vni) != 0))
		return "what the flow has";
	return NULL;
}

static inline const char *direct_differs(
	const struct pl_core_scratch *s, const struct pl_path *path, const struct pl_hop *hops)
{
	const struct pl_core_report *r = &s->report;
	const uint32_t unseen = PL_PATH_HAS_dialect | PL_PATH_HAS_flow_seq;
	const char *differs = direct_flow_differs(r, path);

	if (differs != NULL)
		return differs;
	if (r->present != (path->present & ~unseen))
		return "present of the path";
	if (!pl_addr_equal(&r->exporter, &path->exporter))
		return "exporter";
	if (r->node != path->node || r->path_id != path->path_id)
		return "node or path id";
	if (r->seq != path->seq || r->flags != path->flags || r->mode != path->mode)
		return "sequence, flags or mode";
	if (r->hw_id != path->hw_id || r->report_version != path->report_version ||
		r->drop_reason != path->drop_reason || r->hop_count != path->hop_count)
		return "header";
	if (r->ts_ns != path->ts_ns)
		return "time";
	if ((r->present & PL_PATH_HAS_latency_ns) && s->latency_ns != path->latency_ns)
		return "path latency";
	for (unsigned int i = 0; differs == NULL && i < path->hop_count; i++)
		differs = direct_hop_differs(&s->hops[i], path, hops, i);
	return differs;
}
