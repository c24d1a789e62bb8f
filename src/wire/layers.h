/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The carriers: one level of link, network and transport headers, and the tunnels between levels.
 * The walk is pure and allocates nothing; cursors in the results point into the packet.
 *
 * Ethernet II (802.3 is PL_V_ETHERTYPE_UNKNOWN), 802.1Q/802.1ad (up to 4 tags), MPLS (up to 8
 * labels), Linux cooked v1/v2, IPv4 with options and fragments (RFC 791), IPv6 with extension
 * headers (RFC 8200), TCP with options (RFC 9293), UDP (RFC 768), GRE (RFC 2784, 2890), ERSPAN
 * (draft-foschiano-erspan), VXLAN (RFC 7348), VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe), Geneve (RFC
 * 8926), GTP-U (3GPP TS 29.281). docs/protocols/carriers.md lists the readings chosen where these
 * leave a choice.
 *
 * The common frame (Ethernet with at most one tag, or bare IP; IPv4 without options; UDP or TCP) is
 * walked inline, in a few nanoseconds; all others go to pl_layers_walk_any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/packet.h"
#include "wire/tunnel_ports.h"
#include "wire/verdict.h"

enum {
	PL_ETH_IPV4 = 0x0800,
	PL_ETH_ERSPAN_III = 0x22eb,
	PL_ETH_TEB = 0x6558,
	PL_ETH_VLAN = 0x8100,
	PL_ETH_IPV6 = 0x86dd,
	PL_ETH_MPLS = 0x8847,
	PL_ETH_MPLS_MC = 0x8848,
	PL_ETH_QINQ = 0x88a8,
	PL_ETH_ERSPAN = 0x88be,   /* types I and II */
	PL_ETH_QINQ_OLD = 0x9100, /* before 802.1ad had a number */
};

/* True for the Ethernet types of VLAN tags. */
static inline bool pl_eth_is_tag(uint16_t type)
{
	return type == PL_ETH_VLAN || type == PL_ETH_QINQ || type == PL_ETH_QINQ_OLD;
}

enum {
	PL_IP_HOPOPTS = 0,
	PL_IP_ICMP = 1,
	PL_IP_IPIP = 4,
	PL_IP_TCP = 6,
	PL_IP_UDP = 17,
	PL_IP_IPV6 = 41,
	PL_IP_ROUTING = 43,
	PL_IP_FRAGMENT = 44,
	PL_IP_GRE = 47,
	PL_IP_AH = 51,
	PL_IP_ICMPV6 = 58,
	PL_IP_NONE = 59,
	PL_IP_DSTOPTS = 60,
	PL_IP_SCTP = 132,
};

enum { PL_ROUTING_SEGMENTS = 4 }; /* type of a routing header: Segment Routing */

#define PL_NESTING_MAX 8

/* Optional members of pl_flow that are set. */
#define PL_FLOW_PORTS  0x01 /* sport, dport (ICMP: type, code) */
#define PL_FLOW_VLAN   0x02 /* the innermost VLAN id of this level */
#define PL_FLOW_VNI    0x04 /* set by the caller that opened a tunnel above this level */

struct pl_flow {
	struct pl_addr src, dst;
	uint16_t sport, dport; /* host order */
	uint16_t vlan;         /* 12 bits */
	uint8_t proto;         /* the transport protocol, after extension headers */
	uint8_t dscp;          /* 6 bits */
	uint32_t vni;          /* 24 bits; GRE: the key */
	uint8_t have;          /* PL_FLOW_* */
};

#define PL_VLANS_MAX       4
#define PL_LABELS_MAX      8
#define PL_IP6_EXT_MAX     8

#define PL_LAYERS_FRAGMENT 0x01 /* a fragment with offset > 0: transport is not a header */
#define PL_LAYERS_CUT      0x02 /* fewer bytes are there than announced: cut, or a first fragment */
#define PL_LAYERS_NO_L4    0x04 /* the transport header is not whole; flow has no ports */
#define PL_LAYERS_HOP_OPTS 0x08 /* hop_opts is set */
#define PL_LAYERS_DST_OPTS 0x10 /* dst_opts is set */
#define PL_LAYERS_MPLS     0x20 /* label and labels are set */
#define PL_LAYERS_ROUTED   0x40 /* last_segment is set */

struct pl_layers {
	struct pl_flow flow;
	const uint8_t *network; /* the IP header; NULL when there is none */
	/* from the transport header to the end of the IP packet, or of the capture */
	struct pl_cursor transport;
	struct pl_cursor payload; /* behind the transport header; TCP: behind its options */
	uint8_t ip_version;       /* 4 or 6 */
	uint8_t ttl;              /* TTL or hop limit */
	uint8_t ecn;
	uint8_t flags;    /* PL_LAYERS_* */
	uint16_t missing; /* bytes announced but not there (saturating) */
	uint32_t label;   /* of the outermost MPLS header, 20 bits; with PL_LAYERS_MPLS */
	uint8_t labels;   /* in the stack, which ends in front of `network`; with PL_LAYERS_MPLS */
	/* Set only with their bit in `flags`; indeterminate otherwise, because common packets have
	 * none. */
	struct pl_cursor hop_opts; /* inside of the IPv6 Hop-by-Hop options */
	struct pl_cursor dst_opts; /* inside of the (last) IPv6 Destination Options */
	/* Destination behind all segments of Segment Routing (RFC 8754), 16 bytes, while segments
	 * are left: flow.dst is the present one's. */
	const uint8_t *last_segment;
};

/* The general walk: as pl_layers_walk, without its fast path. */
enum pl_verdict pl_layers_walk_any(
	struct pl_layers *ret, struct pl_cursor frame, enum pl_link link, bool lenient);

/* Bytes that the fast path reads before it knows a length: Ethernet, a tag, IPv4, UDP. */
#define PL_LAYERS_USUAL_MIN (14 + 4 + 20 + 8)

/* The fast path: returns false, with *ret undefined, for a frame that is not of the common kind. */
static inline bool pl_layers_walk_usual(
	struct pl_layers *ret, const struct pl_cursor *frame, enum pl_link link)
{
	const uint8_t *p = pl_cursor_peek(frame, PL_LAYERS_USUAL_MIN);
	struct pl_cursor c = *frame;
	uint16_t vlan = 0, announced, length;
	uint8_t have = PL_FLOW_PORTS;
	size_t there;

	if (p == NULL)
		return false;
	if (link == PL_LINK_ETHERNET) {
		uint16_t type = pl_be16(p + 12);

		if (type == PL_ETH_VLAN) {
			vlan = pl_be16(p + 14) & 0xfff;
			if (vlan != 0)
				have |= PL_FLOW_VLAN;
			type = pl_be16(p + 16);
			p += 4;
			pl_cursor_skip(&c, 4);
		}
		if (type != PL_ETH_IPV4)
			return false;
		p += 14;
		pl_cursor_skip(&c, 14);
	} else if (link != PL_LINK_RAW_IP) {
		return false;
	}
	/* Version 4 and IHL 5; neither a fragment offset nor "more fragments"; room for UDP. */
	announced = pl_be16(p + 2);
	if (p[0] != 0x45 || (pl_be16(p + 6) & 0x3fff) != 0 || announced < 28)
		return false;
	there = pl_cursor_left(&c);
	ret->flags = 0;
	ret->missing = 0;
	ret->network = p;
	if (__builtin_expect(!pl_cursor_trim(&c, announced), 0)) {
		ret->flags = PL_LAYERS_CUT;
		ret->missing = (uint16_t)(announced - there);
	}
	pl_cursor_skip(&c, 20);
	ret->transport = c;
	ret->flow.proto = p[9];
	if (p[9] == PL_IP_UDP) {
		length = pl_be16(p + 24);
		if (length < 8 || length > announced - 20)
			return false;
		pl_cursor_trim(&c, length); /* it holds less only when it was cut */
		pl_cursor_skip(&c, 8);
	} else if (p[9] == PL_IP_TCP) {
		if (pl_cursor_peek(&c, 20) == NULL)
			return false;
		length = (uint16_t)(p[20 + 12] >> 4) * 4;
		if (length < 20 || length > pl_cursor_left(&c))
			return false;
		pl_cursor_skip(&c, length);
	} else {
		return false;
	}
	ret->payload = c;
	ret->flow.src = pl_addr_v4(p + 12);
	ret->flow.dst = pl_addr_v4(p + 16);
	ret->flow.sport = pl_be16(p + 20);
	ret->flow.dport = pl_be16(p + 22);
	ret->flow.vlan = vlan;
	ret->flow.dscp = p[1] >> 2;
	ret->flow.vni = 0;
	ret->flow.have = have;
	ret->ip_version = 4;
	ret->ttl = p[8];
	ret->ecn = p[1] & 3;
	return true;
}

/*
 * Parses one level, from the link header through the transport header. Returns PL_V_OK, or the
 * verdict that names the error; *ret holds what was read before the error. Protocols other than
 * TCP, UDP, ICMP: transport and payload are both the IP payload; ICMP: payload is behind type, code
 * and checksum. A UDP length is honoured: payload ends with it. A transport header (or an extension
 * header before it) that is not whole is PL_V_SHORT unless `lenient`, then OK with PL_LAYERS_NO_L4
 * (TCP options that are cut: OK without it): inner packets of reports are truncated on purpose.
 * Neither IPv4 nor IPv6 (ARP, LLDP, 802.3) is PL_V_ETHERTYPE_UNKNOWN: the caller decides whether
 * that is an error or an ordinary packet.
 */
static inline enum pl_verdict pl_layers_walk(
	struct pl_layers *ret, struct pl_cursor frame, enum pl_link link, bool lenient)
{
	if (__builtin_expect(pl_layers_walk_usual(ret, &frame, link), 1))
		return PL_V_OK;
	return pl_layers_walk_any(ret, frame, link, lenient);
}

enum pl_tunnel_kind {
	PL_TUNNEL_NONE,
	PL_TUNNEL_IP, /* IPv4 or IPv6 directly in IP */
	PL_TUNNEL_GRE,
	PL_TUNNEL_VXLAN,
	PL_TUNNEL_VXLAN_GPE,
	PL_TUNNEL_GENEVE,
	PL_TUNNEL_ERSPAN, /* a mirror: its packets were on no other network */
	PL_TUNNEL_GTPU,
};

/* Next-protocol values of VXLAN-GPE that announce INT, per INT version (INT 0.5, 1.0, 2.1
 * specifications). */
enum { PL_GPE_INT_05 = 0x05, PL_GPE_INT_10 = 0x08, PL_GPE_INT_20 = 0x82 };

struct pl_tunnel {
	uint8_t kind; /* enum pl_tunnel_kind */
	bool have_vni;
	uint32_t vni;  /* VNI, or the GRE key */
	uint16_t next; /* GRE, Geneve: EtherType; VXLAN-GPE: next protocol */
	/* VXLAN-GPE: the byte of the next protocol when the P bit is not set */
	uint8_t next_unsaid;
	struct pl_cursor options; /* Geneve options */
	struct pl_cursor inner;   /* behind the tunnel header */
	/* link type of inner; PL_LINK_UNKNOWN when `next` is none of Ethernet, IPv4, IPv6 */
	enum pl_link inner_link;
};

/* Reads the tunnel header at the payload of a walked level, found by protocol and UDP destination
 * port; vxlan_ports: a word of VXLAN's (wire/tunnel_ports.h). Returns PL_V_OK with kind NONE when
 * there is none. */
enum pl_verdict pl_tunnel_open(
	struct pl_tunnel *ret, const struct pl_layers *layers, uint64_t vxlan_ports);

/* Makes the word of VXLAN's ports: 4789 and the n ports of the texts, by default 8472. Returns
 * -EINVAL, with *ret_bad a text that is no port, or NULL when there are too many. */
int pl_vxlan_ports_parse(uint64_t *ret, const char *const *texts, size_t n, const char **ret_bad);

/* Return the PL_LINK_* of an EtherType, or of a VXLAN-GPE next protocol (1 IPv4, 2 IPv6, 3
 * Ethernet). */
enum pl_link pl_link_of_ethertype(uint16_t ethertype);
enum pl_link pl_link_of_gpe(uint8_t next);

/* Returns true for EtherTypes of known protocols other than IP: random bytes seldom have one. */
bool pl_ethertype_is_known(uint16_t type);

/* ---- writing ---- */

/* Writes Ethernet with fixed locally administered addresses and, when vlan is not 0, one 802.1Q
 * tag. */
void pl_put_eth(struct pl_build *b, uint16_t ethertype, uint16_t vlan);

/* Options between an IPv6 header and its transport: the insides of options headers (TLVs, laid out
 * for a place 2 bytes behind the start of the header, as RFC 8200 4.2 counts). Length 0: no such
 * header. */
struct pl_ip6_options {
	const void *hop, *dst;
	size_t hop_len,
		dst_len; /* at most 2046 each; padded to whole 8 bytes with Pad1/PadN when written */
};

/*
 * Writes an IPv4 or IPv6 header (by the flow's addresses) and the TCP, UDP or ICMP header after it
 * (none for other protocols), lengths left open; TCP has tcp_opt_words words of NOP options (at
 * most 10). Returns the offset for pl_end_ip. `options` may be NULL and is for IPv6 only.
 */
size_t pl_put_ip_options(struct pl_build *b, const struct pl_flow *flow, uint8_t ttl,
	unsigned int tcp_opt_words, const struct pl_ip6_options *options);
size_t pl_put_ip(
	struct pl_build *b, const struct pl_flow *flow, uint8_t ttl, unsigned int tcp_opt_words);
/* Sets lengths and checksums (IPv4 header; UDP, TCP, ICMP) of a packet that pl_put_ip began at
 * `at`, when all payload has been put. Inner packets are closed before outer ones. A packet above
 * 65535 bytes marks b full. */
void pl_end_ip(struct pl_build *b, size_t at);

void pl_put_vxlan(struct pl_build *b, uint32_t vni);
void pl_put_vxlan_gpe(struct pl_build *b, uint32_t vni, uint8_t next);
/* The caller puts opt_len bytes of options next: a multiple of 4, at most 252. */
void pl_put_geneve(struct pl_build *b, uint32_t vni, uint16_t ethertype, size_t opt_len);
/* key: written with the K bit unless it is 0. */
void pl_put_gre(struct pl_build *b, uint16_t ethertype, uint32_t key);

/* Internet checksum (RFC 1071) of bytes, continuing from a partial sum; not complemented. */
uint32_t pl_checksum_add(uint32_t sum, const void *data, size_t len);
uint16_t pl_checksum_fold(uint32_t sum); /* folded and complemented */
