/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the packets on the wire that a frame stands for (core/tap_joined.h), from its headers and
 * the port's metadata. */
#pragma once

#include "core/tap_joined.h"
#include "wire/layers.h"
#include "wire/packet.h"

/* Describes the packets of the frame with record r; l: the layers of r, length: bytes of the frame
 * from its IP header on. Inside a known tunnel it is the inner TCP or UDP that was cut.
 * vxlan_ports: a word of them (wire/tunnel_ports.h). Returns false when the packets cannot be
 * determined; ret->n is then 1. */
bool pl_tap_joined_find(struct pl_tap_joined *ret, const struct pl_packet *pkt,
	const struct pl_layers *l, const struct pl_pkt96 *r, uint32_t length, uint64_t vxlan_ports);

/* Bytes of a frame that are enough for its record. */
#define PL_TAP_HEAD_COPY 256

/* Corrected copy of the head of a frame that stands for several packets and whose IP header has
 * another length: the copy has the frame's length, at most 65535, and no Hop-by-Hop header, in
 * which Linux before 7.0 has the length of BIG TCP and which the packets on the wire do not
 * have. */
struct pl_tap_head {
	struct pl_packet packet;
	uint8_t bytes[PL_TAP_HEAD_COPY];
};

/* Makes the copy when the frame, whose IP header is at `network`, needs one; returns whether it
 * does. */
bool pl_tap_head_find(struct pl_tap_head *ret, const struct pl_packet *pkt, const uint8_t *network);
