/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP analytics of the flow cache: handshake times, round-trip times, retransmissions and what is
 * told from them, for a tap anywhere between the two ends. Only what the tap can vouch for is
 * measured: of fragments and truncated packets nothing but FIN and RST, of sampled ones the
 * handshake too.
 */
#pragma once

#include "flow/cache.h"
#include "flow/entry.h"

/* Whether the packet, of a flow's direction `d`, opens another connection on the same ports: a SYN
 * with a new initial sequence number after a FIN or RST. */
bool pl_flow_tcp_reuses(
	const struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet);

/* Whether a packet, of any protocol, is a segment whose sequence numbers are looked at: with bytes, SYN or FIN. */
bool pl_flow_tcp_is_segment(const struct pl_pkt96 *packet);

/* Direction `d` goes on at the place that is watched. What its packets said until now is known no more
 * but for flags and how many segments they were: what was awaited of either side is missed. */
void pl_flow_tcp_moved(struct pl_flow_entry *flow, const struct pl_flow_other *o, unsigned int d);

/* Packets of either direction may have passed that nobody saw: what was awaited is missed, and the next
 * segment begins anew. A second time it changes nothing. */
void pl_flow_tcp_lost_sight(struct pl_flow_entry *flow);

/* Accounts a TCP packet of direction `d` (0 or 1). */
void pl_flow_tcp_packet(struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet,
	struct pl_flow_counters *counters);
