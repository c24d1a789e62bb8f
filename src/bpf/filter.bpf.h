/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filter in front of every XDP program of pathline: it takes the frames that are report traffic,
 * and passes all others unchanged to the host. Include it in one object file per program, because
 * it defines pl_filter, pl_filter_counts and the map of sockets, pl_xsks.
 *
 *   struct pl_filter_frame f;
 *   uint32_t cause = pl_filter_frame(ctx, &f);
 *
 *   if (cause != PL_FILTER_TAKEN)
 *           return pl_filter_pass(cause);
 *   ... f.payload to f.end are the datagram's bytes ...
 *   return pl_filter_to_socket(ctx);
 *
 * A program that settles a report itself calls pl_filter_count(PL_FILTER_TAKEN) and returns
 * XDP_DROP.
 *
 * Read: Ethernet, up to two VLAN tags (802.1Q, 802.1ad), IPv4 with options, IPv6 with up to two
 * hop-by-hop or destination headers, UDP; RoCEv1 where it is asked for. Lengths in IP and UDP are
 * read only as far as needed to find the ports; decode/ names and counts the faults of a datagram.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/filter.h"

#define PL_FILTER_TAGS_MAX 2
#define PL_FILTER_IP6_MAX  2 /* extension headers */
#define PL_FILTER_ROCE1    0x8915

struct pl_filter pl_filter;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_filter_counts);
} pl_filter_counts SEC(".maps");

/* Sockets by receive queue; the map is made as large as the interface has queues before it is
 * loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, uint32_t);
	__type(value, uint32_t);
} pl_xsks SEC(".maps");

struct pl_filter_frame {
	const uint8_t *ip, *udp, *payload, *end; /* end of the frame, not of the datagram */
	uint16_t vlan;                           /* outer VLAN id; 0 = none, or priority only */
	uint8_t ip_version; /* 4 or 6; 0: RoCEv1, where ip, udp and payload are behind Ethernet */
};

static __always_inline void pl_filter_count(uint32_t cause)
{
	uint32_t zero = 0;
	struct pl_filter_counts *counts = bpf_map_lookup_elem(&pl_filter_counts, &zero);

	if (counts != NULL && cause < PL_FILTER_MAX)
		counts->frames[cause]++;
}

static __always_inline int pl_filter_pass(uint32_t cause)
{
	pl_filter_count(cause);
	return XDP_PASS;
}

/* Counts the frame, and passes it to the socket of its queue, or to the host when there is none. */
static __always_inline int pl_filter_to_socket(struct xdp_md *ctx)
{
	int action = (int)bpf_redirect_map(&pl_xsks, ctx->rx_queue_index, XDP_PASS);

	pl_filter_count(action == XDP_REDIRECT ? PL_FILTER_TAKEN : PL_FILTER_NO_SOCKET);
	return action;
}

/* Reads 16 bits of the wire at an address that need not be aligned. */
static __always_inline uint16_t pl_filter_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static __always_inline int pl_filter_has_port(const struct pl_filter_rules *rules, uint32_t port)
{
	uint32_t at = port >> 3;

	/* Verifiers before 6.4 lose sight of 16 bits that were put together from two bytes. */
	__asm__ volatile("" : "+r"(at));
	return rules->ports[at & (sizeof(rules->ports) - 1)] >> (port & 7) & 1;
}

static __always_inline int pl_filter_has_vlan(const struct pl_filter_rules *rules, uint32_t id)
{
	return rules->vlans[id >> 3 & (sizeof(rules->vlans) - 1)] >> (id & 7) & 1;
}

static __always_inline int pl_filter_has_addr(
	const struct pl_filter_rules *rules, uint64_t high, uint64_t low)
{
	uint32_t n = rules->naddrs;

	if (n == 0)
		return 1;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_FILTER_ADDRS_MAX && i < n; i++) {
		const uint64_t *words =
			(const uint64_t *)rules->addrs[i & (PL_FILTER_ADDRS_MAX - 1)].b;

		if (words[0] == high && words[1] == low)
			return 1;
	}
	return 0;
}

/* Returns PL_FILTER_TAKEN with *f filled when the frame is report traffic, else the cause. Counts
 * nothing. */
static __always_inline uint32_t pl_filter_frame(struct xdp_md *ctx, struct pl_filter_frame *f)
{
	const uint8_t *p = (const uint8_t *)(long)ctx->data,
		      *end = (const uint8_t *)(long)ctx->data_end;
	const struct pl_filter_rules *rules = &pl_filter.rules[pl_filter.active & 1];
	uint64_t high, low;
	uint16_t type, port, tagged = 0;
	uint8_t protocol;

	f->vlan = 0;
	f->end = end;
	if (p + ETH_HLEN > end)
		return PL_FILTER_SHORT;
	if (rules->all) {
		f->ip = f->udp = f->payload = p + ETH_HLEN;
		f->ip_version = 0;
		return PL_FILTER_TAKEN;
	}
	type = pl_filter_be16(p + 12);
	p += ETH_HLEN;
#pragma unroll
	for (int i = 0; i < PL_FILTER_TAGS_MAX; i++) {
		uint16_t id;

		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		if (p + 4 > end)
			return PL_FILTER_SHORT;
		id = pl_filter_be16(p) & 0xfff;
		if (i == 0)
			f->vlan = id;
		tagged |= (uint16_t)pl_filter_has_vlan(rules, id);
		type = pl_filter_be16(p + 2);
		p += 4;
	}
	f->ip = p;
	if (type == ETH_P_IP) {
		uint32_t header, dst;

		if (p + 20 > end)
			return PL_FILTER_SHORT;
		header = (p[0] & 15u) * 4;
		if (p[0] >> 4 != 4 || header < 20)
			return PL_FILTER_SHORT;
		protocol = p[9];
		if (protocol != IPPROTO_UDP)
			return PL_FILTER_PROTOCOL;
		/* Fragment: "more fragments" is set, or an offset. */
		if ((pl_filter_be16(p + 6) & 0x3fff) != 0)
			return PL_FILTER_FRAGMENT;
		__builtin_memcpy(&dst, p + 16, 4);
		high = 0;
		low = (uint64_t)dst << 32 | 0xffff0000;
		p += header;
		f->ip_version = 4;
	} else if (type == ETH_P_IPV6) {
		if (p + 40 > end)
			return PL_FILTER_SHORT;
		if (p[0] >> 4 != 6)
			return PL_FILTER_SHORT;
		protocol = p[6];
		__builtin_memcpy(&high, p + 24, 8);
		__builtin_memcpy(&low, p + 32, 8);
		p += 40;
#pragma unroll
		for (int i = 0; i < PL_FILTER_IP6_MAX; i++) {
			if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_DSTOPTS)
				break;
			if (p + 8 > end)
				return PL_FILTER_SHORT;
			protocol = p[0];
			p += (p[1] + 1u) * 8;
		}
		if (protocol == IPPROTO_FRAGMENT)
			return PL_FILTER_FRAGMENT;
		if (protocol != IPPROTO_UDP)
			return PL_FILTER_PROTOCOL;
		f->ip_version = 6;
	} else {
		f->udp = f->payload = p;
		f->ip_version = 0;
		if (type != PL_FILTER_ROCE1 || !rules->roce1)
			return PL_FILTER_PROTOCOL;
		return rules->any_vlan || tagged ? PL_FILTER_TAKEN : PL_FILTER_VLAN;
	}
	if (p + 8 > end)
		return PL_FILTER_SHORT;
	port = pl_filter_be16(p + 2);
	f->udp = p;
	f->payload = p + 8;
	if (!pl_filter_has_port(rules, port))
		return PL_FILTER_PORT;
	if (!rules->any_vlan && !tagged)
		return PL_FILTER_VLAN;
	if (!pl_filter_has_addr(rules, high, low))
		return PL_FILTER_ADDRESS;
	return PL_FILTER_TAKEN;
}
