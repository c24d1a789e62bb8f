/* SPDX-License-Identifier: BSD-2-Clause */
/* Edits packets and updates their lengths and checksums by the difference (RFC 1624). */
#include "dataplane/edit.h"

#include <errno.h>
#include <string.h>

#include "wire/cursor.h"
#include "wire/layers.h"

#define IP_BYTES_MAX 65535u

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* Returns the folded sum of an even number of bytes. */
static uint16_t sum_of(const void *bytes, uint32_t n)
{
	return (uint16_t)~pl_checksum_fold(pl_checksum_add(0, bytes, n));
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Returns the transport's checksum field; valid only when `summed`. */
static uint8_t *checksum(const struct pl_dp_edit *e)
{
	return e->pkt->data + e->l4 + (e->proto == PL_IP_UDP ? 6 : 16);
}

enum pl_dp_edit_fault pl_dp_edit_open(struct pl_dp_edit *ret, struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	uint32_t min = h->ip_version == 6 ? 40 : 20, l4_min, bytes, there;
	const uint8_t *ip;

	if (h->l3 == PL_DP_NONE || (h->ip_version != 4 && h->ip_version != 6))
		return PL_DP_EDIT_NOT_IP;
	if (h->fragment)
		return PL_DP_EDIT_FRAGMENT;
	if (h->l4 == PL_DP_NONE ||
		(h->proto != PL_IP_UDP && h->proto != PL_IP_TCP && h->proto != PL_IP_GRE))
		return PL_DP_EDIT_NO_L4;
	l4_min = h->proto == PL_IP_TCP ? 20 : h->proto == PL_IP_UDP ? 8 : 4;
	if (h->l4 < h->l3 + min || pkt->len < h->l4 + l4_min)
		return PL_DP_EDIT_MALFORMED;
	ip = pkt->data + h->l3;
	there = pkt->len - h->l3;
	bytes = h->ip_version == 4 ? pl_be16(ip + 2) : 40u + pl_be16(ip + 4);
	if (bytes > there || bytes < h->l4 - h->l3 + l4_min)
		return PL_DP_EDIT_MALFORMED;
	*ret = (struct pl_dp_edit){
		.pkt = pkt,
		.l3 = h->l3,
		.l4 = h->l4,
		.payload = h->l4 + l4_min,
		.end = h->l3 + bytes,
		.ip_bytes = bytes,
		.ip_version = h->ip_version,
		.proto = h->proto,
		.summed = h->proto != PL_IP_GRE,
	};
	if (h->proto == PL_IP_UDP) {
		uint32_t udp = pl_be16(pkt->data + h->l4 + 4);

		if (udp < 8 || udp > bytes - (h->l4 - h->l3))
			return PL_DP_EDIT_MALFORMED;
		ret->end = h->l4 + udp;
		ret->summed = pl_be16(checksum(ret)) != 0;
	} else if (h->proto == PL_IP_TCP) {
		uint32_t header = (uint32_t)(pkt->data[h->l4 + 12] >> 4) * 4;

		if (header < 20 || header > bytes - (h->l4 - h->l3))
			return PL_DP_EDIT_MALFORMED;
		ret->payload = h->l4 + header;
	}
	return PL_DP_EDIT_OK;
}

int pl_dp_edit_insert(struct pl_dp_edit *e, uint32_t at, const void *bytes, uint32_t n)
{
	if (at < e->l4 || e->ip_bytes + (uint32_t)e->grown + n > IP_BYTES_MAX)
		return -ENOBUFS;
	if (pl_dp_packet_insert(e->pkt, at, n) < 0)
		return -ENOBUFS;
	memcpy(e->pkt->data + at, bytes, n);
	e->sum += sum_of(bytes, n);
	e->grown += (int32_t)n;
	return 0;
}

int pl_dp_edit_remove(struct pl_dp_edit *e, uint32_t at, uint32_t n)
{
	uint16_t sum;

	if (at < e->l4 || at > e->pkt->len || n > e->pkt->len - at)
		return -EINVAL;
	sum = sum_of(e->pkt->data + at, n);
	if (pl_dp_packet_remove(e->pkt, at, n) < 0)
		return -EINVAL;
	e->sum += (uint16_t)~sum;
	e->grown -= (int32_t)n;
	return 0;
}

void pl_dp_edit_put16(struct pl_dp_edit *e, uint32_t at, uint16_t v)
{
	uint8_t *p = e->pkt->data + at;

	if (at < e->l4 || at + 2 > e->pkt->len)
		return;
	e->sum += (uint16_t)~pl_be16(p);
	e->sum += v;
	put16(p, v);
}

void pl_dp_edit_put8(struct pl_dp_edit *e, uint32_t at, uint8_t v)
{
	uint32_t word = at - ((at - e->l4) & 1);
	const uint8_t *p = e->pkt->data + word;

	if (at < e->l4 || word + 2 > e->pkt->len)
		return;
	pl_dp_edit_put16(
		e, word, word == at ? (uint16_t)(v << 8 | p[1]) : (uint16_t)(p[0] << 8 | v));
}

uint8_t pl_dp_edit_dscp(const struct pl_dp_edit *e)
{
	const uint8_t *ip = e->pkt->data + e->l3;

	return e->ip_version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] & 0xf) << 2 | ip[1] >> 6);
}

void pl_dp_edit_put_dscp(struct pl_dp_edit *e, uint8_t dscp)
{
	uint8_t *ip = e->pkt->data + e->l3;

	dscp &= 0x3f;
	if (e->ip_version == 6) {
		/* Version:4 | traffic class:8 | flow label:20; no checksum covers them */
		ip[0] = (uint8_t)((ip[0] & 0xf0) | dscp >> 2);
		ip[1] = (uint8_t)((dscp & 3) << 6 | (ip[1] & 0x3f));
		return;
	}
	e->ip_sum += (uint16_t)~pl_be16(ip);
	ip[1] = (uint8_t)(dscp << 2 | (ip[1] & 3));
	e->ip_sum += pl_be16(ip);
}

void pl_dp_edit_put_proto(struct pl_dp_edit *e, uint8_t proto)
{
	uint8_t *ip = e->pkt->data + e->l3, *next = ip + 6;
	uint32_t at = 40, l4 = e->l4 - e->l3;

	e->summed = false;
	e->proto = 0;
	if (e->ip_version == 4) {
		e->ip_sum += (uint16_t)~pl_be16(ip + 8);
		ip[9] = proto;
		e->ip_sum += pl_be16(ip + 8);
		return;
	}
	/* The last extension header names the protocol. Lengths are in units of 8 bytes, that of
	 * the authentication header of 4 (RFC 8200 4, RFC 4302 2.2). */
	while (at + 8 <= l4) {
		uint32_t bytes = *next == PL_IP_AH         ? 4u * (ip[at + 1] + 2u)
				 : *next == PL_IP_FRAGMENT ? 8u
							   : 8u * (ip[at + 1] + 1u);

		next = ip + at;
		at += bytes;
	}
	*next = proto;
}

/* Returns what a growth adds to the checksummed sum: the length is in the pseudo-header, and for
 * UDP in the header too. */
static uint32_t length_gain(const struct pl_dp_edit *e, int32_t grown)
{
	uint32_t once = grown >= 0 ? (uint32_t)grown & 0xffff : (uint16_t) ~(uint32_t)-grown;

	return e->proto == PL_IP_UDP ? 2 * once : once;
}

uint16_t pl_dp_edit_gain(const struct pl_dp_edit *e, uint32_t grow)
{
	return fold(e->sum + length_gain(e, e->grown + (int32_t)grow));
}

/* HC' = ~(~HC + gain) (RFC 1624, equation 3). */
static uint16_t updated(uint16_t old, uint32_t gain)
{
	return (uint16_t)~fold((uint16_t)~old + gain);
}

void pl_dp_edit_close(struct pl_dp_edit *e)
{
	uint8_t *ip = e->pkt->data + e->l3, *l4 = e->pkt->data + e->l4;

	if (e->grown != 0) {
		uint8_t *length = ip + (e->ip_version == 4 ? 2 : 4);
		uint16_t old = pl_be16(length), new = (uint16_t)(old + e->grown);

		put16(length, new);
		e->ip_sum += (uint16_t)~old;
		e->ip_sum += new;
		if (e->proto == PL_IP_UDP)
			put16(l4 + 4, (uint16_t)(pl_be16(l4 + 4) + e->grown));
	}
	if (e->ip_version == 4 && e->ip_sum != 0)
		put16(ip + 10, updated(pl_be16(ip + 10), e->ip_sum));
	if (e->summed && (e->sum != 0 || e->grown != 0)) {
		uint16_t gain = pl_dp_edit_gain(e, 0), v;

		/* A gain of 0 or 0xffff changes nothing: the packet keeps its checksum as
		 * written. */
		if (gain != 0 && gain != 0xffff) {
			v = updated(pl_be16(checksum(e)), gain);
			put16(checksum(e), v == 0 && e->proto == PL_IP_UDP ? 0xffff : v);
		}
	}
}

void pl_dp_edit_keep_places(const struct pl_dp_edit *e)
{
	struct pl_dp_headers *h = &e->pkt->headers;

	h->l4 = (uint16_t)e->l4;
	if (h->payload != PL_DP_NONE)
		h->payload = (uint16_t)e->payload;
}
