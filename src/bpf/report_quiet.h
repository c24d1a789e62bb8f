/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The usual report, straight through: the first half of the straight way (bpf/detect_quiet.h has the second), for the
 * kernel program and for user space. Usual are a report of v1.0 or v2.0 about a tracked packet that was not dropped,
 * without metadata of its own; in it Ethernet, IPv4 without options, UDP or TCP without options; INT-MD v1.0 or v2.x
 * with hops, nothing out of the ordinary in its header, and blocks of a known shape. Whatever else a packet is, the
 * answer is 0, nothing was changed, and bpf/report_core.h decides: that way is the definition, and what is read here
 * it would settle without a note, if no value is missing and no clock is off (which the hops tell).
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

#define PL_QUIET_MEMOS 1024 /* a power of two; of paths that share a place the last one has it */

/* The words of an address, as pl_core_addr_v4. */
PL_CORE_INLINE uint64_t pl_quiet_addr_v4(const uint8_t *p)
{
	return (uint64_t)PL_FRAME_LOAD(uint32_t, p) << 32 | 0xffff0000;
}

/* An Ethernet header and an IPv4 header without options, by their bytes 12 to 15: type, version, length. */
#define PL_QUIET_ETH_IPV4  0x08004500u
#define PL_QUIET_IPV4_FRAG UINT64_C(0x3fff0000) /* of bytes 2 to 9 of IPv4 */

/* Ethernet, IPv4, UDP. */
#define PL_QUIET_OUTER     (14 + 20 + 8)
/* INT that is there needs so much: a shim and 8 bytes of the metadata header. */
#define PL_QUIET_INT_MIN   12
/* Ethernet, IPv4, and the first 8 bytes of UDP or TCP. */
#define PL_QUIET_INNER     (14 + 20 + 8)

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
	/* v1.0 has a fourth word, its time. By arithmetic, so that both go on as one. */
	return pl_frame_skip(c, (w >> 28 & 1) * 4, 4);
}

/* The packet reported on; *c moves to where INT may be. */
PL_CORE_INLINE int pl_quiet_inner(struct pl_quiet *q, struct pl_frame_cursor *c)
{
	const uint8_t *p = pl_frame_peek(c, PL_QUIET_INNER + PL_QUIET_INT_MIN);
	uint32_t announced, proto, dport, size;
	uint64_t ip;

	if (p == NULL || (pl_frame_be32(p + 12) & 0xffffff00) != PL_QUIET_ETH_IPV4)
		return 0;
	ip = pl_frame_be64(p + 16);
	announced = (uint32_t)(ip >> 48);
	proto = ip & 0xff;
	dport = pl_frame_be16(p + 36);
	if ((ip & PL_QUIET_IPV4_FRAG) != 0)
		return 0;
	if (proto == PL_IP_UDP) {
		size = pl_frame_be16(p + 38);
		if (size < 8 || 20 + size > announced || dport == PL_PORT_VXLAN ||
			dport == PL_PORT_VXLAN_GPE || dport == PL_PORT_GENEVE)
			return 0;
		announced = 20 + size;
	} else if (proto != PL_IP_TCP || announced < 40 || p[46] >> 4 != 5) {
		return 0;
	}
	q->keys->flow[0] = q->keys->flow[2] = q->keys->flow[5] = 0;
	q->keys->flow[1] = pl_quiet_addr_v4(p + 26);
	q->keys->flow[3] = pl_quiet_addr_v4(p + 30);
	q->keys->flow[4] = (uint64_t)pl_frame_be16(p + 34) | (uint64_t)dport << 16 |
			   (uint64_t)proto << 48 | (uint64_t)PL_FLOW_KEY_HAS_PORTS << 56;
	(void)pl_frame_trim(c, 14 + announced); /* it holds less only when it was cut */
	/* 12 more bytes of TCP: 6 and 17 differ in the second bit too. */
	return pl_frame_skip(c, PL_QUIET_INNER + (proto & 2) * 6, PL_QUIET_INNER + 12);
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
	/* Versions 1 and 2, as for the report's header. */
	if (!pl_frame_skip(c, PL_QUIET_INT_MIN + (limits >> 29 & 1) * 4, 16) || 4 * words > c->left)
		return 0;
	q->stack = c->pos;
	q->end = c->end;
	return 1;
}

/*
 * The datagram at c, from an exporter whose profile has nothing set but perhaps a dialect; exporter: the two words of
 * its address. 1: *q is filled.
 */
PL_CORE_INLINE int pl_quiet_read(struct pl_quiet *q, struct pl_frame_cursor c, uint64_t high,
	uint64_t low, const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	q->keys->exporter[0] = high;
	q->keys->exporter[1] = low;
	return pl_quiet_header(q, &c) && pl_quiet_inner(q, &c) &&
	       pl_quiet_int(q, &c, layouts, profile);
}

/*
 * What carries it: an Ethernet frame of `size` bytes with IPv4 without options and UDP, of which PL_QUIET_OUTER bytes are
 * at p.
 * *ret_port is the destination port, *ret_len the length of the datagram's payload. 0: it is not as usual.
 */
PL_CORE_INLINE int pl_quiet_carrier(
	const uint8_t *p, uint32_t size, uint32_t *ret_port, uint32_t *ret_len)
{
	const uint32_t w = pl_frame_be32(p + 12);
	const uint64_t ip = pl_frame_be64(p + 16), udp = pl_frame_be64(p + 34);
	const uint32_t announced = (uint32_t)(ip >> 48), length = udp >> 16 & 0xffff;

	if ((w & 0xffffff00) != PL_QUIET_ETH_IPV4 || (w >> 2 & 0x3f) == PL_CORE_DSCP ||
		(ip & (PL_QUIET_IPV4_FRAG | 0xff)) != PL_IP_UDP)
		return 0;
	if (announced + 14 > size || length < 8 || 20 + length > announced)
		return 0;
	*ret_port = udp >> 32 & 0xffff;
	*ret_len = length - 8;
	return 1;
}

#ifndef __bpf__
/* To be called when rules or secret were set. */
static inline void pl_quiet_prepare(struct pl_core_rules *rules)
{
	const uint64_t *secret = rules->secret, low = 0xffff0000;
	/* Without flows no path is known again, and the straight way does not follow the path latency of each. */
	struct pl_core_prepared p = { .quiet = (rules->on & PL_CORE_FLOW_KINDS) != 0 &&
					       !(rules->watch & 1u << PL_CORE_Q_FLOW_LATENCY),
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
