/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that a node has at its ports, and what it says for itself. It answers ARP (RFC 826) and
 * neighbour solicitations (RFC 4861 7.2.4) for the addresses of the port that was asked, and echo
 * requests (RFC 792, RFC 4443 4) for all of its addresses; it tells the senders of packets that it
 * drops for their TTL, for their length, for want of a route or of a listener (RFC 1812 4.3, RFC 4443
 * 3), as often as the port at which they came in allows.
 *
 * Whatever it says leaves by the port and in the VLAN in which the packet came in, to the station that
 * handed that over: the node looks up no route and no neighbour. Errors have the port's address for a source,
 * else another one of the node. Fragments, and packets with IPv4 options or IPv6 extension headers,
 * for the node itself are dropped.
 *
 * Counters of the pipeline, as far as packets are answered: own.arp, own.nd, own.echo,
 * own.time_exceeded, own.too_big, own.unreachable; as far as there is no error where one was due:
 * own.held (by the port's rate), own.refused (the RFCs forbid it), own.no_address, own.no_packet.
 */
#pragma once

#include "dataplane/extern.h"

#define PL_DP_ADDRESSES_MAX 8 /* of a port */
#define PL_DP_ICMP_USUAL    100

struct pl_dp_own;
struct pl_diag;

/* Of a node with ports and without addresses. -EINVAL with diag, -ENOMEM. */
int pl_dp_own_new(struct pl_dp_own **ret, struct pl_dp_pipeline *p, struct pl_diag *diag);
void pl_dp_own_free(struct pl_dp_own *own);
/* -EINVAL with diag: not an address of a host, or the port has too many. */
int pl_dp_own_add(
	struct pl_dp_own *own, unsigned int port, const char *address, struct pl_diag *diag);
/* ICMP errors per second for packets that came in by this port; 0: none. */
void pl_dp_own_rate(struct pl_dp_own *own, unsigned int port, uint32_t per_second);

enum pl_dp_own_end {
	PL_DP_OWN_NOT,      /* the packet is for others */
	PL_DP_OWN_ANSWERED, /* the caller books it as consumed, and frees it */
	PL_DP_OWN_DROPPED,  /* pkt->drop is set */
};

/* A parsed packet, before the tables. Sets from_mac. */
enum pl_dp_own_end pl_dp_own_take(
	struct pl_dp_own *own, struct pl_dp_packet *pkt, const struct pl_dp_call *call);
/* A packet that is going to be freed, pkt->drop says why. */
void pl_dp_own_dropped(
	struct pl_dp_own *own, const struct pl_dp_packet *pkt, const struct pl_dp_call *call);
