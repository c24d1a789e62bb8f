/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser: finds the headers of a packet, and hashes its flow. */
#pragma once

#include "dataplane/packet.h"

/*
 * Sets the header offsets of a packet that begins with an Ethernet header. False, with drop set to
 * PL_DP_DROP_MALFORMED: a header is cut or its length exceeds the packet (wire/layers.h walks IP
 * and what is behind it). Tags: at most 4, 802.1Q or 802.1ad (IEEE 802.1Q-2018, 9.5). A packet that
 * is not IP is no error: it has Ethernet fields only.
 */
bool pl_dp_parse(struct pl_dp_packet *pkt);
/* As pl_dp_parse, by the slow path only. */
bool pl_dp_parse_any(struct pl_dp_packet *pkt);

/* Returns the flow hash of a parsed packet: symmetric, over addresses, protocol and ports, or over
 * MAC addresses where there is no IP. Fragments are hashed without ports, because later ones have
 * none. */
uint32_t pl_dp_flow_hash(const struct pl_dp_packet *pkt);

/* Returns true when the checksum of the packet's IPv4 header is correct (RFC 791), or there is
 * none. */
bool pl_dp_ip_checksum_right(const struct pl_dp_packet *pkt);
