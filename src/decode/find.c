/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the telemetry in a packet, level by level through the encapsulations. INT is announced
 * by the carrier (VXLAN-GPE next protocol, Geneve option class, GRE protocol), or over TCP, UDP
 * and ICMP by the announcement in the profile: a DSCP value, a destination port, a probe marker.
 * In the inner packet of a report whose F bit permits it, INT is also recognised by validating
 * the bytes; in packets on the wire only where one of the customary announcements points at it.
 */
#include "decode/internal.h"

/* Customary announcements, tried (not trusted) when the profile names none: the specifications'
 * example DSCP, Host-INT's UDP port, H3C's probe marker. */
#define DSCP_EXAMPLE   0x17
#define PORT_HOST_INT  33122
#define MARKER_EXAMPLE UINT64_C(0xaaaaaaaabbbbbbbb)

#define GPE_CHAIN_MAX  4
#define TCP_FIXED      20
#define ICMP_FIXED     8 /* type, code, checksum, and four bytes that depend on the type */

static bool is_icmp(const struct pl_layers *l)
{
	return l->flow.proto == (l->ip_version == 4 ? PL_IP_ICMP : PL_IP_ICMPV6);
}

static bool accepted(enum pl_verdict v)
{
	return v == PL_V_OK || v == PL_V_INT_TRUNCATED;
}

/* INT at c, which is within the level l. */
static enum pl_verdict parse(struct job *j, struct pl_int *ret, struct pl_cursor c,
	const struct pl_layers *l, enum pl_int_carrier carrier)
{
	enum pl_verdict v = pl_int_parse_in(ret, &c, l, carrier, &j->profile->hints, &j->d->cache);

	if (v == PL_V_INT_TRUNCATED) {
		ret->partial = true;
		ret->notes |= PL_NOTE_BIT(PARTIAL);
	}
	return v;
}

/* INT at c behind a header that gave the path: it only leads to the next header. It has a cache of
 * its own, because its layout may take the place of the path's in the decoder's. */
__attribute__((cold, noinline)) static enum pl_verdict parse_further(struct job *j,
	struct pl_int *ret, struct pl_cursor c, const struct pl_layers *l,
	enum pl_int_carrier carrier)
{
	struct pl_int_cache cache = { .key = { 0 } };
	enum pl_verdict v = pl_int_parse_in(ret, &c, l, carrier, &j->profile->hints, &cache);

	ret->layout = NULL;
	return v;
}

/* The ports of the original transport header at c; without one, the flow has none. */
static void original_ports(struct pl_flow *flow, uint8_t proto, struct pl_cursor c)
{
	const uint8_t *p;

	flow->proto = proto;
	flow->have &= (uint8_t)~PL_FLOW_PORTS;
	flow->sport = 0;
	flow->dport = 0;
	if (proto == PL_IP_TCP || proto == PL_IP_UDP) {
		p = pl_cursor_peek(&c, 4);
		if (p == NULL)
			return;
		flow->sport = pl_be16(p);
		flow->dport = pl_be16(p + 2);
	} else if (proto == PL_IP_ICMP || proto == PL_IP_ICMPV6) {
		p = pl_cursor_peek(&c, 2);
		if (p == NULL)
			return;
		flow->sport = p[0];
		flow->dport = p[1];
	} else {
		return;
	}
	flow->have |= PL_FLOW_PORTS;
}

/* Restores values of the original packet from the shim. True when the source added the UDP header
 * before INT, so that the original transport header follows INT: v2.x NPT 2; Host-INT on its port;
 * a v0.5 tail that names another protocol. */
static bool restore(struct pl_flow *flow, const struct pl_int *in, uint16_t int_port)
{
	bool by_port = flow->proto == PL_IP_UDP &&
		       (flow->dport == PORT_HOST_INT || (int_port != 0 && flow->dport == int_port));
	bool added = in->npt == 2 || (in->have_proto && in->proto != flow->proto) ||
		     (in->host_int && in->have_proto && by_port);
	bool ports = flow->proto == PL_IP_UDP || flow->proto == PL_IP_TCP;

	if (in->have_dscp)
		flow->dscp = in->dscp;
	if (added)
		original_ports(flow, in->proto, in->rest);
	else if (in->have_dport && ports)
		flow->dport = in->dport;
	return added;
}

/* The places where a shim may begin over TCP, UDP or ICMP; returns how many. */
static unsigned int candidates(
	struct pl_cursor ret[2], const struct job *j, const struct pl_layers *l, bool *ret_marker)
{
	const struct pl_profile *p = j->profile;
	uint64_t marker = p->marker_set ? p->marker : MARKER_EXAMPLE;
	const uint8_t *head;
	unsigned int n = 0;

	*ret_marker = false;
	if (l->flow.proto == PL_IP_UDP) {
		ret[n++] = l->payload;
	} else if (l->flow.proto != PL_IP_TCP) {
		ret[n] = l->transport;
		pl_cursor_skip(&ret[n++], ICMP_FIXED);
	} else {
		struct pl_cursor before = l->transport;

		if (p->tcp_placement != PL_TCP_BEFORE_OPTIONS)
			ret[n++] = l->payload;
		if (p->tcp_placement != PL_TCP_AFTER_OPTIONS) {
			pl_cursor_skip(&before, TCP_FIXED);
			if (n == 0 || before.pos != ret[0].pos)
				ret[n++] = before;
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		head = pl_cursor_peek(&ret[i], 8);
		if (head == NULL || pl_be64(head) != marker)
			continue;
		ret[0] = ret[i];
		pl_cursor_skip(&ret[0], 8);
		*ret_marker = true;
		return 1;
	}
	return n;
}

/* INT that was found over TCP, UDP or ICMP. */
static void take_int(struct job *j, struct found *ret, bool announced, bool f_lies)
{
	ret->have_int = true;
	ret->announced = announced;
	ret->added = restore(&ret->flow, &ret->in, j->profile->int_port);
	if (f_lies && announced)
		j->notes |= PL_NOTE_BIT(F_BIT_LIES);
}

#define NONE UINT32_MAX

static enum pl_verdict over_l4(
	struct job *j, struct found *ret, const struct pl_layers *l, bool inside, bool tracked)
{
	const struct pl_profile *p = j->profile;
	struct pl_cursor at[2];
	bool marker, announced, try_it, broken = false;
	enum pl_verdict first = PL_V_OK;
	unsigned int n, destination = NONE;
	struct pl_int *in = &ret->in;

	n = candidates(at, j, l, &marker);
	announced =
		(p->dscp_set && (l->flow.dscp & p->dscp_mask) == p->dscp_value) ||
		(p->int_port != 0 && l->flow.proto == PL_IP_UDP && l->flow.dport == p->int_port) ||
		(marker && p->marker_set);
	if (inside)
		try_it = tracked && p->embedded == PL_EMBEDDED_AUTO &&
			 !(l->flow.proto == PL_IP_UDP && is_tunnel_port(j->d, l->flow.dport));
	else
		try_it = l->flow.dscp == DSCP_EXAMPLE || l->flow.dport == PORT_HOST_INT || marker;
	if (p->embedded == PL_EMBEDDED_NEVER || (!announced && !try_it))
		return PL_V_OK;
	/* UDP's length may leave no payload where IP's does. */
	if (pl_cursor_left(&l->payload) == 0 && l->flow.proto == PL_IP_UDP &&
		pl_cursor_left(&l->transport) <= 8)
		n = 0;

	for (unsigned int i = 0; i < n; i++) {
		enum pl_verdict v;

		if (pl_cursor_left(&at[i]) == 0 && l->flow.proto != PL_IP_UDP)
			continue;
		v = parse(j, in, at[i], l, PL_INT_OVER_L4);
		if (v == PL_V_OK && in->kind == PL_INT_DESTINATION) {
			destination = destination == NONE ? i : destination;
			continue;
		}
		if (v == PL_V_OK ||
			(v == PL_V_INT_TRUNCATED &&
				(announced || (in->layout != NULL && pl_int_resembles(at[i]))))) {
			take_int(j, ret, announced, inside && !tracked);
			return v;
		}
		if (first == PL_V_OK || (!broken && pl_int_resembles(at[i])))
			first = v;
		broken = broken || pl_int_resembles(at[i]);
	}
	/* A header of the destination type and nothing else begins as many other things do; the
	 * addresses in ICMPv6 among them. */
	if (destination != NONE && !is_icmp(l) && !broken &&
		parse(j, in, at[destination], l, PL_INT_OVER_L4) == PL_V_OK) {
		take_int(j, ret, announced, inside && !tracked);
		ret->unread = true;
		return PL_V_OK;
	}
	/* F = 0 promises that there is no INT (Telemetry Report v2.0 3.3): bytes that are none keep
	 * the promise, whatever the announcement, which may be a DSCP that others use too. */
	if (announced && (!inside || tracked)) {
		ret->unread = first == PL_V_OK && (l->flags & PL_LAYERS_CUT) != 0;
		return first;
	}
	if (try_it && first != PL_V_OK) {
		if (broken)
			return first;
		if (inside && (marker || l->flow.dscp == DSCP_EXAMPLE))
			j->notes |= PL_NOTE_BIT(EMBEDDED_INVALID);
	}
	return PL_V_OK;
}

/* INT shims chained in VXLAN-GPE; *next and *inner move behind them. */
static enum pl_verdict over_gpe(struct job *j, struct found *ret, const struct pl_layers *l,
	uint16_t *next, struct pl_cursor *inner)
{
	for (unsigned int i = 0; i < GPE_CHAIN_MAX; i++) {
		struct pl_int in;
		enum pl_verdict v;

		if (*next != PL_GPE_INT_05 && *next != PL_GPE_INT_10 && *next != PL_GPE_INT_20)
			return PL_V_OK;
		v = ret->have_int ? parse_further(j, &in, *inner, l, PL_INT_OVER_GPE)
				  : parse(j, &in, *inner, l, PL_INT_OVER_GPE);
		if (!accepted(v))
			return v;
		*next = in.next;
		*inner = in.rest;
		/* The outermost hop-by-hop header describes the path; further ones only lead to the
		 * next header. */
		if (!ret->have_int) {
			ret->in = in;
			ret->have_int = in.kind != PL_INT_DESTINATION;
			ret->announced = true;
		}
		j->notes |= in.notes;
		if (v != PL_V_OK)
			return v;
	}
	return PL_V_NESTING;
}

/* RFC 8926 3.5: Class:16 | C:1 Type:7 | R:3 Length:5 */
static enum pl_verdict over_geneve(struct job *j, struct found *ret, struct pl_cursor options)
{
	while (pl_cursor_left(&options) > 0) {
		const uint8_t *p = pl_cursor_take(&options, 4);
		struct pl_cursor body;
		enum pl_verdict v;

		if (p == NULL)
			return PL_V_TUNNEL_HEADER;
		body = pl_cursor_split(&options, 4 * (size_t)(p[3] & 0x1f));
		if (body.short_read)
			return PL_V_TUNNEL_HEADER;
		if (pl_be16(p) != j->d->opt.geneve_int_class || ret->have_int)
			continue;
		v = pl_int_parse_geneve(
			&ret->in, body, p[2] & 0x7f, &j->profile->hints, &j->d->cache);
		if (!accepted(v))
			return v;
		ret->have_int = ret->in.kind != PL_INT_DESTINATION;
		ret->announced = true;
	}
	return PL_V_OK;
}

/* VXLAN-GPE whose P bit is 0, though its last byte names INT and INT is there. In plain VXLAN that
 * byte is reserved, and 0. */
static void gpe_without_p(struct job *j, const struct pl_layers *l, struct pl_tunnel *t)
{
	struct pl_int in;

	if (t->next_unsaid != PL_GPE_INT_05 && t->next_unsaid != PL_GPE_INT_10 &&
		t->next_unsaid != PL_GPE_INT_20)
		return;
	if (!accepted(parse_further(j, &in, t->inner, l, PL_INT_OVER_GPE)) ||
		in.kind == PL_INT_DESTINATION)
		return;
	t->next = t->next_unsaid;
	j->notes |= PL_NOTE_BIT(GPE_P_BIT);
}

static enum pl_verdict tunnel(
	struct job *j, struct found *ret, const struct pl_layers *l, struct pl_tunnel *t)
{
	enum pl_verdict v = pl_tunnel_open(t, l, j->d->opt.vxlan_ports);
	struct pl_int in;

	if (v != PL_V_OK)
		return v;
	switch (t->kind) {
	case PL_TUNNEL_VXLAN_GPE:
		if (__builtin_expect(t->next_unsaid != 0, 0))
			gpe_without_p(j, l, t);
		v = over_gpe(j, ret, l, &t->next, &t->inner);
		t->inner_link = pl_link_of_gpe((uint8_t)t->next);
		return v;
	case PL_TUNNEL_ERSPAN:
		/* A copy: the networks that the mirror's packets cross are not the flow's. */
		ret->flow.have &= (uint8_t) ~(PL_FLOW_VLAN | PL_FLOW_VNI);
		return PL_V_OK;
	case PL_TUNNEL_GENEVE:
		return over_geneve(j, ret, t->options);
	case PL_TUNNEL_GRE:
		if (j->d->opt.gre_int_ethertype == 0 || t->next != j->d->opt.gre_int_ethertype)
			return PL_V_OK;
		v = ret->have_int ? parse_further(j, &in, t->inner, l, PL_INT_OVER_GRE)
				  : parse(j, &in, t->inner, l, PL_INT_OVER_GRE);
		if (!accepted(v))
			return v;
		/* A header of the destination type that says that INT follows. */
		if (in.kind == PL_INT_DESTINATION && in.next == j->d->opt.gre_int_ethertype)
			return PL_V_SHIM_TYPE;
		/* As in VXLAN-GPE: the outermost header describes the path. */
		if (ret->have_int) {
			j->notes |= in.notes;
		} else {
			ret->in = in;
			ret->have_int = in.kind != PL_INT_DESTINATION;
			ret->announced = true;
		}
		t->next = in.next;
		t->inner = in.rest;
		t->inner_link = pl_link_of_ethertype(t->next);
		return v;
	default:
		return PL_V_OK;
	}
}

/* The innermost level is the flow; it keeps the network and VLAN that an outer level gave it. */
static inline void take_flow(struct found *ret, const struct pl_flow *flow, bool nested)
{
	struct pl_flow outer = ret->flow;

	ret->flow = *flow;
	ret->have_flow = true;
	if (__builtin_expect(!nested, 1))
		return;
	if ((outer.have & PL_FLOW_VNI) != 0) {
		ret->flow.vni = outer.vni;
		ret->flow.have |= PL_FLOW_VNI;
	}
	if ((outer.have & PL_FLOW_VLAN) != 0 && (flow->have & PL_FLOW_VLAN) == 0) {
		ret->flow.vlan = outer.vlan;
		ret->flow.have |= PL_FLOW_VLAN;
	}
}

/* The outermost header with IOAM is the path that the packet takes now. */
__attribute__((cold, noinline)) static void note_ioam(struct found *ret, const struct pl_layers *l)
{
	if (!holds_ioam(l))
		return;
	ret->more_ioam = ret->have_ioam;
	if (!ret->have_ioam)
		ret->ioam = *l;
	ret->have_ioam = true;
}

enum pl_verdict find_telemetry(struct job *j, struct found *ret, struct pl_cursor bytes,
	enum pl_link link, const struct pl_layers *walked, bool inside, bool tracked)
{
	enum pl_verdict v;
	struct pl_layers own;
	struct pl_tunnel t;
	const struct pl_layers *l = walked;

	ret->have_int = false;
	ret->have_flow = false;
	ret->have_ioam = false;
	ret->unread = false;
	ret->more_ioam = false;
	ret->announced = false;
	ret->added = false;
	for (unsigned int level = 0; level < PL_NESTING_MAX; level++) {
		if (l == NULL) {
			v = pl_layers_walk(&own, bytes, link, inside || level > 0);
			if (v != PL_V_OK) {
				/* Inside a tunnel that opened well, a level that cannot be read is
				 * payload. */
				ret->unread = true;
				if (level > 0 && v == PL_V_SHORT)
					j->notes |= PL_NOTE_BIT(INNER_CUT);
				return level == 0 ? v : PL_V_OK;
			}
			l = &own;
		}
		take_flow(ret, &l->flow, level > 0);
		if (__builtin_expect(l->flags & (PL_LAYERS_HOP_OPTS | PL_LAYERS_DST_OPTS), 0))
			note_ioam(ret, l);
		if (__builtin_expect(l->flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4), 0)) {
			j->notes |= l->flags & PL_LAYERS_FRAGMENT ? PL_NOTE_BIT(FRAGMENT)
								  : PL_NOTE_BIT(INNER_CUT);
			return PL_V_OK;
		}
		if (l->flow.proto == PL_IP_TCP || l->flow.proto == PL_IP_UDP || is_icmp(l)) {
			if (!ret->have_int) {
				v = over_l4(j, ret, l, inside, tracked);
				if (v != PL_V_OK || ret->have_int)
					return v;
			}
			if (l->flow.proto != PL_IP_UDP)
				return PL_V_OK;
		}
		v = tunnel(j, ret, l, &t);
		if (v != PL_V_OK)
			return v;
		if (t.kind == PL_TUNNEL_NONE || t.inner_link == PL_LINK_UNKNOWN)
			return PL_V_OK;
		if (t.have_vni) {
			ret->flow.vni = t.vni;
			ret->flow.have |= PL_FLOW_VNI;
		}
		bytes = t.inner;
		link = t.inner_link;
		l = NULL;
	}
	return PL_V_NESTING;
}
