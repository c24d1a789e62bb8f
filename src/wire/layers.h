/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The carriers: one level of link, network and transport headers, and the tunnels between levels. The
 * walk is pure and allocates nothing; cursors in the results point into the packet and live as long.
 *
 * Ethernet (also 802.3 is refused), 802.1Q/802.1ad (any number up to 4), MPLS (up to 8 labels), Linux
 * cooked v1/v2, IPv4 with options and fragments (RFC 791), IPv6 with extension headers (RFC 8200), TCP
 * with options (RFC 9293), UDP (RFC 768), GRE (RFC 2784, 2890), VXLAN (RFC 7348), VXLAN-GPE
 * (draft-ietf-nvo3-vxlan-gpe), Geneve (RFC 8926).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/packet.h"
#include "wire/verdict.h"

enum {
	PL_ETH_IPV4 = 0x0800,
	PL_ETH_TEB = 0x6558,
	PL_ETH_VLAN = 0x8100,
	PL_ETH_IPV6 = 0x86dd,
	PL_ETH_MPLS = 0x8847,
	PL_ETH_MPLS_MC = 0x8848,
	PL_ETH_QINQ = 0x88a8,
};

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
	PL_IP_ICMPV6 = 58,
	PL_IP_NONE = 59,
	PL_IP_DSTOPTS = 60,
};

enum {
	PL_PORT_VXLAN = 4789,
	PL_PORT_VXLAN_GPE = 4790,
	PL_PORT_GENEVE = 6081,
};

#define PL_NESTING_MAX 8

/* What is in pl_flow beyond addresses and protocol. */
#define PL_FLOW_PORTS 0x01  /* sport, dport (ICMP: type, code) */
#define PL_FLOW_VLAN  0x02  /* the innermost VLAN id of this level */
#define PL_FLOW_VNI   0x04  /* set by whoever opened a tunnel above this level */

struct pl_flow {
	struct pl_addr src, dst;
	uint16_t sport, dport;  /* host order */
	uint16_t vlan;          /* 12 bits */
	uint8_t proto;          /* the transport protocol, after extension headers */
	uint8_t dscp;           /* 6 bits */
	uint32_t vni;           /* 24 bits; GRE: the key */
	uint8_t have;           /* PL_FLOW_* */
};

#define PL_LAYERS_FRAGMENT 0x01  /* a fragment with offset > 0: transport is not a header */
#define PL_LAYERS_CUT      0x02  /* the IP header announces more bytes than are there */
#define PL_LAYERS_NO_L4    0x04  /* the transport header is not whole; flow has no ports */

struct pl_layers {
	struct pl_flow flow;
	struct pl_cursor transport; /* from the transport header to the end of the IP packet, or of the capture */
	struct pl_cursor payload;   /* behind the transport header; TCP: behind its options */
	struct pl_cursor hop_opts;  /* inside of the IPv6 Hop-by-Hop options, empty when there are none */
	struct pl_cursor dst_opts;  /* inside of the (last) IPv6 Destination Options */
	uint8_t ip_version;         /* 4 or 6 */
	uint8_t ttl;                /* TTL or hop limit */
	uint8_t ecn;
	uint8_t flags;              /* PL_LAYERS_* */
	uint16_t missing;           /* bytes the IP header announces and the capture lacks (saturating) */
};

/*
 * Walks one level, from the link header to behind the transport header. PL_V_OK, or the verdict that says
 * what is wrong; on a verdict other than OK *ret holds what was read before. Protocols other than TCP, UDP,
 * ICMP: transport and payload are both the IP payload. A UDP length is honoured: payload ends with it.
 * A transport header that is not whole is PL_V_SHORT unless `lenient`, then OK with PL_LAYERS_NO_L4: inner
 * packets of reports are truncated on purpose.
 */
enum pl_verdict pl_layers_walk(struct pl_layers *ret, struct pl_cursor frame, enum pl_link link,
	bool lenient);

enum pl_tunnel_kind {
	PL_TUNNEL_NONE,
	PL_TUNNEL_IP,         /* IPv4 or IPv6 directly in IP */
	PL_TUNNEL_GRE,
	PL_TUNNEL_VXLAN,
	PL_TUNNEL_VXLAN_GPE,
	PL_TUNNEL_GENEVE,
};

/* Next-protocol values of VXLAN-GPE that announce INT, per INT version (INT 0.5, 1.0, 2.1 specifications). */
enum { PL_GPE_INT_05 = 0x05, PL_GPE_INT_10 = 0x08, PL_GPE_INT_20 = 0x82 };

struct pl_tunnel {
	uint8_t kind;              /* enum pl_tunnel_kind */
	bool have_vni;
	uint32_t vni;              /* VNI, or the GRE key */
	uint16_t next;             /* GRE, Geneve: EtherType; VXLAN-GPE: next protocol */
	struct pl_cursor options;  /* Geneve options */
	struct pl_cursor inner;    /* behind the tunnel header */
	enum pl_link inner_link;   /* how inner begins; PL_LINK_UNKNOWN when `next` is none of Ethernet, IPv4, IPv6 */
};

/* The tunnel header at the payload of a walked level, by protocol and UDP destination port. PL_V_OK with
 * kind NONE when there is none. */
enum pl_verdict pl_tunnel_open(struct pl_tunnel *ret, const struct pl_layers *layers);

/* PL_LINK_* for an EtherType, or for a VXLAN-GPE next protocol (1 IPv4, 2 IPv6, 3 Ethernet). */
enum pl_link pl_link_of_ethertype(uint16_t ethertype);
enum pl_link pl_link_of_gpe(uint8_t next);

/* ---- writing ---- */

/* Ethernet with fixed locally administered addresses and, when vlan is not 0, one 802.1Q tag. */
void pl_put_eth(struct pl_build *b, uint16_t ethertype, uint16_t vlan);

/*
 * IPv4 or IPv6 header (by the flow's addresses) and the TCP or UDP header after it, lengths left open;
 * TCP carries tcp_opt_words words of NOP options. Returns the offset to give to pl_end_ip.
 */
size_t pl_put_ip(struct pl_build *b, const struct pl_flow *flow, uint8_t ttl, unsigned int tcp_opt_words);
/* Closes what pl_put_ip opened at `at` when all payload has been put: lengths and checksums (IPv4 header,
 * and UDP/TCP over the pseudo header). */
void pl_end_ip(struct pl_build *b, size_t at);

void pl_put_vxlan(struct pl_build *b, uint32_t vni);
void pl_put_vxlan_gpe(struct pl_build *b, uint32_t vni, uint8_t next);
/* opt_len bytes of options follow, put by the caller; a multiple of 4, at most 252. */
void pl_put_geneve(struct pl_build *b, uint32_t vni, uint16_t ethertype, size_t opt_len);
/* key: with the K bit when not 0. */
void pl_put_gre(struct pl_build *b, uint16_t ethertype, uint32_t key);

/* Internet checksum (RFC 1071) of bytes, continuing from a partial sum; not complemented. */
uint32_t pl_checksum_add(uint32_t sum, const void *data, size_t len);
uint16_t pl_checksum_fold(uint32_t sum);  /* folded and complemented */
