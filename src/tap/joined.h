/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets on the wire a frame stands for (core/tap_joined.h), by its headers and what the port
 * said of it. */
#pragma once

#include "core/tap_joined.h"
#include "wire/layers.h"
#include "wire/packet.h"

/*
 * For the record r of the frame, which is of the level l of its headers and so many bytes long from its
 * IP header on. In a tunnel that is known it is the TCP or UDP within whose packets the wire had.
 * vxlan_ports: a word of them (wire/tunnel_ports.h). False: they cannot be told; ret->n is 1 then.
 */
bool pl_tap_joined_find(struct pl_tap_joined *ret, const struct pl_packet *pkt,
	const struct pl_layers *l, const struct pl_pkt96 *r, uint32_t length, uint64_t vxlan_ports);

/* Bytes of a frame that are enough for its record. */
#define PL_TAP_HEAD_COPY 256

/* The head of a frame that stands for several packets, and whose IP header does not say how long it is:
 * a copy that does, as far as 65535 bytes, and without the Hop-by-Hop header in which Linux before 7.0
 * has the length of BIG TCP and which the packets on the wire have not. */
struct pl_tap_head {
	struct pl_packet packet;
	uint8_t bytes[PL_TAP_HEAD_COPY];
};

/* Whether the frame, whose IP header is there, is such a one. */
bool pl_tap_head_find(struct pl_tap_head *ret, const struct pl_packet *pkt, const uint8_t *network);
