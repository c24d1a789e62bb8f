/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes carriers, for the generator and the tests. */
#include <assert.h>
#include <string.h>

#include "wire/layers.h"

uint32_t pl_checksum_add(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t words = 0, v;

	/* Adds in the machine's byte order: the sum then has its bytes swapped too (RFC 1071 2B).
	 * Adds halves, so that no carry is lost. */
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&v, p, 8);
		words += (v & UINT32_MAX) + (v >> 32);
	}
	if (len >= 4) {
		uint32_t half;

		memcpy(&half, p, 4);
		words += half;
		p += 4;
		len -= 4;
	}
	for (unsigned int i = 0; i < len; i++)
		words += (uint64_t)p[i] << 8 * i;
	words = (words & UINT32_MAX) + (words >> 32);
	words = (words & UINT16_MAX) + (words >> 16);
	words = (words & UINT16_MAX) + (words >> 16);
	words = (words & UINT16_MAX) + (words >> 16);
	v = (uint64_t)sum + __builtin_bswap16((uint16_t)words);
	return (uint32_t)((v & UINT32_MAX) + (v >> 32));
}

uint16_t pl_checksum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void pl_put_eth(struct pl_build *b, uint16_t ethertype, uint16_t vlan)
{
	/* clang-format off */
	static const uint8_t macs[12] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01,
	};
	/* clang-format on */

	pl_put(b, macs, sizeof(macs));
	if (vlan != 0) {
		pl_put_be16(b, PL_ETH_VLAN);
		pl_put_be16(b, vlan & 0xfff);
	}
	pl_put_be16(b, ethertype);
}

static void put_options(struct pl_build *b, uint8_t next, const void *options, size_t len)
{
	size_t pad = (8 - (len + 2) % 8) % 8;

	assert(len <= 2046);
	pl_put_u8(b, next);
	pl_put_u8(b, (uint8_t)((len + 2 + pad) / 8 - 1));
	pl_put(b, options, len);
	if (pad == 1) {
		pl_put_u8(b, 0);
	} else if (pad > 1) {
		pl_put_u8(b, 1);
		pl_put_u8(b, (uint8_t)(pad - 2));
		pl_put_zero(b, pad - 2);
	}
}

static void put_ipv4(struct pl_build *b, const struct pl_flow *flow, uint8_t ttl)
{
	pl_put_u8(b, 0x45);
	pl_put_u8(b, (uint8_t)(flow->dscp << 2));
	pl_put_be16(b, 0); /* length */
	pl_put_be16(b, 0); /* identification: free when DF is set (RFC 6864) */
	pl_put_be16(b, 0x4000);
	pl_put_u8(b, ttl);
	pl_put_u8(b, flow->proto);
	pl_put_be16(b, 0); /* checksum */
	pl_put(b, flow->src.b + 12, 4);
	pl_put(b, flow->dst.b + 12, 4);
}

static void put_ipv6(struct pl_build *b, const struct pl_flow *flow, uint8_t ttl,
	const struct pl_ip6_options *options)
{
	bool hop = options != NULL && options->hop_len > 0;
	bool dst = options != NULL && options->dst_len > 0;
	uint8_t behind_hop = dst ? PL_IP_DSTOPTS : flow->proto;

	pl_put_be32(b, UINT32_C(6) << 28 | (uint32_t)flow->dscp << 22);
	pl_put_be16(b, 0); /* length */
	pl_put_u8(b, hop ? PL_IP_HOPOPTS : behind_hop);
	pl_put_u8(b, ttl);
	pl_put(b, flow->src.b, 16);
	pl_put(b, flow->dst.b, 16);
	if (hop)
		put_options(b, behind_hop, options->hop, options->hop_len);
	if (dst)
		put_options(b, flow->proto, options->dst, options->dst_len);
}

static void put_tcp(struct pl_build *b, const struct pl_flow *flow, unsigned int opt_words)
{
	assert(opt_words <= 10);
	pl_put_be16(b, flow->sport);
	pl_put_be16(b, flow->dport);
	pl_put_be32(b, 1); /* sequence number */
	pl_put_be32(b, 1); /* acknowledgement */
	pl_put_u8(b, (uint8_t)((5 + opt_words) << 4));
	pl_put_u8(b, 0x10); /* ACK */
	pl_put_be16(b, 0xffff);
	pl_put_be32(b, 0); /* checksum, urgent pointer */
	for (unsigned int i = 0; i < opt_words; i++)
		pl_put_be32(b, 0x01010101);
}

size_t pl_put_ip_options(struct pl_build *b, const struct pl_flow *flow, uint8_t ttl,
	unsigned int tcp_opt_words, const struct pl_ip6_options *options)
{
	size_t at = b->len;

	assert(flow->dscp < 64);
	if (pl_addr_is_v4(&flow->src)) {
		assert(options == NULL);
		put_ipv4(b, flow, ttl);
	} else {
		put_ipv6(b, flow, ttl, options);
	}
	switch (flow->proto) {
	case PL_IP_TCP:
		put_tcp(b, flow, tcp_opt_words);
		break;
	case PL_IP_UDP:
		pl_put_be16(b, flow->sport);
		pl_put_be16(b, flow->dport);
		pl_put_be32(b, 0); /* length, checksum */
		break;
	case PL_IP_ICMP:
	case PL_IP_ICMPV6:
		pl_put_u8(b, (uint8_t)flow->sport);
		pl_put_u8(b, (uint8_t)flow->dport);
		pl_put_zero(b, 6); /* checksum, rest of the header */
		break;
	default:
		break;
	}
	return at;
}

size_t pl_put_ip(
	struct pl_build *b, const struct pl_flow *flow, uint8_t ttl, unsigned int tcp_opt_words)
{
	return pl_put_ip_options(b, flow, ttl, tcp_opt_words, NULL);
}

/* Sets length and checksum of the transport at `at`; sum is that of the two addresses. */
static void end_transport(struct pl_build *b, size_t at, uint8_t proto, uint32_t sum)
{
	size_t len = b->len - at;
	size_t checksum_at;
	uint16_t checksum;

	switch (proto) {
	case PL_IP_TCP:
		checksum_at = at + 16;
		break;
	case PL_IP_UDP:
		pl_patch_be16(b, at + 4, (uint16_t)len);
		checksum_at = at + 6;
		break;
	case PL_IP_ICMP:
	case PL_IP_ICMPV6:
		checksum_at = at + 2;
		break;
	default:
		return;
	}
	pl_patch_be16(b, checksum_at, 0);
	if (b->full)
		return;
	if (proto == PL_IP_ICMP) {
		sum = 0; /* ICMP has no pseudo header */
	} else {
		uint8_t tail[8] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, proto };

		sum = pl_checksum_add(sum, tail, sizeof(tail));
	}
	checksum = pl_checksum_fold(pl_checksum_add(sum, b->data + at, len));
	/* In UDP 0 means "no checksum"; ones are the same sum in ones' complement. */
	if (checksum == 0 && proto == PL_IP_UDP)
		checksum = 0xffff;
	pl_patch_be16(b, checksum_at, checksum);
}

static void end_ipv4(struct pl_build *b, size_t at)
{
	size_t header = 4 * (size_t)(b->data[at] & 0xf); /* options may have been put between */

	pl_patch_be16(b, at + 2, (uint16_t)(b->len - at));
	pl_patch_be16(b, at + 10, 0);
	pl_patch_be16(b, at + 10, pl_checksum_fold(pl_checksum_add(0, b->data + at, header)));
	end_transport(b, at + header, b->data[at + 9], pl_checksum_add(0, b->data + at + 12, 8));
}

static void end_ipv6(struct pl_build *b, size_t at)
{
	uint8_t proto = b->data[at + 6];
	size_t transport = at + 40;

	pl_patch_be16(b, at + 4, (uint16_t)(b->len - transport));
	/* Skips the headers of put_options. */
	while ((proto == PL_IP_HOPOPTS || proto == PL_IP_DSTOPTS) && transport + 2 <= b->len) {
		proto = b->data[transport];
		transport += ((size_t)b->data[transport + 1] + 1) * 8;
	}
	end_transport(b, transport, proto, pl_checksum_add(0, b->data + at + 8, 32));
}

void pl_end_ip(struct pl_build *b, size_t at)
{
	if (b->full)
		return;
	assert(at + 20 <= b->len);
	if (b->len - at > UINT16_MAX)
		b->full = true;
	else if (b->data[at] >> 4 == 4)
		end_ipv4(b, at);
	else
		end_ipv6(b, at);
}

void pl_put_vxlan(struct pl_build *b, uint32_t vni)
{
	pl_put_be32(b, UINT32_C(0x08) << 24);
	pl_put_be32(b, vni << 8);
}

void pl_put_vxlan_gpe(struct pl_build *b, uint32_t vni, uint8_t next)
{
	pl_put_be32(b, UINT32_C(0x0c) << 24 | next);
	pl_put_be32(b, vni << 8);
}

void pl_put_geneve(struct pl_build *b, uint32_t vni, uint16_t ethertype, size_t opt_len)
{
	assert(opt_len % 4 == 0 && opt_len <= 252);
	pl_put_u8(b, (uint8_t)(opt_len / 4));
	pl_put_u8(b, 0);
	pl_put_be16(b, ethertype);
	pl_put_be32(b, vni << 8);
}

void pl_put_gre(struct pl_build *b, uint16_t ethertype, uint32_t key)
{
	pl_put_be16(b, key != 0 ? 0x2000 : 0);
	pl_put_be16(b, ethertype);
	if (key != 0)
		pl_put_be32(b, key);
}
