/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host as INT source and sink (INT v2.1, mode MD): edits a packet's headers, for the kernel
 * programs (bpf/host_int.bpf.c) and for user space, which tests it.
 *
 * INT stands behind the TCP header with its options, or behind the UDP header (v2.1 5.6.1), and is
 * announced by a DSCP value; the shim (NPT 0) keeps the original one. The header has the domain id
 * PL_INT_DS_HOSTS (wire/int.h); the source's block ends with one word more than its hop's, the
 * number of the packet within its flow.
 *
 * Headers are edited in a copy. Masks show the kernel's verifier the limits of positions: a
 * position is below PL_HOST_SPAN whatever a packet says.
 */
#pragma once

#include "core/report_cursor.h"
#include "core/tap_core.h"
#include "record/packet.h"

#define PL_HOST_HEAD      192u /* bytes copied of a packet: all headers, and the template */
#define PL_HOST_SPAN      256u
#define PL_HOST_SLACK     64u
#define PL_HOST_WORDS_MAX 16u  /* most words that a source adds */
#define PL_HOST_INT_MAX   512u /* most bytes of INT that a sink removes; longer INT is malformed */
#define PL_HOST_INT_MIN   20u  /* shim, metadata header, the source's number */
#define PL_HOST_NUMBERED  0x8000u /* bit of the domain's instructions: the source's number */
#define PL_HOST_SAMPLED   0x8000u /* bit of the domain's flags: the sink reports only some packets */
#define PL_HOST_DS_ID     0x504cu /* PL_INT_DS_HOSTS */

/* Stands before a loop that stays one in the kernel. */
#ifdef __bpf__
#define PL_HOST_LOOP _Pragma("clang loop unroll(disable)")
#else
#define PL_HOST_LOOP
#endif

/* Returns the sum over words of 4 bytes, as bpf_csum_diff(NULL, 0, p, n, seed) does: one's
 * complement, in the machine's order, not folded. */
#ifndef PL_HOST_SUM
static inline uint32_t pl_host_sum(const void *p, uint32_t n, uint32_t seed)
{
	uint64_t sum = seed;
	uint32_t word;

	for (uint32_t i = 0; i + 4 <= n; i += 4) {
		memcpy(&word, (const uint8_t *)p + i, 4);
		sum += word;
	}
	while (sum >> 32 != 0)
		sum = (uint32_t)sum + (sum >> 32);
	return (uint32_t)sum;
}
#define PL_HOST_SUM(p, n, seed) pl_host_sum(p, n, seed)
#endif

/* Causes for which a packet is left as it is. */
enum pl_host_why {
	PL_HOST_TAKEN,
	PL_HOST_NOT_IP,
	PL_HOST_OTHER,  /* no TCP or UDP right behind IP: another protocol, a fragment */
	PL_HOST_BROKEN, /* a length is wrong, or headers are cut */
};

struct pl_host_walk {
	uint8_t bytes[PL_HOST_SPAN + PL_HOST_SLACK]; /* the packet's first bytes */
	uint32_t there, wire;                        /* bytes copied, and bytes of the frame */
	uint32_t network, transport, payload;        /* offsets of these headers */
	uint32_t end;                                /* end of the IP packet; the frame may go on */
	uint32_t version, proto;
	struct pl_pkt96 record; /* the packet as rules see it */
};

PL_CORE_INLINE uint8_t *pl_host_at(struct pl_host_walk *w, uint32_t at)
{
	PL_FRAME_OPAQUE(at);
	return w->bytes + (at & (PL_HOST_SPAN - 1));
}

PL_CORE_INLINE uint16_t pl_host_be16(struct pl_host_walk *w, uint32_t at)
{
	const uint8_t *p = pl_host_at(w, at);

	return (uint16_t)(p[0] << 8 | p[1]);
}

PL_CORE_INLINE void pl_host_put16(struct pl_host_walk *w, uint32_t at, uint32_t v)
{
	uint8_t *p = pl_host_at(w, at);

	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Reads 16 bits in the machine's order, as sums are. */
PL_CORE_INLINE uint16_t pl_host_raw16(struct pl_host_walk *w, uint32_t at)
{
	const uint8_t *p = pl_host_at(w, at);
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

PL_CORE_INLINE void pl_host_set_raw16(struct pl_host_walk *w, uint32_t at, uint16_t v)
{
	memcpy(pl_host_at(w, at), &v, sizeof(v));
}

/* Puts a number of 16 bits into packet order, for sums. */
PL_CORE_INLINE uint32_t pl_host_raw(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (v & 0xff) << 8 | (v >> 8 & 0xff);
#else
	return v;
#endif
}

PL_CORE_INLINE uint16_t pl_host_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* ---- reading ---- */

PL_CORE_INLINE uint32_t pl_host_ip4(struct pl_host_walk *w)
{
	const uint32_t at = w->network, head = (uint32_t)(*pl_host_at(w, at) & 0xf) * 4,
		       total = pl_host_be16(w, at + 2);
	struct pl_pkt96 *r = &w->record;

	if (*pl_host_at(w, at) >> 4 != 4 || head < 20 || total < head || at + total > w->wire)
		return PL_HOST_BROKEN;
	if ((pl_host_be16(w, at + 6) & 0x3fff) != 0)
		return PL_HOST_OTHER;
	w->version = 4;
	w->proto = *pl_host_at(w, at + 9);
	w->transport = at + head;
	w->end = at + total;
	r->src.b[10] = r->src.b[11] = r->dst.b[10] = r->dst.b[11] = 0xff;
	memcpy(r->src.b + 12, pl_host_at(w, at + 12), 4);
	memcpy(r->dst.b + 12, pl_host_at(w, at + 16), 4);
	r->tos = *pl_host_at(w, at + 1);
	return PL_HOST_TAKEN;
}

PL_CORE_INLINE uint32_t pl_host_ip6(struct pl_host_walk *w)
{
	const uint32_t at = w->network, total = 40u + pl_host_be16(w, at + 4);
	struct pl_pkt96 *r = &w->record;

	if (*pl_host_at(w, at) >> 4 != 6 || w->there < at + 40 || at + total > w->wire)
		return PL_HOST_BROKEN;
	w->version = 6;
	w->proto = *pl_host_at(w, at + 6);
	w->transport = at + 40;
	w->end = at + total;
	memcpy(r->src.b, pl_host_at(w, at + 8), 16);
	memcpy(r->dst.b, pl_host_at(w, at + 24), 16);
	r->tos = (uint8_t)(pl_host_be16(w, at) >> 4);
	return PL_HOST_TAKEN;
}

PL_CORE_INLINE uint32_t pl_host_transport(struct pl_host_walk *w)
{
	const uint32_t at = w->transport, left = w->end - at;
	struct pl_pkt96 *r = &w->record;
	uint32_t head;

	if (w->proto == 17) {
		head = 8;
		/* RFC 768: the length in UDP may be shorter than IP's; then it is unknown what
		 * follows. */
		if (left < head || w->there < at + head)
			return PL_HOST_BROKEN;
		if (pl_host_be16(w, at + 4) != left)
			return PL_HOST_OTHER;
	} else if (w->proto == 6) {
		if (left < 20 || w->there < at + 20)
			return PL_HOST_BROKEN;
		head = (uint32_t)(*pl_host_at(w, at + 12) >> 4) * 4;
		if (head < 20 || head > left || w->there < at + head)
			return PL_HOST_BROKEN;
		r->tcp_flags = *pl_host_at(w, at + 13);
	} else {
		return PL_HOST_OTHER;
	}
	r->sport = pl_host_be16(w, at);
	r->dport = pl_host_be16(w, at + 2);
	r->proto = (uint8_t)w->proto;
	r->wire_len = pl_tap_saturated(w->end - w->network);
	r->pay_len = pl_tap_saturated(left - head);
	w->payload = at + head;
	return PL_HOST_TAKEN;
}

/* Reads the headers: Ethernet with at most one VLAN tag, or (raw) IP alone. there, wire and bytes
 * of w are set. Returns an enum pl_host_why. */
PL_CORE_INLINE uint32_t pl_host_read(struct pl_host_walk *w, bool raw)
{
	uint32_t at = 0, type = 0, why;

	memset(&w->record, 0, sizeof(w->record));
	if (!raw) {
		if (w->there < 14)
			return PL_HOST_BROKEN;
		type = pl_host_be16(w, 12);
		at = 14;
		if (type == 0x8100 || type == 0x88a8) {
			if (w->there < 18)
				return PL_HOST_BROKEN;
			w->record.vlan = pl_host_be16(w, 14) & 0xfff;
			type = pl_host_be16(w, 16);
			at = 18;
		}
	} else {
		type = w->bytes[0] >> 4 == 4 ? 0x0800 : 0x86dd;
	}
	if (type != 0x0800 && type != 0x86dd)
		return PL_HOST_NOT_IP;
	if (w->there < at + 20)
		return PL_HOST_BROKEN;
	w->network = at;
	why = type == 0x0800 ? pl_host_ip4(w) : pl_host_ip6(w);
	return why == PL_HOST_TAKEN ? pl_host_transport(w) : why;
}

/* ---- writing ---- */

/* Returns the sum over the pseudo header: addresses, protocol and length, from the headers as they
 * are now. */
PL_CORE_INLINE uint64_t pl_host_pseudo(struct pl_host_walk *w, uint32_t left)
{
	uint64_t sum = w->version == 4 ? PL_HOST_SUM(pl_host_at(w, w->network + 12), 8, 0)
				       : PL_HOST_SUM(pl_host_at(w, w->network + 8), 32, 0);

	/* An IPv6 length is above 16 bits only in a jumbogram, which this is not. */
	return sum + pl_host_raw(left) + pl_host_raw(w->proto);
}

/* Sets DSCP and length of the IP header, and IPv4's checksum. */
PL_CORE_INLINE void pl_host_set_ip(struct pl_host_walk *w, uint32_t dscp, uint32_t end)
{
	const uint32_t at = w->network;
	uint32_t old, new, check;

	if (w->version == 6) {
		*pl_host_at(w, at) = (uint8_t)(0x60 | dscp >> 2);
		*pl_host_at(w, at + 1) =
			(uint8_t)((*pl_host_at(w, at + 1) & 0x3f) | (dscp & 3) << 6);
		pl_host_put16(w, at + 4, end - at - 40);
		return;
	}
	/* RFC 1624: HC' = ~(~HC + ~m + m'), over the two words that change. */
	old = (uint32_t)pl_host_raw16(w, at) + pl_host_raw16(w, at + 2);
	*pl_host_at(w, at + 1) = (uint8_t)((*pl_host_at(w, at + 1) & 3) | dscp << 2);
	pl_host_put16(w, at + 2, end - at);
	new = (uint32_t)pl_host_raw16(w, at) + pl_host_raw16(w, at + 2);
	check = (uint16_t)~pl_host_raw16(w, at + 10) + new + 2 * 0xffffu - old;
	pl_host_set_raw16(w, at + 10, (uint16_t)~pl_host_fold(check));
}

PL_CORE_INLINE uint32_t pl_host_check_at(const struct pl_host_walk *w)
{
	return w->transport + (w->proto == 6 ? 16 : 6);
}

/* Returns the sum over the transport header in w->bytes. */
PL_CORE_INLINE uint64_t pl_host_head_sum(struct pl_host_walk *w)
{
	uint64_t sum = 0;

	PL_HOST_LOOP
	for (uint32_t i = 0; i < 15; i++) {
		uint32_t v;

		if (w->transport + 4 * i >= w->payload)
			break;
		memcpy(&v, pl_host_at(w, w->transport + 4 * i), 4);
		sum += v;
	}
	return sum;
}

/* True for a UDP datagram without a checksum; over IPv6 tunnels may have some (RFC 6935). */
PL_CORE_INLINE bool pl_host_unchecked(struct pl_host_walk *w)
{
	return w->proto == 17 && pl_host_be16(w, pl_host_check_at(w)) == 0;
}

/* True when a source may update the transport checksum: it is right, or absent, or the sum of the
 * pseudo header, which the sender's NIC completes. Any other checksum is wrong, and must stay
 * wrong; or it is that of a tunnel, and right once the NIC has summed the packet inside, later.
 * rest: as in pl_host_add. */
PL_CORE_INLINE bool pl_host_summable(struct pl_host_walk *w, uint32_t rest)
{
	const uint64_t pseudo = pl_host_pseudo(w, w->end - w->transport);

	return pl_host_unchecked(w) ||
	       pl_host_fold(pseudo) == pl_host_raw16(w, pl_host_check_at(w)) ||
	       pl_host_fold(pseudo + rest + pl_host_head_sum(w)) == 0xffff;
}

/* Template of the INT that a source adds, made by user space: the bytes, and the places of
 * values. */
struct pl_host_template {
	uint32_t words;     /* words of INT; at most PL_HOST_WORDS_MAX */
	uint32_t time_word; /* word of the egress timestamp, 64 bits; 0: there is none */
	uint32_t dscp;      /* DSCP that announces INT */
	uint32_t reserved;
	uint32_t int_words
		[PL_HOST_WORDS_MAX]; /* bytes as in a packet; the last word is the number */
};

/* Puts a number of 32 bits into network order. */
PL_CORE_INLINE uint32_t pl_host_net32(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(v);
#else
	return v;
#endif
}

/*
 * Puts INT behind the headers in w->bytes, so that the first payload + 4 * words bytes are those of
 * the new packet, and completes the transport checksum. rest: the sum over the bytes behind the
 * headers, padded with zeros. A UDP datagram without a checksum keeps none. There is room: payload
 * is at most PL_HOST_HEAD - 4 * PL_HOST_WORDS_MAX + PL_HOST_SLACK.
 */
PL_CORE_INLINE void pl_host_add(struct pl_host_walk *w, const volatile struct pl_host_template *t,
	uint32_t number, uint64_t now_ns, uint32_t rest)
{
	const uint32_t payload = w->payload & (PL_HOST_SPAN - 1), check_at = pl_host_check_at(w),
		       dscp = w->record.tos >> 2;
	const uint32_t words = t->words <= PL_HOST_WORDS_MAX ? t->words : PL_HOST_WORDS_MAX;
	const bool unchecked = pl_host_unchecked(w);
	uint32_t left;
	uint64_t sum = rest;

	PL_HOST_LOOP
	for (uint32_t i = 0; i < PL_HOST_WORDS_MAX; i++) {
		uint32_t v = t->int_words[i & (PL_HOST_WORDS_MAX - 1)];
		uint8_t *to;

		if (i >= words)
			break;
		if (i ==
			0) /* v2.1 5.6.1: the original DSCP is the upper six bits of the last byte */
			v |= pl_host_net32(dscp << 2);
		else if (i + 1 == words)
			v = pl_host_net32(number);
		else if (t->time_word != 0 && i == t->time_word)
			v = pl_host_net32((uint32_t)(now_ns >> 32));
		else if (t->time_word != 0 && i == t->time_word + 1)
			v = pl_host_net32((uint32_t)now_ns);
		to = pl_host_at(w, payload + 4 * i);
		memcpy(to, &v, 4);
		sum += v;
	}
	w->end += 4 * words;
	left = w->end - w->transport;
	pl_host_set_ip(w, t->dscp, w->end);
	if (w->proto == 17)
		pl_host_put16(w, w->transport + 4, left);
	if (unchecked)
		return;
	pl_host_set_raw16(w, check_at, 0);
	sum += pl_host_pseudo(w, left) + pl_host_head_sum(w);
	left = (uint16_t)~pl_host_fold(sum);
	/* RFC 768: a sum of 0 is sent as all ones. */
	pl_host_set_raw16(w, check_at, left == 0 && w->proto == 17 ? 0xffff : (uint16_t)left);
}

/* INT of our domain, as a sink finds it. */
struct pl_host_found {
	uint32_t bytes; /* bytes of shim, header and stack */
	uint32_t hop_words, hops;
	uint32_t number;    /* number of the packet in its flow */
	uint32_t dscp;      /* DSCP to be restored */
	uint64_t egress_ns; /* egress time at the source; 0: absent */
	bool copy;          /* a copy, which the sink drops */
};

/* Returns the bytes of INT whose first PL_HOST_INT_MIN bytes are h, or 0 when it is not of our
 * domain. room: bytes behind the transport header. */
PL_CORE_INLINE uint32_t pl_host_int_bytes(const uint8_t *h, uint32_t room)
{
	const uint32_t words = h[1], hop_words = h[6] & 0x1f;
	uint32_t stack;

	/* Type 1 (MD), NPT 0; version 2; the domain and its only instruction. */
	if (room < PL_HOST_INT_MIN || h[0] != 0x10 || words < 4 || h[4] >> 4 != 2 ||
		h[10] != PL_HOST_DS_ID >> 8 || h[11] != (PL_HOST_DS_ID & 0xff) ||
		h[12] != PL_HOST_NUMBERED >> 8 || h[13] != 0 || (h[9] & 1) != 0)
		return 0;
	stack = words - 4;
	if (hop_words == 0 || stack < hop_words || stack % hop_words != 0)
		return 0;
	if (4 + 4 * words > room || 4 + 4 * words > PL_HOST_INT_MAX)
		return 0;
	return 4 + 4 * words;
}

/* Removes INT from the headers in w->bytes, and sets lengths, DSCP and checksums as in the packet
 * without INT. gone: the sum over INT's bytes. A wrong checksum stays wrong. */
PL_CORE_INLINE void pl_host_remove(
	struct pl_host_walk *w, uint32_t bytes, uint32_t dscp, uint32_t gone)
{
	const uint32_t check_at = pl_host_check_at(w), old = w->end - w->transport,
		       left = old - bytes;
	const uint16_t check = pl_host_raw16(w, check_at);
	uint64_t sum;

	w->end -= bytes;
	pl_host_set_ip(w, dscp, w->end);
	if (w->proto == 17)
		pl_host_put16(w, w->transport + 4, left);
	if (w->proto == 17 && check == 0)
		return;
	/* The length is in the pseudo header, and once more in the UDP header. */
	sum = (uint16_t)~check + (uint64_t)(uint16_t)~pl_host_fold(gone);
	sum += pl_host_raw(left) + (uint16_t)~pl_host_raw(old);
	if (w->proto == 17)
		sum += pl_host_raw(left) + (uint16_t)~pl_host_raw(old);
	sum = (uint16_t)~pl_host_fold(sum);
	pl_host_set_raw16(w, check_at, sum == 0 && w->proto == 17 ? 0xffff : (uint16_t)sum);
}
