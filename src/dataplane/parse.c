/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the headers of a packet, and hashes its flow. */
#include "dataplane/parse.h"

#include "dataplane/field.h"
#include "record/flow_hash.h"
#include "wire/layers.h"

#define ETHERNET 14
#define TAG      4

static bool malformed(struct pl_dp_packet *pkt)
{
	pkt->drop = PL_DP_DROP_MALFORMED;
	return false;
}

/* ---- the flow ---- */

static uint32_t hash_of_macs(const struct pl_dp_packet *pkt)
{
	const uint64_t sum = pl_dp_mac_get(pkt->data) + pl_dp_mac_get(pkt->data + 6);

	return (uint32_t)pl_hash_mix(sum, pkt->headers.ethertype);
}

uint32_t pl_dp_flow_hash(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *ip;
	uint32_t ports = 0;
	struct pl_addr src, dst;

	if (h->ip_version == 0)
		return hash_of_macs(pkt);
	ip = pkt->data + h->l3;
	src = h->ip_version == 4 ? pl_addr_v4(ip + 12) : pl_addr_v6(ip + 8);
	dst = h->ip_version == 4 ? pl_addr_v4(ip + 16) : pl_addr_v6(ip + 24);
	if (!h->fragment && h->l4 != PL_DP_NONE && (h->proto == PL_IP_TCP || h->proto == PL_IP_UDP))
		ports = pl_be32(pkt->data + h->l4);
	return (uint32_t)pl_flow_hash(
		&src, &dst, (uint16_t)(ports >> 16), (uint16_t)ports, h->proto);
}

/* ---- every packet ---- */

/* Parses Ethernet and all VLAN tags; the cursor moves behind them. */
static bool read_link(struct pl_dp_packet *pkt, struct pl_cursor *c)
{
	struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *p = pl_cursor_take(c, ETHERNET);

	if (p == NULL)
		return false;
	h->ethertype = pl_be16(p + 12);
	for (unsigned int i = 0; pl_eth_is_tag(h->ethertype); i++) {
		p = pl_cursor_take(c, TAG);
		if (p == NULL || i == PL_VLANS_MAX)
			return false;
		if (i == 0)
			h->vlan = ETHERNET - 2;
		h->ethertype = pl_be16(p + 2);
	}
	return true;
}

/* Returns true when the extension headers include a fragment header, also of a first fragment. */
static bool has_fragment_header(struct pl_cursor ip)
{
	const uint8_t *p = pl_cursor_take(&ip, 40);
	uint8_t type = p != NULL ? p[6] : PL_IP_NONE;

	for (unsigned int i = 0; i < PL_IP6_EXT_MAX; i++) {
		if (type == PL_IP_FRAGMENT)
			return true;
		if (type != PL_IP_HOPOPTS && type != PL_IP_ROUTING && type != PL_IP_DSTOPTS &&
			type != PL_IP_AH)
			return false;
		p = pl_cursor_peek(&ip, 2);
		if (p == NULL)
			return false;
		if (pl_cursor_take(&ip, type == PL_IP_AH ? (p[1] + 2u) * 4 : (p[1] + 1u) * 8) ==
			NULL)
			return false;
		type = p[0];
	}
	return false;
}

static bool read_ip(struct pl_dp_packet *pkt, struct pl_cursor ip)
{
	struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *p = pl_cursor_peek(&ip, 8);
	struct pl_layers l;

	if (p == NULL || p[0] >> 4 != (h->ethertype == PL_ETH_IPV4 ? 4 : 6))
		return false;
	if (pl_layers_walk(&l, ip, PL_LINK_RAW_IP, false) != PL_V_OK)
		return false;
	/* In a first fragment the transport header's length may exceed the packet; the IP header's
	 * may not. */
	if (pl_cursor_left(&ip) <
		(l.ip_version == 4 ? pl_be16(p + 2) : (size_t)pl_be16(p + 4) + 40))
		return false;
	h->ip_version = l.ip_version;
	h->proto = l.flow.proto;
	h->l3 = (uint16_t)(l.network - pkt->data);
	h->fragment = l.ip_version == 4 ? (pl_be16(p + 6) & 0x3fff) != 0 : has_fragment_header(ip);
	if ((l.flags & PL_LAYERS_FRAGMENT) == 0 && h->proto != PL_IP_NONE) {
		h->l4 = (uint16_t)(l.transport.pos - pkt->data);
		if (h->proto == PL_IP_TCP || h->proto == PL_IP_UDP)
			h->payload = (uint16_t)(l.payload.pos - pkt->data);
	}
	return true;
}

bool pl_dp_parse_any(struct pl_dp_packet *pkt)
{
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);

	pkt->headers = (struct pl_dp_headers){
		.vlan = PL_DP_NONE, .l3 = PL_DP_NONE, .l4 = PL_DP_NONE, .payload = PL_DP_NONE
	};
	if (pkt->len >= PL_DP_NONE || !read_link(pkt, &c))
		return malformed(pkt);
	if (pkt->headers.ethertype != PL_ETH_IPV4 && pkt->headers.ethertype != PL_ETH_IPV6)
		return true;
	return read_ip(pkt, c) || malformed(pkt);
}

/* ---- the usual packet ---- */

/* Returns the length of a complete transport header inside the packet; 0: leave the packet to the
 * slow path. */
static uint32_t usual_transport(uint8_t proto, const struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_peek(c, proto == PL_IP_TCP ? 20 : 8);
	uint32_t bytes;

	if (p == NULL || (proto != PL_IP_TCP && proto != PL_IP_UDP))
		return 0;
	if (proto == PL_IP_UDP) {
		bytes = pl_be16(p + 4);
		return bytes >= 8 && bytes <= pl_cursor_left(c) ? 8 : 0;
	}
	bytes = (uint32_t)(p[12] >> 4) * 4;
	return bytes >= 20 && bytes <= pl_cursor_left(c) ? bytes : 0;
}

/* Parses a whole TCP or UDP packet without tags, IP options, extension headers and fragments.
 * False: another packet, or malformed; the headers are not set. */
static bool read_usual(struct pl_dp_packet *pkt)
{
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	const uint8_t *eth = pl_cursor_take(&c, ETHERNET), *ip = pl_cursor_peek(&c, 20);
	const uint16_t type = eth != NULL ? pl_be16(eth + 12) : 0;
	const uint32_t header = type == PL_ETH_IPV4 ? 20 : 40;
	uint32_t bytes, transport;
	uint8_t proto;

	if (ip == NULL || pkt->len >= PL_DP_NONE)
		return false;
	if (type == PL_ETH_IPV4 && ip[0] == 0x45 && (pl_be16(ip + 6) & 0x3fff) == 0) {
		bytes = pl_be16(ip + 2);
		proto = ip[9];
	} else if (type == PL_ETH_IPV6 && ip[0] >> 4 == 6) {
		bytes = header + pl_be16(ip + 4);
		proto = ip[6];
	} else {
		return false;
	}
	if (!pl_cursor_trim(&c, bytes) || pl_cursor_take(&c, header) == NULL)
		return false;
	transport = usual_transport(proto, &c);
	if (transport == 0)
		return false;
	pkt->headers = (struct pl_dp_headers){ .vlan = PL_DP_NONE,
		.l3 = ETHERNET,
		.l4 = (uint16_t)(ETHERNET + header),
		.payload = (uint16_t)(ETHERNET + header + transport),
		.ethertype = type,
		.ip_version = type == PL_ETH_IPV4 ? 4 : 6,
		.proto = proto };
	return true;
}

bool pl_dp_parse(struct pl_dp_packet *pkt)
{
	return read_usual(pkt) || pl_dp_parse_any(pkt);
}

bool pl_dp_ip_checksum_right(const struct pl_dp_packet *pkt)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	return pkt->headers.ip_version != 4 ||
	       pl_checksum_fold(pl_checksum_add(0, ip, (size_t)(ip[0] & 15) * 4)) == 0;
}
