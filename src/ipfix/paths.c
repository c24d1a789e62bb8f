/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and hops into messages of IPFIX. */
#include "ipfix/paths.h"

#include <fixbuf/public.h>
#include <string.h>

#include "ipfix/sets.h"

/* Kinds of data records. */
enum { PATH, HOP };

/* Flags of elements: of both kinds of data record, of paths, of hops. */
enum {
	K_ALWAYS = 0,
	K_MS = 1 << 0,
	K_US = 1 << 1,
	K_NS = 1 << 2,
	K_PATH_ID = 1 << 3,
	K_FLOW = 1 << 4,
	K_V6 = 1 << 5,
	K_V4 = 1 << 6,
	K_PORTS = 1 << 7,
	K_ICMP4 = 1 << 8,
	K_ICMP6 = 1 << 9,
};
enum {
	P_ALWAYS = 0,
	P_FLOW = K_FLOW,
	P_EXPORTER6 = 1 << 10,
	P_EXPORTER4 = 1 << 11,
	P_NODE = 1 << 12,
	P_LATENCY = 1 << 13,
	P_SEQ = 1 << 14,
	P_FLOW_SEQ = 1 << 15,
	P_FLOW_ID = 1 << 16,
	P_LOST = 1 << 17,
	P_VNI = 1 << 18,
	P_EXPORTER_PORT = 1 << 19,
	P_VLAN = 1 << 20,
	P_DROP = 1 << 21,
	P_HW_ID = 1 << 22,
};
enum {
	H_ALWAYS = 0,
	H_NODE = 1 << 10,
	H_NODE_WIDE = 1 << 11,
	H_INGRESS_TIME = 1 << 12,
	H_EGRESS_TIME = 1 << 13,
	H_LINK_LATENCY = 1 << 14,
	H_QUEUE_BYTES = 1 << 15,
	H_BUFFER_BYTES = 1 << 16,
	H_INGRESS_PORT = 1 << 17,
	H_EGRESS_PORT = 1 << 18,
	H_INGRESS_PORT2 = 1 << 19,
	H_EGRESS_PORT2 = 1 << 20,
	H_HOP_LATENCY = 1 << 21,
	H_QUEUE_DEPTH = 1 << 22,
	H_TX_UTIL = 1 << 23,
	H_BUFFER_DEPTH = 1 << 24,
	H_CONGESTION = 1 << 25,
	H_QUEUE = 1 << 26,
	H_BUFFER = 1 << 27,
	H_CLOCK = 1 << 28,
	H_HOP_LIMIT = 1 << 29,
};

#define MEMBER(type, member, ...) type member;
struct key {
#define PL_IPFIX_KEY MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_KEY
} __attribute__((packed));
struct path {
	struct key key;
#define PL_IPFIX_PATH MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_PATH
} __attribute__((packed));
struct hop {
	struct key key;
#define PL_IPFIX_HOP MEMBER
#include "ipfix/paths.def"
#undef PL_IPFIX_HOP
} __attribute__((packed));

#define PL_IPFIX_KEY(type, member, name, id, flag, help) { (char *)(name), sizeof(type), K_##flag },
#define PL_IPFIX_PATH(type, member, name, id, flag, help)                                          \
	{ (char *)(name), sizeof(type), P_##flag },
static fbInfoElementSpec_t path_elements[] = {
#include "ipfix/paths.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_PATH
#define PL_IPFIX_HOP(type, member, name, id, flag, help) { (char *)(name), sizeof(type), H_##flag },
static fbInfoElementSpec_t hop_elements[] = {
#include "ipfix/paths.def"
	FB_IESPEC_NULL,
};
#undef PL_IPFIX_KEY
#undef PL_IPFIX_HOP

static const struct pl_ipfix_own own_elements[] = {
#define PL_IPFIX_KEY  PL_IPFIX_OWN
#define PL_IPFIX_PATH PL_IPFIX_OWN
#define PL_IPFIX_HOP  PL_IPFIX_OWN
#include "ipfix/paths.def"
#undef PL_IPFIX_KEY
#undef PL_IPFIX_PATH
#undef PL_IPFIX_HOP
};

static fbInfoElementSpec_t *const kinds[] = { [PATH] = path_elements, [HOP] = hop_elements };

static const struct pl_ipfix_schema schema = { .kinds = kinds,
	.n_kinds = sizeof(kinds) / sizeof(kinds[0]),
	.own = own_elements,
	.n_own = sizeof(own_elements) / sizeof(own_elements[0]),
	.times = { K_MS, K_US, K_NS } };

/* ---- which values a record has ---- */

struct value {
	uint32_t present, flag;
};

static const struct value path_values[] = {
	{ PL_PATH_HAS_path_id, K_PATH_ID },
	{ PL_PATH_HAS_node, P_NODE },
	{ PL_PATH_HAS_latency_ns, P_LATENCY },
	{ PL_PATH_HAS_seq, P_SEQ },
	{ PL_PATH_HAS_flow_seq, P_FLOW_SEQ },
	{ PL_PATH_HAS_flow_id, P_FLOW_ID },
	{ PL_PATH_HAS_lost_count, P_LOST },
	{ PL_PATH_HAS_vni, P_VNI },
	{ PL_PATH_HAS_exporter_port, P_EXPORTER_PORT },
	{ PL_PATH_HAS_vlan, P_VLAN },
	{ PL_PATH_HAS_drop_reason, P_DROP },
	{ PL_PATH_HAS_hw_id, P_HW_ID },
};

static const struct value hop_values[] = {
	{ PL_HOP_HAS_path_id, K_PATH_ID },
	{ PL_HOP_HAS_node, H_NODE },
	{ PL_HOP_HAS_node_wide, H_NODE_WIDE },
	{ PL_HOP_HAS_ingress_ts_ns, H_INGRESS_TIME },
	{ PL_HOP_HAS_egress_ts_ns, H_EGRESS_TIME },
	{ PL_HOP_HAS_link_latency_ns, H_LINK_LATENCY },
	{ PL_HOP_HAS_queue_bytes, H_QUEUE_BYTES },
	{ PL_HOP_HAS_buffer_bytes, H_BUFFER_BYTES },
	{ PL_HOP_HAS_ingress_port, H_INGRESS_PORT },
	{ PL_HOP_HAS_egress_port, H_EGRESS_PORT },
	{ PL_HOP_HAS_ingress_port2, H_INGRESS_PORT2 },
	{ PL_HOP_HAS_egress_port2, H_EGRESS_PORT2 },
	{ PL_HOP_HAS_hop_latency_ns, H_HOP_LATENCY },
	{ PL_HOP_HAS_queue_depth, H_QUEUE_DEPTH },
	{ PL_HOP_HAS_tx_util, H_TX_UTIL },
	{ PL_HOP_HAS_buffer_depth, H_BUFFER_DEPTH },
	{ PL_HOP_HAS_congestion, H_CONGESTION },
	{ PL_HOP_HAS_queue, H_QUEUE },
	{ PL_HOP_HAS_buffer, H_BUFFER },
	{ PL_HOP_HAS_clock, H_CLOCK },
	{ PL_HOP_HAS_hop_limit, H_HOP_LIMIT },
};

static uint32_t flags_of(const struct value *values, size_t n, uint32_t present)
{
	uint32_t flags = 0;

	for (size_t i = 0; i < n; i++)
		flags |= (present & values[i].present) != 0 ? values[i].flag : 0;
	return flags;
}

#define FLAGS_OF(values, present) flags_of(values, sizeof(values) / sizeof((values)[0]), present)

static bool is_v4(const struct pl_path *p)
{
	return pl_addr_is_v4(&p->src) && pl_addr_is_v4(&p->dst);
}

/* Flags of the flow's values; those of a path and of its hops. */
static uint32_t flow_flags(const struct pl_path *p)
{
	const bool v4 = is_v4(p);
	uint32_t flags;

	if ((p->present & PL_PATH_HAS_src) == 0)
		return 0;
	flags = K_FLOW | (v4 ? K_V4 : K_V6);
	if ((p->present & PL_PATH_HAS_sport) == 0)
		return flags;
	if (p->proto == (v4 ? 1 : 58))
		return flags | (v4 ? K_ICMP4 : K_ICMP6);
	return flags | K_PORTS;
}

static uint32_t path_flags(const struct pl_ipfix_sets *x, const struct pl_path *p)
{
	uint32_t flags = x->time | flow_flags(p) | FLAGS_OF(path_values, p->present);

	if ((p->present & PL_PATH_HAS_exporter) != 0)
		flags |= pl_addr_is_v4(&p->exporter) ? P_EXPORTER4 : P_EXPORTER6;
	return flags;
}

/* ---- records ---- */

static void fill_key(const struct pl_ipfix_sets *x, struct key *k, const struct pl_path *p)
{
	const uint64_t at = pl_ipfix_time(x->unit, p->ts_ns);
	const uint16_t icmp = (uint16_t)(p->sport << 8 | (p->dport & 0xff));

	*k = (struct key){ .start_ms = at,
		.end_ms = at,
		.start_us = at,
		.end_us = at,
		.start_ns = at,
		.end_ns = at,
		.report_id = p->report_id,
		.path_id = p->path_id,
		.src6 = p->src,
		.dst6 = p->dst,
		.src4 = pl_ipfix_v4(&p->src),
		.dst4 = pl_ipfix_v4(&p->dst),
		.sport = p->sport,
		.dport = p->dport,
		.icmp4 = icmp,
		.icmp6 = icmp,
		.proto = p->proto };
}

/* Values of forwardingStatus, without a reason: the reasons of the element are not those of
 * nodes. */
enum { FORWARDED = 0x40, DROPPED = 0x80 };

static void fill_path(const struct pl_ipfix_sets *x, struct path *r, const struct pl_path *p)
{
	*r = (struct path){ .exporter6 = p->exporter,
		.exporter4 = pl_ipfix_v4(&p->exporter),
		.node = p->node,
		.latency_ns = p->latency_ns,
		.seq = p->seq,
		.flow_seq = p->flow_seq,
		.flow_id = p->flow_id,
		.lost = p->flow_id, /* shares the bytes of flow_id */
		.vni = p->vni,
		.flags = p->flags,
		.exporter_port = p->exporter_port,
		.vlan = p->vlan,
		.dscp = p->dscp,
		.forwarding = (p->flags & PL_FLAG_DROPPED) != 0 ? DROPPED : FORWARDED,
		.hop_count = p->hop_count,
		.mode = p->mode,
		.drop_reason = p->drop_reason,
		.hw_id = p->hw_id };
	fill_key(x, &r->key, p);
}

static void fill_hop(struct hop *r, const struct key *key, const struct pl_hop *h)
{
	*r = (struct hop){ .key = *key,
		.node = h->node,
		.node_wide = h->node_wide,
		.ingress_ns = h->ingress_ts_ns,
		.egress_ns = h->egress_ts_ns,
		.link_latency_ns = h->link_latency_ns,
		.queue_bytes = h->ns_data_wide, /* shares its bytes, and those of the next member */
		.buffer_bytes = h->node_wide,
		.ingress_port = h->ingress_port,
		.egress_port = h->egress_port,
		.ingress_port2 = h->ingress_port2,
		.egress_port2 = h->egress_port2,
		.hop_latency_ns = h->hop_latency_ns,
		.queue_depth = h->queue_depth,
		.tx_util = h->tx_util,
		.buffer_depth = h->buffer_depth,
		.congestion = h->congestion,
		.queue = h->queue,
		.index = h->index,
		.buffer = h->buffer,
		.clock = h->clock,
		.hop_limit = h->hop_limit };
	r->key.path_id = h->path_id;
}

bool pl_ipfix_paths_put(struct pl_ipfix_sets *x, const struct pl_path *path,
	const struct pl_hop *hops, uint32_t export_s)
{
	const uint32_t shared = x->time | flow_flags(path);
	struct pl_ipfix_sets *all = x;
	struct pl_ipfix_set *first = pl_ipfix_set_of(all, PATH, path_flags(x, path)),
			    *sets[UINT8_MAX];
	bool known = first != NULL;
	uint32_t room = known ? first->bytes : 0;
	struct path p;
	struct hop h;

	for (unsigned int i = 0; known && i < path->hop_count; i++) {
		sets[i] = pl_ipfix_set_of(all, HOP, shared | FLAGS_OF(hop_values, hops[i].present));
		known = sets[i] != NULL;
		room += known ? sets[i]->bytes : 0;
	}
	if (!known)
		return false;
	if (all->m.used + room > sizeof(all->m.bytes))
		pl_ipfix_send(&all->m, export_s);
	pl_ipfix_set_announce(all, first, export_s);
	for (unsigned int i = 0; i < path->hop_count; i++)
		pl_ipfix_set_announce(all, sets[i], export_s);
	fill_path(x, &p, path);
	pl_ipfix_set_put(all, first, &p, sizeof(p), export_s);
	for (unsigned int i = 0; i < path->hop_count; i++) {
		fill_hop(&h, &p.key, &hops[i]);
		pl_ipfix_set_put(all, sets[i], &h, sizeof(h), export_s);
	}
	all->m.entries++;
	return true;
}

/* ---- the rest ---- */

int pl_ipfix_paths_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options)
{
	return pl_ipfix_sets_new(ret, &schema, options);
}
