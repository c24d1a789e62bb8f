/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes to a packet that keep its lengths and checksums right. An edit is opened on a packet whose
 * headers the parser found, collects what its checksums must know of each change, and is closed once:
 * then the IP and UDP lengths, the IPv4 header's checksum (RFC 791) and that of TCP (RFC 9293) or UDP
 * (RFC 768) are brought up to date by RFC 1624, never computed anew: a packet that came with a wrong
 * checksum leaves with a wrong one. A UDP checksum of zero over IPv4 stays zero.
 *
 * What is covered by the transport's checksum begins at its header: places are at even distances
 * from it. An edit writes nothing outside its packet, whatever is asked; pl_dp_edit_open is where
 * lengths from the wire are held against the bytes there are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/packet.h"

struct pl_dp_edit {
	struct pl_dp_packet *pkt;
	uint32_t l3, l4, payload; /* as headers.*, of the packet before the edit */
	uint32_t end;      /* behind the UDP datagram, or the IP packet, in bytes from data */
	uint32_t ip_bytes; /* IP header and payload, before the edit */
	int32_t grown;     /* so far */
	uint32_t sum;      /* what the covered bytes have gained, not folded */
	uint32_t ip_sum;   /* likewise of the IPv4 header */
	uint8_t ip_version, proto;
	bool summed; /* there is a transport checksum to keep */
};

enum pl_dp_edit_fault {
	PL_DP_EDIT_OK,
	PL_DP_EDIT_NOT_IP,
	PL_DP_EDIT_FRAGMENT,
	PL_DP_EDIT_NO_L4,     /* the transport is none of TCP, UDP and GRE */
	PL_DP_EDIT_MALFORMED, /* a length says what is not there */
};

enum pl_dp_edit_fault pl_dp_edit_open(struct pl_dp_edit *ret, struct pl_dp_packet *pkt);

/* Bytes put in before offset `at`, at or behind the transport header; `bytes` may lie nowhere in the
 * packet. -ENOBUFS: no room, or the IP packet would exceed 65535 bytes; nothing has changed. */
int pl_dp_edit_insert(struct pl_dp_edit *e, uint32_t at, const void *bytes, uint32_t n);
/* n bytes taken out; they are inside the transport's part. -EINVAL. */
int pl_dp_edit_remove(struct pl_dp_edit *e, uint32_t at, uint32_t n);
/* Other bytes in place of two, or of one, in the transport's part. */
void pl_dp_edit_put16(struct pl_dp_edit *e, uint32_t at, uint16_t v);
void pl_dp_edit_put8(struct pl_dp_edit *e, uint32_t at, uint8_t v);
/* The six DSCP bits of the IP header. */
uint8_t pl_dp_edit_dscp(const struct pl_dp_edit *e);
void pl_dp_edit_put_dscp(struct pl_dp_edit *e, uint8_t dscp);

/* Another protocol behind the IP header and its extension headers, for who puts a transport header in
 * front of the packet's or takes it off: the edit then keeps no checksum but IPv4's. */
void pl_dp_edit_put_proto(struct pl_dp_edit *e, uint8_t proto);

/* What the transport's checksum would have to gain if the edit were closed now with `grow` bytes
 * more: for a checksum complement, folded to 16 bits. */
uint16_t pl_dp_edit_gain(const struct pl_dp_edit *e, uint32_t grow);

void pl_dp_edit_close(struct pl_dp_edit *e);

/* The packet's transport header and payload are where they were before, whatever was put in at or
 * behind them. */
void pl_dp_edit_keep_places(const struct pl_dp_edit *e);
