/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: random packets of all kinds, their header offsets, and a check of lengths and
 * checksums computed over all bytes. */
#pragma once

#include <string.h>

#include "base/rng.h"
#include "base/test.h"
#include "dataplane/packet.h"
#include "wire/layers.h"

#define TEST_BYTES 1900 /* most bytes of a packet */

enum test_kind {
	TEST_PLAIN,
	TEST_VXLAN,
	TEST_GPE,
	TEST_GENEVE,
	TEST_GRE,
	TEST_KINDS,
};

static struct pl_flow test_flow(struct pl_rng *rng, uint8_t proto, bool v6)
{
	uint8_t a[32];
	struct pl_flow f = {
		.proto = proto,
		.sport = (uint16_t)(1024 + pl_rng_below(rng, 60000)),
		.dport = (uint16_t)(8000 + pl_rng_below(rng, 1000)),
		.dscp = (uint8_t)pl_rng_below(rng, 64),
		.have = PL_FLOW_PORTS,
	};

	if (f.dscp == 0x17)
		f.dscp = 0;
	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = (uint8_t)(pl_rng_u64(rng) | 1);
	a[0] = a[16] = v6 ? 0xfd : 10;
	f.src = v6 ? pl_addr_v6(a) : pl_addr_v4(a);
	f.dst = v6 ? pl_addr_v6(a + 16) : pl_addr_v4(a + 16);
	return f;
}

static void test_payload(struct pl_build *b, struct pl_rng *rng, size_t n)
{
	uint8_t *p = pl_build_reserve(b, n);

	for (size_t i = 0; p != NULL && i < n; i++)
		p[i] = (uint8_t)pl_rng_u64(rng);
}

/* Makes the bytes of a packet, at times with padding of short frames. Returns their number. */
__attribute__((unused)) static uint32_t test_make(
	uint8_t bytes[TEST_BYTES], struct pl_rng *rng, enum test_kind kind)
{
	struct pl_build b = pl_build(bytes, TEST_BYTES);
	bool v6 = pl_rng_below(rng, 2) != 0, tcp = pl_rng_below(rng, 2) != 0;
	uint16_t type = v6 ? PL_ETH_IPV6 : PL_ETH_IPV4;
	struct pl_flow f = test_flow(rng, tcp ? PL_IP_TCP : PL_IP_UDP, v6), outer;
	size_t at[2], n_at = 0, l4 = 0;
	static const uint8_t opts[] = { 5, 2, 0, 0, 1, 0 }; /* router alert, PadN */
	const struct pl_ip6_options options = { .hop = opts,
		.hop_len = pl_rng_below(rng, 4) == 0 ? sizeof(opts) : 0 };

	pl_put_eth(&b, type, (uint16_t)(pl_rng_below(rng, 2) * (1 + pl_rng_below(rng, 4000))));
	if (kind != TEST_PLAIN) {
		outer = test_flow(rng, kind == TEST_GRE ? PL_IP_GRE : PL_IP_UDP, v6);
		outer.dport = kind == TEST_VXLAN ? PL_PORT_VXLAN
			      : kind == TEST_GPE ? PL_PORT_VXLAN_GPE
						 : PL_PORT_GENEVE;
		l4 = b.len + (v6 ? 40 : 20);
		at[n_at++] = pl_put_ip(&b, &outer, 64, 0);
		switch (kind) {
		case TEST_VXLAN:
			pl_put_vxlan(&b, 0x1234);
			break;
		case TEST_GPE:
			pl_put_vxlan_gpe(&b, 0x1234, 3);
			break;
		case TEST_GENEVE:
			if (pl_rng_below(rng, 2) != 0) {
				pl_put_geneve(&b, 77, PL_ETH_TEB, 8);
				pl_put_be32(&b, 0x01020301);
				pl_put_be32(&b, 0xdeadbeef);
			} else {
				pl_put_geneve(&b, 77, PL_ETH_TEB, 0);
			}
			break;
		default:
			pl_put_gre(&b, PL_ETH_TEB, pl_rng_below(rng, 2) != 0 ? 99 : 0);
			break;
		}
		pl_put_eth(&b, type, 0);
	}
	if (kind == TEST_PLAIN)
		l4 = b.len + (v6 ? 40 : 20) + (v6 && options.hop_len > 0 ? 8 : 0);
	at[n_at++] = pl_put_ip_options(&b, &f, (uint8_t)(2 + pl_rng_below(rng, 250)),
		tcp ? (unsigned int)pl_rng_below(rng, 11) : 0, v6 ? &options : NULL);
	test_payload(&b, rng, pl_rng_below(rng, pl_rng_below(rng, 2) != 0 ? 30 : 1300));
	while (n_at > 0)
		pl_end_ip(&b, at[--n_at]);
	/* no UDP checksum, as IPv4 allows */
	if (!v6 && (kind != TEST_PLAIN ? kind != TEST_GRE : !tcp) && pl_rng_below(rng, 3) == 0)
		memset(bytes + l4 + 6, 0, 2);
	if (b.len < 60)
		test_payload(&b, rng, 60 - b.len);
	return b.full ? 0 : (uint32_t)b.len;
}

/* Sets the header offsets of a packet; false: its headers are not whole. */
__attribute__((unused)) static bool test_locate(struct pl_dp_packet *pkt)
{
	struct pl_dp_headers *h = &pkt->headers;
	struct pl_layers l;
	uint32_t at = 12;

	*h = (struct pl_dp_headers){ PL_DP_NONE, PL_DP_NONE, PL_DP_NONE, PL_DP_NONE, 0, 0, 0,
		false };
	if (pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, false) != PL_V_OK)
		return false;
	if (pl_be16(pkt->data + at) == PL_ETH_VLAN) {
		h->vlan = (uint16_t)at;
		at += 4;
	}
	h->ethertype = pl_be16(pkt->data + at);
	h->l3 = (uint16_t)(l.network - pkt->data);
	h->ip_version = l.ip_version;
	h->proto = l.flow.proto;
	if (h->ip_version == 4)
		h->fragment = (pl_be16(l.network + 6) & 0x3fff) != 0;
	if ((l.flags & PL_LAYERS_FRAGMENT) == 0) {
		h->l4 = (uint16_t)(l.transport.pos - pkt->data);
		if (h->proto == PL_IP_TCP || h->proto == PL_IP_UDP)
			h->payload = (uint16_t)(l.payload.pos - pkt->data);
	}
	return true;
}

/* Returns NULL when lengths and checksums of IP, TCP and UDP are correct; else the wrong part. */
__attribute__((unused)) static const char *test_wrong(const struct pl_dp_packet *pkt)
{
	struct pl_dp_packet copy = *pkt;
	const struct pl_dp_headers *h = &copy.headers;
	const uint8_t *ip, *l4;
	uint32_t bytes, sum;

	if (!test_locate(&copy))
		return "headers";
	if (h->l3 != pkt->headers.l3 || h->l4 != pkt->headers.l4 ||
		h->proto != pkt->headers.proto || h->payload != pkt->headers.payload)
		return "places of headers";
	ip = pkt->data + h->l3;
	l4 = pkt->data + h->l4;
	bytes = h->ip_version == 4 ? pl_be16(ip + 2) : 40u + pl_be16(ip + 4);
	if (bytes > pkt->len - h->l3)
		return "IP length";
	if (h->ip_version == 4 && pl_checksum_fold(pl_checksum_add(0, ip, 4 * (ip[0] & 0xf))) != 0)
		return "IP checksum";
	bytes -= h->l4 - h->l3;
	if (h->proto == PL_IP_UDP && pl_be16(l4 + 4) != bytes)
		return "UDP length";
	if (h->proto == PL_IP_UDP && pl_be16(l4 + 6) == 0)
		return h->ip_version == 6 ? "no UDP checksum over IPv6" : NULL;
	if (h->proto != PL_IP_UDP && h->proto != PL_IP_TCP)
		return NULL;
	sum = pl_checksum_add(
		h->proto + bytes, ip + (h->ip_version == 4 ? 12 : 8), h->ip_version == 4 ? 8 : 32);
	return pl_checksum_fold(pl_checksum_add(sum, l4, bytes)) != 0 ? "checksum" : NULL;
}
