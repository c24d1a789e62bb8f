/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP analytics of the flow cache: handshake times, round-trip times, retransmissions and their
 * causes, for a tap anywhere between the two ends. Only what the tap can vouch for is measured: of
 * fragments and truncated packets only FIN and RST, of sampled packets the handshake too. */
#pragma once

#include "flow/cache.h"
#include "flow/entry.h"

/* True when the packet, in direction `d` of the flow, opens another connection on the same ports:
 * it is a SYN with a new initial sequence number after a FIN or RST. */
bool pl_flow_tcp_reuses(
	const struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet);

/* True when the packet, of any protocol, is a segment whose sequence numbers count: one with bytes,
 * SYN or FIN. */
bool pl_flow_tcp_is_segment(const struct pl_pkt96 *packet);

/* Moves direction `d` to the watched place. Of the packets there only flags and the number of
 * segments are known: round-trip times that were awaited, of either side, count as missed. */
void pl_flow_tcp_moved(struct pl_flow_entry *flow, const struct pl_flow_other *o, unsigned int d);

/* Marks that packets of either direction may have passed unseen: pending round-trip times count as
 * missed, and the next segment begins a new measurement. A second call changes nothing. */
void pl_flow_tcp_lost_sight(struct pl_flow_entry *flow);

/* Accounts a TCP packet of direction `d` (0 or 1). */
void pl_flow_tcp_packet(struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet,
	struct pl_flow_counters *counters);
