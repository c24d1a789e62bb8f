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
			(void)pl_dp_vlan_push(pkt, (uint16_t)pl_rng_below(&rng, 4095));
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

int main(void)
{
	test_rewrite();
	return pl_test_done();
}
