/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow hash: both directions alike, everything else apart. */
#include "record/flow_hash.h"

#include "base/rng.h"
#include "base/test.h"

#define TUPLES 100000

static struct pl_addr address(uint8_t last)
{
	return pl_addr_v4((const uint8_t[4]){ 192, 0, 2, last });
}

static void each_input_counts(void)
{
	const struct pl_addr a = address(1), b = address(2);
	const uint64_t hash = pl_flow_hash(&a, &b, 40000, 443, 6);

	eq(pl_flow_hash(&b, &a, 443, 40000, 6), hash, "the way back");
	ok(pl_flow_hash(&b, &a, 40000, 443, 6) != hash, "ports that changed sides");
	ok(pl_flow_hash(&a, &b, 40001, 443, 6) != hash, "another source port");
	ok(pl_flow_hash(&a, &b, 40000, 442, 6) != hash, "another destination port");
	ok(pl_flow_hash(&a, &b, 40000, 443, 17) != hash, "another protocol");
	ok(pl_flow_hash(&a, &a, 40000, 443, 6) != hash, "another address");
	ok(pl_flow_hash(&a, &a, 7, 7, 6) != pl_flow_hash(&b, &b, 7, 7, 6),
		"hosts that talk to their own port");
	eq(pl_flow_hash_packet(&(struct pl_pkt96){
		   .src = a, .dst = b, .sport = 40000, .dport = 443, .proto = 6, .tcp_seq = 1 }),
		hash, "of a packet");
}

/* Of 64 k places each takes about as many of the flows between two networks as chance gives it. */
static void spreads(void)
{
	static uint16_t places[1 << 16];
	struct pl_rng rng;
	unsigned int most = 0, asymmetric = 0;

	pl_rng_seed(&rng, 1);
	for (unsigned int i = 0; i < TUPLES; i++) {
		const struct pl_addr a = address((uint8_t)i), b = address((uint8_t)(i >> 8));
		const uint16_t port = (uint16_t)(1024 + pl_rng_below(&rng, 60000));
		const uint64_t hash = pl_flow_hash(&a, &b, port, 443, 6);

		asymmetric += hash != pl_flow_hash(&b, &a, 443, port, 6) || hash == 0;
		places[hash >> 48]++;
		if (places[hash >> 48] > most)
			most = places[hash >> 48];
	}
	eq(asymmetric, 0, "%u tuples hash alike both ways", TUPLES);
	ok(most < 16, "the fullest of 65536 places has %u of %u", most, TUPLES);
}

int main(void)
{
	each_input_counts();
	spreads();
	return pl_test_done();
}
