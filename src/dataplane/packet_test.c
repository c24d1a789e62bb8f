/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataplane/packet.h"

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "base/test.h"

static void test_pool(void)
{
	struct pl_dp_pool *p = NULL;
	struct pl_dp_packet *a, *b;

	eq(pl_dp_pool_new(&p, PL_DP_HEADROOM, 2), -EINVAL);
	eq(pl_dp_pool_new(&p, PL_DP_HEADROOM + 100, 2), 0);
	ok(pl_dp_packet_new(p, 101) == NULL, "longer than a buffer");
	a = pl_dp_packet_of(p, "abc", 3);
	b = pl_dp_packet_clone(a);
	ok(a != NULL && b != NULL && pl_dp_packet_new(p, 1) == NULL, "two and no third");
	ok(b->len == 3 && memcmp(b->data, "abc", 3) == 0, "a clone has the bytes");
	pl_dp_packet_free(a);
	pl_dp_packet_free(b);
	eq(pl_dp_pool_alive(p), 0);
	pl_dp_pool_free(p);
}

/* Random insertions and removals against the same edits of a plain array. */
static void test_gaps(void)
{
	struct pl_dp_pool *p = NULL;
	struct pl_dp_packet *pkt;
	struct pl_rng rng;
	uint8_t model[400];
	uint32_t len = 60, refused = 0;
	int wrong = 0;

	pl_rng_seed(&rng, 7);
	eq(pl_dp_pool_new(&p, PL_DP_HEADROOM + 100, 1), 0);
	for (uint32_t i = 0; i < sizeof model; i++)
		model[i] = (uint8_t)i;
	pkt = pl_dp_packet_of(p, model, len);
	for (int round = 0; round < 20000; round++) {
		uint32_t at = (uint32_t)(pl_rng_u64(&rng) % (len + 1)),
			 n = (uint32_t)(pl_rng_u64(&rng) % 40);

		if (pl_rng_u64(&rng) % 2 == 0 && len + n <= sizeof model) {
			if (pl_dp_packet_insert(pkt, at, n) != 0) {
				refused++;
				continue;
			}
			memmove(model + at + n, model + at, len - at);
			memset(model + at, round & 0xff, n);
			memset(pkt->data + at, round & 0xff, n);
			len += n;
		} else if (pl_dp_packet_remove(pkt, at, n) == 0) {
			memmove(model + at, model + at + n, len - at - n);
			len -= n;
		} else if (at + n <= len) {
			wrong++;
		}
		wrong += pkt->len != len || memcmp(pkt->data, model, len) != 0;
	}
	eq(wrong, 0);
	ok(refused < 20000 / 4, "room comes back");
	pl_dp_packet_free(pkt);
	pl_dp_pool_free(p);
}

int main(void)
{
	test_pool();
	test_gaps();
	return pl_test_done();
}
