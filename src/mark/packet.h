/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes packets for alternate marking in the kernel: headers, the flow of a packet, its
 * number of packets on the wire, and the marking bits in its header or in the option of RFC 9343.
 * For the kernel programs (bpf/mark.bpf.c) and for user space, which tests them.
 * mark/period.h has the meaning of the bits, mark/record.h the counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mark/record.h"

#define PL_MARK_INLINE static inline __attribute__((always_inline))

/* Stands before a loop that is unrolled for the kernel's verifier. */
#ifdef __bpf__
#define PL_MARK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PL_MARK_UNROLL
#endif

/* Parts of a packet that make its flow. */
enum pl_mark_by {
	PL_MARK_BY_FLOW,  /* addresses, protocol, ports */
	PL_MARK_BY_HOSTS, /* addresses */
	PL_MARK_BY_NONE,  /* all chosen packets are one flow */
};

/* A flow; addresses as in struct pl_pkt96 (IPv4 as ::ffff:a.b.c.d), ports as numbers. No padding:
 * the kernel compares bytes. */
struct pl_mark_key {
	union {
		struct {
			uint8_t src[16], dst[16];
			uint16_t sport, dport;
			/* Or PL_MARK_HAS_ID and a FlowMonID of RFC 9343, then without ports. */
			uint32_t proto;
		};
		uint64_t words[5];
	};
};
#define PL_MARK_HAS_ID 0x80000000u

/* Place of the marks in a packet. */
enum pl_mark_place {
	PL_MARK_IN_HEADER, /* ToS, traffic class, IPv4's reserved flag */
	PL_MARK_IN_HOP,    /* the option of RFC 9343, in Hop-by-Hop Options */
	PL_MARK_IN_DST,    /* the option in Destination Options; a meter finds it in both */
};

/* Bits of an IPv4 header or IPv6's traffic class that may be marks: ToS, and above it the reserved
 * flag in front of DF. */
#define PL_MARK_RESERVED 0x100u

/* Versions of IP, as bits. */
#define PL_MARK_IP4      1u
#define PL_MARK_IP6      2u

/* Setup, set before a program is attached. */
struct pl_mark_setup {
	uint64_t period_ns, guard_ns;
	uint64_t from_ns, to_ns; /* times in a block at which its first packet becomes the pulse */
	uint32_t method;         /* enum pl_mark_method */
	uint32_t by;             /* enum pl_mark_by */
	uint32_t raw;            /* frames begin with IP: a tunnel */
	uint32_t each;           /* 1: rules are checked for each packet, not for each new flow */
	uint32_t place;          /* enum pl_mark_place */
	uint32_t versions;       /* PL_MARK_IP4, PL_MARK_IP6: packets that have the bits */
	/* PL_MARK_IN_HEADER: bits as above; second: of double and cyclic marking, else 0. */
	uint32_t colour, second;
	/* Most flows, and slots of the table: twice as many, so that a flow lies near the slot of
	 * its hash. */
	uint32_t flows, slots;
	uint32_t ticks; /* 1: no clock is read; the table's tick gives the block */
	uint32_t zero;
};

/* ---- reading ---- */

enum pl_mark_why {
	PL_MARK_PARSED,
	PL_MARK_NOT_IP,
	PL_MARK_BROKEN,     /* headers are cut, or have wrong lengths */
	PL_MARK_UNREAD,     /* headers continue behind the bytes that are read, so the ports are not
			     * known */
	PL_MARK_UNSEARCHED, /* the mark may be behind the options that are searched */
};

struct pl_mark_packet {
	struct pl_mark_key key; /* addresses, protocol and ports */
	uint32_t network;       /* offset of the IP header */
	uint32_t headers;       /* bytes from there to the payload of TCP or UDP */
	uint32_t bytes;         /* length of the IP packet, by its header */
	uint32_t marks;         /* ToS and reserved flag; as the setup's bits */
	uint32_t dst_opts;      /* offset of Destination Options from the IP header; 0: none */
	uint32_t option;        /* offset of the AltMark option from the IP header; 0: none */
	uint32_t word;          /* word of the option */
	uint16_t vlan;
	uint8_t version, tos;
	uint8_t next;     /* IPv6: type of the first header behind it */
	uint8_t first[2]; /* IPv6: next header and length of the first extension header */
	bool later;       /* a fragment behind the first: it has no ports, and is never counted */
	uint32_t routing; /* offset of a routing header from the IP header; 0: none */
};

PL_MARK_INLINE uint32_t pl_mark_be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Records that n more bytes of headers are missing. */
PL_MARK_INLINE uint32_t pl_mark_unread(struct pl_mark_packet *s, uint32_t n)
{
	s->headers += n;
	return PL_MARK_UNREAD;
}

PL_MARK_INLINE uint32_t pl_mark_parse_transport(
	const uint8_t *t, const uint8_t *end, struct pl_mark_packet *s)
{
	const uint32_t proto = s->key.proto;

	if (s->later || (proto != 6 && proto != 17 && proto != 132))
		return PL_MARK_PARSED;
	if (t + 8 > end)
		return pl_mark_unread(s, 8);
	s->key.sport = (uint16_t)pl_mark_be16(t);
	s->key.dport = (uint16_t)pl_mark_be16(t + 2);
	if (proto != 6) {
		s->headers += 8;
		return PL_MARK_PARSED;
	}
	if (t + 13 > end)
		return pl_mark_unread(s, 13);
	s->headers += (uint32_t)(t[12] >> 4) * 4;
	return PL_MARK_PARSED;
}

/* Returns the second half of ::ffff:a.b.c.d in memory order, for the IPv4 address at p. */
PL_MARK_INLINE uint64_t pl_mark_mapped(const uint8_t *p)
{
	uint32_t address;

	memcpy(&address, p, sizeof(address));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (uint64_t)address << 32 | 0xffff0000u;
#else
	return UINT64_C(0xffff) << 32 | address;
#endif
}

PL_MARK_INLINE uint32_t pl_mark_parse_ip4(
	const uint8_t *h, const uint8_t *end, struct pl_mark_packet *s)
{
	uint32_t head;

	if (h + 20 > end)
		return PL_MARK_BROKEN;
	head = (uint32_t)(h[0] & 0xf) * 4;
	s->bytes = pl_mark_be16(h + 2);
	if (h[0] >> 4 != 4 || head < 20)
		return PL_MARK_BROKEN;
	s->version = 4;
	s->tos = h[1];
	s->marks = h[1] | (h[6] & 0x80u) << 1;
	s->later = (pl_mark_be16(h + 6) & 0x1fff) != 0;
	s->key.proto = h[9];
	s->key.words[1] = pl_mark_mapped(h + 12);
	s->key.words[3] = pl_mark_mapped(h + 16);
	s->headers = head;
	return pl_mark_parse_transport(h + head, end, s);
}

/* Hop-by-hop options, routing, fragment, destination options. */
PL_MARK_INLINE bool pl_mark_is_extension(uint32_t next)
{
	return next == 0 || next == 43 || next == 44 || next == 60;
}

/* Segment Routing with segments left (RFC 8754): the packet has another destination on each segment; that
 * of the flow is the last one. False when the header is not there. */
PL_MARK_INLINE bool pl_mark_read_routing(
	const uint8_t *h, const uint8_t *end, struct pl_mark_packet *s)
{
	uint32_t at = s->routing;
	const uint8_t *r;

	if (at == 0)
		return true;
	if (at > 2047)
		return false;
#ifdef __bpf__
	/* The verifier must see the bound, which the compiler would take for known. */
	asm volatile("" : "+r"(at));
	at &= 2047;
#endif
	r = h + at;
	if (r + 8 > end)
		return false;
	if (r[1] < 2 || r[2] != 4 || r[3] == 0)
		return true;
	if (r + 24 > end)
		return false;
	memcpy(s->key.dst, r + 8, 16);
	return true;
}

/* Most extension headers between the IPv6 header and the transport header that are skipped. */
#define PL_MARK_EXTENSIONS 4u

PL_MARK_INLINE uint32_t pl_mark_parse_ip6(
	const uint8_t *h, const uint8_t *end, struct pl_mark_packet *s)
{
	const uint8_t *t = h + 40;
	uint32_t next;

	if (t > end || h[0] >> 4 != 6)
		return PL_MARK_BROKEN;
	s->version = 6;
	s->bytes = 40 + pl_mark_be16(h + 4);
	s->tos = (uint8_t)(pl_mark_be16(h) >> 4);
	s->marks = s->tos;
	memcpy(s->key.src, h + 8, 16);
	memcpy(s->key.dst, h + 24, 16);
	s->headers = 40;
	next = s->next = h[6];
	PL_MARK_UNROLL
	for (uint32_t i = 0; i < PL_MARK_EXTENSIONS; i++) {
		uint32_t n = 8;

		if (!pl_mark_is_extension(next))
			break;
		if (t + 8 > end)
			return pl_mark_unread(s, 8);
		if (i == 0) {
			s->first[0] = t[0];
			s->first[1] = t[1];
		}
		if (next == 44) {
			s->later = (pl_mark_be16(t + 2) & 0xfff8) != 0;
		} else {
			n += 8u * t[1];
			if (next == 60)
				s->dst_opts = s->headers;
			if (next == 43)
				s->routing = s->headers;
		}
		next = t[0];
		s->headers += n;
		t += n;
		if (s->later)
			break;
	}
	s->key.proto = next;
	if (!pl_mark_read_routing(h, end, s))
		return PL_MARK_UNREAD;
	return pl_mark_parse_transport(t, end, s);
}

PL_MARK_INLINE bool pl_mark_is_tag(uint32_t type)
{
	return type == 0x8100 || type == 0x88a8;
}

/* Reads the packet from p to end, Ethernet with at most one VLAN tag or IP alone (raw), into *s,
 * which is zero. Does not look for the AltMark option. Returns an enum pl_mark_why. */
PL_MARK_INLINE uint32_t pl_mark_parse(
	const uint8_t *p, const uint8_t *end, bool raw, struct pl_mark_packet *s)
{
	uint32_t type;

	if (raw) {
		if (p + 1 > end)
			return PL_MARK_BROKEN;
		return p[0] >> 4 == 4 ? pl_mark_parse_ip4(p, end, s) : pl_mark_parse_ip6(p, end, s);
	}
	if (p + 14 > end)
		return PL_MARK_BROKEN;
	type = pl_mark_be16(p + 12);
	p += 14;
	s->network = 14;
	if (pl_mark_is_tag(type)) {
		if (p + 4 > end)
			return PL_MARK_BROKEN;
		s->vlan = pl_mark_be16(p) & 0xfff;
		type = pl_mark_be16(p + 2);
		p += 4;
		s->network = 18;
	}
	if (type == 0x0800)
		return pl_mark_parse_ip4(p, end, s);
	if (type == 0x86dd)
		return pl_mark_parse_ip6(p, end, s);
	return PL_MARK_NOT_IP;
}

/* Tells headers that end behind the packet from those that are not in the bytes read. length: bytes
 * of the frame. */
PL_MARK_INLINE uint32_t pl_mark_why_of(
	uint32_t why, const struct pl_mark_packet *s, uint32_t length)
{
	return (why == PL_MARK_UNREAD || why == PL_MARK_UNSEARCHED) &&
			       s->network + s->headers > length
		       ? PL_MARK_BROKEN
		       : why;
}

/* Makes the key of the packet's flow. */
PL_MARK_INLINE void pl_mark_key(
	const struct pl_mark_packet *s, uint32_t by, struct pl_mark_key *ret)
{
	*ret = (struct pl_mark_key){ .words = { 0 } };
	if (by == PL_MARK_BY_NONE)
		return;
	for (uint32_t i = 0; i < 4; i++)
		ret->words[i] = s->key.words[i];
	if (by != PL_MARK_BY_HOSTS)
		ret->words[4] = s->key.words[4];
}

/* True when both keys are equal, without a branch for each word. */
PL_MARK_INLINE bool pl_mark_key_is(const struct pl_mark_key *a, const struct pl_mark_key *b)
{
	return ((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) |
		       (a->words[2] ^ b->words[2]) | (a->words[3] ^ b->words[3]) |
		       (a->words[4] ^ b->words[4])) == 0;
}

PL_MARK_INLINE uint64_t pl_mark_hash(const struct pl_mark_key *key, uint64_t seed)
{
	uint64_t a = (key->words[0] ^ seed) * UINT64_C(0x9e3779b97f4a7c15),
		 b = (key->words[2] ^ seed) * UINT64_C(0xc2b2ae3d27d4eb4f), h;

	a = (a ^ a >> 32 ^ key->words[1]) * UINT64_C(0xd6e8feb86659fd93);
	b = (b ^ b >> 32 ^ key->words[3]) * UINT64_C(0xff51afd7ed558ccd);
	h = (((a ^ a >> 29) + (b ^ b >> 32)) ^ key->words[4]) * UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

/* ---- on the wire ---- */

/* Returns the number of packets on the wire that a packet of the network stack is, or becomes.
 * segs: number from the kernel, 0 when the kernel does not know it; gso_size: 0 for a single
 * packet. len: bytes from its IP header on. */
PL_MARK_INLINE uint32_t pl_mark_segments(
	const struct pl_mark_packet *s, uint32_t len, uint32_t segs, uint32_t gso_size)
{
	if (gso_size == 0 || len <= s->headers)
		return 1;
	return segs != 0 ? segs : (len - s->headers + gso_size - 1) / gso_size;
}

/* Returns the bytes of all those packets on the wire, with their IP headers. */
PL_MARK_INLINE uint64_t pl_mark_wire_bytes(
	const struct pl_mark_packet *s, uint32_t len, uint32_t segments)
{
	return segments == 1 ? s->bytes : len + (uint64_t)(segments - 1) * s->headers;
}

/* ---- the bits ---- */

/* Returns the bits of a header's marks, as mark/period.h numbers them. */
PL_MARK_INLINE unsigned int pl_mark_bits_of(const volatile struct pl_mark_setup *u, uint32_t marks)
{
	return (unsigned int)((marks & u->colour) != 0) | (unsigned int)((marks & u->second) != 0)
								  << 1;
}

/* Returns the header's marks with these bits set or cleared. */
PL_MARK_INLINE uint32_t pl_mark_marks(
	const volatile struct pl_mark_setup *u, uint32_t marks, unsigned int bits)
{
	uint32_t v = marks & ~(u->colour | u->second);

	v |= (bits & 1) != 0 ? u->colour : 0;
	v |= (bits & 2) != 0 ? u->second : 0;
	return v;
}

/* Writes IPv4's ToS and reserved flag, and updates the header's checksum: RFC 1624, HC' = ~(~HC +
 * ~m + m'). h: 20 bytes. */
PL_MARK_INLINE void pl_mark_set_ip4(uint8_t *h, uint32_t marks)
{
	uint32_t sum = (pl_mark_be16(h + 10) ^ 0xffff) + (pl_mark_be16(h) ^ 0xffff) +
		       ((h[6] & 0x80u) << 8 ^ 0xffff);

	h[1] = (uint8_t)marks;
	h[6] = (uint8_t)((h[6] & 0x7f) | (marks & PL_MARK_RESERVED) >> 1);
	sum += pl_mark_be16(h) + ((marks & PL_MARK_RESERVED) << 7);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ((sum & 0xffff) + (sum >> 16)) ^ 0xffff;
	h[10] = (uint8_t)(sum >> 8);
	h[11] = (uint8_t)sum;
}

/* Writes IPv6's traffic class. h: 2 bytes. */
PL_MARK_INLINE void pl_mark_set_ip6(uint8_t *h, uint32_t marks)
{
	h[0] = (uint8_t)(0x60 | (marks & 0xff) >> 4);
	h[1] = (uint8_t)((h[1] & 0x0f) | marks << 4);
}

/* ---- the option ---- */

#define PL_MARK_OPTION_TYPE  0x12u /* AltMark of RFC 9343: a word of FlowMonID, L and D */
#define PL_MARK_OPTION_BYTES 6u

/* Bytes that the option adds as the only option of its header, or in front of other options. */
#define PL_MARK_GROWTH       8u

/* Returns the FlowMonID of a flow: a number of 20 bits that looks random (RFC 9343 4), the same
 * after every restart, so that the flow's counts go on. */
PL_MARK_INLINE uint32_t pl_mark_flow_id(const struct pl_mark_key *key)
{
	return (uint32_t)(pl_mark_hash(key, 0) >> 20) & 0xfffff;
}

PL_MARK_INLINE uint32_t pl_mark_word(uint32_t flow_id, unsigned int bits)
{
	return flow_id << 12 | (bits & 1) << 11 | (bits & 2) << 9;
}

PL_MARK_INLINE unsigned int pl_mark_word_bits(uint32_t word)
{
	return (word >> 11 & 1) | (word >> 9 & 2);
}

/* Makes the key of packets with the FlowMonID: it replaces protocol and ports. */
PL_MARK_INLINE void pl_mark_key_of_id(struct pl_mark_key *key, uint32_t flow_id)
{
	key->sport = key->dport = 0;
	key->proto = PL_MARK_HAS_ID | flow_id;
}

/* Most options of a header that are searched for AltMark; each Pad1 is one. */
#define PL_MARK_OPTIONS       8u
#define PL_MARK_OPTION_BROKEN 1u
#define PL_MARK_OPTION_UNREAD UINT32_MAX

/* True when it is neither none nor one of the above. */
PL_MARK_INLINE bool pl_mark_is_option(uint32_t at)
{
	return at > PL_MARK_OPTION_BROKEN && at != PL_MARK_OPTION_UNREAD;
}

/* Finds the AltMark option in the header at t: returns its offset from there, 0 when there is none,
 * PL_MARK_OPTION_BROKEN when its length is wrong, or PL_MARK_OPTION_UNREAD when it may be behind
 * `end` or as many options as are searched. */
PL_MARK_INLINE uint32_t pl_mark_find_option(
	const uint8_t *t, const uint8_t *end, uint32_t *ret_word)
{
	uint32_t size, at = 2;

	if (t + 8 > end)
		return PL_MARK_OPTION_UNREAD;
	size = 8 + 8u * t[1];
	PL_MARK_UNROLL
	for (uint32_t n = 0; n < PL_MARK_OPTIONS; n++) {
		const uint8_t *o = t + at;

		/* Fewer bytes at the end of a header can only be padding. */
		if (at + PL_MARK_OPTION_BYTES > size)
			return 0;
		if (o + PL_MARK_OPTION_BYTES > end)
			return PL_MARK_OPTION_UNREAD;
		if (o[0] == PL_MARK_OPTION_TYPE) {
			*ret_word = pl_mark_be16(o + 2) << 16 | pl_mark_be16(o + 4);
			return o[1] == 4 ? at : PL_MARK_OPTION_BROKEN;
		}
		at += o[0] == 0 ? 1 : 2u + o[1];
	}
	return at + PL_MARK_OPTION_BYTES > size ? 0 : PL_MARK_OPTION_UNREAD;
}

/* Writes next header and length of the extension header, and the option behind them. to: 8
 * bytes. */
PL_MARK_INLINE void pl_mark_put_option(uint8_t *to, uint8_t next, uint8_t length, uint32_t word)
{
	to[0] = next;
	to[1] = length;
	to[2] = PL_MARK_OPTION_TYPE;
	to[3] = 4;
	to[4] = (uint8_t)(word >> 24);
	to[5] = (uint8_t)(word >> 16);
	to[6] = (uint8_t)(word >> 8);
	to[7] = (uint8_t)word;
}

/* ---- a flow's counters ---- */

/* Cells of a flow: one for the block being read, one for late packets, one for the present block,
 * one for early packets; the others give a reading process time to restart. */
#define PL_MARK_KEPT 8u

/* Returns the index of a cell in the array of cells, by slot, processor and block. Each cell fills
 * a cache line. Cells of one block lie together, so that the present block's take few pages. */
PL_MARK_INLINE uint32_t pl_mark_cell_at(
	uint32_t slot, uint32_t slots, uint32_t processor, uint64_t block)
{
	return (processor * PL_MARK_KEPT + (uint32_t)(block & (PL_MARK_KEPT - 1))) * slots + slot;
}

/* ---- the table of flows ---- */

/* States of a slot. It is EMPTY until its first flow, then READY. User space makes an idle one
 * DYING; a packet makes it READY again. If none came for so long that no program can still be about
 * to count in it, user space makes it FREE: a place for another flow, which lookups skip. */
enum pl_mark_slot_state { PL_MARK_EMPTY, PL_MARK_READY, PL_MARK_DYING, PL_MARK_FREE };

/* Most slots from the slot of a flow's hash to its place. */
#define PL_MARK_PROBES 64u

/* State of a flow that processors share; one cache line. They write it only for a new flow, a pulse
 * and, in pulse marking, for packets. */
struct pl_mark_head {
	struct pl_mark_key key;
	uint32_t state;          /* enum pl_mark_slot_state */
	uint32_t pulsed;         /* block whose pulse was sent last, modulo 2^32 */
	uint64_t packets, bytes; /* pulse marking: all packets until now */
};

struct pl_mark_table {
	uint32_t lock; /* 1: a flow is being put in */
	uint32_t n;    /* flows */
	uint64_t seed; /* seed of the hash */
	uint32_t far;  /* largest distance of a flow from the slot of its hash */
	uint32_t zero;
	/* Written by user space if setup.ticks is set. tick: mark/tick.h; unsure: last block with
	 * unknown counts, because the tick was too old. */
	uint64_t tick, unsure;
};

PL_MARK_INLINE uint32_t pl_mark_slot_of(
	const struct pl_mark_key *key, uint64_t seed, uint32_t slots)
{
	return (uint32_t)((pl_mark_hash(key, seed) >> 32) * slots >> 32);
}
