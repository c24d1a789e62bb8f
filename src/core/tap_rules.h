/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules of a tap as data: made from the text of tap/rules.h, and matched with records. One source
 * for user space (tap/rules.c) and the kernel program (bpf/tap.bpf.c), where they are map data. */
#pragma once

#include "core/report_cursor.h"
#include "record/packet.h"

#define PL_TAP_RULES_MAX   64 /* a power of two */
/* Most packets that a sampled record may stand for, by its field. */
#define PL_TAP_WEIGHT_MAX  UINT16_MAX

#define PL_TAP_FIN         0x01u
#define PL_TAP_SYN         0x02u
#define PL_TAP_RST         0x04u
#define PL_TAP_PSH         0x08u
#define PL_TAP_CWR         0x80u

/* Tells the compiler that an address in a record stands at a multiple of 8: otherwise the kernel's
 * compiler copies it byte by byte, and a reader of its words waits for all bytes. */
#define PL_TAP_WORDS(addr) __builtin_assume_aligned(&(addr), 8)

enum pl_tap_action { PL_TAP_TAKE, PL_TAP_SKIP, PL_TAP_MARK };
enum pl_tap_ruling { PL_TAP_RULED_TAKE, PL_TAP_RULED_SKIP, PL_TAP_RULED_NOT_SAMPLED };

/* Addresses that equal `addr` in the bits of `mask`; words in memory order. */
struct pl_tap_net {
	uint64_t addr[2], mask[2];
};

/* Range of ports or of lengths. */
struct pl_tap_range {
	uint16_t low, high; /* 0 to 65535: any */
};

struct pl_tap_rule {
	struct pl_tap_net src, dst, net;
	struct pl_tap_range sport, dport, port;
	struct pl_tap_range length, payload; /* ranges of wire_len and pay_len, bytes */
	uint16_t vlan, vlan_mask;            /* 0xffff: this one, 0: any */
	uint16_t obs, obs_mask;              /* observation point and direction */
	uint8_t proto, proto_mask;           /* 0xff: this one, 0: any */
	uint8_t flags, flags_mask;           /* TCP flags: those of the mask are equal */
	uint8_t action;                      /* enum pl_tap_action */
	uint8_t reserved[7];
	uint32_t sample, sample_flows; /* 1 in this number; 1: all */
};

/* Sets of rules, used in turns: while one is in use the next one is written. A program that still
 * reads a set is done long before the set's turn comes again. */
#define PL_TAP_RULE_SETS 4u /* a power of two */

struct pl_tap_rule_set {
	uint32_t n;
	uint16_t point; /* observation point */
	uint16_t reserved;
	struct pl_tap_rule rules[PL_TAP_RULES_MAX];
	uint64_t matched[PL_TAP_RULES_MAX]; /* packets matched by rules that sample */
};

/* Returns the same as pl_hash_mix of base/hash.h, for a processor without products of 128 bits. */
PL_CORE_INLINE uint64_t pl_tap_mix(uint64_t a, uint64_t b)
{
	uint64_t a0, a1, b0, b1, low, high, middle;

	a ^= 0x9e3779b97f4a7c15u;
	b ^= 0xe7037ed1a0b428dbu;
	a0 = (uint32_t)a;
	a1 = a >> 32;
	b0 = (uint32_t)b;
	b1 = b >> 32;
	middle = a1 * b0 + (a0 * b0 >> 32);
	low = a0 * b1 + (uint32_t)middle;
	high = a1 * b1 + (middle >> 32) + (low >> 32);
	return a * b ^ high;
}

/* Returns the bits in which the words differ from the network; 0: none. */
PL_CORE_INLINE uint64_t pl_tap_net_off(const struct pl_tap_net *n, const uint64_t words[2])
{
	return ((words[0] ^ n->addr[0]) & n->mask[0]) | ((words[1] ^ n->addr[1]) & n->mask[1]);
}

/* Returns 0 within the range, computed without a branch, both sides of which the verifier would
 * follow. */
PL_CORE_INLINE uint32_t pl_tap_range_off(struct pl_tap_range p, uint32_t v)
{
	return ((v - p.low) | (p.high - v)) >> 31;
}

PL_CORE_INLINE int pl_tap_rule_matches(const struct pl_tap_rule *u, const struct pl_pkt96 *r)
{
	uint64_t src[2], dst[2], off;

	memcpy(src, PL_TAP_WORDS(r->src), sizeof(src));
	memcpy(dst, PL_TAP_WORDS(r->dst), sizeof(dst));
	off = pl_tap_net_off(&u->src, src) | pl_tap_net_off(&u->dst, dst);
	off |= pl_tap_range_off(u->sport, r->sport) | pl_tap_range_off(u->dport, r->dport);
	off |= pl_tap_range_off(u->port, r->sport) & pl_tap_range_off(u->port, r->dport);
	off |= pl_tap_range_off(u->length, r->wire_len) | pl_tap_range_off(u->payload, r->pay_len);
	off |= (uint64_t)((r->proto ^ u->proto) & u->proto_mask);
	off |= (uint64_t)((r->tcp_flags ^ u->flags) & u->flags_mask);
	off |= (uint64_t)((r->vlan ^ u->vlan) & u->vlan_mask);
	off |= (uint64_t)((r->obs ^ u->obs) & u->obs_mask);
	return off == 0 && (pl_tap_net_off(&u->net, src) == 0 || pl_tap_net_off(&u->net, dst) == 0);
}

/* The flow hash also chooses partitions and queues: a share of the flows must not be a share of the
 * partitions. */
#define PL_TAP_SAMPLE_MIX 0x2545f4914f6cdd1du

/* Successive packets that look the same to a rule, and those that the rule takes: the first and
 * each step-th behind it. */
struct pl_tap_share {
	uint32_t n; /* number of packets */
	uint32_t taken, first, step;
};

PL_CORE_INLINE void pl_tap_share_all(struct pl_tap_share *share)
{
	share->first = 0;
	share->step = 1;
	share->taken = share->n;
}

/* Applies a matching rule to a record, whose bits it sets, and to the others of its share, of which
 * n is set. before: number of packets that the rule matched so far, needed only by rules that
 * sample. */
PL_CORE_INLINE enum pl_tap_ruling pl_tap_rule_share(const struct pl_tap_rule *u, struct pl_pkt96 *r,
	uint64_t before, struct pl_tap_share *share)
{
	pl_tap_share_all(share);
	if (u->action == PL_TAP_SKIP)
		return PL_TAP_RULED_SKIP;
	if (u->sample_flows > 1 &&
		pl_tap_mix(r->flow_hash, PL_TAP_SAMPLE_MIX) % u->sample_flows != 0)
		return PL_TAP_RULED_NOT_SAMPLED;
	if (u->sample > 1) {
		const uint32_t off = (uint32_t)(before % u->sample);

		share->first = off != 0 ? u->sample - off : 0;
		share->step = u->sample;
		if (share->first >= share->n)
			return PL_TAP_RULED_NOT_SAMPLED;
		share->taken = (share->n - 1 - share->first) / u->sample + 1;
	}
	if (u->sample_flows > 1 || u->sample > 1)
		r->obs |= PL_OBS_SAMPLED;
	if (u->action == PL_TAP_MARK)
		r->obs |= PL_OBS_RULE;
	return PL_TAP_RULED_TAKE;
}

/* Applies a matching rule to a single packet. */
PL_CORE_INLINE enum pl_tap_ruling pl_tap_rule_decide(
	const struct pl_tap_rule *u, struct pl_pkt96 *r, uint64_t before)
{
	struct pl_tap_share alone = { .n = 1 };

	return pl_tap_rule_share(u, r, before, &alone);
}

/* ---- of a tap ---- */

/* True when the packet begins or ends a TCP connection: every sample takes such packets. */
PL_CORE_INLINE int pl_tap_is_edge(const struct pl_pkt96 *r)
{
	return r->proto == 6 && (r->tcp_flags & (PL_TAP_FIN | PL_TAP_SYN | PL_TAP_RST)) != 0;
}

PL_CORE_INLINE int pl_tap_rule_samples(const struct pl_tap_rule *u)
{
	return u->sample > 1 || u->sample_flows > 1;
}

/* Writes the number of packets that a sampled record stands for into its field mss, which is unused
 * in sampled packets: a SYN, which has its MSS option there, is always taken. was: the record's
 * bits before the rule; a sample of a sample stands for the product. Writes 0 when the number
 * cannot be known, because the first sample had no room for it (pkt64), or is more than the field
 * holds: *ret_over is 1 then. */
PL_CORE_INLINE void pl_tap_rule_weigh(
	const struct pl_tap_rule *u, struct pl_pkt96 *r, uint16_t was, uint32_t *ret_over)
{
	uint64_t weight = (uint64_t)u->sample * u->sample_flows;

	*ret_over = 0;
	if (pl_tap_is_edge(r)) {
		if ((r->tcp_flags & PL_TAP_SYN) != 0 || (was & PL_OBS_SAMPLED) != 0)
			return;
		weight = 1;
	} else if ((was & PL_OBS_SAMPLED) != 0) {
		weight *= r->mss;
	}
	*ret_over = weight > PL_TAP_WEIGHT_MAX;
	r->mss = weight > PL_TAP_WEIGHT_MAX ? 0 : (uint16_t)weight;
}

/* Applies a rule as pl_tap_rule_share does, for a tap: every sample takes edges, and records get
 * weights. Edges must not be counted in `before`. */
PL_CORE_INLINE enum pl_tap_ruling pl_tap_rule_tap(const struct pl_tap_rule *u, struct pl_pkt96 *r,
	uint64_t before, struct pl_tap_share *share, uint32_t *ret_over)
{
	const uint16_t was = r->obs;
	enum pl_tap_ruling ruling = PL_TAP_RULED_TAKE;

	*ret_over = 0;
	if (!pl_tap_rule_samples(u) || u->action == PL_TAP_SKIP)
		return pl_tap_rule_share(u, r, before, share);
	if (pl_tap_is_edge(r)) {
		pl_tap_share_all(share);
		r->obs |= PL_OBS_SAMPLED;
		if (u->action == PL_TAP_MARK)
			r->obs |= PL_OBS_RULE;
	} else {
		ruling = pl_tap_rule_share(u, r, before, share);
	}
	if (ruling == PL_TAP_RULED_TAKE)
		pl_tap_rule_weigh(u, r, was, ret_over);
	return ruling;
}
