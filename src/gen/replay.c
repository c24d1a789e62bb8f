/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates the streams of INTCollector's benchmark generator. */
#include "gen/replay.h"

#define REPORT_TIME 1524138290u
#define EGRESS_TIME 1524234560u
#define HOP_WORDS   8

static const struct test {
	uint32_t flows;
	double rate;
	uint8_t hops;
	uint16_t bitmap;
	uint16_t port;
} tests[PL_GEN_REPLAY_MAX] = {
	[PL_GEN_REPLAY_INTCOLLECTOR_1] = { 10, 1e6, 6, 0x8000, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_2] = { 100, 1e6, 6, 0xff00, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_3] = { 100, 1e6, 6, 0xff00, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_4] = { 100, 1e6, 3, 0xff00, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_5] = { 1, 0.2, 3, 0xff00, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_6] = { 10, 1e6, 5, 0xff00, 1234 },
	[PL_GEN_REPLAY_INTCOLLECTOR_7] = { 1, 1, 3, 0xff00, 54321 },
	[PL_GEN_REPLAY_INTCOLLECTOR_8] = { 1, 0.5, 3, 0xff00, 54321 },
};

void pl_replay_resolve(struct pl_gen_cfg *cfg)
{
	const struct test *t = &tests[cfg->replay];

	if (cfg->flows == 0)
		cfg->flows = t->flows;
	if (cfg->rate == 0)
		cfg->rate = t->rate;
	if (cfg->replay_hops == 0)
		cfg->replay_hops = t->hops;
	if (cfg->bitmap == 0)
		cfg->bitmap = t->bitmap;
	if (cfg->report_port == 0)
		cfg->report_port = t->port;
	if (cfg->replay_events == 0)
		cfg->replay_events = 20;
}

/* Makes the words of hop j in bitmap order, all eight. */
static void make_hop(const struct pl_gen_cfg *cfg, uint32_t j, uint64_t i, struct pl_rng *rng,
	uint32_t words[HOP_WORDS])
{
	uint32_t queue = cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_3 ? 5 + j : 5;
	const uint32_t usual[HOP_WORDS] = { j, 2 << 16 | 3, 4 + j, queue << 16 | 6, 7 + j,
		EGRESS_TIME, queue << 16 | (10 + j), 11 + j };
	/* tests 5 and 8 alternate between these values for the first hop */
	static const uint32_t alternating[2][HOP_WORDS] = {
		{ 4, 5 << 16 | 3, 400, 5 << 16 | 600, 700, EGRESS_TIME, 5 << 16 | 1000, 1 },
		{ 4, 5 << 16 | 3, 4, 5 << 16 | 6, 7, EGRESS_TIME, 5 << 16 | 10, 1000 },
	};
	static const uint32_t steady[HOP_WORDS] = { 4, 2 << 16 | 3, 4, 5 << 16 | 6, 7, EGRESS_TIME,
		5 << 16 | 10, 1 };
	uint64_t per_flow;

	for (unsigned int w = 0; w < HOP_WORDS; w++)
		words[w] = usual[w];
	switch (cfg->replay) {
	case PL_GEN_REPLAY_INTCOLLECTOR_4:
		/* flow by flow; the first half of flow 0's packets are abnormal. One abnormal
		 * packet makes two events: to the abnormal value and back. */
		per_flow = 20000 / cfg->replay_events;
		if (j == 0 && i / (per_flow == 0 ? 1 : per_flow) % cfg->flows == 0 &&
			i % (per_flow == 0 ? 1 : per_flow) < 10000 / cfg->replay_events)
			words[7] = 5000;
		break;
	case PL_GEN_REPLAY_INTCOLLECTOR_5:
	case PL_GEN_REPLAY_INTCOLLECTOR_8:
		for (unsigned int w = 0; w < HOP_WORDS; w++)
			words[w] = j == 0 ? alternating[i % 2][w] : steady[w];
		if (j > 0)
			words[0] = 4 + j;
		break;
	case PL_GEN_REPLAY_INTCOLLECTOR_7:
		if (j == 0) {
			static const struct pl_dist latency = { PL_DIST_PARETO, 170, 4 };

			words[2] = (uint32_t)pl_dist_draw(&latency, rng, 832);
		}
		break;
	default:
		break;
	}
}

static uint32_t flow_of(const struct pl_gen_cfg *cfg, uint64_t i)
{
	uint64_t per_flow;

	if (cfg->replay != PL_GEN_REPLAY_INTCOLLECTOR_4)
		return (uint32_t)(i % cfg->flows);
	per_flow = 20000 / cfg->replay_events;
	return (uint32_t)(i / (per_flow == 0 ? 1 : per_flow) % cfg->flows);
}

static void put_int(
	const struct pl_gen_cfg *cfg, struct pl_build *b, uint64_t i, struct pl_rng *rng)
{
	unsigned int per_hop = (unsigned int)__builtin_popcount(cfg->bitmap & 0xff00);
	bool v10 = cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_8;

	pl_put_u8(b, 1);
	pl_put_u8(b, 0);
	pl_put_u8(b, v10 ? (uint8_t)(3 + cfg->replay_hops * per_hop) : 0);
	pl_put_u8(b, 0);
	if (v10) {
		pl_put_u8(b, 0x10);
		pl_put_u8(b, 0);
		pl_put_u8(b, (uint8_t)per_hop);
		pl_put_u8(b, 8);
	} else {
		pl_put_u8(b, 0);
		pl_put_u8(b, (uint8_t)per_hop);
		pl_put_u8(b, 8);
		pl_put_u8(b, cfg->replay_hops);
	}
	pl_put_be16(b, cfg->bitmap & 0xff00);
	pl_put_be16(b, 0);
	for (uint32_t j = 0; j < cfg->replay_hops; j++) {
		uint32_t words[HOP_WORDS];

		make_hop(cfg, j, i, rng, words);
		for (unsigned int w = 0; w < HOP_WORDS; w++) {
			if ((cfg->bitmap & PL_INT_BIT(w)) != 0)
				pl_put_be32(b, words[w]);
		}
	}
	if (!v10)
		pl_put_be32(b, 14); /* protocol and port 0, original DSCP 14 */
}

static void put_report(
	const struct pl_gen_cfg *cfg, struct pl_build *b, uint64_t i, struct pl_rng *rng)
{
	uint32_t flow = flow_of(cfg, i);
	bool pair = cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_5 ||
		    cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_8;
	uint8_t src[4] = { 10, 0, 0, 1 };
	uint8_t dst[4] = { 10, 0, (uint8_t)(flow >> 8), pair ? 2 : (uint8_t)flow };
	struct pl_flow f = {
		.src = pl_addr_v4(src),
		.dst = pl_addr_v4(dst),
		.sport = 5000,
		.dport = 5000,
		.proto = PL_IP_UDP,
		.dscp = cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_6 ? 1 : 0,
		.have = PL_FLOW_PORTS,
	};
	size_t at;

	if (cfg->replay == PL_GEN_REPLAY_INTCOLLECTOR_8) {
		pl_put_be32(b, 0x11000040); /* Length 1, F */
		pl_put_be32(b, 0);
	} else {
		pl_put_be32(b, 0x10200000); /* F */
	}
	pl_put_be32(b, 0);
	pl_put_be32(b, REPORT_TIME);
	pl_put_eth(b, PL_ETH_IPV4, 0);
	at = pl_put_ip(b, &f, 64, 0);
	put_int(cfg, b, i, rng);
	pl_end_ip(b, at);
}

void pl_replay_put(const struct pl_gen_cfg *cfg, struct pl_build *b, uint64_t i, struct pl_rng *rng)
{
	static const uint8_t local[4] = { 127, 0, 0, 1 };
	struct pl_flow f = {
		.src = pl_addr_v4(local),
		.dst = cfg->collector,
		.sport = 5000,
		.dport = cfg->report_port,
		.proto = PL_IP_UDP,
		.dscp = 0x17,
		.have = PL_FLOW_PORTS,
	};
	size_t at;

	if (cfg->udp) {
		put_report(cfg, b, i, rng);
		return;
	}
	pl_put_eth(b, PL_ETH_IPV4, 0);
	at = pl_put_ip(b, &f, 64, 0);
	put_report(cfg, b, i, rng);
	pl_end_ip(b, at);
}
