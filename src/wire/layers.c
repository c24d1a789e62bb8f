/* SPDX-License-Identifier: BSD-2-Clause */
/* The general walk over one level of headers: all that the inline fast path does not handle. */
#include "wire/layers.h"

/* State of the walk before the transport header. */
struct walk {
	struct pl_layers *ret;
	struct pl_cursor c; /* the rest of the IP packet */
	size_t announced;   /* bytes left by the IP header; >= left of c */
	/* more fragments follow: the transport may announce more bytes than this one has */
	bool first_fragment;
	bool lenient;
};

static void note_missing(struct pl_layers *l, size_t n)
{
	l->flags |= PL_LAYERS_CUT;
	l->missing = n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

/* Ends the walk at an incomplete header, in a truncated or in a complete IP packet. */
static enum pl_verdict headless(struct walk *w)
{
	if (!w->lenient)
		return PL_V_SHORT;
	w->ret->flags |= PL_LAYERS_NO_L4;
	w->ret->transport = w->c;
	w->ret->payload = w->c;
	return PL_V_OK;
}

static void set_ports(struct pl_layers *l, uint16_t sport, uint16_t dport)
{
	l->flow.sport = sport;
	l->flow.dport = dport;
	l->flow.have |= PL_FLOW_PORTS;
}

static enum pl_verdict walk_udp(struct walk *w)
{
	struct pl_layers *l = w->ret;
	const uint8_t *p = pl_cursor_peek(&w->c, 8);
	size_t length;

	if (p == NULL)
		return headless(w);
	set_ports(l, pl_be16(p), pl_be16(p + 2));
	length = pl_be16(p + 4);
	if (length < 8 || (length > w->announced && !w->first_fragment))
		return PL_V_L4_LENGTH;
	if (!pl_cursor_trim(&l->payload, length) && length > w->announced)
		note_missing(l, length - pl_cursor_left(&w->c));
	pl_cursor_skip(&l->payload, 8);
	return PL_V_OK;
}

static enum pl_verdict walk_tcp(struct walk *w)
{
	struct pl_layers *l = w->ret;
	const uint8_t *p = pl_cursor_peek(&w->c, 20);
	size_t length;

	if (p == NULL)
		return headless(w);
	set_ports(l, pl_be16(p), pl_be16(p + 2));
	length = (size_t)(p[12] >> 4) * 4;
	if (length < 20 || length > w->announced)
		return PL_V_L4_LENGTH;
	if (length > pl_cursor_left(&w->c)) {
		/* The ports are complete, the options are not. */
		pl_cursor_skip(&l->payload, pl_cursor_left(&l->payload));
		return w->lenient ? PL_V_OK : PL_V_SHORT;
	}
	pl_cursor_skip(&l->payload, length);
	return PL_V_OK;
}

static enum pl_verdict walk_icmp(struct walk *w)
{
	const uint8_t *p = pl_cursor_peek(&w->c, 4);

	if (p == NULL)
		return headless(w);
	set_ports(w->ret, p[0], p[1]);
	pl_cursor_skip(&w->ret->payload, 4);
	return PL_V_OK;
}

/* Reads the common header (RFC 9260 3.1); its chunks are payload. */
static enum pl_verdict walk_sctp(struct walk *w)
{
	const uint8_t *p = pl_cursor_peek(&w->c, 12);

	if (p == NULL)
		return headless(w);
	set_ports(w->ret, pl_be16(p), pl_be16(p + 2));
	pl_cursor_skip(&w->ret->payload, 12);
	return PL_V_OK;
}

static enum pl_verdict walk_transport(struct walk *w)
{
	struct pl_layers *l = w->ret;

	l->transport = w->c;
	l->payload = w->c;
	if ((l->flags & PL_LAYERS_FRAGMENT) != 0)
		return PL_V_OK;
	switch (l->flow.proto) {
	case PL_IP_UDP:
		return walk_udp(w);
	case PL_IP_TCP:
		return walk_tcp(w);
	case PL_IP_ICMP:
		return l->ip_version == 4 ? walk_icmp(w) : PL_V_OK;
	case PL_IP_ICMPV6:
		return l->ip_version == 6 ? walk_icmp(w) : PL_V_OK;
	case PL_IP_SCTP:
		return walk_sctp(w);
	default:
		return PL_V_OK;
	}
}

/* Cuts c to the length in the IP header (without padding behind it) and notes missing bytes. */
static void take_announced(struct walk *w, size_t announced)
{
	size_t there = pl_cursor_left(&w->c);

	if (!pl_cursor_trim(&w->c, announced))
		note_missing(w->ret, announced - there);
	w->announced = announced;
}

static enum pl_verdict walk_ipv4(struct walk *w)
{
	struct pl_layers *l = w->ret;
	const uint8_t *p = pl_cursor_peek(&w->c, 20);
	size_t header, announced;
	uint16_t fragment;

	if (p == NULL)
		return PL_V_SHORT;
	header = (size_t)(p[0] & 0x0f) * 4;
	announced = pl_be16(p + 2);
	fragment = pl_be16(p + 6);
	l->ip_version = 4;
	l->ttl = p[8];
	l->ecn = p[1] & 3;
	l->flow.dscp = p[1] >> 2;
	l->flow.proto = p[9];
	l->flow.src = pl_addr_v4(p + 12);
	l->flow.dst = pl_addr_v4(p + 16);
	if (header < 20 || announced < header)
		return PL_V_IP_LENGTH;
	take_announced(w, announced);
	if (header > pl_cursor_left(&w->c)) {
		pl_cursor_skip(&w->c, pl_cursor_left(&w->c));
		return headless(w);
	}
	pl_cursor_skip(&w->c, header);
	w->announced -= header;
	if ((fragment & 0x1fff) != 0)
		l->flags |= PL_LAYERS_FRAGMENT;
	else
		w->first_fragment = (fragment & 0x2000) != 0;
	return walk_transport(w);
}

/* Records one extension header of `type` with `size` bytes at p; the caller has checked the
 * length. */
static void see_extension(struct walk *w, uint8_t type, const uint8_t *p, size_t size)
{
	struct pl_layers *l = w->ret;

	if (type == PL_IP_HOPOPTS) {
		l->hop_opts = pl_cursor(p + 2, size - 2);
		l->flags |= PL_LAYERS_HOP_OPTS;
	} else if (type == PL_IP_DSTOPTS) {
		l->dst_opts = pl_cursor(p + 2, size - 2);
		l->flags |= PL_LAYERS_DST_OPTS;
	} else if (type == PL_IP_ROUTING) {
		l->flags &= (uint8_t)~PL_LAYERS_ROUTED; /* the last one counts */
		if (size < 24 || p[2] != PL_ROUTING_SEGMENTS || p[3] == 0)
			return;
		l->last_segment = p + 8;
		l->flags |= PL_LAYERS_ROUTED;
	} else if (type == PL_IP_FRAGMENT) {
		uint16_t fragment = pl_be16(p + 2);

		if ((fragment & 0xfff8) != 0)
			l->flags |= PL_LAYERS_FRAGMENT;
		else
			w->first_fragment = (fragment & 1) != 0;
	}
}

static bool is_extension(uint8_t type)
{
	return type == PL_IP_HOPOPTS || type == PL_IP_ROUTING || type == PL_IP_FRAGMENT ||
	       type == PL_IP_DSTOPTS || type == PL_IP_AH;
}

static size_t extension_size(uint8_t type, uint8_t length)
{
	if (type == PL_IP_FRAGMENT)
		return 8;
	if (type == PL_IP_AH)
		return ((size_t)length + 2) * 4;
	return ((size_t)length + 1) * 8;
}

/* Walks extension headers up to the transport, or to the fragment header of a later fragment:
 * behind that is the middle of a packet. */
static enum pl_verdict walk_extensions(struct walk *w)
{
	struct pl_layers *l = w->ret;

	for (unsigned int i = 0; is_extension(l->flow.proto); i++) {
		const uint8_t *p = pl_cursor_peek(&w->c, 8);
		uint8_t type = l->flow.proto;
		size_t size;

		if (i == PL_IP6_EXT_MAX)
			return PL_V_NESTING;
		/* Only the first header may be Hop-by-Hop (RFC 8200 4.1): nodes would not have seen
		 * it. */
		if (type == PL_IP_HOPOPTS && i > 0)
			return PL_V_IP_OPTIONS;
		if (p == NULL)
			return w->announced < 8 ? PL_V_IP_OPTIONS : headless(w);
		size = extension_size(type, p[1]);
		if (size > w->announced)
			return PL_V_IP_OPTIONS;
		p = pl_cursor_take(&w->c, size);
		if (p == NULL)
			return headless(w);
		w->announced -= size;
		see_extension(w, type, p, size);
		l->flow.proto = p[0];
		if ((l->flags & PL_LAYERS_FRAGMENT) != 0)
			break;
	}
	return walk_transport(w);
}

static enum pl_verdict walk_ipv6(struct walk *w)
{
	struct pl_layers *l = w->ret;
	const uint8_t *p = pl_cursor_take(&w->c, 40);
	size_t announced;

	if (p == NULL)
		return PL_V_SHORT;
	announced = pl_be16(p + 4);
	l->ip_version = 6;
	l->ttl = p[7];
	l->ecn = (p[1] >> 4) & 3;
	l->flow.dscp = (uint8_t)((pl_be16(p) >> 6) & 0x3f);
	l->flow.proto = p[6];
	l->flow.src = pl_addr_v6(p + 8);
	l->flow.dst = pl_addr_v6(p + 24);
	/* A jumbogram (RFC 2675) has length 0 and a Hop-by-Hop header; no link we read carries
	 * one. */
	if (announced == 0 && l->flow.proto == PL_IP_HOPOPTS)
		return PL_V_IP_LENGTH;
	take_announced(w, announced);
	return walk_extensions(w);
}

/* want: the version that the header before announced, 0 = any. */
static enum pl_verdict walk_ip(struct walk *w, unsigned int want)
{
	const uint8_t *p = pl_cursor_peek(&w->c, 1);
	unsigned int version;

	if (p == NULL)
		return PL_V_SHORT;
	w->ret->network = p;
	version = p[0] >> 4;
	if ((version != 4 && version != 6) || (want != 0 && version != want))
		return PL_V_IP_VERSION;
	return version == 4 ? walk_ipv4(w) : walk_ipv6(w);
}

static enum pl_verdict walk_mpls(struct walk *w)
{
	for (unsigned int i = 0; i < PL_LABELS_MAX; i++) {
		const uint8_t *p = pl_cursor_take(&w->c, 4);

		if (p == NULL)
			return PL_V_SHORT;
		if (i == 0) {
			w->ret->label = pl_be32(p) >> 12;
			w->ret->flags |= PL_LAYERS_MPLS;
		}
		w->ret->labels = (uint8_t)(i + 1);
		if ((p[2] & 1) == 0)
			continue;
		/* No field names the protocol behind the bottom of the stack; its first nibble
		 * distinguishes IP from pseudowires. */
		p = pl_cursor_peek(&w->c, 1);
		if (p == NULL)
			return PL_V_SHORT;
		return p[0] >> 4 == 4 || p[0] >> 4 == 6 ? walk_ip(w, 0) : PL_V_ETHERTYPE_UNKNOWN;
	}
	return PL_V_NESTING;
}

static enum pl_verdict walk_ethertype(struct walk *w, uint16_t type)
{
	struct pl_layers *l = w->ret;

	for (unsigned int i = 0; pl_eth_is_tag(type); i++) {
		const uint8_t *p = pl_cursor_take(&w->c, 4);

		if (p == NULL)
			return PL_V_SHORT;
		if (i == PL_VLANS_MAX)
			return PL_V_NESTING;
		/* Id 0 is a priority without a VLAN (802.1Q 6.9). */
		l->flow.vlan = pl_be16(p) & 0xfff;
		if (l->flow.vlan != 0)
			l->flow.have |= PL_FLOW_VLAN;
		else
			l->flow.have &= (uint8_t)~PL_FLOW_VLAN;
		type = pl_be16(p + 2);
	}
	switch (type) {
	case PL_ETH_IPV4:
		return walk_ip(w, 4);
	case PL_ETH_IPV6:
		return walk_ip(w, 6);
	case PL_ETH_MPLS:
	case PL_ETH_MPLS_MC:
		return walk_mpls(w);
	default:
		return PL_V_ETHERTYPE_UNKNOWN;
	}
}

/* In cooked captures of netlink devices the protocol field is a netlink family, not an
 * EtherType. */
#define ARPHRD_NETLINK 824

static enum pl_verdict walk_link(struct walk *w, enum pl_link link)
{
	const uint8_t *p;

	switch (link) {
	case PL_LINK_ETHERNET:
		p = pl_cursor_take(&w->c, 14);
		return p == NULL ? PL_V_SHORT : walk_ethertype(w, pl_be16(p + 12));
	case PL_LINK_RAW_IP:
		return walk_ip(w, 0);
	case PL_LINK_SLL:
		p = pl_cursor_take(&w->c, 16);
		if (p == NULL)
			return PL_V_SHORT;
		return pl_be16(p + 2) == ARPHRD_NETLINK ? PL_V_ETHERTYPE_UNKNOWN
							: walk_ethertype(w, pl_be16(p + 14));
	case PL_LINK_SLL2:
		p = pl_cursor_take(&w->c, 20);
		if (p == NULL)
			return PL_V_SHORT;
		return pl_be16(p + 8) == ARPHRD_NETLINK ? PL_V_ETHERTYPE_UNKNOWN
							: walk_ethertype(w, pl_be16(p));
	case PL_LINK_UDP:
	case PL_LINK_IOAM_TRACE:
	case PL_LINK_UNKNOWN:
	case PL_LINK_MAX:
		break;
	}
	return PL_V_LINK_UNKNOWN;
}

enum pl_verdict pl_layers_walk_any(
	struct pl_layers *ret, struct pl_cursor frame, enum pl_link link, bool lenient)
{
	struct walk w = { .ret = ret, .c = frame, .lenient = lenient };

	*ret = (struct pl_layers){ .transport = { frame.end, frame.end, false } };
	ret->payload = ret->transport;
	return walk_link(&w, link);
}
