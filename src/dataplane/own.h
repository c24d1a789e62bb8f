/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of a node's ports, and the packets that the node sends itself. It answers ARP (RFC 826)
 * and neighbour solicitations (RFC 4861 7.2.4) for the addresses of the receiving port, and echo
 * requests (RFC 792, RFC 4443 4) for all of its addresses. It sends ICMP errors for packets dropped
 * for TTL, MTU, a missing route or an unreachable port (RFC 1812 4.3, RFC 4443 3), at the rate that
 * the receiving port allows.
 *
 * All of these leave by the port and in the VLAN of the received packet, to the MAC address that
 * sent it: the node looks up no route and no neighbour. Errors have the port's address as source,
 * else another one of the node. Fragments, and packets with IPv4 options or IPv6 extension headers,
 * for the node itself are dropped.
 *
 * Counters of the pipeline for packets sent: own.arp, own.nd, own.echo, own.time_exceeded,
 * own.too_big, own.unreachable; for errors not sent: own.held (port's rate), own.refused (the RFCs
 * forbid it), own.no_address, own.no_packet.
 */
#pragma once

#include "dataplane/extern.h"

#define PL_DP_ADDRESSES_MAX 8 /* for each port */
#define PL_DP_ICMP_USUAL    100

struct pl_dp_own;
struct pl_diag;

/* Creates the state of a node, without addresses at first. -EINVAL with diag, -ENOMEM. */
int pl_dp_own_new(struct pl_dp_own **ret, struct pl_dp_pipeline *p, struct pl_diag *diag);
void pl_dp_own_free(struct pl_dp_own *own);
/* Adds an address to a port. -EINVAL with diag: not a host's address, or the port has too many. */
int pl_dp_own_add(
	struct pl_dp_own *own, unsigned int port, const char *address, struct pl_diag *diag);
/* Sets the rate of ICMP errors for packets received by this port; 0: none. */
void pl_dp_own_rate(struct pl_dp_own *own, unsigned int port, uint32_t per_second);

enum pl_dp_own_end {
	PL_DP_OWN_NOT,      /* the packet is not for the node */
	PL_DP_OWN_ANSWERED, /* the caller counts it as consumed, and frees it */
	PL_DP_OWN_DROPPED,  /* pkt->drop is set */
};

/* Handles a parsed packet before the tables. Sets from_mac. */
enum pl_dp_own_end pl_dp_own_take(
	struct pl_dp_own *own, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
/* Sends an ICMP error for a packet that is about to be freed, if its pkt->drop calls for one. */
void pl_dp_own_dropped(
	struct pl_dp_own *own, const struct pl_dp_packet *pkt, const struct pl_dp_call *call);
