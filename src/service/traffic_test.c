/* SPDX-License-Identifier: BSD-2-Clause */
#include "gen/traffic.h"

#include <errno.h>

#include "base/num.h"
#include "base/test.h"
#include "flow/cache.h"
#include "record/packet.h"
#include "tap/tap.h"

#define START UINT64_C(1700000000000000000)

static struct {
	uint64_t packets, finished, handshakes, retransmitted, backwards, last_ns;
	uint64_t scan_syns, flood_syns, hash;
	uint64_t elsewhere; /* retransmissions in flows with other servers than the storm's */
} seen;

static void take(void *arg, const struct pl_flow288 *f, uint32_t n)
{
	struct pl_addr stormy;

	(void)arg;
	(void)pl_parse_addr(PL_TRAFFIC_STORM_SERVER, &stormy);
	for (uint32_t i = 0; i < n; i++) {
		if (!pl_addr_equal(&f[i].dst, &stormy))
			seen.elsewhere += f[i].retrans_fwd + f[i].retrans_rev;
		seen.finished += f[i].end_reason == PL_FLOW_END_FINISHED &&
				 (f[i].flags_fwd & f[i].flags_rev & 1) != 0;
		seen.handshakes += f[i].hs_external_us > 0 && f[i].hs_internal_us > 0;
		seen.retransmitted += f[i].retrans_fwd + f[i].retrans_rev;
	}
}

static void look(const struct pl_batch *batch)
{
	static struct pl_tap tap;
	static struct pl_pkt96 records[PL_BATCH_MAX];
	struct pl_addr scanner, server;

	(void)pl_parse_addr(PL_TRAFFIC_SCANNER, &scanner);
	(void)pl_parse_addr(PL_TRAFFIC_FIRST_SERVER, &server);
	eq(pl_tap_batch(&tap, batch, records, PL_BATCH_MAX), batch->n, "every packet is whole");
	for (uint32_t i = 0; i < batch->n; i++) {
		const struct pl_pkt96 *r = &records[i];
		const bool syn = r->proto == 6 && (r->tcp_flags & 0x17) == 2;

		seen.backwards += r->ts_ns < seen.last_ns;
		seen.last_ns = r->ts_ns;
		seen.packets++;
		seen.scan_syns += syn && pl_addr_equal(&r->src, &scanner);
		seen.flood_syns += syn && pl_addr_equal(&r->dst, &server) && r->src.b[12] >= 100;
		seen.hash = seen.hash * 31 + r->flow_hash + r->ts_ns;
	}
}

/* Runs all traffic through the tap and the flow cache, which share no code with the generator. */
static void run(const struct pl_traffic_cfg *cfg, struct pl_traffic_truth *ret)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	static struct pl_batch batch;
	static struct pl_pkt96 records[PL_BATCH_MAX];
	struct pl_flow_cache *cache;
	struct pl_traffic *t;
	struct pl_tap tap = { 0 };
	int r = 0;

	memset(&seen, 0, sizeof(seen));
	eq(pl_traffic_new(&t, cfg, NULL), 0);
	eq(pl_flow_cache_new(&cache, &config, take, NULL, NULL), 0);
	while (r >= 0) {
		r = pl_traffic_next(t, UINT64_MAX, &batch);
		if (r <= 0)
			continue;
		look(&batch);
		pl_flow_cache_feed(
			cache, records, pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX));
	}
	eq(r, (uint64_t)-ENODATA, "it ends");
	pl_flow_cache_finish(cache);
	*ret = *pl_traffic_truth(t);
	pl_flow_cache_free(cache);
	pl_traffic_free(t);
}

static void test_plain(void)
{
	const struct pl_traffic_cfg cfg = {
		.seed = 3, .start_ns = START, .duration_ns = 10000000000, .connections = 50
	};
	struct pl_traffic_truth truth, again;
	uint64_t hash;

	run(&cfg, &truth);
	eq(seen.packets, truth.packets);
	eq(seen.backwards, 0, "in the order of time");
	ok(truth.connections > 400 && truth.connections < 600, "about 50 a second: %" PRIu64,
		truth.connections);
	/* Connections of the last second may not have ended. */
	ok(seen.finished > truth.connections - 100 && seen.finished <= truth.connections,
		"%" PRIu64 " of %" PRIu64 " connections end with both FINs", seen.finished,
		truth.connections);
	ok(seen.handshakes >= seen.finished, "each with a handshake: %" PRIu64, seen.handshakes);
	eq(seen.retransmitted + truth.lost + truth.scans + truth.syns, 0, "nothing else");
	hash = seen.hash;
	run(&cfg, &again);
	ok(hash == seen.hash && again.packets == truth.packets, "the same seed, the same packets");
}

static void test_loss(void)
{
	const struct pl_traffic_cfg cfg = { .seed = 4,
		.start_ns = START,
		.duration_ns = 20000000000,
		.connections = 50,
		.loss = 0.02 };
	struct pl_traffic_truth truth;

	run(&cfg, &truth);
	ok(truth.lost > 50, "segments are lost: %" PRIu64, truth.lost);
	/* A segment lost at the end is not retransmitted in time. */
	ok(seen.retransmitted <= truth.lost && seen.retransmitted + 10 > truth.lost,
		"and the flow cache finds them sent again: %" PRIu64, seen.retransmitted);
}

static void test_story(void)
{
	const struct pl_traffic_cfg cfg = {
		.seed = 5, .start_ns = START, .duration_ns = 15000000000, .story = true
	};
	struct pl_traffic_truth truth;

	run(&cfg, &truth);
	eq(truth.scans, 400, "a port every 5 ms for 2 s");
	eq(truth.syns, 3000, "a SYN every ms for 3 s");
	eq(seen.scan_syns, truth.scans);
	eq(seen.flood_syns, truth.syns);
	eq(truth.lost + seen.retransmitted, 0, "and no segment is lost");
}

/* Loses all segments to and from the third server; others lose none. */
static void test_storm(void)
{
	const struct pl_traffic_cfg cfg = {
		.seed = 6, .start_ns = START, .duration_ns = 30000000000, .story = true
	};
	struct pl_traffic_truth truth;

	run(&cfg, &truth);
	ok(truth.storm > 50, "segments are lost on the way to one server: %" PRIu64, truth.storm);
	eq(truth.lost, truth.storm, "on no other way");
	eq(seen.retransmitted, truth.storm, "the flow cache finds each of them sent again");
	eq(seen.elsewhere, 0, "in flows of this server");
}

static void test_limits(void)
{
	const struct pl_traffic_cfg wrong[] = { { .clients = 65537 }, { .servers = 201 },
		{ .connections = -1 }, { .connections = 1e7 }, { .loss = 1.5 }, { .loss = -1 } };
	const struct pl_traffic_cfg counted = { .seed = 1, .start_ns = START, .count = 1000 };
	struct pl_traffic_truth truth;
	struct pl_traffic *none;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		eq(pl_traffic_new(&none, &wrong[i], NULL), (uint64_t)-EINVAL, "row %zu", i);
	run(&counted, &truth);
	eq(seen.packets, 1000, "as many as asked for");
}

int main(void)
{
	test_plain();
	test_loss();
	test_story();
	test_storm();
	test_limits();
	return pl_test_done();
}
