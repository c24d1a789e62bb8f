/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path, first half (core/detect_fast.h has the second): the headers of a common report,
 * for the kernel program and for user space. Common is a report of v0.5, v1.0 or v2.0 about a
 * tracked packet that was not dropped, without metadata of its own; in it Ethernet, IP, and UDP or
 * TCP; INT-MD v0.5, v1.0 or v2.x with up to 15 hops, nothing out of the ordinary in its header, and
 * a layout that has a node id. IP, around the report as in it, is IPv4 without options or IPv6
 * without extension headers, behind up to two VLAN tags. For any other packet the cause is returned
 * (core/slow_causes.def), nothing was changed, and core/report_core.h decides: the slow path is the
 * reference, and would settle every report that is read here without a note, if no value is missing
 * and no clock is off (which the hops tell).
 *
 * Each part of the packet is checked once; loads within it need no further check.
 */
#pragma once

#include "core/detect_state.h"
#include "core/report_int.h"

#define PL_FAST_HOPS 15 /* as many as the path's print has secrets */

/* Keys of a report. */
struct pl_fast_keys {
	uint64_t exporter[4]; /* struct pl_core_exporter_key */
	uint64_t flow[6];     /* struct pl_flow_key */
	uint64_t flow_hash;   /* pl_fast_flow_hash, set by the caller of pl_fast_step */
};

struct pl_fast {
	struct pl_fast_keys *keys; /* memory of the caller */
	const uint8_t *stack;      /* newest block of the stack */
	const uint8_t *end;        /* end of the frame */
	uint32_t seq, seq_mask;
	uint32_t layout; /* slot of the layout */
	uint16_t block;  /* bytes of a block */
	uint8_t version; /* version of the report */
	uint8_t hops;    /* at least 1 */
	uint64_t print;  /* print of the path, set for a path without a memo */
	uint32_t known;  /* 1: a memo has the path of its flow */
	uint32_t zero;
};

/* Number of words from seq on that describe the report's form; the kernel program keeps them
 * between its parts. */
#define PL_FAST_FORM_WORDS 2
_Static_assert(
	offsetof(struct pl_fast, print) - offsetof(struct pl_fast, seq) == 8 * PL_FAST_FORM_WORDS,
	"all that says what the report is like");

#define PL_FAST_GUESSES 16

/* Working memory of the fast path for a report: values of the hops, source first, and the places of
 * their keys, way | set << 3. The last places of exporters are kept from report to report, as
 * guesses like those in a memo. */
struct pl_fast_marks {
	uint64_t now_ns;
	uint64_t path_id; /* path id of the flow */
	uint32_t max_latency_ns;
	uint32_t route;   /* place of the path, with PL_CORE_KEEP_AGGREGATES */
	uint32_t keep;    /* not 0: sums are kept */
	uint32_t hops;    /* hops of the report */
	uint32_t has;     /* 1 << PL_CORE_Q_x of the present quantities */
	uint32_t missing; /* 1: a hop has no latency, which its times may give */
	uint32_t changed; /* bit i: a value of hop i may cause an event */
	uint32_t present; /* if changed: PL_HOP_HAS_* of the layout */
	uint32_t exporter[PL_FAST_GUESSES];
	uint32_t place[PL_FAST_HOPS + 1], port[PL_FAST_HOPS + 1], link[PL_FAST_HOPS + 1],
		buffer_at[PL_FAST_HOPS + 1];
	uint32_t latency[PL_FAST_HOPS + 1], depth[PL_FAST_HOPS + 1], queue[PL_FAST_HOPS + 1],
		util[PL_FAST_HOPS + 1], transit[PL_FAST_HOPS + 1], buffer[PL_FAST_HOPS + 1];
	uint64_t stack[PL_FAST_HOPS + 1]; /* if changed: as in the memo */
};

/* One hop of a path that the fast path knows: its stack, and the last places of its keys. A
 * remembered place is a guess, which the key there confirms or refutes. */
struct pl_fast_memo_hop {
	uint64_t stack;             /* node << 32 | ports, as in the block */
	uint32_t place, port, link; /* way | set << 3 */
	uint32_t queue;             /* queue in the report that noted it */
};

#define PL_FAST_RAW 8 /* words */

struct pl_fast_memo {
	uint64_t print; /* print of the path; 0: none, or being written */
	uint32_t hops, shape;
	uint64_t raw[PL_FAST_RAW]; /* PL_CORE_SHAPE_NODE: the stack as in the frame */
	struct pl_fast_memo_hop hop[PL_FAST_HOPS];
	uint32_t buffer[PL_FAST_HOPS]; /* way | set << 3 */
	uint32_t route;                /* way | set << 3 of the path in its table */
	uint64_t zero;
};

_Static_assert(sizeof(struct pl_fast_memo) == 512, "whole cache lines");
_Static_assert(8 * PL_FAST_RAW >= 4 * PL_FAST_HOPS, "every node");

#define PL_FAST_MEMOS   1024 /* a power of two; when paths share a slot, the last path keeps it */

/* Least bytes of IPv4 with the 8 bytes of UDP or TCP and the 12 of INT that must follow; or of an
 * IPv6 header. */
#define PL_FAST_IP      40
/* Least bytes of INT: a shim and 8 bytes of the metadata header. */
#define PL_FAST_INT_MIN 12
#define PL_FAST_TAGS    2

struct pl_fast_ip {
	uint32_t vlan, vlan_outer; /* 0: none, or a priority without one (802.1Q 6.9) */
	uint32_t proto, dscp;
	uint32_t length; /* announced length behind the header */
};

/* Skips the tags at *c; type: the type that announced the first one. Returns the type behind
 * them. */
PL_CORE_INLINE uint32_t pl_fast_tags(
	struct pl_fast_ip *ret, struct pl_frame_cursor *c, uint32_t type)
{
#ifdef __bpf__
#pragma unroll
#endif
	for (int i = 0; i < PL_FAST_TAGS; i++) {
		const uint8_t *p;

		if (type != PL_ETH_VLAN && type != PL_ETH_QINQ)
			break;
		p = pl_frame_take(c, 4);
		if (p == NULL)
			return 0;
		ret->vlan = pl_frame_be16(p) & 0xfff;
		if (i == 0)
			ret->vlan_outer = ret->vlan;
		type = pl_frame_be16(p + 2);
	}
	return type;
}

/* Reads Ethernet and IP at *c, and moves *c behind them. Returns 0 when the headers are not of the
 * common kinds. */
PL_CORE_INLINE int pl_fast_ip(
	struct pl_fast_ip *ret, struct pl_frame_cursor *c, uint64_t *src, uint64_t *dst)
{
	const uint8_t *p = pl_frame_take(c, 14);
	uint64_t ip;
	uint32_t type;

	if (p == NULL)
		return 0;
	type = pl_frame_be16(p + 12);
	ret->vlan = ret->vlan_outer = 0;
	if (__builtin_expect(type == PL_ETH_VLAN || type == PL_ETH_QINQ, 0))
		type = pl_fast_tags(ret, c, type);
	p = pl_frame_peek(c, PL_FAST_IP);
	if (p == NULL)
		return 0;
	ip = pl_frame_be64(p);
	if (__builtin_expect(type == PL_ETH_IPV4, 1)) {
		ret->proto = p[9];
		ret->dscp = ip >> 50 & 0x3f;
		ret->length = (ip >> 32 & 0xffff) - 20;
		pl_frame_addr_v4(src, p + 12);
		pl_frame_addr_v4(dst, p + 16);
		/* No options, and no fragment. */
		return ip >> 56 == 0x45 && (ip & 0x3fff) == 0 && (ip >> 32 & 0xffff) >= 20 &&
		       pl_frame_take(c, 20) != NULL;
	}
	if (type != PL_ETH_IPV6 || ip >> 60 != 6)
		return 0;
	ret->proto = ip >> 8 & 0xff;
	ret->dscp = ip >> 54 & 0x3f;
	ret->length = ip >> 16 & 0xffff;
	pl_frame_addr_v6(src, p + 8);
	pl_frame_addr_v6(dst, p + 24);
	return pl_frame_take(c, 40) != NULL;
}

/* Reads the report header at *c, and moves *c behind it. Returns 0 when the header is not of the
 * common kinds. */
PL_CORE_INLINE int pl_fast_header(struct pl_fast *q, struct pl_frame_cursor *c)
{
	const uint8_t *p = pl_frame_take(c, 12);
	uint32_t w, v, version;

	if (p == NULL)
		return 0;
	w = pl_frame_be32(p);
	v = pl_frame_be32(p + 8);
	version = w >> 28;
	q->keys->exporter[2] = pl_frame_be32(p + 4);
	q->keys->exporter[3] = w & 0x3f;
	q->version = (uint8_t)version;
	q->seq = v;
	q->seq_mask = UINT32_MAX;
	if (version == PL_REPORT_V10) {
		/* The usual header: Length 4, NProt Ethernet, no RepMdBits, flag F set, flag D
		 * clear. Its fourth word is the time. */
		return (w & 0xffff8140) == 0x14000040 && pl_frame_take(c, 4) != NULL;
	}
	if (version == PL_REPORT_V20) {
		q->keys->exporter[3] = w >> 22 & 0x3f;
		q->seq = w & 0x3fffff;
		q->seq_mask = 0x3fffff;
		/* A single report to the end of the datagram: RepType 0, InType Ethernet, F,
		 * neither D nor I. */
		return (v & 0xff0000b0) == 0x03000020 &&
		       ((v >> 16 & 0xff) * 4 == c->left || (v >> 16 & 0xff) == 0xff);
	}
	/* v0.5: NProto Ethernet, F, not D. It names no node. */
	q->seq = (uint32_t)q->keys->exporter[2];
	q->keys->exporter[2] = 0;
	return (w & 0xffa00000) == 0x00200000;
}

/* Reads the packet reported on; *c moves to the place of INT. Returns 0 when it is no common
 * one. */
PL_CORE_INLINE int pl_fast_inner(
	struct pl_fast *q, struct pl_frame_cursor *c, const uint64_t vxlan_ports)
{
	uint64_t *flow = q->keys->flow;
	struct pl_fast_ip ip;
	const uint8_t *p;
	uint32_t dport, size, has = PL_FLOW_KEY_HAS_PORTS;

	if (!pl_fast_ip(&ip, c, &flow[0], &flow[2]))
		return 0;
	p = pl_frame_peek(c, 8 + PL_FAST_INT_MIN);
	if (p == NULL)
		return 0;
	dport = pl_frame_be16(p + 2);
	if (ip.vlan != 0)
		has |= PL_FLOW_KEY_HAS_VLAN;
	flow[4] = (uint64_t)pl_frame_be16(p) | (uint64_t)dport << 16 | (uint64_t)ip.vlan << 32 |
		  (uint64_t)ip.proto << 48 | (uint64_t)has << 56;
	flow[5] = 0;
	if (ip.proto == PL_IP_UDP) {
		size = pl_frame_be16(p + 4);
		/* If IP announces more, the slow path escalates. */
		if (size < 8 || size != ip.length || pl_is_tunnel_port(vxlan_ports, dport))
			return 0;
		(void)pl_frame_trim(c, size); /* shorter only when the packet was cut */
		return pl_frame_take(c, 8) != NULL;
	}
	/* INT is searched behind the options first. */
	size = (p[12] >> 4) * 4u;
	if (ip.proto != PL_IP_TCP || size < 20 || size > ip.length)
		return 0;
	(void)pl_frame_trim(c, ip.length);
	return pl_frame_skip(c, size, 60);
}

/* Values of a version's shim and metadata header. */
struct pl_fast_int {
	uint64_t key; /* key of the layout */
	uint32_t words, header, hops;
};

/* Reads v0.5 and v1.0. */
PL_CORE_INLINE int pl_fast_int_v1(
	struct pl_fast_int *in, uint32_t shim, uint32_t limits, uint32_t bits)
{
	in->header = 12;
	if (limits >> 28 == 1) {
		/* C, E and M are 0. */
		in->words = (shim >> 8 & 0xff) - 3;
		in->key |= (uint64_t)PL_INT_V10 << 16 | (limits >> 8 & 0x1f);
		return (limits & 0x03800000) == 0;
	}
	/* v0.5 has a tail of one word, and a count of hops. */
	in->words = (shim >> 8 & 0xff) - 4;
	in->key |= (uint64_t)PL_INT_V05 << 16 | (limits >> 16 & 0x1f);
	in->hops = limits & 0xff;
	return (limits & 0xf3000000) == 0 && in->hops != 0 &&
	       (limits & 0xff) <= (limits >> 8 & 0xff) &&
	       (limits >> 16 & 0x1f) == (uint32_t)pl_core_popcount16(bits >> 16);
}

/* Reads v2.x: NPT 0 or 1; D, E, M are 0, and there is no domain id, which would change the meaning
 * of the words. */
PL_CORE_INLINE int pl_fast_int_v2(
	struct pl_fast *q, struct pl_fast_int *in, uint32_t shim, uint32_t limits, uint32_t bits)
{
	in->words = (shim >> 16 & 0xff) - 3;
	in->header = 16;
	in->key |= (uint64_t)PL_INT_V20 << 16 | (limits >> 8 & 0x1f);
	/* The flow gets the port that the port of INT replaced. */
	if (shim >> 26 & 1)
		q->keys->flow[4] = (q->keys->flow[4] & ~(UINT64_C(0xffff) << 16)) |
				   (uint64_t)(shim & 0xffff) << 16;
	return (shim & 0xf8000000) == 0x10000000 && (limits & 0xfe000000) == 0x20000000 &&
	       (bits & 0xffff) == 0;
}

/* Reads the tail of v0.5, behind the stack at p: protocol and port of the original packet. */
PL_CORE_INLINE int pl_fast_tail(struct pl_fast *q, const uint8_t *p)
{
	const uint32_t w = pl_frame_be32(p), port = w >> 8 & 0xffff;

	if (w >> 24 != 0 && w >> 24 != (q->keys->flow[4] >> 48 & 0xff))
		return 0;
	if (port != 0)
		q->keys->flow[4] = (q->keys->flow[4] & ~(UINT64_C(0xffff) << 16)) | (uint64_t)port
											    << 16;
	return 1;
}

/* Reads shim and metadata header at *c. layout_key: that of the exporter's profile. Returns an enum
 * pl_slow. */
PL_CORE_INLINE uint32_t pl_fast_int(struct pl_fast *q, struct pl_frame_cursor *c,
	const struct pl_core_layouts *layouts, uint64_t layout_key)
{
	const uint8_t *p = pl_frame_peek(c, PL_FAST_INT_MIN);
	struct pl_fast_int in = { .key = layout_key };
	const struct pl_core_layout *l;
	uint32_t shim, limits, bits, hops;

	if (p == NULL)
		return PL_SLOW_INT;
	shim = pl_frame_be32(p);
	limits = pl_frame_be32(p + 4);
	bits = pl_frame_be32(p + 8);
	in.key |= (uint64_t)(bits >> 16) << 32;
	if (!(shim >> 24 == 1 ? pl_fast_int_v1(&in, shim, limits, bits)
			      : pl_fast_int_v2(q, &in, shim, limits, bits)))
		return PL_SLOW_INT;
	l = pl_core_layout_find(layouts, in.key);
	if (l == NULL || l->shape == PL_CORE_SHAPE_NONE)
		return PL_SLOW_LAYOUT;
	/* If the length is too short, the difference is far too large. */
	hops = in.words * l->hops_per_word >> 16;
	if (in.words == 0 || in.words > 255 || hops * l->words != in.words)
		return PL_SLOW_INT;
	if (hops > PL_FAST_HOPS)
		return PL_SLOW_HOPS;
	q->layout = (uint32_t)(l - layouts->slot);
	q->hops = (uint8_t)hops;
	q->block = (uint16_t)(4 * l->words);
	if (pl_frame_take(c, in.header) == NULL)
		return PL_SLOW_INT;
	q->stack = c->pos;
	q->end = c->end;
	if (in.hops != 0) {
		if (in.hops != hops || !pl_frame_skip(c, 4 * in.words, 4 * 255))
			return PL_SLOW_INT;
		p = pl_frame_peek(c, 4);
		return p != NULL && pl_fast_tail(q, p) ? PL_SLOW_NONE : PL_SLOW_INT;
	}
	return 4 * in.words > c->left ? PL_SLOW_INT : PL_SLOW_NONE;
}

/* Reads the datagram at c. The two words of its exporter's address are in q->keys, and its profile
 * does not announce INT. Returns PL_SLOW_NONE when *q is filled. */
PL_CORE_INLINE uint32_t pl_fast_read(struct pl_fast *q, struct pl_frame_cursor c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile,
	const uint64_t vxlan_ports)
{
	if (!pl_fast_header(q, &c))
		return PL_SLOW_REPORT;
	if (!pl_fast_inner(q, &c, vxlan_ports))
		return PL_SLOW_INNER;
	return pl_fast_int(q, &c, layouts, profile->layout_key);
}

/* Destination of a report. */
struct pl_fast_to {
	uint64_t addr[2];
	uint32_t port, vlan, vlan_outer; /* vlan 0: none */
};

/* Reads the carrier: Ethernet, IP and UDP at *c, which moves to the datagram. The exporter's
 * address goes to k->exporter. Returns 0 when it is no common one. */
PL_CORE_INLINE int pl_fast_carrier(
	struct pl_fast_keys *k, struct pl_frame_cursor *c, struct pl_fast_to *to)
{
	struct pl_fast_ip ip;
	const uint8_t *p;
	uint32_t length;

	if (!pl_fast_ip(&ip, c, &k->exporter[0], to->addr) || ip.proto != PL_IP_UDP ||
		ip.dscp == PL_CORE_DSCP || ip.length > c->left)
		return 0;
	p = pl_frame_take(c, 8);
	if (p == NULL)
		return 0;
	to->port = pl_frame_be16(p + 2);
	to->vlan = ip.vlan;
	to->vlan_outer = ip.vlan_outer;
	length = pl_frame_be16(p + 4);
	return length >= 8 && length <= ip.length && pl_frame_trim(c, length - 8);
}

#ifndef __bpf__
/* Prepares values for the fast path; to be called after rules or secret were set. */
static inline void pl_fast_prepare(struct pl_core_rules *rules)
{
	const uint64_t *secret = rules->secret, low = 0xffff0000;
	/* The fast path does not follow the path latency of each flow. */
	struct pl_core_prepared p = { .fast = !(rules->watch & 1u << PL_CORE_Q_FLOW_LATENCY),
		.keeps = rules->flags & PL_CORE_KEEP_AGGREGATES };

	for (unsigned int i = 0; i < sizeof(p.turned) / sizeof(p.turned[0]); i++)
		p.turned[i] = secret[i] << 32 | secret[i] >> 32;
	p.low2 = low + secret[2];
	p.low4 = low + secret[4];
	p.exporter_v4 = secret[0] + secret[1] * p.turned[1];
	p.flow_v4 = p.exporter_v4 + secret[3] * p.turned[3] + secret[6] * p.turned[6];
	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++)
		p.keeps |= rules->q[i].learn != 0;
	rules->prepared = p;
}
#endif
