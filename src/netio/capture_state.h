/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the readers of both capture formats share (capture.c, capture_pcapng.c). */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "netio/capture.h"
#include "wire/cursor.h"

/* Results of one parsing step, beside negative errno. */
enum { STEP_PACKET = 1, STEP_ON = 0, STEP_MORE = -EAGAIN };

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 2, /* obsolete */
	BLOCK_SIMPLE = 3,
	BLOCK_ENHANCED = 6,
};
enum { OPTION_END = 0, OPTION_TSRESOL = 9, OPTION_TSOFFSET = 14 };

static inline struct pl_cursor unread(const struct pl_capture *capture)
{
	return pl_cursor(capture->buf + capture->pos, capture->end - capture->pos);
}

static inline uint16_t get16(struct pl_cursor *cur, bool little)
{
	uint16_t v = pl_get_be16(cur);

	return little ? __builtin_bswap16(v) : v;
}

static inline uint32_t get32(struct pl_cursor *cur, bool little)
{
	uint32_t v = pl_get_be32(cur);

	return little ? __builtin_bswap32(v) : v;
}

static inline uint64_t get64(struct pl_cursor *cur, bool little)
{
	uint64_t v = pl_get_be64(cur);

	return little ? __builtin_bswap64(v) : v;
}

/* Returns the packet's length on the wire: wire_len, or len where a writer stored a smaller
 * wire_len. */
static inline uint32_t whole_length(struct pl_capture *capture, uint32_t len, uint32_t wire_len)
{
	if (__builtin_expect(len <= wire_len, 1))
		return wire_len;
	capture->length_lies++;
	return len;
}

static inline void set_packet(struct pl_packet *p, uint16_t linktype, const uint8_t *data,
	uint32_t len, uint32_t wire_len, uint64_t ts_ns)
{
	p->data = data;
	p->len = len;
	p->wire_len = wire_len;
	p->ts_ns = ts_ns;
	p->clock = ts_ns != 0 ? PL_STAMP_CAPTURE : PL_STAMP_NONE;
	p->gso = PL_GSO_UNTOLD;
	switch (linktype) {
	case 1:
		p->link = PL_LINK_ETHERNET;
		break;
	case 12: /* DLT_RAW of most systems; OpenBSD has 14; some writers put them into files */
	case 14:
	case 101:
	case 228:
	case 229:
		p->link = PL_LINK_RAW_IP;
		break;
	case 113:
		p->link = PL_LINK_SLL;
		break;
	case 276:
		p->link = PL_LINK_SLL2;
		break;
	default:
		p->link = PL_LINK_UNKNOWN;
		p->sport = linktype;
		break;
	}
}

/*
 * LINKTYPE_NULL and LINKTYPE_LOOP put an address family before the IP header: one of the capturing
 * machine, in its byte order or in network order. If the family is IPv4 or IPv6, the packet is raw
 * IP behind these four bytes.
 */
static inline void strip_family(struct pl_packet *p)
{
	struct pl_cursor cur = pl_cursor(p->data, p->len);
	uint32_t family = pl_get_be32(&cur);

	if (family >> 24 != 0)
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:  /* AF_INET everywhere */
	case 10: /* AF_INET6: Linux, Solaris or Windows, the BSDs, FreeBSD, macOS */
	case 23:
	case 24:
	case 28:
	case 30:
		p->link = PL_LINK_RAW_IP;
		p->data = cur.pos;
		p->len -= 4;
		p->wire_len -= 4;
		break;
	default:
		break;
	}
}

static inline void finish_packet(struct pl_packet *p, uint16_t linktype)
{
	if (__builtin_expect(linktype == 0 || linktype == 108, 0))
		strip_family(p);
}

/* ---- capture.c ---- */

/* Records a damage at `at` bytes behind capture->pos as the fault. Returns -EBADMSG. */
__attribute__((format(printf, 3, 4))) int pl_capture_damage(
	struct pl_capture *capture, size_t at, const char *fmt, ...);

/* ---- capture_pcapng.c ---- */

int pl_capture_pcapng(struct pl_capture *capture, struct pl_batch *batch);
