/* SPDX-License-Identifier: BSD-2-Clause */
/* Two-way delay: who is whose partner, and that clocks cancel. */
#include "base/rng.h"
#include "base/test.h"
#include "mark/two_way.h"

#define BLOCK UINT64_C(2000000)
#define FLOWS 3000

static struct pl_mark_result result(
	uint32_t host, uint64_t block, bool back, int64_t delay_ns, uint32_t has)
{
	const uint8_t near[4] = { 10, 1, (uint8_t)(host >> 8), (uint8_t)host };
	const uint8_t far[4] = { 192, 0, 2, 1 };
	const struct pl_addr src = pl_addr_v4(near), dst = pl_addr_v4(far);

	return (struct pl_mark_result){ .flow = { .src = back ? dst : src,
						.dst = back ? src : dst,
						.sport = back ? 443 : 4000,
						.dport = back ? 4000 : 443,
						.proto = 6 },
		.block = block,
		.has = has,
		.delay_ns = delay_ns,
		.mean_ns = delay_ns + 7 };
}

static struct pl_mark_round add(
	struct pl_mark_two_way *t, uint32_t link, const struct pl_mark_result *r)
{
	struct pl_mark_round round;

	if (!pl_mark_two_way_add(t, r, link, r->flow.dport != 443, &round))
		abort();
	return round;
}

static void partners(void)
{
	struct pl_mark_two_way *t = pl_mark_two_way_new();
	const uint32_t both = PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN;
	struct pl_mark_result there = result(1, BLOCK, false, 80000, both),
			      back = result(1, BLOCK, true, -60000, both);
	struct pl_mark_round round;

	eq(add(t, 0, &there).has, 0, "the first direction alone has no two-way delay");
	eq(add(t, 1, &back).has, 0, "nor has another link");
	round = add(t, 0, &back);
	eq(round.has, both, "the second direction has both");
	eq(round.delay_ns, 20000, "what the clocks differ by cancels");
	eq(round.mean_ns, 20014, "also of means");
	back = result(2, BLOCK, true, 5, both);
	eq(add(t, 0, &back).has, 0, "another host's flow is no partner");

	there = result(3, BLOCK, false, 10, PL_MARK_HAS_DELAY);
	back = result(3, BLOCK, true, 20, both);
	(void)add(t, 0, &there);
	round = add(t, 0, &back);
	eq(round.has, PL_MARK_HAS_DELAY, "a mean that one direction lacks is not made up");
	eq(round.delay_ns, 30, "its delay is there");

	back.block = BLOCK + 1;
	eq(add(t, 0, &back).has, 0, "another block is no partner");
	there.block = BLOCK;
	eq(add(t, 0, &there).has, 0, "an earlier block was forgotten");
	there.block = BLOCK + 1;
	eq(add(t, 0, &there).delay_ns, 30, "the later one is there");

	there.block = back.block = BLOCK + 2;
	there.flow.has_flow_id = back.flow.has_flow_id = 1;
	(void)add(t, 0, &there);
	eq(add(t, 0, &back).has, 0, "FlowMonIDs do not say which flow comes back");
	there.block = back.block = BLOCK + 3;
	there.flow.has_flow_id = back.flow.has_flow_id = 0;
	if (!pl_mark_two_way_add(t, &there, 0, false, &round) ||
		!pl_mark_two_way_add(t, &back, 0, false, &round))
		abort();
	eq(round.has, 0, "two flows that pass the link in the same direction are no partners");
	pl_mark_two_way_free(t);
	pl_mark_two_way_free(NULL);
}

/* Many flows on several links in any order, against arrays. */
static void many(void)
{
	static int64_t kept[FLOWS][2][2];
	static bool is[FLOWS][2][2];
	struct pl_mark_two_way *t = pl_mark_two_way_new();
	unsigned int wrong = 0, found = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, 9341);
	for (uint64_t block = 0; block < 4; block++) {
		memset(is, 0, sizeof(is));
		for (unsigned int i = 0; i < 4 * FLOWS; i++) {
			const uint32_t host = (uint32_t)pl_rng_below(&rng, FLOWS),
				       link = (uint32_t)pl_rng_below(&rng, 2);
			const bool way = pl_rng_below(&rng, 2) != 0;
			const int64_t delay = (int64_t)pl_rng_below(&rng, 1000000) - 500000;
			const struct pl_mark_result r =
				result(host, BLOCK + block, way, delay, PL_MARK_HAS_DELAY);
			const struct pl_mark_round round = add(t, link, &r);

			wrong += (round.has != 0) != is[host][link][!way] ||
				 (round.has != 0 &&
					 round.delay_ns != delay + kept[host][link][!way]);
			found += round.has != 0;
			is[host][link][way] = true;
			kept[host][link][way] = delay;
		}
	}
	eq(wrong, 0, "each of many results has its partner, and no other");
	ok(found > FLOWS, "there were partners");
	pl_mark_two_way_free(t);
}

int main(void)
{
	partners();
	many();
	return pl_test_done();
}
