/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a packet's record (pkt96/1) from its first bytes: the counterpart of tap/tap.c for the
 * kernel program (bpf/tap.bpf.c), with the same interpretation and order of checks.
 * tests/bpf/tap_core_test.c compares both, byte by byte.
 *
 * It reads a copy of the packet's first PL_TAP_HEAD_BYTES bytes, as many as a tap by a packet
 * socket copies (PL_TAP_BYTES of tap/tap.h). Each step leaves its results in memory, so that the
 * kernel's verifier can check it once:
 *
 *   w->there, w->wire, w->gso and w->bytes are filled
 *   outcome = pl_tap_core_link(w, link);
 *   if (outcome == PL_TAP_MADE) outcome = pl_tap_core_network(w);
 *   if (outcome == PL_TAP_MADE) outcome = pl_tap_core_transport(w);
 *   if (outcome == PL_TAP_MADE) pl_tap_core_options(w);
 *   w->record lacks time, observation point, direction and number
 */
#pragma once

#include "core/report_cursor.h"
#include "core/tap_rules.h"
#include "record/packet.h"

#define PL_TAP_HEAD_BYTES 192
#define PL_TAP_HEAD_SPAN  256u /* positions stay below it, whatever the packet contains */
#define PL_TAP_HEAD_SLACK 40u  /* longest piece that is read at a position */

/* Result for a packet. */
enum pl_tap_outcome { PL_TAP_MADE, PL_TAP_NOT_IP, PL_TAP_BROKEN };

/* Further results of a step in a loop: another tag, label or extension header may follow; labels
 * follow. */
enum { PL_TAP_MORE = 3, PL_TAP_LABELS };

enum pl_tap_link { PL_TAP_ETHERNET, PL_TAP_RAW_IP };

enum {
	PL_TAP_LATER_FRAGMENT = 1, /* it has no transport header */
	PL_TAP_MORE_FRAGMENTS = 2, /* the transport header may announce more bytes than there are */
	PL_TAP_HEADLESS = 4,       /* the transport header, or one before it, is cut */
	PL_TAP_BAD_OPTIONS = 8,    /* TCP options are malformed */
};

struct pl_tap_walk {
	uint8_t bytes[PL_TAP_HEAD_SPAN + PL_TAP_HEAD_SLACK];
	uint32_t there, wire;        /* bytes of the packet: copied, and in all */
	uint32_t at, end;            /* next byte to read, and end of the packet */
	uint32_t network, announced; /* offset of the IP header; bytes left by its length */
	uint32_t whole;              /* length from the IP header on */
	uint32_t headers;            /* bytes of its headers, transport and its options included */
	uint32_t version, flags;     /* 4 or 6; PL_TAP_* */
	uint32_t proto;              /* type of the network header, before that is read */
	uint32_t left;               /* bytes left of TCP options */
	/* not 0: the frame stands for several packets. The length in its IP header is on no wire,
	 * and 0 if the frame is too long for it (BIG TCP): then the frame's length is used, as
	 * Linux does */
	uint32_t gso;
	struct pl_pkt96 record;
};

/* Steps of loops, which are calls in the kernel: verifiers before 6.4 do not follow loops with
 * these bodies. */
#ifndef PL_TAP_TAG
#define PL_TAP_TAG       pl_tap_core_tag
#define PL_TAP_LABEL     pl_tap_core_label
#define PL_TAP_EXTENSION pl_tap_core_extension
#define PL_TAP_OPTION    pl_tap_core_option
#endif

/* Loads a value from any address. The kernel's compiler assumes a machine that reads an unaligned
 * one byte by byte; real ones need not. */
#ifdef __bpf__
#define PL_TAP_LOAD(v, p) ((v) = *(const __typeof__(v) *)(p))
#else
#define PL_TAP_LOAD(v, p) memcpy(&(v), (p), sizeof(v))
#endif

/* Reads a value through memory, so that the verifier forgets what it knows of it. */
#define PL_TAP_AGAIN(x) (*(volatile uint32_t *)&(x))

PL_CORE_INLINE const uint8_t *pl_tap_at(const struct pl_tap_walk *w, uint32_t at)
{
	PL_FRAME_OPAQUE(at);
	return w->bytes + (at & (PL_TAP_HEAD_SPAN - 1));
}

PL_CORE_INLINE uint16_t pl_tap_be16(const struct pl_tap_walk *w, uint32_t at)
{
	uint16_t v;

	PL_TAP_LOAD(v, pl_tap_at(w, at));
	return __builtin_bswap16(v);
}

PL_CORE_INLINE uint32_t pl_tap_be32(const struct pl_tap_walk *w, uint32_t at)
{
	uint32_t v;

	PL_TAP_LOAD(v, pl_tap_at(w, at));
	return __builtin_bswap32(v);
}

PL_CORE_INLINE uint16_t pl_tap_saturated(uint32_t v)
{
	return v < UINT16_MAX ? (uint16_t)v : UINT16_MAX;
}

/* ---- link ---- */

/* Reads the IP version. want: the version announced by the previous header; 0: any. */
PL_CORE_INLINE uint32_t pl_tap_core_version(struct pl_tap_walk *w, uint32_t at, uint32_t want)
{
	uint32_t version;

	if (w->there <= at)
		return PL_TAP_BROKEN;
	version = *pl_tap_at(w, at) >> 4;
	if ((version != 4 && version != 6) || (want != 0 && version != want))
		return PL_TAP_BROKEN;
	w->version = version;
	w->network = w->at = at;
	w->end = w->there;
	return PL_TAP_MADE;
}

/* Reads label i. No field names the header behind the bottom of the stack; its first nibble
 * distinguishes IP from pseudowires. */
PL_CORE_INLINE uint32_t pl_tap_core_label(struct pl_tap_walk *w, uint32_t i)
{
	const uint32_t at = PL_TAP_AGAIN(w->at), label = pl_tap_be32(w, at);
	uint32_t version;

	if (w->there < at + 4 || i == 8)
		return PL_TAP_BROKEN;
	if (i == 0)
		w->record.label = (uint16_t)(label >> 12);
	w->at = at + 4;
	if ((label & 0x100) == 0)
		return PL_TAP_MORE;
	if (w->there <= at + 4)
		return PL_TAP_BROKEN;
	version = *pl_tap_at(w, at + 4) >> 4;
	return version == 4 || version == 6 ? pl_tap_core_version(w, at + 4, 0) : PL_TAP_NOT_IP;
}

/* Reads the header of type w->proto: tag i, if it is one. */
PL_CORE_INLINE uint32_t pl_tap_core_tag(struct pl_tap_walk *w, uint32_t i)
{
	const uint32_t at = PL_TAP_AGAIN(w->at), type = PL_TAP_AGAIN(w->proto);

	switch (type) {
	case 0x0800:
		return pl_tap_core_version(w, at, 4);
	case 0x86dd:
		return pl_tap_core_version(w, at, 6);
	case 0x8847:
	case 0x8848:
		return PL_TAP_LABELS;
	case 0x8100:
	case 0x88a8:
	case 0x9100:
		break;
	default:
		return PL_TAP_NOT_IP;
	}
	if (w->there < at + 4 || i == 4)
		return PL_TAP_BROKEN;
	if (i == 0)
		w->record.vlan = pl_tap_be16(w, at) & 0xfff;
	w->proto = pl_tap_be16(w, at + 2);
	w->at = at + 4;
	return PL_TAP_MORE;
}

/* Reads tags and labels at w->at, behind a header that announced w->proto, up to the IP header. */
PL_CORE_INLINE uint32_t pl_tap_core_typed(struct pl_tap_walk *w)
{
	uint32_t outcome = PL_TAP_MORE;

#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (uint32_t i = 0; i < 5 && outcome == PL_TAP_MORE; i++)
		outcome = PL_TAP_TAG(w, i);
	if (outcome != PL_TAP_LABELS)
		return outcome;
	outcome = PL_TAP_MORE;
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (uint32_t i = 0; i < 9 && outcome == PL_TAP_MORE; i++)
		outcome = PL_TAP_LABEL(w, i);
	return outcome;
}

PL_CORE_INLINE uint32_t pl_tap_core_link(struct pl_tap_walk *w, uint32_t link)
{
	memset(&w->record, 0, sizeof(w->record));
	w->flags = 0;
	if (link == PL_TAP_RAW_IP)
		return pl_tap_core_version(w, 0, 0);
	if (w->there < 14)
		return PL_TAP_BROKEN;
	w->at = 14;
	w->proto = pl_tap_be16(w, 12);
	return pl_tap_core_typed(w);
}

/* ---- network ---- */

/* Cuts off padding behind the length that the IP header announces. */
PL_CORE_INLINE void pl_tap_core_announced(struct pl_tap_walk *w, uint32_t at, uint32_t announced)
{
	if (announced <= w->end - at)
		w->end = at + announced;
	w->announced = announced;
}

PL_CORE_INLINE void pl_tap_core_fragment(
	struct pl_pkt96 *r, uint32_t id, uint32_t offset, uint32_t more)
{
	r->ip_id = (uint16_t)id;
	r->frag_off = (uint16_t)(offset | (more ? 0x8000u : 0));
}

PL_CORE_INLINE uint32_t pl_tap_core_ip4(struct pl_tap_walk *w)
{
	const uint32_t at = w->at;
	const uint8_t *p = pl_tap_at(w, at);
	struct pl_pkt96 *r = &w->record;
	uint32_t header, announced, fragment, v4;
	uint64_t words[2] = { 0, 0xffff0000 };

	if (w->end - at < 20)
		return PL_TAP_BROKEN;
	header = (p[0] & 15u) * 4;
	announced = pl_tap_be16(w, at + 2);
	fragment = pl_tap_be16(w, at + 6);
	if (w->gso != 0)
		announced = w->wire - at;
	if (header < 20 || announced < header)
		return PL_TAP_BROKEN;
	r->tos = p[1];
	r->ttl = p[8];
	w->proto = p[9];
	PL_TAP_LOAD(v4, p + 12);
	words[1] = 0xffff0000 | (uint64_t)v4 << 32;
	memcpy(PL_TAP_WORDS(r->src), words, 16);
	PL_TAP_LOAD(v4, p + 16);
	words[1] = 0xffff0000 | (uint64_t)v4 << 32;
	memcpy(PL_TAP_WORDS(r->dst), words, 16);
	r->wire_len = pl_tap_saturated(announced);
	w->whole = announced;
	pl_tap_core_fragment(r, pl_tap_be16(w, at + 4), fragment & 0x1fff, fragment & 0x2000);
	if (r->frag_off != 0)
		r->obs |= PL_OBS_FRAGMENT;
	if ((fragment & 0x1fff) != 0)
		w->flags |= PL_TAP_LATER_FRAGMENT;
	else if ((fragment & 0x2000) != 0)
		w->flags |= PL_TAP_MORE_FRAGMENTS;
	pl_tap_core_announced(w, at, announced);
	if (header > w->end - at) {
		w->at = w->end;
		w->flags |= PL_TAP_HEADLESS;
		return PL_TAP_MADE;
	}
	w->at = at + header;
	w->announced -= header;
	return PL_TAP_MADE;
}

PL_CORE_INLINE int pl_tap_is_extension(uint32_t type)
{
	return type == 0 || type == 43 || type == 44 || type == 51 || type == 60;
}

/* Reads extension header i, if the next header is one. */
PL_CORE_INLINE uint32_t pl_tap_core_extension(struct pl_tap_walk *w, uint32_t i)
{
	const uint32_t at = PL_TAP_AGAIN(w->at), type = PL_TAP_AGAIN(w->proto), left = w->end - at;
	const uint8_t *p = pl_tap_at(w, at);
	struct pl_pkt96 *r = &w->record;
	uint32_t size, fragment;

	if (!pl_tap_is_extension(type))
		return PL_TAP_MADE;
	/* Only the first header may be Hop-by-Hop (RFC 8200 4.1). */
	if (i == 8 || (type == 0 && i > 0))
		return PL_TAP_BROKEN;
	size = type == 44 ? 8 : type == 51 ? (p[1] + 2u) * 4 : (p[1] + 1u) * 8;
	if (left < 8 ? w->announced < 8 : size > w->announced)
		return PL_TAP_BROKEN;
	if (left < 8 || size > left) {
		if (left >= 8)
			w->at = w->end;
		w->flags |= PL_TAP_HEADLESS;
		return PL_TAP_MADE;
	}
	w->at = at + size;
	w->announced -= size;
	w->proto = p[0];
	if (type != 44)
		return PL_TAP_MORE;
	fragment = pl_tap_be16(w, at + 2);
	/* The record has the first of several fragment headers. */
	if ((r->obs & PL_OBS_FRAGMENT) == 0)
		pl_tap_core_fragment(r, pl_tap_be32(w, at + 4), fragment >> 3, fragment & 1);
	r->obs |= PL_OBS_FRAGMENT;
	if ((fragment & 0xfff8) != 0) {
		w->flags |= PL_TAP_LATER_FRAGMENT;
		return PL_TAP_MADE;
	}
	w->flags &= ~(uint32_t)PL_TAP_MORE_FRAGMENTS;
	if ((fragment & 1) != 0)
		w->flags |= PL_TAP_MORE_FRAGMENTS;
	return PL_TAP_MORE;
}

/* Returns the length behind the IPv6 header, which ends at w->at, of a frame that stands for
 * several packets. Linux before 7.0 writes the length of BIG TCP into a Hop-by-Hop header (RFC
 * 2675), which packets on the wire do not have: it is skipped, as if IPv6 began 8 bytes later. */
PL_CORE_INLINE uint32_t pl_tap_core_joined6(struct pl_tap_walk *w, uint32_t announced)
{
	const uint32_t at = w->at;

	if (announced == 0 && w->proto == 0 && w->end - at >= 8 &&
		pl_tap_be32(w, at) << 8 == 0x00c20400) {
		w->proto = *pl_tap_at(w, at);
		w->network += 8;
		w->at = at + 8;
	}
	return w->wire - w->at;
}

PL_CORE_INLINE uint32_t pl_tap_core_ip6(struct pl_tap_walk *w)
{
	const uint32_t at = w->at;
	const uint8_t *p = pl_tap_at(w, at);
	struct pl_pkt96 *r = &w->record;
	uint64_t words[2];
	uint32_t announced, outcome = PL_TAP_MORE;

	if (w->end - at < 40)
		return PL_TAP_BROKEN;
	announced = pl_tap_be16(w, at + 4);
	r->tos = (uint8_t)(pl_tap_be16(w, at) >> 4);
	r->ttl = p[7];
	PL_TAP_LOAD(words[0], p + 8);
	PL_TAP_LOAD(words[1], p + 16);
	memcpy(PL_TAP_WORDS(r->src), words, 16);
	PL_TAP_LOAD(words[0], p + 24);
	PL_TAP_LOAD(words[1], p + 32);
	memcpy(PL_TAP_WORDS(r->dst), words, 16);
	w->proto = p[6];
	w->at = at + 40;
	if (w->gso != 0) {
		announced = pl_tap_core_joined6(w, announced);
		w->whole = 40 + announced;
	} else {
		/* A jumbogram (RFC 2675) has length 0 and a Hop-by-Hop header. */
		if (announced == 0 && w->proto == 0)
			return PL_TAP_BROKEN;
		/* A frame that was joined to more than the header's field can hold (BIG TCP). */
		w->whole = announced != 0 ? 40 + announced : w->wire - at;
	}
	r->wire_len = pl_tap_saturated(w->whole);
	pl_tap_core_announced(w, w->at, announced);
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (uint32_t i = 0; i < 9 && outcome == PL_TAP_MORE; i++)
		outcome = PL_TAP_EXTENSION(w, i);
	return outcome;
}

PL_CORE_INLINE uint32_t pl_tap_core_network(struct pl_tap_walk *w)
{
	return w->version == 4 ? pl_tap_core_ip4(w) : pl_tap_core_ip6(w);
}

/* ---- transport ---- */

/* Reads UDP. *ret_length: length of header and payload that UDP has. */
PL_CORE_INLINE uint32_t pl_tap_core_udp(struct pl_tap_walk *w, uint32_t *ret_length)
{
	const uint32_t length = pl_tap_be16(w, w->at + 4);

	if (w->end - w->at < 8) {
		w->flags |= PL_TAP_HEADLESS;
		return PL_TAP_MADE;
	}
	if (length < 8 || (length > w->announced && (w->flags & PL_TAP_MORE_FRAGMENTS) == 0))
		return PL_TAP_BROKEN;
	w->record.sport = pl_tap_be16(w, w->at);
	w->record.dport = pl_tap_be16(w, w->at + 2);
	if ((w->record.frag_off & 0x8000) == 0)
		*ret_length = length;
	return PL_TAP_MADE;
}

PL_CORE_INLINE uint32_t pl_tap_core_tcp(struct pl_tap_walk *w, uint32_t *ret_header)
{
	const uint32_t at = w->at, left = w->end - at;
	const uint8_t *p = pl_tap_at(w, at);
	struct pl_pkt96 *r = &w->record;
	uint32_t length;

	if (left < 20) {
		w->flags |= PL_TAP_HEADLESS;
		return PL_TAP_MADE;
	}
	length = (uint32_t)(p[12] >> 4) * 4;
	if (length < 20 || length > w->announced)
		return PL_TAP_BROKEN;
	r->sport = pl_tap_be16(w, at);
	r->dport = pl_tap_be16(w, at + 2);
	r->tcp_seq = pl_tap_be32(w, at + 4);
	r->tcp_ack = pl_tap_be32(w, at + 8);
	r->tcp_flags = p[13];
	r->tcp_win = pl_tap_be16(w, at + 14);
	*ret_header = length;
	w->left = length - 20;
	if (length > left) {
		r->obs |= PL_OBS_TRUNCATED;
		w->left = left - 20;
	}
	w->at = at + 20;
	return PL_TAP_MADE;
}

/* Reads the common header of SCTP (RFC 9260 3.1). */
PL_CORE_INLINE void pl_tap_core_sctp(struct pl_tap_walk *w, uint32_t *ret_header)
{
	if (w->end - w->at < 12) {
		w->flags |= PL_TAP_HEADLESS;
		return;
	}
	w->record.sport = pl_tap_be16(w, w->at);
	w->record.dport = pl_tap_be16(w, w->at + 2);
	*ret_header = 12;
}

PL_CORE_INLINE uint32_t pl_tap_core_transport(struct pl_tap_walk *w)
{
	struct pl_pkt96 *r = &w->record;
	const uint32_t before = w->at - w->network, icmp = w->version == 4 ? 1 : 58;
	uint32_t length = w->whole > before ? w->whole - before : 0;
	uint32_t outcome = PL_TAP_MADE, header = 0;

	r->proto = (uint8_t)w->proto;
	w->left = 0;
	if ((w->flags & (PL_TAP_LATER_FRAGMENT | PL_TAP_HEADLESS)) == 0) {
		if (w->proto == 17) {
			header = 8;
			outcome = pl_tap_core_udp(w, &length);
		} else if (w->proto == 6) {
			outcome = pl_tap_core_tcp(w, &header);
		} else if (w->proto == 132) {
			pl_tap_core_sctp(w, &header);
		} else if (w->proto == icmp && w->end - w->at >= 4) {
			header = 4;
			r->sport = *pl_tap_at(w, w->at);
			r->dport = *pl_tap_at(w, w->at + 1);
		} else if (w->proto == icmp) {
			w->flags |= PL_TAP_HEADLESS;
		}
	}
	if ((w->flags & PL_TAP_HEADLESS) != 0) {
		r->obs |= PL_OBS_TRUNCATED;
		header = 0;
	}
	w->headers = before + header;
	r->pay_len = pl_tap_saturated(length > header ? length - header : 0);
	return outcome;
}

/* ---- TCP options ---- */

/* Reads one option (RFC 9293 3.1 and RFC 7323 3.2). Returns 0 when it was the last one. */
PL_CORE_INLINE int pl_tap_core_option(struct pl_tap_walk *w)
{
	const uint32_t at = PL_TAP_AGAIN(w->at), left = PL_TAP_AGAIN(w->left);
	const uint8_t *p = pl_tap_at(w, at);
	struct pl_pkt96 *r = &w->record;
	const uint32_t kind = p[0], length = p[1];

	if (left == 0)
		return 0;
	r->tcp_opts |= (uint16_t)(1u << (kind < 15 ? kind : 15));
	if (kind == 0)
		return 0;
	if (kind == 1) {
		w->at = at + 1;
		w->left = left - 1;
		return 1;
	}
	if (left < 2 || length < 2 || length > left) {
		w->flags |= PL_TAP_BAD_OPTIONS;
		return 0;
	}
	if (kind == 2 && length == 4) {
		r->mss = pl_tap_be16(w, at + 2);
	} else if (kind == 8 && length == 10) {
		r->tsval = pl_tap_be32(w, at + 2);
		r->tsecr = pl_tap_be32(w, at + 6);
	} else if (kind == 2 || kind == 8) {
		w->flags |= PL_TAP_BAD_OPTIONS;
		return 0;
	}
	w->at = at + length;
	w->left = left - length;
	return 1;
}

/* Reads two fillers and the timestamps, as most segments have them. Returns 0 for other options. */
PL_CORE_INLINE int pl_tap_core_usual_options(struct pl_tap_walk *w)
{
	if (w->left != 12 || pl_tap_be32(w, w->at) != 0x0101080a)
		return 0;
	w->record.tcp_opts = 1u << 1 | 1u << 8;
	w->record.tsval = pl_tap_be32(w, w->at + 4);
	w->record.tsecr = pl_tap_be32(w, w->at + 8);
	return 1;
}

PL_CORE_INLINE void pl_tap_core_options(struct pl_tap_walk *w)
{
	if (pl_tap_core_usual_options(w))
		return;
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (uint32_t i = 0; i < 40; i++) {
		if (!PL_TAP_OPTION(w))
			break;
	}
	if ((w->record.obs & PL_OBS_TRUNCATED) != 0)
		w->flags &= ~(uint32_t)PL_TAP_BAD_OPTIONS;
}

/* ---- the flow hash ---- */

PL_CORE_INLINE uint64_t pl_tap_core_side(const struct pl_addr *addr, uint16_t port)
{
	uint64_t words[2];

	memcpy(words, PL_TAP_WORDS(*addr), sizeof(words));
	return pl_tap_mix(words[1] ^ 0x51a9c4f3e2d78b06u, pl_tap_mix(words[0], port));
}

/* Returns the same as pl_flow_hash_packet of record/flow_hash.h. */
PL_CORE_INLINE uint64_t pl_tap_core_hash(const struct pl_pkt96 *r)
{
	const uint64_t hash = pl_tap_mix(
		pl_tap_core_side(&r->src, r->sport) + pl_tap_core_side(&r->dst, r->dport),
		r->proto);

	return hash != 0 ? hash : 1;
}
