/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser: where the headers of a packet are, and the hash of its flow. */
#pragma once

#include "dataplane/packet.h"

/*
 * Sets the headers of a packet that begins with an Ethernet header. False, with drop set to
 * PL_DP_DROP_MALFORMED: a header is not whole or announces more than there is (wire/layers.h walks
 * IP and what is behind it). Tags: at most 4, 802.1Q or 802.1ad (IEEE 802.1Q-2018, 9.5). Neither IPv4
 * nor IPv6 is no fault: such a packet has Ethernet fields only.
 */
bool pl_dp_parse(struct pl_dp_packet *pkt);
/* The same, without its fast path for the usual packet. */
bool pl_dp_parse_any(struct pl_dp_packet *pkt);

/* Of a parsed packet: symmetric, of addresses, protocol and ports; of Ethernet addresses where there
 * is no IP. Fragments of a packet have one hash, without ports, because later ones have none. */
uint32_t pl_dp_flow_hash(const struct pl_dp_packet *pkt);

/* Whether the checksum of the packet's IPv4 header is right (RFC 791); true without one. */
bool pl_dp_ip_checksum_right(const struct pl_dp_packet *pkt);
