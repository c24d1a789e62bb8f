/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 through a UDP socket, for who has no right to frames: what pl_nic is for udp://HOST. Datagrams become packets with
 * the IP and UDP headers that they must have had, and frames of an engine become datagrams. A socket tells everything
 * of these headers that the ICRC covers but IPv4's identification and whether fragments were allowed:
 *
 *   Sent, both are known: fragments are forbidden, and the identification is 0, as Linux has it for sockets that are not
 *   connected (RFC 6864, 4.1, leaves it free there). The ICRC is made for that.
 *   Received, they are found from the ICRC itself: one value of the 32 bits explains any ICRC, and one in 2^15
 *   values is plausible. So a damaged IPv4 packet is taken for a whole one with a chance of 2^-15, where the link's
 *   own checks have missed it; with IPv6 of 2^-32 as anywhere.
 *
 * Times to live, types of service and Ethernet addresses are not told: packets have 0, 0 and none.
 */
#pragma once

#include "base/addr.h"
#include "base/diag.h"
#include "netio/port.h"

struct pl_udp_card;

/* uri: "udp://HOST" or "udp://HOST:4791", an address of this host, with the keys of netio/port.h. -EINVAL or as pl_port_open,
 * with diag. */
int pl_udp_card_open(struct pl_udp_card **ret, const char *uri, struct pl_diag *diag);
void pl_udp_card_close(struct pl_udp_card *card); /* NULL is fine */

struct pl_port *pl_udp_card_port(const struct pl_udp_card *card);
const struct pl_addr *pl_udp_card_address(const struct pl_udp_card *card);

/* As pl_port_recv, but packets (PL_LINK_RAW_IP) are the card's until the next call: there is nothing to release. */
int pl_udp_card_recv(
	struct pl_udp_card *card, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag);

/* Sends frames (PL_LINK_ETHERNET, RoCEv2, no tag), whose bytes it may change. How many were taken; -errno with diag when none was. */
int pl_udp_card_send(struct pl_udp_card *card, struct pl_batch *frames, struct pl_diag *diag);
