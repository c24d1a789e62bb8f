/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* First part of core/report_core.h: parses the headers of a report and its inner packet, and finds
 * the stack. The reference, with the clauses, is wire/report_parse.c, wire/layers.c and
 * decode/find.c. */
#pragma once

#include "core/report_int.h"

/* --- the inner packet ------------------------------------------------------------------------- */

PL_CORE_INLINE void pl_core_addr_v4(struct pl_addr *ret, const uint8_t *p)
{
	pl_frame_addr_v4((uint64_t *)(void *)ret->b, p);
}

PL_CORE_INLINE void pl_core_addr_v6(struct pl_addr *ret, const uint8_t *p)
{
	pl_frame_addr_v6((uint64_t *)(void *)ret->b, p);
}

PL_CORE_INLINE void pl_core_ports(struct pl_core_report *r, uint32_t sport, uint32_t dport)
{
	r->flow.sport = (uint16_t)sport;
	r->flow.dport = (uint16_t)dport;
	r->flow.has |= PL_FLOW_KEY_HAS_PORTS;
	r->present |= PL_PATH_HAS_sport;
}

/* Places for INT: behind the transport header, and before the options of TCP. */
struct pl_core_payload {
	struct pl_frame_cursor at, before;
	uint32_t over_l4; /* 0: no place */
	uint32_t dscp;
	uint32_t expected; /* 1: announced, or by custom: its absence is worth a note */
};

PL_CORE_INLINE int pl_core_at_marker(
	const struct pl_frame_cursor *at, const struct pl_core_profile *profile)
{
	const uint8_t *p = pl_frame_peek(at, 8);

	return p != NULL && pl_frame_be64(p) == profile->marker;
}

/* Tries to find INT at one place, with or without the probe marker. Returns an enum
 * pl_core_found. */
PL_CORE_INLINE uint32_t pl_core_try_int(struct pl_core_scratch *s, const struct pl_frame_cursor *at,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	struct pl_frame_cursor c = *at;
	const int marker = pl_core_at_marker(&c, profile);
	uint32_t found;

	if (marker)
		(void)pl_frame_take(&c, 8);
	found = pl_core_int_header(s, c, layouts, profile);
	/* A marker without INT behind it gets at least a note, so the packet is left to decode/. */
	return marker && found == PL_CORE_NOT ? PL_CORE_UP : found;
}

enum pl_core_search {
	PL_CORE_SEARCH_NOT,    /* INT is not searched */
	PL_CORE_SEARCH_UP,     /* decode/ must look */
	PL_CORE_SEARCH_AT,     /* behind the transport header, then before its options */
	PL_CORE_SEARCH_BEFORE, /* before the options only */
};

/* Decides where to search INT in a packet with these places, as over_l4 of find.c does. */
PL_CORE_INLINE uint32_t pl_core_search_int(const struct pl_core_scratch *s,
	struct pl_core_payload *payload, const struct pl_core_profile *profile)
{
	const struct pl_core_report *r = &s->report;
	const int tcp = r->flow.proto == PL_IP_TCP, two = payload->before.left > payload->at.left;
	int announced = 0;

	if (profile->announces)
		announced = (profile->dscp_mask != 0 &&
				    (payload->dscp & profile->dscp_mask) == profile->dscp_value) ||
			    (profile->int_port != 0 && r->flow.proto == PL_IP_UDP &&
				    r->flow.dport == profile->int_port);
	if (__builtin_expect(profile->general, 0)) {
		if (profile->embedded == PL_CORE_EMBEDDED_NEVER)
			return PL_CORE_SEARCH_NOT;
		announced =
			announced || (profile->marker_set &&
					     (pl_core_at_marker(&payload->at, profile) ||
						     pl_core_at_marker(&payload->before, profile)));
		if (!announced && profile->embedded == PL_CORE_EMBEDDED_ANNOUNCED)
			return PL_CORE_SEARCH_NOT;
	}
	payload->expected = announced || payload->dscp == PL_CORE_DSCP;
	/* F = 0 announces no INT; if INT is there nevertheless, the packet is left to decode/. */
	if ((r->flags & PL_FLAG_TRACKED) == 0)
		return announced ? PL_CORE_SEARCH_UP : PL_CORE_SEARCH_NOT;
	/* A marker counts wherever it is, before INT without one. */
	if (two && pl_core_at_marker(&payload->before, profile))
		return PL_CORE_SEARCH_UP;
	return tcp && profile->tcp_placement == PL_CORE_TCP_BEFORE_OPTIONS ? PL_CORE_SEARCH_BEFORE
									   : PL_CORE_SEARCH_AT;
}

/* True when INT is searched before the TCP options, too, if there is none behind them. */
PL_CORE_INLINE int pl_core_search_both(const struct pl_core_profile *profile)
{
	return profile->tcp_placement != PL_CORE_TCP_AFTER_OPTIONS;
}

/* Converts the result of the search into an enum pl_escalation. */
PL_CORE_INLINE uint32_t pl_core_int_found(
	const struct pl_core_scratch *s, uint32_t found, uint32_t expected)
{
	if (found == PL_CORE_INT && s->follow)
		return PL_ESCALATION_NUMBERED;
	/* Expected INT that is absent is worth a note, so decode/ takes the packet. */
	if (found == PL_CORE_INT || (found == PL_CORE_NOT && !expected))
		return PL_ESCALATION_NONE;
	if (found == PL_CORE_UP_HOPS)
		return PL_ESCALATION_HOPS;
	return s->missing_key != 0 ? PL_ESCALATION_LAYOUT : PL_ESCALATION_INT;
}

PL_CORE_INLINE uint32_t pl_core_transport(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	uint32_t announced, uint32_t version, struct pl_core_payload *ret)
{
	const uint8_t *p;
	uint32_t size;

	switch (s->report.flow.proto) {
	case PL_IP_UDP:
		p = pl_frame_take(c, 8);
		if (p == NULL)
			return PL_ESCALATION_INNER;
		size = pl_frame_be16(p + 4);
		/* For a tunnel port, or less than IP announces, decode/ takes the packet. */
		if (size < 8 || size != announced ||
			pl_is_tunnel_port(s->vxlan_ports, pl_frame_be16(p + 2)))
			return PL_ESCALATION_INNER;
		pl_core_ports(&s->report, pl_frame_be16(p), pl_frame_be16(p + 2));
		pl_frame_trim(c, size - 8); /* shorter only when the packet was cut */
		ret->before = *c;
		break;
	case PL_IP_TCP:
		p = pl_frame_take(c, 20);
		if (p == NULL)
			return PL_ESCALATION_INNER;
		size = (p[12] >> 4) * 4u;
		if (size < 20 || size > announced)
			return PL_ESCALATION_INNER;
		pl_core_ports(&s->report, pl_frame_be16(p), pl_frame_be16(p + 2));
		ret->before = *c;
		if (!pl_frame_skip(c, size - 20, 40))
			return PL_ESCALATION_INNER;
		break;
	case PL_IP_ICMP:
	case PL_IP_ICMPV6:
		if ((s->report.flow.proto == PL_IP_ICMP) != (version == 4))
			return PL_ESCALATION_NONE;
		p = pl_frame_take(c, 4);
		if (p == NULL)
			return PL_ESCALATION_INNER;
		pl_core_ports(&s->report, p[0], p[1]);
		ret->over_l4 = pl_frame_take(c, 4) != NULL;
		ret->at = ret->before = *c;
		return PL_ESCALATION_NONE;
	case PL_IP_SCTP:
		p = pl_frame_take(c, 12);
		if (p == NULL)
			return PL_ESCALATION_INNER;
		pl_core_ports(&s->report, pl_frame_be16(p), pl_frame_be16(p + 2));
		return PL_ESCALATION_NONE;
	case PL_IP_IPIP:
	case PL_IP_IPV6:
	case PL_IP_GRE:
		return PL_ESCALATION_INNER;
	default:
		return PL_ESCALATION_NONE;
	}
	ret->at = *c;
	ret->over_l4 = 1;
	return PL_ESCALATION_NONE;
}

PL_CORE_INLINE uint32_t pl_core_ip(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	uint32_t version, struct pl_core_payload *ret)
{
	struct pl_core_report *r = &s->report;
	const uint8_t *p;
	uint32_t announced, header;

	if (version == 4) {
		p = pl_frame_peek(c, 20);
		if (p == NULL || p[0] >> 4 != 4)
			return PL_ESCALATION_INNER;
		header = (p[0] & 15u) * 4;
		announced = pl_frame_be16(p + 2);
		/* A fragment has an offset, or "more fragments" set. */
		if (header < 20 || announced < header || (pl_frame_be16(p + 6) & 0x3fff) != 0)
			return PL_ESCALATION_INNER;
		ret->dscp = p[1] >> 2;
		r->flow.proto = p[9];
		pl_core_addr_v4(&r->flow.src, p + 12);
		pl_core_addr_v4(&r->flow.dst, p + 16);
		pl_frame_trim(c, announced); /* shorter only when the packet was cut */
		if (!pl_frame_skip(c, header, 60))
			return PL_ESCALATION_INNER;
		announced -= header;
	} else {
		p = pl_frame_take(c, 40);
		if (p == NULL || p[0] >> 4 != 6)
			return PL_ESCALATION_INNER;
		announced = pl_frame_be16(p + 4);
		ret->dscp = pl_frame_be16(p) >> 6 & 0x3f;
		r->flow.proto = p[6];
		/* Extension headers may hold IOAM. */
		if (p[6] == PL_IP_HOPOPTS || p[6] == PL_IP_ROUTING || p[6] == PL_IP_FRAGMENT ||
			p[6] == PL_IP_AH || p[6] == PL_IP_DSTOPTS)
			return PL_ESCALATION_INNER;
		pl_core_addr_v6(&r->flow.src, p + 8);
		pl_core_addr_v6(&r->flow.dst, p + 24);
		pl_frame_trim(c, announced);
	}
	r->present |= PL_PATH_HAS_src;
	return pl_core_transport(s, c, announced, version, ret);
}

/* True when an announced IP packet looks like IP, as looks_like_ip of report_parse.c finds, and not
 * like Ethernet. */
PL_CORE_INLINE int pl_core_is_ip(const struct pl_frame_cursor *c, uint32_t version)
{
	const uint8_t *p = pl_frame_peek(c, 20);
	uint32_t type;

	if (p == NULL || p[0] >> 4 != version)
		return 0;
	type = pl_frame_be16(p + 12);
	return type != PL_ETH_IPV4 && type != PL_ETH_IPV6 && type != PL_ETH_VLAN &&
	       type != PL_ETH_QINQ && type != PL_ETH_MPLS && type != PL_ETH_MPLS_MC;
}

/* Reads the packet reported on; version: 4, 6, or 0 for Ethernet. */
PL_CORE_INLINE uint32_t pl_core_inner(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	uint32_t version, struct pl_core_payload *ret)
{
	struct pl_core_report *r = &s->report;
	const uint8_t *p;
	uint32_t type;

	if (version != 0) {
		if (!pl_core_is_ip(c, version))
			return PL_ESCALATION_INNER;
	} else {
		p = pl_frame_take(c, 14);
		if (p == NULL)
			return PL_ESCALATION_INNER;
		type = pl_frame_be16(p + 12);
		if (__builtin_expect(type == PL_ETH_VLAN || type == PL_ETH_QINQ, 0)) {
#ifdef __bpf__
#pragma unroll
#endif
			for (int i = 0; i < 2; i++) {
				if (type != PL_ETH_VLAN && type != PL_ETH_QINQ)
					break;
				p = pl_frame_take(c, 4);
				if (p == NULL)
					return PL_ESCALATION_INNER;
				r->flow.vlan = (uint16_t)(pl_frame_be16(p) & 0xfff);
				type = pl_frame_be16(p + 2);
			}
			/* Id 0 is a priority without a VLAN (802.1Q 6.9). */
			if (r->flow.vlan != 0) {
				r->flow.has |= PL_FLOW_KEY_HAS_VLAN;
				r->present |= PL_PATH_HAS_vlan;
			}
		}
		if (type != PL_ETH_IPV4 && type != PL_ETH_IPV6)
			return PL_ESCALATION_INNER;
		version = type == PL_ETH_IPV4 ? 4 : 6;
	}
	return pl_core_ip(s, c, version, ret);
}

/* --- the report's header ---------------------------------------------------------------------- */

/* Reads the header's metadata, `bytes` at *c, by the layout of the key. */
PL_CORE_INLINE uint32_t pl_core_own(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	uint32_t bytes, uint64_t key, const struct pl_core_layouts *layouts)
{
	const struct pl_core_layout *l = pl_core_layout_find(layouts, key);
	const uint8_t *block = c->pos;

	if (l == NULL) {
		s->missing_key = key;
		return PL_ESCALATION_LAYOUT;
	}
	if (l->words * 4u != bytes || !pl_frame_skip(c, bytes, PL_CORE_OWN_BYTES))
		return PL_ESCALATION_METADATA;
#ifdef __bpf__
	s->own_layout = (uint32_t)(l - layouts->slot);
	s->own_at = (uint32_t)(c->end - block);
#else
	s->own_layout = l;
	s->own_block = block;
#endif
	s->own_bytes = bytes;
	s->own |= OWN_METADATA;
	return PL_ESCALATION_NONE;
}

PL_CORE_INLINE void pl_core_node(struct pl_core_scratch *s, uint32_t node)
{
	s->report.node = node;
	s->report.present |= PL_PATH_HAS_node;
	s->own |= OWN_NODE;
}

/* Returns the flags D, Q and F as PL_FLAG_*. */
PL_CORE_INLINE uint16_t pl_core_flags(uint32_t dropped, uint32_t congested, uint32_t tracked)
{
	return (uint16_t)(dropped * PL_FLAG_DROPPED | congested * PL_FLAG_CONGESTED |
			  tracked * PL_FLAG_TRACKED);
}

#define PL_CORE_NO_INNER 1

PL_CORE_INLINE uint32_t pl_core_v05(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	const uint8_t *p, const struct pl_core_layouts *layouts, uint32_t *ret_inner)
{
	struct pl_core_report *r = &s->report;
	uint32_t proto = p[0] & 15u, words;

	r->report_version = PL_REPORT_V05;
	r->flags = pl_core_flags(p[1] >> 7, p[1] >> 6 & 1, p[1] >> 5 & 1);
	r->hw_id = p[3] & 0x3f;
	r->seq = pl_frame_be32(p + 4);
	s->header_ts = pl_frame_be32(p + 8);
	s->own = OWN_HEADER_TS;
	s->own_bits = 32;
	*ret_inner = 0;
	s->numbered = proto == 0 || proto > 4;
	if (proto == 0)
		return PL_ESCALATION_NONE;
	if (proto == 3)
		s->numbered = c->left >= 24;
	if (proto == 3 || proto > 4)
		return PL_ESCALATION_REPORT;
	p = pl_frame_take(c, 4);
	if (p == NULL)
		return PL_ESCALATION_REPORT;
	pl_core_node(s, pl_frame_be32(p));
	if (proto == 4) {
		s->numbered = 1;
		*ret_inner = 4;
		return PL_ESCALATION_NONE;
	}
	words = proto == 1 ? 2 : 3;
	s->numbered = c->left >= 4 * words;
	return pl_core_own(s, c, 4 * words, pl_core_own_key(PL_REPORT_V05, proto), layouts);
}

PL_CORE_INLINE uint32_t pl_core_v10(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	const uint8_t *p, const struct pl_core_layouts *layouts, uint32_t *ret_inner)
{
	struct pl_core_report *r = &s->report;
	uint32_t w = pl_frame_be32(p), bits = w >> 15 & 0x3f, proto = w >> 21 & 7;
	uint32_t words = pl_core_popcount16(bits);

	/* Some exporters write 0 or 1 as the length; the metadata bits give the true one. */
	if (__builtin_expect((w >> 24 & 15) != 4 + words, 0))
		s->notes |= PL_NOTE_BIT(REPORT_LENGTH_LIES);
	r->report_version = PL_REPORT_V10;
	r->flags = pl_core_flags(w >> 8 & 1, w >> 7 & 1, w >> 6 & 1);
	r->hw_id = w & 0x3f;
	r->seq = pl_frame_be32(p + 8);
	pl_core_node(s, pl_frame_be32(p + 4));
	p = pl_frame_take(c, 4); /* the fourth word */
	if (p == NULL)
		return PL_ESCALATION_REPORT;
	s->header_ts = pl_frame_be32(p);
	s->own |= OWN_HEADER_TS;
	s->own_bits = 32;
	s->numbered = c->left >= 4 * words;
	if (proto > 2)
		return PL_ESCALATION_REPORT;
	*ret_inner = proto == 0 ? 0 : 2 + 2 * proto;
	return bits == 0 ? PL_ESCALATION_NONE
			 : pl_core_own(
				   s, c, 4 * words, pl_core_own_key(PL_REPORT_V10, bits), layouts);
}

PL_CORE_INLINE uint32_t pl_core_v20(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	const uint8_t *p, const struct pl_core_layouts *layouts, uint32_t *ret_inner)
{
	struct pl_core_report *r = &s->report;
	uint32_t w = pl_frame_be32(p), v = pl_frame_be32(p + 8);
	uint32_t length = v >> 16 & 0xff, type = v >> 24 & 15, md_words = v >> 8 & 0xff, bits;

	r->report_version = PL_REPORT_V20;
	r->hw_id = w >> 22 & 0x3f;
	r->seq = w & 0x3fffff;
	pl_core_node(s, pl_frame_be32(p + 4));
	/* The group has a number, whatever kind its reports are of. */
	s->numbered = 1;
	/* Settled is a single report, to the end of the datagram, of type 0 or 1, with nothing or a
	 * packet in it. */
	if (v >> 29 != 0 || (4 * length != c->left && length != 0xff) ||
		(length == 0 && v >> 28 == 1) || (type != 0 && (type < 3 || type > 5)))
		return PL_ESCALATION_REPORT;
	r->flags = pl_core_flags(v >> 7 & 1, v >> 6 & 1, v >> 5 & 1);
	if ((v & 0x10) != 0) {
		r->flags |= PL_FLAG_INTERMEDIATE | PL_FLAG_PARTIAL;
		s->notes |= PL_NOTE_BIT(PARTIAL);
	}
	s->own_bits = 64;
	*ret_inner = type == 0 ? PL_CORE_NO_INNER : type == 3 ? 0 : type == 4 ? 4 : 6;
	if ((v & 0x10000000) == 0)
		return PL_ESCALATION_NONE;
	p = pl_frame_take(c, 8);
	if (p == NULL)
		return PL_ESCALATION_METADATA;
	bits = pl_frame_be16(p);
	/* Reserved bits are worth a note; words without a bit are domain specific. */
	if ((bits & 0x807e) != 0 || (bits == 0 && md_words != 0))
		return PL_ESCALATION_METADATA;
	return bits == 0 ? PL_ESCALATION_NONE
			 : pl_core_own(s, c, 4 * md_words, pl_core_own_key(PL_REPORT_V20, bits),
				   layouts);
}

/* Reads the datagram's carrier: IPv4 with options or IPv6 at ip, UDP `header` bytes behind it,
 * `there` bytes of frame from ip on. Whole datagrams only; *ret_len is the length of the payload,
 * *ret_marked tells whether the DSCP announces INT on it. Returns an enum pl_escalation. */
PL_CORE_INLINE uint32_t pl_core_carrier(const uint8_t *ip, const uint8_t *udp, uint32_t version,
	uint32_t header, uint32_t there, const struct pl_core_profile *profile, uint32_t *ret_len,
	uint32_t *ret_marked)
{
	uint32_t announced, length = pl_frame_be16(udp + 4), dscp;

	if (version == 4) {
		announced = pl_frame_be16(ip + 2);
		dscp = ip[1] >> 2;
	} else {
		/* Extension headers are walked by decode/. */
		if (header != 40)
			return PL_ESCALATION_CARRIER;
		announced = 40 + pl_frame_be16(ip + 4);
		dscp = pl_frame_be16(ip) >> 6 & 0x3f;
	}
	if (announced > there || length < 8 || header + length > announced)
		return PL_ESCALATION_CARRIER;
	*ret_marked = dscp != 0 &&
		      (profile->dscp_mask != 0 ? (dscp & profile->dscp_mask) == profile->dscp_value
					       : dscp == PL_CORE_DSCP);
	*ret_len = length - 8;
	return PL_ESCALATION_NONE;
}

/* Zeroes the members that pl_core_parse expects to be zero. */
PL_CORE_INLINE void pl_core_scratch_clear(struct pl_core_scratch *s)
{
	uint64_t *words = (uint64_t *)(void *)&s->report;

	for (unsigned int i = 0; i < sizeof(s->report) / 8; i++)
		words[i] = 0;
	s->notes = 0;
	s->missing_key = 0;
	s->own = 0;
	s->numbered = 0;
	s->own_bytes = 0;
	s->follow = 0;
	s->units = 0;
	s->unscaled = 0;
	s->stack_hops = 0;
	s->stack_bytes = 0;
}

PL_CORE_INLINE int pl_core_looks_like_ethernet(const struct pl_frame_cursor *c)
{
	const uint8_t *p = pl_frame_peek(c, 14);
	uint32_t type;

	if (p == NULL)
		return 0;
	type = pl_frame_be16(p + 12);
	return type == PL_ETH_IPV4 || type == PL_ETH_IPV6 || type == PL_ETH_VLAN ||
	       type == PL_ETH_QINQ || type == PL_ETH_MPLS || type == PL_ETH_MPLS_MC;
}

/* Returns the version of a report whose nibble says 1: v1.0 if its Length fits, else as
 * version_of_liar of wire/report_parse.c finds. p: its first 12 bytes; c is behind them. */
PL_CORE_INLINE uint32_t pl_core_version_of_liar(const uint8_t *p, const struct pl_frame_cursor *c)
{
	const uint32_t words = (uint32_t)pl_core_popcount16(pl_frame_be32(p) >> 15 & 0x3f);
	const uint32_t proto = p[0] & 15u;
	struct pl_frame_cursor as_v10 = *c, as_v05 = *c;
	const uint8_t *more = pl_frame_peek(c, 8);

	if (proto == 4 + words || more == NULL)
		return PL_REPORT_V10;
	/* v2.0: an individual report of type INT whose two lengths are 0, then four zero half
	 * words. */
	if (p[8] >> 4 == 1 && (p[8] & 15u) <= 5 && p[9] == 0 && p[10] == 0 && (p[11] & 15u) == 0 &&
		pl_frame_be64(more) == 0)
		return PL_REPORT_V20;
	if (proto > 2)
		return PL_REPORT_V10;
	if (!pl_frame_skip(&as_v05, proto == 0 ? 0 : 8 + 4 * proto, 16))
		return PL_REPORT_V10;
	if (pl_frame_skip(&as_v10, 4 + 4 * words, 4 + 4 * 6) &&
		pl_core_looks_like_ethernet(&as_v10))
		return PL_REPORT_V10;
	return pl_core_looks_like_ethernet(&as_v05) ? PL_REPORT_V05 : PL_REPORT_V10;
}

/* Sets s->version, the version of the report at c: by its nibble, its bytes, or the exporter's
 * profile. Returns PL_ESCALATION_INSTRUMENTED when INT may stand before it. */
PL_CORE_INLINE uint32_t pl_core_version(
	struct pl_core_scratch *s, struct pl_frame_cursor c, const struct pl_core_profile *profile)
{
	const uint8_t *p;
	uint32_t nibble;

	if (__builtin_expect(s->marked, 0) && pl_core_may_be_instrumented(c, profile))
		return PL_ESCALATION_INSTRUMENTED;
	p = pl_frame_take(&c, 12);
	if (p == NULL)
		return PL_ESCALATION_REPORT;
	nibble = s->version = p[0] >> 4;
	if (__builtin_expect(profile->report_version != 0, 0))
		s->version = profile->report_version - 1u;
	else if (nibble == PL_REPORT_V10)
		s->version = pl_core_version_of_liar(p, &c);
	if (s->version != nibble)
		s->notes |= PL_NOTE_BIT(REPORT_VERSION_LIES);
	return PL_ESCALATION_NONE;
}

/* Reads the header of the report at *c, of s->version; *c moves behind it. s was cleared, and then
 * got now_ns, ts_ns and exporter. *ret_inner: 4, 6, 0 (Ethernet) or PL_CORE_NO_INNER. Returns an
 * enum pl_escalation. */
PL_CORE_INLINE uint32_t pl_core_header(struct pl_core_scratch *s, struct pl_frame_cursor *c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile,
	uint32_t *ret_inner)
{
	struct pl_core_report *r = &s->report;
	const uint8_t *p = pl_frame_take(c, 12);

	if (p == NULL)
		return PL_ESCALATION_REPORT;
	if (profile->escalate)
		return PL_ESCALATION_PROFILE;
	s->units = profile->units;
	r->mode = PL_MODE_XD;
	r->present = PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port | PL_PATH_HAS_report_version |
		     PL_PATH_HAS_hw_id | PL_PATH_HAS_seq;
	s->links = UINT32_MAX;
	switch (s->version) {
	case PL_REPORT_V20:
		return pl_core_v20(s, c, p, layouts, ret_inner);
	case PL_REPORT_V10:
		return pl_core_v10(s, c, p, layouts, ret_inner);
	case PL_REPORT_V05:
		return pl_core_v05(s, c, p, layouts, ret_inner);
	default:
		return PL_ESCALATION_REPORT;
	}
}

#ifndef __bpf__
/* Parses the datagram at c: report, flow, and the place of the hops. The kernel program does the
 * same, with a function for each part. */
static inline uint32_t pl_core_parse(struct pl_core_scratch *s, struct pl_frame_cursor c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	struct pl_core_payload payload = { .over_l4 = 0 };
	uint32_t inner = PL_CORE_NO_INNER, found, search;
	uint32_t escalate = pl_core_version(s, c, profile);

	if (escalate != PL_ESCALATION_NONE)
		return escalate;
	escalate = pl_core_header(s, &c, layouts, profile, &inner);
	if (escalate != PL_ESCALATION_NONE || inner == PL_CORE_NO_INNER || c.left == 0)
		return escalate;
	escalate = pl_core_inner(s, &c, inner, &payload);
	if (escalate != PL_ESCALATION_NONE || !payload.over_l4)
		return escalate;
	search = pl_core_search_int(s, &payload, profile);
	if (search <= PL_CORE_SEARCH_UP)
		return search == PL_CORE_SEARCH_UP ? PL_ESCALATION_INT : PL_ESCALATION_NONE;
	found = pl_core_try_int(s, search == PL_CORE_SEARCH_BEFORE ? &payload.before : &payload.at,
		layouts, profile);
	if (found == PL_CORE_NOT && search == PL_CORE_SEARCH_AT &&
		payload.before.left > payload.at.left && pl_core_search_both(profile))
		found = pl_core_try_int(s, &payload.before, layouts, profile);
	return pl_core_int_found(s, found, payload.expected);
}
#endif
