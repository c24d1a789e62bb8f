/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the headers that the packets share which a frame was joined of, or will be cut into. */
#include "tap/joined.h"

#include <string.h>

/* Returns the bytes of the transport header. TCP's first 20 bytes are present (PL_LAYERS_NO_L4 is
 * not set). */
static uint32_t header_of(const struct pl_layers *l)
{
	switch (l->flow.proto) {
	case PL_IP_TCP:
		return (uint32_t)(l->transport.pos[12] >> 4) * 4;
	case PL_IP_UDP:
		return 8;
	default:
		return (uint32_t)(l->payload.pos - l->transport.pos);
	}
}

/* Replaces *l by the layers inside the tunnel; false: there is no complete tunnel of a known
 * kind. */
static bool go_in(struct pl_layers *l, uint64_t vxlan_ports)
{
	struct pl_tunnel tunnel;
	struct pl_layers inner;

	if ((l->flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0 ||
		pl_tunnel_open(&tunnel, l, vxlan_ports) != PL_V_OK ||
		tunnel.kind == PL_TUNNEL_NONE || tunnel.inner_link == PL_LINK_UNKNOWN ||
		pl_layers_walk(&inner, tunnel.inner, tunnel.inner_link, true) != PL_V_OK)
		return false;
	*l = inner;
	return true;
}

bool pl_tap_joined_find(struct pl_tap_joined *ret, const struct pl_packet *pkt,
	const struct pl_layers *l, const struct pl_pkt96 *r, uint32_t length, uint64_t vxlan_ports)
{
	const uint8_t proto = pkt->gso == PL_GSO_TCP ? PL_IP_TCP : PL_IP_UDP;
	struct pl_layers level = *l;
	uint32_t headers = 0;
	unsigned int depth = 0;

	*ret = (struct pl_tap_joined){ .n = 1 };
	if (pkt->gso_size == 0 || (r->obs & PL_OBS_FRAGMENT) != 0 ||
		(l->flags & PL_LAYERS_NO_L4) != 0)
		return false;
	/* Takes the innermost header of the protocol: a tunnel over UDP may carry UDP. */
	do {
		if (level.flow.proto != proto ||
			(level.flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0)
			continue;
		headers = (uint32_t)(level.transport.pos - l->network) + header_of(&level);
		ret->tcp = depth == 0 && proto == PL_IP_TCP;
	} while (++depth <= PL_NESTING_MAX && go_in(&level, vxlan_ports));
	if (headers == 0 || headers > length)
		return false;
	ret->each = pkt->gso_size;
	ret->headers = headers;
	ret->own = (uint32_t)(l->transport.pos - l->network) + header_of(l);
	ret->payload = length - headers;
	ret->n = pl_tap_joined_packets(ret->payload, ret->each);
	ret->v4 = l->ip_version == 4;
	pl_tap_joined_keep(ret, r);
	return true;
}

/* Bytes behind the next header of an IPv6 Hop-by-Hop header of 8 bytes with a Jumbo Payload option
 * only (RFC 2675). */
static const uint8_t jumbo[] = { 0, 0xc2, 4 };

/* Returns the IP header's length field for a packet with this number of bytes from the IP header
 * on. */
static uint16_t length_field(bool v4, uint32_t bytes)
{
	if (!v4)
		bytes = bytes > 40 ? bytes - 40 : 0;
	return bytes < UINT16_MAX ? (uint16_t)bytes : UINT16_MAX;
}

bool pl_tap_head_find(struct pl_tap_head *ret, const struct pl_packet *pkt, const uint8_t *network)
{
	const uint32_t at = (uint32_t)(network - pkt->data);
	const bool v4 = network[0] >> 4 == 4;
	const uint32_t header = v4 ? 20 : 40, field = v4 ? 2 : 4;
	uint8_t *p = ret->bytes + at;
	uint16_t said, length;

	if (pkt->len < at + header || at + header + 8 > sizeof(ret->bytes))
		return false;
	said = pl_be16(network + field);
	if (said == length_field(v4, pkt->wire_len - at))
		return false;
	ret->packet = *pkt;
	if (pkt->len > sizeof(ret->bytes))
		ret->packet.len = sizeof(ret->bytes);
	memcpy(ret->bytes, pkt->data, ret->packet.len);
	ret->packet.data = ret->bytes;
	if (!v4 && said == 0 && p[6] == PL_IP_HOPOPTS && ret->packet.len >= at + 48 &&
		memcmp(p + 41, jumbo, sizeof(jumbo)) == 0) {
		p[6] = p[40];
		memmove(p + 40, p + 48, ret->packet.len - at - 48);
		ret->packet.len -= 8;
		ret->packet.wire_len -= 8;
	}
	length = length_field(v4, ret->packet.wire_len - at);
	p[field] = (uint8_t)(length >> 8);
	p[field + 1] = (uint8_t)length;
	return true;
}
