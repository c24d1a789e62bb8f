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

/* Accounts a TCP packet of direction `d` (0 or 1). */
void pl_flow_tcp_packet(struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet,
	struct pl_flow_counters *counters);
