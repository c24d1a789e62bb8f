/* SPDX-License-Identifier: BSD-2-Clause */
/* Quotes a packet as it was received, after actions have changed it. */
#pragma once

#include <string.h>

#include "dataplane/packet.h"
#include "wire/cursor.h"

/* Returns the length of the IP packet by its header, without link padding, at most the bytes that
 * there are. */
static inline uint32_t pl_dp_ip_bytes(const struct pl_dp_packet *pkt)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;
	const uint32_t bytes = pkt->headers.ip_version == 4 ? pl_be16(ip + 2)
							    : 40u + pl_be16(ip + 4),
		       there = pkt->len - pkt->headers.l3;

	return bytes < there ? bytes : there;
}

/* Saves the first bytes of an IP packet on arrival. */
static inline void pl_dp_quote_save(struct pl_dp_packet *pkt)
{
	pkt->came_bytes = pl_dp_ip_bytes(pkt);
	pkt->came_saved =
		(uint8_t)(pkt->came_bytes < PL_DP_CAME_MAX ? pkt->came_bytes : PL_DP_CAME_MAX);
	memcpy(pkt->came, pkt->data + pkt->headers.l3, pkt->came_saved);
}

/* Quotes the packet as received (RFC 792, RFC 1812 4.3.2.3, RFC 4443 2.4c), without bytes that
 * actions inserted; of a packet that became shorter, only the saved bytes. Returns the number of
 * bytes, up to `max`; those behind `came` are at *ret_rest. */
static inline uint32_t pl_dp_quote(
	const struct pl_dp_packet *pkt, uint32_t max, const uint8_t **ret_rest)
{
	const uint32_t now = pl_dp_ip_bytes(pkt);
	uint32_t bytes = pkt->came_bytes < max ? pkt->came_bytes : max;

	*ret_rest = pkt->data + pkt->headers.l3;
	if (now < pkt->came_bytes)
		return bytes < pkt->came_saved ? bytes : pkt->came_saved;
	*ret_rest += now - (pkt->came_bytes - pkt->came_saved);
	return bytes;
}
