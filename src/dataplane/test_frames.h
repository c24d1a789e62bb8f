/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: frames of TCP or UDP as wanted or drawn, and a check of checksums over all bytes. */
#pragma once

#include "base/rng.h"
#include "dataplane/parse.h"
#include "wire/layers.h"

#define FRAME_MAX 2000

struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t len;
};

struct want {
	bool v6, tcp, no_sum;
	uint16_t vlan;
	uint32_t payload;
	struct pl_flow flow;
	uint8_t ttl;
};

static inline void make_frame(struct frame *f, const struct want *w)
{
	struct pl_build b = pl_build(f->bytes, sizeof(f->bytes));
	size_t ip;

	pl_put_eth(&b, w->v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, w->vlan);
	ip = pl_put_ip(&b, &w->flow, w->ttl, 0);
	for (uint32_t i = 0; i < w->payload; i++)
		pl_put_u8(&b, (uint8_t)(i * 7));
	pl_end_ip(&b, ip);
	f->len = (uint32_t)b.len;
}

/* dport: below 0 a random one. */
static inline void random_frame_to(struct pl_rng *rng, struct frame *f, int dport)
{
	struct want w = { .v6 = pl_rng_below(rng, 2) != 0,
		.tcp = pl_rng_below(rng, 2) != 0,
		.vlan = (uint16_t)(pl_rng_below(rng, 2) * pl_rng_below(rng, 4095)),
		.payload = (uint32_t)pl_rng_below(rng, 300),
		.ttl = (uint8_t)(2 + pl_rng_below(rng, 250)) };
	uint8_t bytes[32];

	for (unsigned int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)pl_rng_u64(rng);
	w.flow.src = w.v6 ? pl_addr_v6(bytes) : pl_addr_v4(bytes);
	w.flow.dst = w.v6 ? pl_addr_v6(bytes + 16) : pl_addr_v4(bytes + 16);
	w.flow.sport = (uint16_t)pl_rng_u64(rng);
	w.flow.dport = (uint16_t)pl_rng_u64(rng);
	if (dport >= 0)
		w.flow.dport = (uint16_t)dport;
	w.flow.dscp = (uint8_t)pl_rng_below(rng, 64);
	w.flow.proto = w.tcp ? PL_IP_TCP : PL_IP_UDP;
	w.flow.have = PL_FLOW_PORTS;
	make_frame(f, &w);
}

static inline void random_frame(struct pl_rng *rng, struct frame *f)
{
	random_frame_to(rng, f, -1);
}

/* Returns true when all checksums of a frame, computed over all bytes, are correct. */
static inline bool sums_right(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;
	const uint8_t *ip = pkt->data + h->l3;
	uint32_t sum, bytes;

	if (h->ip_version == 0 || h->l4 == PL_DP_NONE)
		return pl_dp_ip_checksum_right(pkt);
	bytes = h->ip_version == 4 ? pl_be16(ip + 2) : pl_be16(ip + 4) + 40u;
	bytes -= h->l4 - (uint32_t)h->l3;
	if (h->proto == PL_IP_UDP && pl_be16(pkt->data + h->l4 + 6) == 0)
		return h->ip_version == 4 && pl_dp_ip_checksum_right(pkt);
	sum = h->ip_version == 4 ? pl_checksum_add(0, ip + 12, 8) : pl_checksum_add(0, ip + 8, 32);
	sum += h->proto + bytes;
	sum = pl_checksum_add(sum, pkt->data + h->l4, bytes);
	return pl_checksum_fold(sum) == 0 && pl_dp_ip_checksum_right(pkt);
}
