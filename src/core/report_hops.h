/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Second part of core/report_core.h: makes hops, source first, from the bytes of a stack and from
 * metadata in the report's header, with the values that follow from them: latencies, the state of a
 * link's clocks, the path's identity. The values equal those of decode/hops.c, which has the same
 * structure. */
#pragma once

#include "core/report_parse.h"

#define PL_CORE_BOTH_TIMES (PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns)

/* Mixes two words like pl_hash_mix of base/hash.h: the 128-bit product folded. */
PL_CORE_INLINE uint64_t pl_core_hash_mix(uint64_t a, uint64_t b)
{
	a ^= UINT64_C(0x9e3779b97f4a7c15);
	b ^= UINT64_C(0xe7037ed1a0b428db);
#ifdef __bpf__
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t ll = al * bl, lh = al * bh, hl = ah * bl;
	uint64_t mid = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;

	return (a * b) ^ (ah * bh + (lh >> 32) + (hl >> 32) + (mid >> 32));
#else
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
#endif
}

/* A block of values: in the frame; in the kernel program a copy of it, in which positions are
 * masked. */
#ifdef __bpf__
struct pl_core_block {
	const uint8_t *bytes;
	uint32_t at, mask;
};
#define PL_CORE_WORD(b, off)                                                                       \
	__builtin_bswap32(*(const uint32_t *)((b)->bytes + (((b)->at + (off)) & (b)->mask)))
#define PL_CORE_WORD2(b, off)                                                                      \
	__builtin_bswap64(*(const uint64_t *)((b)->bytes + (((b)->at + (off)) & (b)->mask)))
#else
struct pl_core_block {
	const uint8_t *bytes;
};
#define PL_CORE_WORD(b, off)  pl_frame_be32((b)->bytes + (off))
#define PL_CORE_WORD2(b, off) pl_frame_be64((b)->bytes + (off))
#endif

/* Decodes the values of one block into h, which is zero, and its times into *ret_in and *ret_eg.
 * All ones means "not available". */
PL_CORE_INLINE void pl_core_decode(struct pl_core_hop *h, uint64_t *ret_in, uint64_t *ret_eg,
	const struct pl_core_block *b, const struct pl_core_layout *l)
{
	const uint32_t want = l->present;
	uint32_t have = 0, v;

	*ret_in = 0;
	*ret_eg = 0;
	if (want & PL_HOP_HAS_node) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_NODE]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->node = v;
			have |= PL_HOP_HAS_node;
		}
	}
	if (want & PL_HOP_HAS_egress_port) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_PORTS]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->ingress_port = v >> 16;
			h->egress_port = v & 0xffff;
			have |= PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port;
		}
	}
	if (want & PL_HOP_HAS_hop_latency_ns) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_LATENCY]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->hop_latency_ns = v;
			have |= PL_HOP_HAS_hop_latency_ns;
		}
	}
	if (want & PL_HOP_HAS_queue_depth) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_QUEUE]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->queue = (uint16_t)(v >> (l->queue_shift & 31));
			h->queue_depth = v & ((1u << (l->queue_shift & 31)) - 1);
			have |= PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth;
		}
	}
	if (want & PL_HOP_HAS_tx_util) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_TX_UTIL]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->tx_util = v;
			have |= PL_HOP_HAS_tx_util;
		}
	}
	if (want & PL_HOP_HAS_buffer_depth) {
		v = PL_CORE_WORD(b, l->off[PL_CORE_F_BUFFER]);
		if (__builtin_expect(v != UINT32_MAX, 1)) {
			h->buffer = (uint8_t)(v >> 24);
			h->buffer_depth = v & 0xffffff;
			have |= PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth;
		}
	}
	if (want & PL_HOP_HAS_time_bits) {
		uint64_t in = UINT64_MAX, eg = UINT64_MAX;

		if (l->time_bits == 64) {
			if (want & PL_HOP_HAS_ingress_ts_ns)
				in = PL_CORE_WORD2(b, l->off[PL_CORE_F_INGRESS_TS]);
			if (want & PL_HOP_HAS_egress_ts_ns)
				eg = PL_CORE_WORD2(b, l->off[PL_CORE_F_EGRESS_TS]);
		} else {
			if (want & PL_HOP_HAS_ingress_ts_ns)
				in = PL_CORE_WORD(b, l->off[PL_CORE_F_INGRESS_TS]);
			if (want & PL_HOP_HAS_egress_ts_ns)
				eg = PL_CORE_WORD(b, l->off[PL_CORE_F_EGRESS_TS]);
			in = in == UINT32_MAX ? UINT64_MAX : in;
			eg = eg == UINT32_MAX ? UINT64_MAX : eg;
		}
		if (in != UINT64_MAX) {
			*ret_in = in;
			have |= PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_time_bits;
		}
		if (eg != UINT64_MAX) {
			*ret_eg = eg;
			have |= PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_time_bits;
		}
	}
	/* Level-2 ports, or the congestion of v0.5, are not used here, but a missing one counts. */
	if (l->ports2_words == 1 && PL_CORE_WORD(b, l->off[PL_CORE_F_PORTS2]) != UINT32_MAX)
		have |= want & (PL_HOP_HAS_egress_port2 | PL_HOP_HAS_ingress_port2 |
				       PL_HOP_HAS_congestion | PL_HOP_HAS_congestion_queue);
	if (l->ports2_words == 2 && PL_CORE_WORD2(b, l->off[PL_CORE_F_PORTS2]) != UINT64_MAX)
		have |= want & (PL_HOP_HAS_egress_port2 | PL_HOP_HAS_ingress_port2);
	h->present = have;
}

/* Metadata of the reporting node in the header, as hop_from_report of decode/ has them. */
struct pl_core_own {
	struct pl_core_hop hop;
	uint64_t in, eg;
};

PL_CORE_INLINE void pl_core_own_hop(struct pl_core_scratch *s, struct pl_core_own *own,
	const struct pl_core_block *b, const struct pl_core_layout *l)
{
	struct pl_core_hop *h = &own->hop;

	__builtin_memset(own, 0, sizeof(*own));
	if (l != NULL && (s->own & OWN_METADATA) != 0) {
		pl_core_decode(h, &own->in, &own->eg, b, l);
		if (l->has_drop) {
			uint32_t w = PL_CORE_WORD(b, l->off[PL_CORE_F_DROP]);

			/* queue id:8 | drop reason:8 | pad:16. The queue has no depth here, only
			 * its id. */
			if (w != UINT32_MAX) {
				s->report.drop_reason = (uint8_t)(w >> 16);
				s->report.present |= PL_PATH_HAS_drop_reason;
				if ((h->present & PL_HOP_HAS_queue_depth) == 0) {
					h->queue = (uint16_t)(w >> 24);
					h->present |= PL_HOP_HAS_queue;
				}
			}
		}
	}
	if (s->own & OWN_NODE) {
		h->node = s->report.node;
		h->present |= PL_HOP_HAS_node;
	}
	if (s->own & OWN_HEADER_TS) {
		own->in = s->header_ts;
		h->present |= PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_time_bits;
	}
}

/* Sets s->n, the number of hops. The stack's newest block is at block, if there is a stack; own has
 * the header's values of the reporting node. Returns 0 when there are too many hops. */
PL_CORE_INLINE uint32_t pl_core_hops_begin(struct pl_core_scratch *s, const struct pl_core_own *own,
	const struct pl_core_block *block, const struct pl_core_layout *l)
{
	s->n = s->stack_hops;
	s->missing = 0;
	s->all = UINT32_MAX;
	s->before_egress_ts = 0;
	s->before_bits = 0;
	/* Without metadata in the header, the stack, if there is one, places the node. */
	if ((s->own & OWN_METADATA) != 0 || (s->stack_hops == 0 && (s->own & OWN_NODE) != 0)) {
		s->own |= OWN_LISTED;
		if (s->stack_hops > 0 && (l->present & PL_HOP_HAS_node) != 0 &&
			PL_CORE_WORD(block, l->off[PL_CORE_F_NODE]) == (uint32_t)own->hop.node &&
			(uint32_t)own->hop.node != UINT32_MAX)
			s->notes |= PL_NOTE_BIT(NODE_TWICE);
		else
			s->n++;
	}
	s->id = s->n;
	s->latency_ns = 0;
	return s->n <= PL_CORE_HOPS_MAX;
}

/* Returns the difference of two times of the same width; signed, so that a skew is seen. */
PL_CORE_INLINE int64_t pl_core_difference(uint64_t later, uint64_t earlier, uint32_t bits)
{
	/* 32-bit clocks wrap every 4.3 s: the difference is meant modulo 2^32. */
	if (bits == 32)
		return (int32_t)((uint32_t)later - (uint32_t)earlier);
	return (int64_t)(later - earlier);
}

/* Merges one field, by its presence bit. */
#define PL_CORE_MERGE(field)                                                                       \
	do {                                                                                       \
		if (from->hop.present & PL_HOP_HAS_##field)                                        \
			into->field = from->hop.field;                                             \
	} while (0)

/* Merges the header's values into the hop of the same node in the stack; the header wins. */
PL_CORE_INLINE void pl_core_merge(struct pl_core_hop *into, uint64_t *in, uint64_t *eg,
	uint32_t *bits, const struct pl_core_own *from, uint32_t from_bits)
{
	const uint32_t times = PL_CORE_BOTH_TIMES | PL_HOP_HAS_time_bits;
	uint32_t take = from->hop.present;

	PL_CORE_MERGE(ingress_port);
	PL_CORE_MERGE(egress_port);
	PL_CORE_MERGE(hop_latency_ns);
	PL_CORE_MERGE(queue);
	PL_CORE_MERGE(queue_depth);
	PL_CORE_MERGE(tx_util);
	PL_CORE_MERGE(buffer);
	PL_CORE_MERGE(buffer_depth);
	/* A 32-bit header time must not stand beside a 64-bit one of the stack, nor replace it. */
	if (*bits == 0 || (take & times) == 0 || *bits == from_bits) {
		if (take & PL_HOP_HAS_ingress_ts_ns)
			*in = from->in;
		if (take & PL_HOP_HAS_egress_ts_ns)
			*eg = from->eg;
		if (take & PL_HOP_HAS_time_bits)
			*bits = from_bits;
	} else {
		take &= ~times;
	}
	into->present |= take;
}

/* Converts a latency that the node reports in microseconds. */
PL_CORE_INLINE void pl_core_reported_to_ns(struct pl_core_scratch *s, struct pl_core_hop *h)
{
	if (!(s->units & PL_CORE_LATENCIES_US) || !(h->present & PL_HOP_HAS_hop_latency_ns))
		return;
	if (h->hop_latency_ns > UINT32_MAX / 1000) {
		h->hop_latency_ns = 0;
		h->present &= ~(uint32_t)PL_HOP_HAS_hop_latency_ns;
		s->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
	} else {
		h->hop_latency_ns *= 1000;
	}
}

/* Derives latencies, the link from the previous hop, and the path's identity so far. */
PL_CORE_INLINE void pl_core_derive(struct pl_core_scratch *s, struct pl_core_hop *h,
	const struct pl_core_hop *before, uint32_t i, uint64_t in, uint64_t eg, uint32_t bits)
{
	uint32_t max = s->max_latency_ns, unit = 1;
	uint64_t ports;

	h->index = (uint8_t)i;
	if (__builtin_expect(s->units, 0)) {
		pl_core_reported_to_ns(s, h);
		/* Differences are taken in the clock's own unit, and wrap where the clock wraps. */
		if (s->units & PL_CORE_TIMES_US) {
			unit = 1000;
			max /= 1000;
			s->unscaled |= in > UINT64_MAX / 1000 || eg > UINT64_MAX / 1000;
		}
	}
	/* An implausible latency counts as missing: the hop's times may still give it. */
	if (h->hop_latency_ns > s->max_latency_ns) {
		h->hop_latency_ns = 0;
		h->present &= ~(uint32_t)PL_HOP_HAS_hop_latency_ns;
		s->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
	}
	if ((h->present & (PL_CORE_BOTH_TIMES | PL_HOP_HAS_hop_latency_ns)) == PL_CORE_BOTH_TIMES) {
		uint64_t d = bits == 32 ? (uint32_t)(eg - in) : eg - in;

		if (d > max) {
			s->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
		} else {
			h->hop_latency_ns = (uint32_t)d * unit;
			h->present |= PL_HOP_HAS_hop_latency_ns;
		}
	}
	if (i > 0) {
		if (i < s->links && (h->present & PL_HOP_HAS_ingress_ts_ns) != 0 &&
			(before->present & PL_HOP_HAS_egress_ts_ns) != 0) {
			int64_t d = pl_core_difference(in, s->before_egress_ts, bits);

			h->present |= PL_HOP_HAS_clock;
			if (bits != s->before_bits) {
				h->clock = PL_CLOCK_MIXED;
			} else if (d < 0) {
				h->clock = PL_CLOCK_SKEWED;
				s->notes |= PL_NOTE_BIT(CLOCK_SKEWED);
			} else if ((uint64_t)d > max) {
				h->clock = PL_CLOCK_IMPLAUSIBLE;
			} else {
				h->link_latency_ns = (uint32_t)d * unit;
				h->present |= PL_HOP_HAS_link_latency_ns;
				h->clock = PL_CLOCK_OK;
			}
		}
		/* In a partial stack nodes may be missing between two entries; if their clocks
		 * could be compared, they are neighbours. */
		if ((s->report.flags & PL_FLAG_PARTIAL) == 0 ||
			(h->present & PL_HOP_HAS_clock) != 0) {
			h->before_present =
				before->present & (PL_HOP_HAS_node | PL_HOP_HAS_egress_port);
			h->before_node = before->node;
			h->before_port = before->egress_port;
		}
	}
	s->before_egress_ts = eg;
	s->before_bits = bits;
	s->all &= h->present;
	s->latency_ns += h->hop_latency_ns; /* 0 when it is absent */
	/* Absent ports enter the hash as absent, not as port 0. */
	ports = (uint64_t)h->ingress_port << 32 | h->egress_port;
	s->id = pl_core_hash_mix(
		s->id ^ h->node, ports | (uint64_t)(h->present & PL_HOP_HAS_egress_port) << 59);
}

PL_CORE_INLINE void pl_core_hop_clear(struct pl_core_hop *h)
{
	uint64_t *words = (uint64_t *)(void *)h;

	for (unsigned int i = 0; i < sizeof(*h) / 8; i++)
		words[i] = 0;
}

/* Makes hop i in s->hops[i]; in order from 0. block: the hop's block in the stack, for i <
 * stack_hops; own: for the last hop, when the node is listed. Neither is NULL: old verifiers lose
 * track of a pointer that may be, once it is put on the stack. */
PL_CORE_INLINE void pl_core_hop_next(struct pl_core_scratch *s, uint32_t i,
	const struct pl_core_block *block, const struct pl_core_layout *l,
	const struct pl_core_own *own)
{
	struct pl_core_hop *h = &s->hops[i & (PL_CORE_HOPS_MAX - 1)];
	const struct pl_core_hop *before = &s->hops[(i - 1) & (PL_CORE_HOPS_MAX - 1)];
	uint64_t in = 0, eg = 0;
	uint32_t bits = 0;

	pl_core_hop_clear(h);
	if (i < s->stack_hops) {
		pl_core_decode(h, &in, &eg, block, l);
		bits = (h->present & PL_HOP_HAS_time_bits) != 0 ? l->time_bits : 0;
		s->missing |= l->present & ~h->present;
	}
	if ((s->own & OWN_LISTED) != 0 && i + 1 == s->n) {
		uint32_t own_bits =
			(own->hop.present & PL_HOP_HAS_time_bits) != 0 ? s->own_bits : 0;

		if (i < s->stack_hops) {
			pl_core_merge(h, &in, &eg, &bits, own, own_bits);
		} else {
			*h = own->hop;
			in = own->in;
			eg = own->eg;
			bits = own_bits;
		}
	}
	pl_core_derive(s, h, before, i, in, eg, bits);
}

PL_CORE_INLINE void pl_core_hops_end(struct pl_core_scratch *s)
{
	s->report.hop_count = (uint8_t)s->n;
	if (s->missing != 0)
		s->notes |= PL_NOTE_BIT(VALUES_MISSING);
	/* A partial path has no identity: path changes would be reported that are none. */
	if (s->n > 0 && (s->report.flags & PL_FLAG_PARTIAL) == 0 &&
		(s->all & PL_HOP_HAS_node) != 0) {
		s->report.path_id = s->id == 0 ? 1 : s->id;
		s->report.present |= PL_PATH_HAS_path_id;
	}
	if (s->n > 0 && (s->report.flags & PL_FLAG_PARTIAL) == 0 &&
		(s->all & PL_HOP_HAS_hop_latency_ns) != 0)
		s->report.present |= PL_PATH_HAS_latency_ns;
}

#ifndef __bpf__
/* Makes all hops of a parsed report, for user space. Returns an enum pl_escalation. */
static inline uint32_t pl_core_hops(struct pl_core_scratch *s)
{
	const struct pl_core_layout *l = s->stack_layout;
	struct pl_core_block block = { s->stack };
	struct pl_core_own own = { 0 };

	if (s->own & (OWN_METADATA | OWN_NODE)) {
		const struct pl_core_block own_block = { s->own_block };

		pl_core_own_hop(s, &own, &own_block, s->own_layout);
	}
	if (!pl_core_hops_begin(s, &own, &block, l))
		return PL_ESCALATION_HOPS;
	for (uint32_t i = 0; i < s->n; i++) {
		if (i < s->stack_hops)
			block.bytes = s->stack + (size_t)(s->stack_hops - 1 - i) * l->words * 4;
		pl_core_hop_next(s, i, &block, l, &own);
	}
	if (s->unscaled)
		return PL_ESCALATION_PROFILE;
	pl_core_hops_end(s);
	return PL_ESCALATION_NONE;
}
#endif
