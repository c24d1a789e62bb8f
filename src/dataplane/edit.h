/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Edits a packet and keeps its lengths and checksums right. An edit is opened on a parsed packet,
 * sums up the difference that each change makes, and is closed once: then the IP and UDP lengths,
 * the IPv4 header's checksum (RFC 791) and that of TCP (RFC 9293) or UDP (RFC 768) are updated by
 * RFC 1624, never computed from the start: a packet with a wrong checksum keeps a wrong one. A UDP
 * checksum of zero over IPv4 stays zero.
 *
 * The transport's checksum covers bytes from the transport header on: insert and remove at even
 * distances from it. An edit never writes outside its packet; pl_dp_edit_open checks lengths from
 * the wire against the bytes that there are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/packet.h"

struct pl_dp_edit {
	struct pl_dp_packet *pkt;
	uint32_t l3, l4, payload; /* offsets as in headers.*, before the edit */
	uint32_t end;             /* end of the UDP datagram, or the IP packet, from data */
	uint32_t ip_bytes;        /* IP header and payload, before the edit */
	int32_t grown;            /* bytes inserted so far */
	uint32_t sum;             /* change of the transport's sum, not folded */
	uint32_t ip_sum;          /* change of the IPv4 header's sum */
	uint8_t ip_version, proto;
	bool summed; /* there is a transport checksum to update */
};

enum pl_dp_edit_fault {
	PL_DP_EDIT_OK,
	PL_DP_EDIT_NOT_IP,
	PL_DP_EDIT_FRAGMENT,
	PL_DP_EDIT_NO_L4,     /* the transport is not TCP, UDP or GRE */
	PL_DP_EDIT_MALFORMED, /* a length exceeds the bytes that there are */
};

enum pl_dp_edit_fault pl_dp_edit_open(struct pl_dp_edit *ret, struct pl_dp_packet *pkt);

/* Inserts bytes before offset `at`, at or behind the transport header; `bytes` must not overlap the
 * packet. -ENOBUFS: no room, or the IP packet would exceed 65535 bytes; nothing has changed. */
int pl_dp_edit_insert(struct pl_dp_edit *e, uint32_t at, const void *bytes, uint32_t n);
/* Removes n bytes at or behind the transport header. -EINVAL when they are not there. */
int pl_dp_edit_remove(struct pl_dp_edit *e, uint32_t at, uint32_t n);
/* Overwrite two bytes, or one, at or behind the transport header; do nothing elsewhere. */
void pl_dp_edit_put16(struct pl_dp_edit *e, uint32_t at, uint16_t v);
void pl_dp_edit_put8(struct pl_dp_edit *e, uint32_t at, uint8_t v);
/* Read and write the six DSCP bits of the IP header. */
uint8_t pl_dp_edit_dscp(const struct pl_dp_edit *e);
void pl_dp_edit_put_dscp(struct pl_dp_edit *e, uint8_t dscp);

/* Sets the protocol behind the IP header and its extension headers, when a transport header was put
 * in front of the packet's or taken off: the edit then updates no checksum but IPv4's. */
void pl_dp_edit_put_proto(struct pl_dp_edit *e, uint8_t proto);

/* Returns the change of the transport's sum if the edit were closed now with `grow` bytes more: for
 * a checksum complement, folded to 16 bits. */
uint16_t pl_dp_edit_gain(const struct pl_dp_edit *e, uint32_t grow);

void pl_dp_edit_close(struct pl_dp_edit *e);

/* Sets the packet's l4 and payload offsets back to those before the edit, for bytes inserted at or
 * behind them. */
void pl_dp_edit_keep_places(const struct pl_dp_edit *e);
