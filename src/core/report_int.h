/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* INT headers over TCP, UDP and ICMP within reports, for core/report_core.h: those that
 * wire/int_parse.c reads, except for rare ones (domain ids, destination shims, words of MX), which
 * are escalated. wire/int_parse.c has clauses and diagrams. */
#pragma once

#include "core/report_scratch.h"
#include "wire/layers.h"
#include "wire/verdict.h"

/* --- the inner packet's INT header ------------------------------------------------------------ */

enum pl_core_found {
	PL_CORE_NOT, /* no INT: the bytes are the packet's own payload */
	PL_CORE_INT,
	PL_CORE_UP, /* escalate: too rare, or wrong, or with s->missing_key */
	PL_CORE_UP_HOPS,
};

/* True for bytes that do not parse but can hardly be anything but INT, as in wire/int_lengths.c. p:
 * 12 bytes. */
PL_CORE_INLINE int pl_core_resembles_int(const uint8_t *p)
{
	uint32_t version = p[4] >> 4;

	if (pl_frame_be16(p + 8) == 0)
		return 0;
	if (version == 2 && ((p[4] & 1) != 0 || p[5] != 0 || p[6] >> 5 != 0))
		return 0;
	if (p[0] == 0x01 || p[0] == 0x03) {
		if (p[1] != 0 || (p[3] & 3) != 0)
			return 0;
		return version == 0   ? p[5] >> 5 == 0 && pl_frame_be16(p + 10) == 0
		       : version == 1 ? (p[5] & 0x7f) == 0 && p[6] >> 5 == 0
				      : version == 2;
	}
	return version == 2 && ((p[0] & 0xf3) == 0x10 || (p[0] & 0xf3) == 0x30);
}

/* True when a report whose outer DSCP announces INT may have INT in front of it, which strip() of
 * decode.c finds out by reading it. Few reports look like a shim with a metadata header of its
 * version; those that do are escalated. */
PL_CORE_INLINE int pl_core_may_be_instrumented(
	struct pl_frame_cursor c, const struct pl_core_profile *profile)
{
	const uint8_t *p = pl_frame_peek(&c, 12);

	if (p == NULL)
		return 0;
	/* Skips a destination shim of v2.x. Many v2.0 reports have a part of their sequence number
	 * at this place. */
	if (p[0] >> 4 == 2) {
		if (!pl_frame_skip(&c, 4 + 4 * (uint32_t)p[1], 4 + 4 * 255))
			return 0;
		p = pl_frame_peek(&c, 12);
		if (p == NULL)
			return 0;
	}
	switch (p[0] >> 4) {
	case 0:
		if (p[0] == 2)
			return p[2] != 0;
		if ((p[0] != 1 && p[0] != 3) || p[4] >> 4 > 1)
			return 0;
		return p[2] != 0 || (profile->layout_key >> 24 & 0xff) == PL_DIALECT_INTCOLLECTOR;
	case 1:
	case 3:
		return p[1] >= 3 && p[4] >> 4 == 2;
	default:
		return p[0] >> 4 == 2;
	}
}

PL_CORE_INLINE uint32_t pl_core_no_int(const struct pl_frame_cursor *at)
{
	const uint8_t *p = pl_frame_peek(at, 12);

	return p != NULL && pl_core_resembles_int(p) ? PL_CORE_UP : PL_CORE_NOT;
}

/* Reads the ports of the original transport header at c; without such a header the flow has no
 * ports. */
PL_CORE_INLINE void pl_core_original_ports(
	struct pl_core_report *r, uint8_t proto, const struct pl_frame_cursor *c)
{
	const uint8_t *p;

	r->flow.proto = proto;
	r->flow.has &= (uint8_t)~PL_FLOW_KEY_HAS_PORTS;
	r->flow.sport = 0;
	r->flow.dport = 0;
	r->present &= ~(uint32_t)PL_PATH_HAS_sport;
	if (proto == PL_IP_TCP || proto == PL_IP_UDP) {
		p = pl_frame_peek(c, 4);
		if (p == NULL)
			return;
		r->flow.sport = (uint16_t)pl_frame_be16(p);
		r->flow.dport = (uint16_t)pl_frame_be16(p + 2);
	} else if (proto == PL_IP_ICMP || proto == PL_IP_ICMPV6) {
		p = pl_frame_peek(c, 2);
		if (p == NULL)
			return;
		r->flow.sport = p[0];
		r->flow.dport = p[1];
	} else {
		return;
	}
	r->flow.has |= PL_FLOW_KEY_HAS_PORTS;
	r->present |= PL_PATH_HAS_sport;
}

/* Values of an INT header, kept until all of it has been checked. */
struct pl_core_int {
	const struct pl_core_layout *layout;
	uint64_t notes;
	uint32_t words; /* words of the stack */
	uint32_t hops;
	uint32_t links; /* as in the scratch */
	uint16_t flags; /* PL_FLAG_* to add */
	uint16_t dport; /* 0 = keep */
	uint8_t mode, proto, npt;
	uint8_t has_proto, host_int, tail;
	uint32_t follow; /* `escalate` of the layout */
};

/* Notes E, M and C (v2.x: D) of a header. */
PL_CORE_INLINE void pl_core_limits(
	struct pl_core_int *in, uint32_t hop_limit, uint32_t mtu_limit, uint32_t copy)
{
	in->links = UINT32_MAX;
	if (__builtin_expect((hop_limit | mtu_limit | copy) == 0, 1))
		return;
	if (hop_limit)
		in->notes |= PL_NOTE_BIT(HOP_LIMIT);
	if (mtu_limit)
		in->notes |= PL_NOTE_BIT(MTU_LIMIT);
	if (hop_limit | mtu_limit) {
		in->notes |= PL_NOTE_BIT(PARTIAL);
		in->flags |= PL_FLAG_PARTIAL;
	}
	if (copy) {
		in->notes |= PL_NOTE_BIT(COPY);
		in->flags |= PL_FLAG_COPY;
	}
	/* M: nodes may be missing anywhere. E: nodes are missing behind the newest one in the
	 * stack. */
	if (mtu_limit)
		in->links = 0;
	else if (hop_limit)
		in->links = UINT32_MAX - 1;
}

/* Finds the layout and divides the stack; returns 0 when that fails. */
PL_CORE_INLINE uint32_t pl_core_stack(struct pl_core_scratch *s, struct pl_core_int *in,
	const struct pl_core_layouts *layouts, uint64_t key, uint32_t reserved, uint32_t left)
{
	in->layout = pl_core_layout_find(layouts, key);
	if (in->layout == NULL) {
		s->missing_key = key;
		return 0;
	}
	in->follow = in->layout->escalate;
	in->hops = in->words * in->layout->hops_per_word >> 16;
	if (in->hops * in->layout->words != in->words || 4 * in->words > left)
		return 0;
	if (reserved != 0)
		in->notes |= PL_NOTE_BIT(RESERVED_BITS);
	if (in->words == 0)
		in->notes |= PL_NOTE_BIT(NO_HOPS);
	return 1;
}

/* Returns the shim's length, as length_of_hops of wire/int_parse.c does; p: the shim, md: the
 * metadata header of v0.5. */
PL_CORE_INLINE uint32_t pl_core_shim_length(
	struct pl_core_int *in, const uint8_t *p, const uint8_t *md, uint64_t layout_key)
{
	uint32_t length = p[2];

	if (__builtin_expect(length != 0, 1) || in->host_int ||
		(layout_key >> 24 & 0xff) != PL_DIALECT_INTCOLLECTOR)
		return length;
	length = 4 + (md[1] & 0x1fu) * md[3];
	if (length > UINT8_MAX)
		return 0;
	in->notes |= PL_NOTE_BIT(SHIM_LENGTH_ZERO);
	return length;
}

/* Reads v0.5 and v1.0; p: the shim; *c is behind it. Returns PL_CORE_NOT when the bytes are no
 * header of this kind. */
PL_CORE_INLINE uint32_t pl_core_int_v1(struct pl_core_scratch *s, struct pl_core_int *in,
	const uint8_t *p, struct pl_frame_cursor *c, const struct pl_core_layouts *layouts,
	const struct pl_core_profile *profile)
{
	const uint8_t *md = pl_frame_take(c, 8);
	uint32_t bitmap, hop_words, length, fixed = 3;
	uint64_t key;

	in->host_int = p[0] == 3;
	if (md == NULL || md[0] >> 4 > 1)
		return PL_CORE_NOT;
	bitmap = pl_frame_be16(md + 4);
	key = profile->layout_key | (uint64_t)bitmap << 32;
	if (md[0] >> 4 == 1) {
		if (in->host_int || p[2] < fixed)
			return PL_CORE_NOT;
		pl_core_limits(in, md[0] & 1, md[1] >> 7, md[0] >> 1 & 1);
		hop_words = md[2] & 0x1f;
		in->words = p[2] - fixed;
		key |= (uint64_t)PL_INT_V10 << 16 | hop_words;
		return hop_words != 0 &&
				       pl_core_stack(s, in, layouts, key, bitmap & 0x00fe, c->left)
			       ? PL_CORE_INT
			       : PL_CORE_NOT;
	}
	in->tail = 1;
	fixed += in->host_int ? 2 : 1;
	hop_words = md[1] & 0x1f;
	length = pl_core_shim_length(in, p, md, profile->layout_key);
	if (length < fixed || hop_words != (uint32_t)pl_core_popcount16(bitmap) || md[3] > md[2])
		return PL_CORE_NOT;
	pl_core_limits(in, md[0] & 1, 0, md[0] >> 1 & 1);
	in->words = length - fixed;
	if (hop_words == 0) {
		in->notes |= PL_NOTE_BIT(NO_HOPS);
		return in->words == 0 ? PL_CORE_INT : PL_CORE_NOT;
	}
	if (in->host_int)
		key = (key & ~(UINT64_C(0xff) << 24)) | (uint64_t)PL_DIALECT_HOST_INT << 24;
	key |= (uint64_t)PL_INT_V05 << 16 | hop_words;
	if (!pl_core_stack(s, in, layouts, key, bitmap & 0x00ff, c->left))
		return PL_CORE_NOT;
	/* v0.5 4.7: only hops that pushed metadata are counted. */
	return in->hops == md[3] ? PL_CORE_INT : PL_CORE_NOT;
}

PL_CORE_INLINE uint32_t pl_core_int_v2(struct pl_core_scratch *s, struct pl_core_int *in,
	const uint8_t *p, struct pl_frame_cursor *c, const struct pl_core_layouts *layouts,
	const struct pl_core_profile *profile)
{
	const uint8_t *md = pl_frame_take(c, 12);
	uint32_t bitmap, hop_words;

	if (md == NULL || md[0] >> 4 != 2 || p[1] < 3)
		return PL_CORE_NOT;
	/* A domain id changes the meaning of the words. */
	if (pl_frame_be16(md + 6) != 0)
		return PL_CORE_UP;
	in->npt = p[0] >> 2 & 3;
	if (in->npt == 1) {
		in->dport = (uint16_t)pl_frame_be16(p + 2);
	} else if (in->npt == 2) {
		in->has_proto = 1;
		in->proto = p[3];
	} else if (in->npt == 3) {
		return PL_CORE_NOT;
	}
	in->words = p[1] - 3u;
	if (p[0] >> 4 == 3) {
		/* MX: instructions only. Words behind them are the source's, or a node's own. */
		in->mode = PL_MODE_MX;
		pl_core_limits(in, 0, 0, md[0] >> 3 & 1);
		return in->words == 0 ? PL_CORE_INT : PL_CORE_UP;
	}
	bitmap = pl_frame_be16(md + 4);
	hop_words = md[2] & 0x1f;
	pl_core_limits(in, md[0] >> 2 & 1, md[0] >> 1 & 1, md[0] >> 3 & 1);
	return hop_words != 0 && pl_core_stack(s, in, layouts,
					 profile->layout_key | (uint64_t)bitmap << 32 |
						 (uint64_t)PL_INT_V20 << 16 | hop_words,
					 bitmap & 0x007e, c->left)
		       ? PL_CORE_INT
		       : PL_CORE_NOT;
}

/* True when the original transport header that NPT 2 announces is at c, in a complete packet.
 * Covers the cases of which wire/int_lengths.c is sure; decode/ checks the rest, and names the
 * wrong length. */
PL_CORE_INLINE int pl_core_original_fits(uint8_t proto, const struct pl_frame_cursor *c)
{
	const uint8_t *p;
	uint32_t header;

	if (proto == PL_IP_UDP) {
		p = pl_frame_peek(c, 8);
		return p != NULL && pl_frame_be16(p + 4) == c->left;
	}
	if (proto != PL_IP_TCP)
		return 0;
	p = pl_frame_peek(c, 20);
	if (p == NULL)
		return 0;
	header = (p[12] >> 4) * 4u;
	/* No port is 0, no reserved bit is set; ACK is set, but not SYN, RST, or URG with its
	 * pointer. */
	return pl_frame_be16(p) != 0 && pl_frame_be16(p + 2) != 0 && header >= 20 &&
	       header <= c->left && (p[12] & 0x0e) == 0 && (p[13] & 0x36) == 0x10 &&
	       pl_frame_be16(p + 18) == 0;
}

/* Reads the tail behind a v0.5 stack: (in Host-INT a flow sequence,) protocol, port and DSCP of the
 * original packet. Returns 0 when there is no such tail. */
PL_CORE_INLINE int pl_core_tail(struct pl_core_int *in, struct pl_frame_cursor *c)
{
	const uint8_t *p;

	if (in->host_int && pl_frame_take(c, 4) == NULL)
		return 0;
	p = pl_frame_take(c, 4);
	if (p == NULL || (p[0] != PL_IP_TCP && p[0] != PL_IP_UDP && p[0] != PL_IP_ICMP &&
				 p[0] != PL_IP_ICMPV6 && p[0] != 0))
		return 0;
	in->has_proto = p[0] != 0;
	in->proto = p[0];
	in->dport = (uint16_t)(p[1] << 8 | p[2]);
	return 1;
}

/* Restores values of the original packet from the shim, as restore() of find.c does. rest: behind
 * the INT. */
PL_CORE_INLINE void pl_core_restore(struct pl_core_report *r, const struct pl_core_int *in,
	const struct pl_frame_cursor *rest, uint32_t int_port)
{
	const int by_port =
		r->flow.proto == PL_IP_UDP && (r->flow.dport == PL_CORE_PORT_HOST_INT ||
						      (int_port != 0 && r->flow.dport == int_port));

	if (in->npt == 2 || (in->has_proto && in->proto != r->flow.proto) ||
		(in->host_int && in->has_proto && by_port))
		pl_core_original_ports(r, in->proto, rest);
	else if ((in->dport != 0 || in->npt == 1) &&
		 (r->flow.proto == PL_IP_UDP || r->flow.proto == PL_IP_TCP))
		r->flow.dport = in->dport;
}

/* Reads an INT header at c, with the stack behind it. Returns PL_CORE_NOT when there is none; then,
 * and on PL_CORE_UP, nothing has changed but s->missing_key. */
PL_CORE_INLINE uint32_t pl_core_int_header(struct pl_core_scratch *s, struct pl_frame_cursor c,
	const struct pl_core_layouts *layouts, const struct pl_core_profile *profile)
{
	const struct pl_frame_cursor at = c;
	struct pl_core_int in = { .mode = PL_MODE_MD };
	const uint8_t *p = pl_frame_take(&c, 4), *stack;
	uint32_t found;

	if (p == NULL)
		return PL_CORE_NOT;
	if (p[0] == 1 || p[0] == 3)
		found = pl_core_int_v1(s, &in, p, &c, layouts, profile);
	else if (p[0] >> 4 == 1 || p[0] >> 4 == 3)
		found = pl_core_int_v2(s, &in, p, &c, layouts, profile);
	else
		/* Destination shims, which come before others, are escalated. */
		return p[0] == 2 || p[0] >> 4 == 2 ? PL_CORE_UP : PL_CORE_NOT;
	if (s->missing_key != 0)
		return PL_CORE_UP;
	if (found == PL_CORE_UP)
		return PL_CORE_UP;
	if (found == PL_CORE_NOT)
		return pl_core_no_int(&at);
	if (in.hops > PL_CORE_HOPS_MAX)
		return PL_CORE_UP_HOPS;
	stack = c.pos;
	if (!pl_frame_skip(&c, 4 * in.words, 4 * 255) || (in.tail && !pl_core_tail(&in, &c)))
		return pl_core_no_int(&at);
	if (in.npt == 2 && !pl_core_original_fits(in.proto, &c))
		return PL_CORE_UP;
	if (in.hops > 0) {
#ifdef __bpf__
		s->stack_layout = (uint32_t)(in.layout - layouts->slot);
		s->stack_at = (uint32_t)(at.end - stack);
#else
		s->stack_layout = in.layout;
		s->stack = stack;
#endif
		s->stack_hops = in.hops;
		s->stack_bytes = 4 * in.words;
	}
	s->links = in.links == UINT32_MAX - 1 ? in.hops : in.links;
	s->follow = in.follow;
	s->notes |= in.notes;
	s->report.flags |= in.flags;
	s->report.mode = in.mode;
	pl_core_restore(&s->report, &in, &c, profile->int_port);
	return PL_CORE_INT;
}
