/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes header fields and updates checksums. */
#include "dataplane/rewrite.h"

#include <string.h>

#include "wire/cursor.h"
#include "wire/layers.h"

#define UDP_LITE     136
#define DCCP         33
#define TAGS_AT      12
/* Options of IPv4 (RFC 791 3.1) */
#define LOOSE_ROUTE  131
#define STRICT_ROUTE 137

bool pl_dp_field_is_written(enum pl_dp_field field)
{
	switch (field) {
	case PL_DP_FIELD_ETH_DST:
	case PL_DP_FIELD_ETH_SRC:
	case PL_DP_FIELD_VLAN_ID:
	case PL_DP_FIELD_VLAN_PCP:
	case PL_DP_FIELD_IP_SRC:
	case PL_DP_FIELD_IP_DST:
	case PL_DP_FIELD_IP_DSCP:
	case PL_DP_FIELD_IP_ECN:
	case PL_DP_FIELD_IP_TTL:
	case PL_DP_FIELD_IP_RESERVED:
	case PL_DP_FIELD_L4_SRC:
	case PL_DP_FIELD_L4_DST:
	case PL_DP_FIELD_VALUE:
		return true;
	default:
		return false;
	}
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* ---- checksums ---- */

/* Returns the transport's checksum field; NULL: the packet has none, or is cut before it. */
static uint8_t *transport_sum(struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	uint32_t at;

	if (h->l4 == PL_DP_NONE)
		return NULL;
	switch (h->proto) {
	case PL_IP_TCP:
		at = h->l4 + 16u;
		break;
	case PL_IP_UDP:
	case UDP_LITE:
	case DCCP:
		at = h->l4 + 6u;
		break;
	case PL_IP_ICMPV6:
		if (h->ip_version != 6)
			return NULL;
		at = h->l4 + 2u;
		break;
	default:
		return NULL;
	}
	if (at + 2 > pkt->len || (h->proto == PL_IP_UDP && pl_be16(pkt->data + at) == 0))
		return NULL;
	return pkt->data + at;
}

/* Returns the checksum after one word changed (RFC 1624, equation 3). */
static uint16_t sum_without(uint16_t sum, uint16_t was, uint16_t is)
{
	uint32_t s = (uint16_t)~sum + (uint32_t)(uint16_t)~was + is;

	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static void follow(uint8_t *sum, const uint8_t *was, const uint8_t *is, unsigned int bytes)
{
	uint16_t s = pl_be16(sum);

	for (unsigned int i = 0; i < bytes; i += 2)
		s = sum_without(s, pl_be16(was + i), pl_be16(is + i));
	put16(sum, s);
}

static void follow_transport(
	struct pl_dp_packet *pkt, const uint8_t *was, const uint8_t *is, unsigned int bytes)
{
	uint8_t *sum = transport_sum(pkt);

	if (sum == NULL)
		return;
	follow(sum, was, is, bytes);
	if (pkt->headers.proto == PL_IP_UDP && pl_be16(sum) == 0)
		put16(sum, 0xffff);
}

/* Sets the word at `at` of the IP header and updates the IPv4 checksum; IPv6 has none. */
static void set_ip_word(struct pl_dp_packet *pkt, unsigned int at, uint16_t value)
{
	uint8_t *ip = pkt->data + pkt->headers.l3;
	const uint16_t was = pl_be16(ip + at);

	put16(ip + at, value);
	if (pkt->headers.ip_version == 4)
		put16(ip + 10, sum_without(pl_be16(ip + 10), was, value));
}

/* ---- source routes ---- */

/* Walks the IPv4 options. */
static bool options_route_on(struct pl_cursor options)
{
	const uint8_t *p;

	while ((p = pl_cursor_peek(&options, 1)) != NULL && p[0] != 0) {
		uint8_t n = 1;

		if (p[0] != 1) {
			p = pl_cursor_peek(&options, 3);
			if (p == NULL || p[1] < 2)
				return false;
			/* Behind its last address the pointer is greater than the length. */
			if ((p[0] == LOOSE_ROUTE || p[0] == STRICT_ROUTE) && p[1] > 2)
				return p[2] <= p[1];
			n = p[1];
		}
		pl_cursor_skip(&options, n);
	}
	return false;
}

/* Walks the IPv6 extension headers, the first of which has the type. */
static bool headers_route_on(struct pl_cursor headers, uint8_t type)
{
	const uint8_t *p;

	while ((p = pl_cursor_peek(&headers, 8)) != NULL) {
		if (type == PL_IP_ROUTING && p[3] != 0)
			return true;
		pl_cursor_skip(&headers, type == PL_IP_FRAGMENT ? 8
					 : type == PL_IP_AH     ? (p[1] + 2u) * 4
								: (p[1] + 1u) * 8);
		type = p[0];
	}
	return false;
}

/* Returns true when the destination is a hop of a source route that goes on: checksums of
 * transports cover the last one (RFC 8200 8.1; hosts do so with the routes of IPv4, too). */
static bool routes_on(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *ip = pkt->data + h->l3;
	const uint32_t fixed = h->ip_version == 4 ? 20 : 40;

	if (h->l4 == PL_DP_NONE || h->l4 <= h->l3 + fixed)
		return false;
	if (h->ip_version == 4)
		return options_route_on(pl_cursor(ip + 20, h->l4 - h->l3 - 20u));
	return headers_route_on(pl_cursor(ip + 40, h->l4 - h->l3 - 40u), ip[6]);
}

/* ---- fields ---- */

static void set_address(struct pl_dp_packet *pkt, bool dst, const uint64_t value[2])
{
	const bool v4 = value[0] == 0 && value[1] >> 32 == 0xffff;
	uint8_t *ip = pkt->data + pkt->headers.l3, *at, was[16], is[16];
	unsigned int bytes = v4 ? 4 : 16;

	if (pkt->headers.ip_version != (v4 ? 4 : 6))
		return;
	for (unsigned int i = 0; i < 16; i++)
		is[i] = (uint8_t)(value[i / 8] >> (56 - i % 8 * 8));
	if (v4)
		memmove(is, is + 12, 4);
	at = ip + (v4 ? (dst ? 16 : 12) : (dst ? 24 : 8));
	memcpy(was, at, bytes);
	memcpy(at, is, bytes);
	if (v4)
		follow(ip + 10, was, is, bytes);
	if (!dst || !routes_on(pkt))
		follow_transport(pkt, was, is, bytes);
}

/* Sets bits of the traffic class (DSCP and ECN). */
static void set_class(struct pl_dp_packet *pkt, uint8_t mask, uint8_t bits)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	if (pkt->headers.ip_version == 4)
		set_ip_word(pkt, 0,
			(uint16_t)((pl_be16(ip) & 0xff00) | (ip[1] & (uint8_t)~mask) | bits));
	else if (pkt->headers.ip_version == 6)
		set_ip_word(pkt, 0, (uint16_t)((pl_be16(ip) & ~(mask << 4)) | bits << 4));
}

static void set_reserved(struct pl_dp_packet *pkt, bool set)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	if (pkt->headers.ip_version == 4)
		set_ip_word(pkt, 6, (uint16_t)((pl_be16(ip + 6) & 0x7fff) | (set ? 0x8000 : 0)));
}

static void set_ttl(struct pl_dp_packet *pkt, uint8_t ttl)
{
	const uint8_t *ip = pkt->data + pkt->headers.l3;

	if (pkt->headers.ip_version == 4)
		set_ip_word(pkt, 8, (uint16_t)(ttl << 8 | ip[9]));
	else if (pkt->headers.ip_version == 6)
		set_ip_word(pkt, 6, (uint16_t)(ip[6] << 8 | ttl));
}

static void set_port(struct pl_dp_packet *pkt, unsigned int at, uint16_t port)
{
	const struct pl_dp_headers *h = &pkt->headers;
	uint8_t was[2], is[2];

	if (h->l4 == PL_DP_NONE || (h->proto != PL_IP_TCP && h->proto != PL_IP_UDP))
		return;
	memcpy(was, pkt->data + h->l4 + at, 2);
	put16(is, port);
	memcpy(pkt->data + h->l4 + at, is, 2);
	follow_transport(pkt, was, is, 2);
}

static void set_tag(struct pl_dp_packet *pkt, uint16_t mask, uint16_t bits)
{
	uint8_t *tci = pkt->data + pkt->headers.vlan + 2;

	if (pkt->headers.vlan != PL_DP_NONE)
		put16(tci, (uint16_t)((pl_be16(tci) & (uint16_t)~mask) | bits));
}

void pl_dp_field_write(struct pl_dp_packet *pkt, enum pl_dp_field field, const uint64_t value[2])
{
	switch (field) {
	case PL_DP_FIELD_ETH_DST:
		pl_dp_mac_set(pkt->data, value[0]);
		break;
	case PL_DP_FIELD_ETH_SRC:
		pl_dp_mac_set(pkt->data + 6, value[0]);
		break;
	case PL_DP_FIELD_VLAN_ID:
		set_tag(pkt, 0xfff, (uint16_t)value[0]);
		break;
	case PL_DP_FIELD_VLAN_PCP:
		set_tag(pkt, 0xe000, (uint16_t)(value[0] << 13));
		break;
	case PL_DP_FIELD_IP_SRC:
		set_address(pkt, false, value);
		break;
	case PL_DP_FIELD_IP_DST:
		set_address(pkt, true, value);
		break;
	case PL_DP_FIELD_IP_DSCP:
		set_class(pkt, 0xfc, (uint8_t)(value[0] << 2));
		break;
	case PL_DP_FIELD_IP_ECN:
		set_class(pkt, 0x03, (uint8_t)value[0]);
		break;
	case PL_DP_FIELD_IP_TTL:
		set_ttl(pkt, (uint8_t)value[0]);
		break;
	case PL_DP_FIELD_IP_RESERVED:
		set_reserved(pkt, (value[0] & 1) != 0);
		break;
	case PL_DP_FIELD_L4_SRC:
		set_port(pkt, 0, (uint16_t)value[0]);
		break;
	case PL_DP_FIELD_L4_DST:
		set_port(pkt, 2, (uint16_t)value[0]);
		break;
	case PL_DP_FIELD_VALUE:
		pkt->value = value[0];
		break;
	default:
		break;
	}
}

bool pl_dp_ttl_take(struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	uint8_t ttl;

	if (h->ip_version == 0)
		return true;
	ttl = pkt->data[h->l3 + (h->ip_version == 4 ? 8u : 7u)];
	if (ttl <= 1)
		return false;
	set_ttl(pkt, (uint8_t)(ttl - 1));
	return true;
}

/* ---- tags ---- */

int pl_dp_vlan_push(struct pl_dp_packet *pkt, uint16_t type, uint16_t id)
{
	int r = pl_dp_packet_insert(pkt, TAGS_AT, 4);

	if (r < 0)
		return r;
	put16(pkt->data + TAGS_AT, type);
	put16(pkt->data + TAGS_AT + 2, id);
	pkt->headers.vlan = TAGS_AT;
	return 0;
}

void pl_dp_vlan_pop(struct pl_dp_packet *pkt)
{
	uint16_t type;

	if (pkt->headers.vlan == PL_DP_NONE || pl_dp_packet_remove(pkt, TAGS_AT, 4) < 0)
		return;
	type = pl_be16(pkt->data + TAGS_AT);
	pkt->headers.vlan = pl_eth_is_tag(type) ? TAGS_AT : PL_DP_NONE;
}
