/* SPDX-License-Identifier: BSD-2-Clause */
/* The largest flows of a cache, held against all of its flows. */
#include "flow/largest.h"

#include "base/rng.h"
#include "flow/test_packets.h"

enum { FLOWS = 3000, ROOM = 4096, MOST = 100 };

static int larger_first(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static void finds(struct pl_flow_cache *cache, const uint64_t *bytes, uint32_t all, uint32_t max)
{
	static struct pl_flow288 found[FLOWS + 1];
	const uint32_t n = pl_flow_cache_largest(cache, found, max);
	bool same = true;

	eq(n, max < all ? max : all, "%u of %u flows", max, all);
	for (uint32_t i = 0; i < n; i++)
		same = same && found[i].bytes_fwd + found[i].bytes_rev == bytes[i] &&
		       found[i].end_reason == 0;
	ok(same, "the first %u are those with the most bytes, in order", n);
}

static void test_order(void)
{
	const struct pl_flow_config config = { ROOM, 15 * SECOND, 60 * SECOND, SECOND };
	static uint64_t bytes[FLOWS];
	struct pl_flow_cache *cache;
	struct kept kept;
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	cache = new_cache(&config, &kept);
	eq(pl_flow_cache_room(cache), ROOM);
	finds(cache, bytes, 0, MOST);
	for (uint32_t i = 0; i < FLOWS; i++) {
		const uint32_t n = 1 + (uint32_t)pl_rng_below(&rng, 20);

		for (uint32_t k = 0; k < n; k++) {
			struct pl_pkt96 p = packet(EPOCH + i, k % 2, (uint16_t)(1000 + i), 17);

			p.wire_len = (uint16_t)(40 + pl_rng_below(&rng, 1400));
			bytes[i] += p.wire_len;
			pl_flow_cache_feed(cache, &p, 1);
		}
	}
	/* None was evicted: what is to be found is what was made. */
	eq(pl_flow_cache_counters(cache)->live, FLOWS);
	eq(pl_flow_cache_clock(cache), EPOCH + FLOWS - 1);
	qsort(bytes, FLOWS, sizeof(bytes[0]), larger_first);
	finds(cache, bytes, FLOWS, 0);
	finds(cache, bytes, FLOWS, 1);
	finds(cache, bytes, FLOWS, MOST);
	finds(cache, bytes, FLOWS, FLOWS);
	finds(cache, bytes, FLOWS, FLOWS + 1);
	pl_flow_cache_free(cache);
	free(kept.records);
}

/* A flow that is over has its record still to come, and is not shown as one that goes on. */
static void test_over(void)
{
	const struct pl_flow_config config = { ROOM, 15 * SECOND, 60 * SECOND, SECOND };
	struct pl_flow_cache *cache;
	struct pl_flow288 found[4];
	struct pl_pkt96 p = packet(EPOCH, 0, 1, 17);
	struct kept kept;

	cache = new_cache(&config, &kept);
	p.wire_len = 1000;
	pl_flow_cache_feed(cache, &p, 1);
	p = packet(EPOCH + 16 * SECOND, 0, 2, 17);
	pl_flow_cache_feed(cache, &p, 1);
	eq(pl_flow_cache_largest(cache, found, 4), 1);
	eq(found[0].sport, 2, "the one that goes on");
	p = packet(EPOCH + 16 * SECOND, 0, 3, 6);
	p.tcp_flags = RST;
	pl_flow_cache_feed(cache, &p, 1);
	eq(pl_flow_cache_largest(cache, found, 4), 2, "within a second of its end");
	p = packet(EPOCH + 17 * SECOND, 0, 2, 17);
	pl_flow_cache_feed(cache, &p, 1);
	eq(pl_flow_cache_largest(cache, found, 4), 1, "and no more behind it");
	pl_flow_cache_finish(cache);
	eq(pl_flow_cache_largest(cache, found, 4), 0);
	pl_flow_cache_free(cache);
	free(kept.records);
}

int main(void)
{
	test_order();
	test_over();
	return pl_test_done();
}
