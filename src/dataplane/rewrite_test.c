/* SPDX-License-Identifier: BSD-2-Clause */
/* Header fields that are written, against checksums added up anew. */
#include "dataplane/rewrite.h"

#include <string.h>

#include "base/test.h"
#include "dataplane/test_frames.h"

static void test_rewrite(void)
{
	static const enum pl_dp_field fields[] = { PL_DP_FIELD_ETH_DST, PL_DP_FIELD_ETH_SRC,
		PL_DP_FIELD_VLAN_ID, PL_DP_FIELD_VLAN_PCP, PL_DP_FIELD_IP_SRC, PL_DP_FIELD_IP_DST,
		PL_DP_FIELD_IP_DSCP, PL_DP_FIELD_IP_ECN, PL_DP_FIELD_IP_TTL, PL_DP_FIELD_L4_SRC,
		PL_DP_FIELD_L4_DST };
	struct pl_dp_pool *pool = NULL;
	struct pl_rng rng;
	int unread = 0, sums = 0, moved = 0;

	pl_rng_seed(&rng, 4);
	(void)pl_dp_pool_new(&pool, PL_DP_HEADROOM + FRAME_MAX, 10);
	for (int round = 0; round < 20000; round++) {
		struct frame f;
		struct pl_dp_packet *pkt;
		struct pl_dp_headers before;

		random_frame(&rng, &f);
		pkt = pl_dp_packet_of(pool, f.bytes, f.len);
		(void)pl_dp_parse(pkt);
		for (int k = 0; k < 5; k++) {
			const enum pl_dp_field field = fields[pl_rng_below(&rng, 11)];
			const unsigned int bits = pl_dp_fields[field].bits;
			uint64_t v[2] = { pl_rng_u64(&rng), pl_rng_u64(&rng) }, got[2] = { 0 };

			if (bits < 64)
				v[0] &= (UINT64_C(1) << bits) - 1;
			if (bits > 64 && pkt->headers.ip_version == 4) {
				v[0] = 0;
				v[1] = UINT64_C(0xffff00000000) | (v[1] & 0xffffffff);
			}
			pl_dp_field_write(pkt, field, v);
			pl_dp_field_read(pkt, field, 0, got);
			if ((field == PL_DP_FIELD_VLAN_ID || field == PL_DP_FIELD_VLAN_PCP) &&
				pkt->headers.vlan == PL_DP_NONE)
				continue;
			unread += got[0] != v[0] || (bits > 64 && got[1] != v[1]);
		}
		if (pl_rng_below(&rng, 2) == 0)
			(void)pl_dp_vlan_push(pkt,
				pl_rng_below(&rng, 2) == 0 ? PL_ETH_VLAN : PL_ETH_QINQ,
				(uint16_t)pl_rng_below(&rng, 4095));
		else
			pl_dp_vlan_pop(pkt);
		(void)pl_dp_ttl_take(pkt);
		before = pkt->headers;
		sums += !pl_dp_parse(pkt) || !sums_right(pkt);
		moved += memcmp(&before, &pkt->headers, sizeof(before)) != 0;
		pl_dp_packet_free(pkt);
	}
	eq(unread, 0, "what is written is read");
	eq(sums, 0, "checksums are right, added up anew");
	eq(moved, 0, "headers are where they are said to be");
	pl_dp_pool_free(pool);
}

/* Writes an address or port field of a packet of bytes. */
static struct pl_dp_packet *written(struct pl_dp_pool *pool, const struct frame *f,
	enum pl_dp_field field, uint64_t high, uint64_t low)
{
	struct pl_dp_packet *pkt = pl_dp_packet_of(pool, f->bytes, f->len);

	if (ok(pl_dp_parse(pkt), "it is parsed"))
		pl_dp_field_write(pkt, field, (const uint64_t[]){ high, low });
	return pkt;
}

static const struct want datagram = { .payload = 40,
	.ttl = 64,
	.flow = { .sport = 1, .dport = 2, .proto = PL_IP_UDP, .have = PL_FLOW_PORTS } };

/* Inserts bytes behind the IPv4 or IPv6 header, and counts them in it. */
static void insert(struct frame *f, const uint8_t *bytes, uint32_t n)
{
	uint8_t *ip = f->bytes + 14, *length = ip + (ip[0] >> 4 == 4 ? 2 : 4);
	const uint32_t at = 14 + (ip[0] >> 4 == 4 ? 20 : 40), sum = pl_be16(length) + n;

	memmove(f->bytes + at + n, f->bytes + at, f->len - at);
	memcpy(f->bytes + at, bytes, n);
	f->len += n;
	length[0] = (uint8_t)(sum >> 8);
	length[1] = (uint8_t)sum;
}

/* A transport's checksum covers the destination in the IP header, unless that is a hop of a source
 * route that goes on. */
static void test_source_routes(void)
{
	static const struct {
		uint8_t first, bytes[24], n; /* first: type of the IPv6 header; 0: IPv4 */
		bool covered;
		const char *what;
	} of[] = {
		{ 43, { 17, 2, 4, 1 }, 24, false, "a routing header with a segment left" },
		{ 43, { 17, 2, 4, 0 }, 24, true, "without one" },
		{ 60, { 43, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1 }, 16, false, "behind options" },
		{ 60, { 60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 1, 4 }, 16, true, "options alone" },
		{ 0, { 131, 7, 4, 10, 9, 9, 9, 0 }, 8, false, "a loose source route" },
		{ 0, { 1, 137, 7, 4, 10, 9, 9, 9 }, 8, false, "a strict one" },
		{ 0, { 131, 7, 8, 10, 9, 9, 9, 0 }, 8, true, "at its end" },
		{ 0, { 7, 7, 4, 10, 9, 9, 9, 0 }, 8, true, "a recorded route" },
		{ 0, { 0, 131, 7, 4, 10, 9, 9, 9 }, 8, true, "behind the end of options" },
		{ 0, { 131, 2, 0, 0 }, 4, true, "one that is cut" },
		{ 0, { 1, 1, 1, 131 }, 4, true, "one of a byte" },
	};
	static const uint8_t address[16] = { 0xfd, 1, 1, 1 };
	struct pl_dp_pool *pool = NULL;

	(void)pl_dp_pool_new(&pool, PL_DP_HEADROOM + FRAME_MAX, 10);
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct want w = datagram;
		struct frame f;
		struct pl_dp_packet *pkt;
		uint16_t before;

		w.v6 = of[i].first != 0;
		w.flow.src = w.v6 ? pl_addr_v6(address) : pl_addr_v4(address);
		w.flow.dst = w.flow.src;
		make_frame(&f, &w);
		insert(&f, of[i].bytes, of[i].n);
		if (w.v6)
			f.bytes[14 + 6] = of[i].first;
		else
			f.bytes[14] = (uint8_t)(0x45 + of[i].n / 4);
		before = pl_be16(f.bytes + f.len - 48 + 6);
		pkt = w.v6 ? written(pool, &f, PL_DP_FIELD_IP_DST, 0xfd00, 7)
			   : written(pool, &f, PL_DP_FIELD_IP_DST, 0, 0xffff0a020202);
		ok((pl_be16(pkt->data + pkt->len - 48 + 6) != before) == of[i].covered, "%s",
			of[i].what);
		pl_dp_packet_free(pkt);
	}
	pl_dp_pool_free(pool);
}

int main(void)
{
	test_rewrite();
	test_source_routes();
	return pl_test_done();
}
