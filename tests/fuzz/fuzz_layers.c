/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers and tunnels of any bytes, level by level as the decoder goes, from every kind of link.
 * First byte: the link, and with the top bit lenient. The inline shortcut and the general walk must
 * agree, and every result must lie inside the frame. What TCP or UDP carries is written again from
 * its flow and payload, and reading that gives the same.
 */
#include "fuzz.h"
#include "wire/layers.h"

static void inside(const struct pl_cursor *outer, const struct pl_cursor *c)
{
	must(c->pos >= outer->pos && c->pos <= c->end && c->end <= outer->end);
}

static void same(const struct pl_layers *a, const struct pl_layers *b)
{
	must(pl_addr_equal(&a->flow.src, &b->flow.src) &&
		pl_addr_equal(&a->flow.dst, &b->flow.dst));
	must(a->flow.sport == b->flow.sport && a->flow.dport == b->flow.dport);
	must(a->flow.vlan == b->flow.vlan && a->flow.have == b->flow.have);
	must(a->flow.proto == b->flow.proto && a->flow.dscp == b->flow.dscp);
	must(a->transport.pos == b->transport.pos && a->transport.end == b->transport.end);
	must(a->payload.pos == b->payload.pos && a->payload.end == b->payload.end);
	must(a->ip_version == b->ip_version && a->ttl == b->ttl && a->ecn == b->ecn);
	must(a->flags == b->flags && a->missing == b->missing);
}

static void again(const struct pl_layers *l)
{
	static uint8_t memory[8192];
	struct pl_build b = pl_build(memory, sizeof(memory));
	size_t left = pl_cursor_left(&l->payload), at;
	const struct pl_flow *f = &l->flow;
	bool v4 = pl_addr_is_v4(&f->src);
	struct pl_layers out;

	/* The writer goes by the addresses; an IPv6 packet may mix the forms. ICMP's rest of the
	 * header is payload to the reader only. */
	if (v4 != pl_addr_is_v4(&f->dst) || (f->proto != PL_IP_TCP && f->proto != PL_IP_UDP))
		return;
	pl_put_eth(&b, v4 ? PL_ETH_IPV4 : PL_ETH_IPV6, f->vlan);
	at = pl_put_ip(&b, f, l->ttl, 0);
	pl_put(&b, l->payload.pos, left);
	pl_end_ip(&b, at);
	must(!b.full);
	must(pl_layers_walk(&out, pl_cursor(memory, b.len), PL_LINK_ETHERNET, false) == PL_V_OK);
	must(pl_addr_equal(&out.flow.src, &f->src) && pl_addr_equal(&out.flow.dst, &f->dst));
	must(out.flow.proto == f->proto && out.flow.dscp == f->dscp && out.ttl == l->ttl);
	must(out.flow.have == f->have && out.flow.vlan == f->vlan);
	must(out.flow.sport == f->sport && out.flow.dport == f->dport && out.flags == 0);
	must(pl_cursor_left(&out.payload) == left);
	must(left == 0 || memcmp(out.payload.pos, l->payload.pos, left) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_cursor c;
	enum pl_link link;
	bool lenient;

	if (size < 1)
		return 0;
	link = (enum pl_link)(data[0] % PL_LINK_MAX);
	lenient = (data[0] & 0x80) != 0;
	c = pl_cursor(data + 1, size - 1);
	for (unsigned int level = 0; level < PL_NESTING_MAX; level++) {
		struct pl_layers any, usual;
		struct pl_tunnel t;
		enum pl_verdict v = pl_layers_walk_any(&any, c, link, lenient);

		must(v < PL_V_MAX);
		if (pl_layers_walk_usual(&usual, &c, link)) {
			must(v == PL_V_OK);
			same(&usual, &any);
		}
		inside(&c, &any.transport);
		inside(&c, &any.payload);
		if (any.flags & PL_LAYERS_HOP_OPTS)
			inside(&c, &any.hop_opts);
		if (any.flags & PL_LAYERS_DST_OPTS)
			inside(&c, &any.dst_opts);
		if (v != PL_V_OK)
			return 0;
		must((any.flow.have & PL_FLOW_PORTS) == 0 || (any.flags & PL_LAYERS_FRAGMENT) == 0);
		must(any.ip_version == 4 || any.ip_version == 6);
		must(any.flow.dscp < 64 && any.flow.vlan < 4096);
		must((any.missing != 0) == ((any.flags & PL_LAYERS_CUT) != 0));
		if ((any.flow.have & PL_FLOW_PORTS) != 0 && pl_cursor_left(&any.payload) < 4096)
			again(&any);
		v = pl_tunnel_open(&t, &any, PL_VXLAN_PORTS);
		must(v == PL_V_OK || t.kind == PL_TUNNEL_NONE);
		if (v != PL_V_OK || t.kind == PL_TUNNEL_NONE || t.inner_link == PL_LINK_UNKNOWN)
			return 0;
		inside(&c, &t.inner);
		inside(&c, &t.options);
		/* An opened tunnel has consumed at least an IP header. */
		must(pl_cursor_left(&t.inner) + 20 <= pl_cursor_left(&c));
		c = t.inner;
		link = t.inner_link;
	}
	return 0;
}
