/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The usual report, straight through: the first half of the straight way (bpf/detect_quiet.h has the second), for the
 * kernel program and for user space. Usual are a report of v1.0 or v2.0 about a tracked packet that was not dropped,
 * without metadata of its own; in it Ethernet, IP, UDP or TCP without options; INT-MD v1.0 or v2.x with hops, nothing
 * out of the ordinary in its header, and blocks of a known shape. IP, around the report as in it, is IPv4 without options
 * or IPv6 without extension headers, behind one 802.1Q tag or none. Whatever else a packet is, the answer is 0, nothing
 * was changed, and bpf/report_core.h decides: that way is the definition, and what is read here it would settle without
 * a note, if no value is missing and no clock is off (which the hops tell).
 *
 * Each part is taken by one check; loads within it follow.
 */
#pragma once

#include "bpf/detect_state.h"
#include "bpf/report_int.h"

#define PL_QUIET_HOPS 15 /* as many words as the path's print has secrets for */

/* Whose the report is. */
struct pl_quiet_keys {
	uint64_t exporter[4]; /* struct pl_core_exporter_key */
	uint64_t flow[6];     /* struct pl_flow_key */
	uint64_t flow_hash;   /* pl_quiet_flow_hash, by the caller of pl_quiet_step */
};

struct pl_quiet {
	struct pl_quiet_keys *keys; /* the caller's */
	const uint8_t *stack;       /* its newest block */
	const uint8_t *end;         /* of the frame */
	uint32_t seq, seq_mask;
	uint8_t version; /* of the report */
	uint8_t shape;   /* enum pl_core_shape of its blocks; never NONE */
	uint8_t hops;
	uint8_t ports2; /* bytes of a block's level-2 ports */
	uint16_t block; /* bytes of a block */
	uint16_t has;   /* 1 << PL_CORE_Q_x of what a hop has */
	uint64_t print; /* once the hops were looked at, of a path that was not known */
	uint32_t known; /* its flow's path has its memo */
	uint32_t zero;
};

/* From seq on, as words. */
#define PL_QUIET_FORM_WORDS 2
_Static_assert(offsetof(struct pl_quiet, print) - offsetof(struct pl_quiet, seq) ==
		       8 * PL_QUIET_FORM_WORDS,
	"all that says what the report is like");

#define PL_QUIET_GUESSES 16

/* Values for the sums, and where they go: way | set << 3. The arrays are written when sums are kept. What stays from
 * report to report is where exporters stood last, guessed as in a memo. */
struct pl_quiet_marks {
	uint64_t now_ns;
	uint32_t max_latency_ns;
	uint32_t route; /* of the path, with PL_CORE_KEEP_AGGREGATES */
	uint32_t place[PL_QUIET_HOPS + 1], port[PL_QUIET_HOPS + 1], link[PL_QUIET_HOPS + 1];
	uint32_t latency[PL_QUIET_HOPS + 1], depth[PL_QUIET_HOPS + 1], util[PL_QUIET_HOPS + 1],
		transit[PL_QUIET_HOPS + 1];
	uint32_t exporter[PL_QUIET_GUESSES];
	uint32_t keep; /* not 0: sums are kept */
	uint32_t hops,
		has; /* of the report; has: 1 << PL_CORE_Q_x of the quantities that there are */
	uint32_t stirred; /* bit i: a value of hop i may have something to tell */
	uint64_t path_id; /* of the flow */
};

/* Where values stand in the blocks of a settled report that has stirred hops: their shape is not NODE. */
struct pl_quiet_blocks {
	uint32_t block; /* bytes of one */
	uint32_t time_bits;
	uint32_t util_at; /* 0: no utilization */
	uint32_t zero;
};

/*
 * A path as the straight way knows it again: its stack hop by hop, and where the keys of its hops were found last. A
 * remembered position is a guess, which the key that stands there confirms or not.
 */
struct pl_quiet_memo_hop {
	uint64_t stack;             /* node << 32 | ports, as in the block */
	uint32_t place, port, link; /* way | set << 3 */
	uint32_t queue;             /* of the report that noted it */
};

struct pl_quiet_memo {
	uint64_t print; /* of the path; 0: none, or being written */
	uint32_t hops, full;
	struct pl_quiet_memo_hop hop[PL_QUIET_HOPS];
	uint32_t route; /* way | set << 3, of the path in its table */
	uint32_t zero;
};

_Static_assert(sizeof(struct pl_quiet_memo) == 384, "whole cache lines");

#define PL_QUIET_MEMOS     1024 /* a power of two; of paths that share a place the last one has it */

/* Type, version, length of the header; type and version, the rest being the traffic class and a flow label. */
#define PL_QUIET_ETH_IPV4  0x08004500u
#define PL_QUIET_ETH_IPV6  0x86dd6000u
#define PL_QUIET_IPV4_FRAG UINT64_C(0x3fff0000) /* of bytes 2 to 9 of IPv4 */

/* Ethernet and IPv6; or Ethernet, IPv4, the first 8 bytes of UDP or TCP, and the 12 that INT needs at least. */
#define PL_QUIET_HEADERS   (14 + 40)
/* INT that is there needs so much: a shim and 8 bytes of the metadata header. */
#define PL_QUIET_INT_MIN   12

struct pl_quiet_ip {
	uint32_t vlan; /* 0: none, or a priority without one (802.1Q 6.9) */
	uint32_t proto, dscp;
	uint32_t length; /* of what follows the header, as announced */
};

/* Ethernet and IP at *c, which moves behind them. */
PL_CORE_INLINE int pl_quiet_ip(
	struct pl_quiet_ip *ret, struct pl_frame_cursor *c, uint64_t *src, uint64_t *dst)
{
	const uint8_t *p = pl_frame_peek(c, PL_QUIET_HEADERS);
	uint64_t ip;
	uint32_t w;

	if (p == NULL)
		return 0;
	w = pl_frame_be32(p + 12);
	ret->vlan = 0;
	if (__builtin_expect(w >> 16 == PL_ETH_VLAN, 0)) {
		ret->vlan = w & 0xfff;
		(void)pl_frame_take(c, 4);
		p = pl_frame_peek(c, PL_QUIET_HEADERS);
		if (p == NULL)
			return 0;
		w = pl_frame_be32(p + 12);
	}
	ip = pl_frame_be64(p + 16);
	if (__builtin_expect((w & 0xffffff00) == PL_QUIET_ETH_IPV4, 1)) {
		ret->proto = ip & 0xff;
		ret->dscp = w >> 2 & 0x3f;
		ret->length = (uint32_t)(ip >> 48) - 20;
		pl_frame_addr_v4(src, p + 26);
		pl_frame_addr_v4(dst, p + 30);
		return (ip & PL_QUIET_IPV4_FRAG) == 0 && ip >> 48 >= 20 &&
		       pl_frame_take(c, 14 + 20) != NULL;
	}
	if ((w & 0xfffff000) != PL_QUIET_ETH_IPV6)
		return 0;
	ret->proto = ip >> 24 & 0xff;
	ret->dscp = w >> 6 & 0x3f;
	ret->length = ip >> 32 & 0xffff;
	pl_frame_addr_v6(src, p + 22);
	pl_frame_addr_v6(dst, p + 38);
	return pl_frame_take(c, 14 + 40) != NULL;
}

/* The report header at *c, which moves behind it. */
PL_CORE_INLINE int pl_quiet_header(struct pl_quiet *q, struct pl_frame_cursor *c)
{
	const uint8_t *p = pl_frame_take(c, 12);
	uint32_t w, v, version;

	if (p == NULL)
		return 0;
	w = pl_frame_be32(p);
	v = pl_frame_be32(p + 8);
	version = w >> 28;
	q->keys->exporter[2] = pl_frame_be32(p + 4);
	q->version = (uint8_t)version;
	if (version == PL_REPORT_V10) {
		/* Length 4, NProt Ethernet, no RepMdBits, F, not D. */
		if ((w & 0xffff8140) != 0x14000040)
			return 0;
		q->keys->exporter[3] = w & 0x3f;
		q->seq = v;
		q->seq_mask = UINT32_MAX;
	} else if (version == PL_REPORT_V20) {
		/* One report to the end of the datagram: RepType 0, InType Ethernet, F, neither D nor I. */
		if ((v & 0xff0000b0) != 0x03000020 ||
			((v >> 16 & 0xff) * 4 != c->left && (v >> 16 & 0xff) != 0xff))
			return 0;
		q->keys->exporter[3] = w >> 22 & 0x3f;
		q->seq = w & 0x3fffff;
		q->seq_mask = 0x3fffff;
	} else {
		return 0;
	}
	/* v1.0 has a fourth word, its time. */
	return version == PL_REPORT_V20 || pl_frame_take(c, 4) != NULL;
}

/* The packet reported on; *c moves to where INT may be. */
PL_CORE_INLINE int pl_quiet_inner(struct pl_quiet *q, struct pl_frame_cursor *c)
{
	uint64_t *flow = q->keys->flow;
	struct pl_quiet_ip ip;
	const uint8_t *p;
	uint32_t dport, size, has = PL_FLOW_KEY_HAS_PORTS;

	if (!pl_quiet_ip(&ip, c, &flow[0], &flow[2]))
		return 0;
	p = pl_frame_peek(c, 8 + PL_QUIET_INT_MIN);
	if (p == NULL)
		return 0;
	dport = pl_frame_be16(p + 2);
	size = ip.length;
	if (ip.proto == PL_IP_UDP) {
		size = pl_frame_be16(p + 4);
		if (size < 8 || size > ip.length || dport == PL_PORT_VXLAN ||
			dport == PL_PORT_VXLAN_GPE || dport == PL_PORT_GENEVE)
			return 0;
	} else if (ip.proto != PL_IP_TCP || size < 20 || p[12] >> 4 != 5) {
		return 0;
	}
	if (ip.vlan != 0)
		has |= PL_FLOW_KEY_HAS_VLAN;
	flow[4] = (uint64_t)pl_frame_be16(p) | (uint64_t)dport << 16 | (uint64_t)ip.vlan << 32 |
		  (uint64_t)ip.proto << 48 | (uint64_t)has << 56;
	flow[5] = 0;
	(void)pl_frame_trim(c, size); /* it holds less only when it was cut */
	return pl_frame_take(c, ip.proto == PL_IP_UDP ? 8 : 20) != NULL;
}

/* Shim and metadata header at *c. */
PL_CORE_INLINE int pl_quiet_int(struct pl_quiet *q, struct pl_frame_cursor *c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	const uint8_t *p = pl_frame_peek(c, PL_QUIET_INT_MIN);
	const struct pl_core_layout *l;
	uint32_t shim, limits, bits, words, hops;
	uint64_t key;

	if (p == NULL)
		return 0;
	shim = pl_frame_be32(p);
	limits = pl_frame_be32(p + 4);
	bits = pl_frame_be32(p + 8);
	key = profile->layout_key | (uint64_t)(bits >> 16) << 32 | (limits >> 8 & 0x1f);
	if (shim >> 24 == 1) {
		/* v1.0; C, E and M are 0. */
		if ((limits & 0xf3800000) != 0x10000000)
			return 0;
		words = shim >> 8 & 0xff;
		key |= (uint64_t)PL_INT_V10 << 16;
	} else {
		/* v2.x: shim type 1, NPT 0 or 1; D, E, M are 0. A domain id changes what the words mean. */
		if ((shim & 0xf8000000) != 0x10000000 || (limits & 0xfe000000) != 0x20000000 ||
			(bits & 0xffff) != 0)
			return 0;
		words = shim >> 16 & 0xff;
		key |= (uint64_t)PL_INT_V20 << 16;
		/* The port that INT's own took the place of. */
		if (shim >> 26 & 1)
			q->keys->flow[4] = (q->keys->flow[4] & ~(UINT64_C(0xffff) << 16)) |
					   (uint64_t)(shim & 0xffff) << 16;
	}
	l = pl_core_layout_find(layouts, key);
	if (l == NULL || l->shape == PL_CORE_SHAPE_NONE || words < 4)
		return 0;
	words -= 3;
	hops = words * l->hops_per_word >> 16;
	if (hops * l->words != words || hops > PL_QUIET_HOPS)
		return 0;
	q->shape = l->shape;
	q->hops = (uint8_t)hops;
	q->block = (uint16_t)(4 * l->words);
	q->ports2 = (uint8_t)(4 * l->ports2_words);
	q->has = l->shape == PL_CORE_SHAPE_NODE
			 ? 0
			 : 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH |
				   1u << PL_CORE_Q_LINK_LATENCY;
	if (l->present & PL_HOP_HAS_tx_util)
		q->has |= 1u << PL_CORE_Q_TX_UTIL;
	/* v1.0 has two words behind its shim, v2.x three. */
	if (pl_frame_take(c, limits >> 28 == 1 ? 12 : 16) == NULL || 4 * words > c->left)
		return 0;
	q->stack = c->pos;
	q->end = c->end;
	return 1;
}

/*
 * The datagram at c, from an exporter whose profile has nothing set but perhaps a dialect; the two words of its address
 * are in q->keys. 1: *q is filled.
 */
PL_CORE_INLINE int pl_quiet_read(struct pl_quiet *q, struct pl_frame_cursor c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	return pl_quiet_header(q, &c) && pl_quiet_inner(q, &c) &&
	       pl_quiet_int(q, &c, layouts, profile);
}

/* Where a report was sent to. */
struct pl_quiet_to {
	uint64_t addr[2];
	uint32_t port, vlan; /* vlan 0: none */
};

/*
 * What carries it: Ethernet, IP and UDP at *c, which moves to the datagram. The exporter's address is in k->exporter then.
 * 0: it is not as usual.
 */
PL_CORE_INLINE int pl_quiet_carrier(
	struct pl_quiet_keys *k, struct pl_frame_cursor *c, struct pl_quiet_to *to)
{
	struct pl_quiet_ip ip;
	const uint8_t *p;
	uint32_t length;

	if (!pl_quiet_ip(&ip, c, &k->exporter[0], to->addr) || ip.proto != PL_IP_UDP ||
		ip.dscp == PL_CORE_DSCP || ip.length > c->left)
		return 0;
	p = pl_frame_take(c, 8);
	if (p == NULL)
		return 0;
	to->port = pl_frame_be16(p + 2);
	to->vlan = ip.vlan;
	length = pl_frame_be16(p + 4);
	return length >= 8 && length <= ip.length && pl_frame_trim(c, length - 8);
}

#ifndef __bpf__
/* To be called when rules or secret were set. */
static inline void pl_quiet_prepare(struct pl_core_rules *rules)
{
	const uint64_t *secret = rules->secret, low = 0xffff0000;
	/* The straight way does not follow the path latency of each flow. */
	struct pl_core_prepared p = { .quiet = !(rules->watch & 1u << PL_CORE_Q_FLOW_LATENCY),
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
