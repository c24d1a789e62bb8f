/* SPDX-License-Identifier: BSD-2-Clause */
/* The generator by itself: sameness, time, losses, events, refusals. What the bytes mean is for the
 * round trip and for other people's dissectors. */
#include "gen/gen.h"

#include <errno.h>

#include "base/hash.h"
#include "base/test.h"
#include "gen/event.h"
#include "gen/malform.h"

static struct pl_batch batch;

static uint64_t hash_run(const struct pl_gen_cfg *cfg, unsigned int *ret_packets)
{
	struct pl_gen *g;
	struct pl_diag diag = { .text = "" };
	uint64_t h = 0;
	unsigned int n = 0;

	if (!ok(pl_gen_new(&g, cfg, &diag) == 0, "generator: %s", diag.text))
		return 0;
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			h = pl_hash(batch.pkts[i].data, batch.pkts[i].len, h);
			h = pl_hash(&batch.pkts[i].ts_ns, sizeof(batch.pkts[i].ts_ns), h);
		}
		n += batch.n;
	}
	if (ret_packets != NULL)
		*ret_packets = n;
	pl_gen_free(g);
	return h;
}

static void test_same_seed_same_bytes(void)
{
	struct pl_gen_cfg a = { .seed = 1,
		.count = 3000,
		.loss = 0.1,
		.duplicate = 0.1,
		.reorder = 0.1,
		.drop = 0.05,
		.missing = 0.05,
		.clock_offset_ns = 1000000,
		.queue_report = 50 };
	struct pl_gen_cfg b = a, c = a;
	unsigned int n;

	ok(hash_run(&a, &n) == hash_run(&b, NULL), "the same seed gives the same bytes and times");
	eq(n, 3000, "as many as asked for");
	c.seed = 2;
	ok(hash_run(&a, NULL) != hash_run(&c, NULL), "another seed gives others");
}

/* Reports made from templates are byte for byte those of the encoder. */
static void test_templates(void)
{
	static const uint16_t bitmaps[] = { 0xfd00, 0xff00, 0x8000, 0xff80, 0xdc00, 0xff81 };
	uint64_t k = 0;
	unsigned int forms = 0;

	for (int report = PL_GEN_REPORT_V05; report <= PL_GEN_REPORT_V20; report++)
		for (int version = PL_GEN_INT_V05; version <= PL_GEN_INT_V21; version++)
			for (int inner = PL_GEN_ETHERNET; inner <= PL_GEN_IP; inner++)
				for (unsigned int v = 0; v < 8; v++, k++) {
					struct pl_gen_cfg cfg = {
						.seed = 9000 + k,
						.count = 600,
						.flows = 9,
						.rate = 100,
						.report = (enum pl_gen_report)report,
						.version = (enum pl_gen_version)version,
						.inner = (enum pl_gen_inner)inner,
						.bitmap = bitmaps[k % 6] &
							  (version == PL_GEN_INT_V21 ? 0xffff
										     : 0xff00),
						.carrier = v & 1 ? PL_GEN_TCP : PL_GEN_UDP,
						.udp = v & 2,
						.outer_ip = v & 4 ? 6 : 4,
						.inner_ip = k % 3 == 0 ? 6 : 4,
						.sink = report == PL_GEN_REPORT_V20
								? (enum pl_gen_sink)(k % 4)
								: PL_GEN_SINK_AUTO,
						.payload = (uint16_t)(k % 40),
						.tcp_options = (uint8_t)(k % 4),
						.tcp_before_options = k % 5 == 0,
						.source_words =
							version == PL_GEN_INT_V21 ? k % 3 : 0,
						.dialect = version == PL_GEN_INT_V10 && k % 2
								   ? PL_DIALECT_INTCOLLECTOR
								   : PL_DIALECT_SPEC,
						.max_hops = k % 7 == 0 ? 2 : 0,
						.drop = 0.05,
						.duplicate = 0.05,
						.queue_report = 60,
						.clock_offset_ns = 100000,
						.hw_id = (uint8_t)(k % 64),
						.ip_options = k % 11 == 0 ? 2 : 0,
						.destination_shim = k % 13 == 0,
						.first_seq = 0x3fff80,
						.n_events = 1,
						.events = { { PL_GEN_EVENT_PATH,
							.at_ns = 1000000000,
							.duration_ns = 2000000000 } },
					};
					struct pl_gen *g;
					uint64_t general, fast;

					if (cfg.dialect == PL_DIALECT_INTCOLLECTOR)
						cfg.bitmap = 0xff00;
					if (pl_gen_new(&g, &cfg, NULL) < 0)
						continue;
					while (pl_gen_next(g, UINT64_MAX, &batch) > 0)
						;
					ok(inner == PL_GEN_VXLAN || cfg.max_hops != 0 ||
							cfg.bitmap == 0x8000 ||
							pl_gen_counters(g)->patched > 300,
						"%" PRIu64 " of 600 from templates",
						pl_gen_counters(g)->patched);
					pl_gen_free(g);
					fast = hash_run(&cfg, NULL);
					cfg.general = true;
					general = hash_run(&cfg, NULL);
					ok(fast == general,
						"template: report %d int %d inner %d variant %u seed %" PRIu64,
						report, version, inner, v, cfg.seed);
					forms++;
				}
	ok(forms > 200, "%u forms", forms);
}

static void test_time(void)
{
	struct pl_gen_cfg cfg = { .rate = 1000, .duration_ns = 2000000000, .start_ns = 5000000000 };
	struct pl_gen *g;
	uint64_t last = 0, seen = 0;
	bool rising = true;

	eq(pl_gen_new(&g, &cfg, NULL), 0);
	eq(pl_gen_due_ns(g), 5000000000u);
	eq(pl_gen_next(g, 5000000000u, &batch), 0, "nothing is due before the start");
	eq(pl_gen_next(g, 5000000001u, &batch), 1, "one is due at the start");
	seen = batch.n;
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			rising &= batch.pkts[i].ts_ns > last;
			last = batch.pkts[i].ts_ns;
		}
		seen += batch.n;
	}
	ok(rising, "times rise");
	eq(seen, 2000, "rate times duration");
	eq(last, 5000000000u + 1999000000u);
	eq(pl_gen_next(g, UINT64_MAX, &batch), -ENODATA);
	eq(pl_gen_due_ns(g), UINT64_MAX);
	pl_gen_free(g);
}

static void test_loss_is_counted(void)
{
	struct pl_gen_cfg cfg = { .rate = 1000,
		.duration_ns = 10000000000,
		.loss = 0.25,
		.truth = true,
		.topology = "chain:3",
		.flows = 1 };
	struct pl_gen *g;
	uint32_t expect = 0, gaps = 0;
	const struct pl_gen_counters *c;

	eq(pl_gen_new(&g, &cfg, NULL), 0);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_gen_truth *t = pl_gen_truth(g, i, 0);

			gaps += t->seq - expect;
			expect = t->seq + 1;
		}
	}
	c = pl_gen_counters(g);
	eq(c->reports + c->lost, 10000, "every report is given out or counted as lost");
	ok(gaps <= c->lost && gaps + 20 > c->lost, "sequence gaps %u, lost %" PRIu64, gaps,
		c->lost);
	ok(c->lost > 2200 && c->lost < 2800, "about a quarter");
	pl_gen_free(g);

	cfg.loss = 1;
	eq(pl_gen_new(&g, &cfg, NULL), 0);
	ok(pl_gen_next(g, UINT64_MAX, &batch) <= 0, "all lost: it ends all the same");
	pl_gen_free(g);
}

static void test_events(void)
{
	struct pl_gen_cfg cfg = { .rate = 1000,
		.duration_ns = 10000000000,
		.truth = true,
		.topology = "leaf-spine:2x2",
		.flows = 1,
		.queue = { PL_DIST_CONST, 5, 0 } };
	struct pl_gen *g;
	struct pl_diag diag = { .text = "" };
	uint32_t spine[10] = { 0 }, depth[10] = { 0 };

	eq(pl_gen_event_parse(&cfg.events[0], "path@2s+3s", &diag), 0);
	eq(pl_gen_event_parse(&cfg.events[1], "queue@7s+2s:depth=9000,node=1", &diag), 0);
	cfg.n_events = 2;
	if (!ok(pl_gen_new(&g, &cfg, &diag) == 0, "%s", diag.text))
		return;
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_gen_truth *t = pl_gen_truth(g, i, 0);
			unsigned int s =
				(unsigned int)((batch.pkts[i].ts_ns - pl_gen_cfg(g)->start_ns) /
					       1000000000);

			spine[s] = t->hops[1].node;
			if (t->hops[0].queue_depth > depth[s])
				depth[s] = t->hops[0].queue_depth;
		}
	}
	ok(spine[0] == spine[1] && spine[2] != spine[1] && spine[4] == spine[2] &&
			spine[5] == spine[0],
		"the path changes at 2 s and back at 5 s");
	eq(depth[6], 5, "the queue is shallow before");
	eq(depth[7], 9005, "and reaches its peak");
	eq(depth[9], 5, "and is shallow after");
	pl_gen_free(g);
}

static void test_refusals(void)
{
	static const struct {
		const char *why;
		struct pl_gen_cfg cfg;
	} rows[] = {
		{ "MX in 1.0", { .mode = PL_GEN_MX, .version = PL_GEN_INT_V10 } },
		{ "XD without a report", { .mode = PL_GEN_XD, .report = PL_GEN_REPORT_NONE } },
		{ "GRE in 1.0", { .carrier = PL_GEN_GRE, .version = PL_GEN_INT_V10 } },
		{ "frames through UDP", { .report = PL_GEN_REPORT_NONE, .udp = true } },
		{ "several reports in 1.0",
			{ .reports_per_datagram = 2, .report = PL_GEN_REPORT_V10 } },
		{ "too many reports", { .reports_per_datagram = 17 } },
		{ "a share above 1", { .loss = 1.5 } },
		{ "a negative share", { .drop = -0.1 } },
		{ "IP version 5", { .inner_ip = 5 } },
		{ "Host-INT by port",
			{ .dialect = PL_DIALECT_HOST_INT, .announce = PL_GEN_ANNOUNCE_PORT } },
		{ "Host-INT 1.0", { .dialect = PL_DIALECT_HOST_INT, .version = PL_GEN_INT_V10 } },
		{ "NPT 3", { .npt = 3 } },
		{ "NPT 1 over TCP", { .npt = 1, .carrier = PL_GEN_TCP } },
		{ "NPT in a tunnel", { .npt = 2, .carrier = PL_GEN_GENEVE } },
		{ "a marker in 0.5",
			{ .announce = PL_GEN_ANNOUNCE_MARKER, .version = PL_GEN_INT_V05 } },
		{ "domain words in 1.0", { .ds_words = 1, .version = PL_GEN_INT_V10 } },
		{ "source words as many as a hop's", { .source_words = 2, .bitmap = 0xc000 } },
		{ "source words more than a hop's", { .source_words = 3, .bitmap = 0xc000 } },
		{ "hardware id 64", { .hw_id = 64 } },
		{ "too many flows", { .flows = PL_GEN_FLOWS_MAX + 1 } },
		{ "flushed stacks in 1.0", { .flush_hops = 2, .report = PL_GEN_REPORT_V10 } },
		{ "TLVs in 0.5", { .inner_tlv = true, .report = PL_GEN_REPORT_V05 } },
		{ "ICMP with INT in it", { .proto = PL_GEN_PROTO_ICMP } },
		{ "chained shims over UDP", { .gpe_chain = 1, .carrier = PL_GEN_UDP } },
		{ "three chained shims", { .gpe_chain = 3 } },
		{ "fragments above 1", { .fragments = 1.5 } },
		{ "fragments with options",
			{ .fragments = 1, .ip_options = 1, .mode = PL_GEN_XD } },
		{ "IOAM in IPv4", { .ioam = { .options = PL_GEN_IOAM_TRACE }, .inner_ip = 4 } },
		{ "IOAM through UDP", { .ioam = { .options = PL_GEN_IOAM_TRACE }, .udp = true } },
		{ "IOAM in reports",
			{ .ioam = { .options = PL_GEN_IOAM_E2E }, .report = PL_GEN_REPORT_V20 } },
		{ "a snapshot without its bit",
			{ .ioam = { .options = 1, .trace_type = 0xf00000, .snapshot_words = 2 } } },
		{ "a trace of nothing", { .ioam = { .options = 1, .trace_type = 0x000001 } } },
		{ "more nodes than fit", { .ioam = { .options = 1, .nodes = 40 } } },
		{ "damage to more than all",
			{ .n_malform = 2, .malform = { { NULL, 0.7 }, { NULL, 0.6 } } } },
		{ "an unknown topology", { .topology = "star:3" } },
		{ "a path event without another path",
			{ .topology = "chain:3",
				.n_events = 1,
				.events = { { PL_GEN_EVENT_PATH } } } },
		{ "an event at an unknown node",
			{ .n_events = 1,
				.events = { { PL_GEN_EVENT_LOSS, .node = 99, .value = 1 } } } },
		{ "a datagram that cannot hold its reports",
			{ .reports_per_datagram = 16, .payload = 1000 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_gen *g = NULL;
		struct pl_diag diag = { .text = "" };
		int r = pl_gen_new(&g, &rows[i].cfg, &diag);

		ok(r == -EINVAL && g == NULL && diag.text[0] != '\0', "%s: %s", rows[i].why,
			diag.text);
		pl_gen_free(g);
	}
}

static void test_texts(void)
{
	static const char *const bad_events[] = { "", "path", "path@", "path@x", "fire@1s",
		"path@1s:", "path@1s:link=1", "path@1s:node=1", "loss@1s:ratio=2",
		"loss@1s:depth=4", "drop@1s:reason=256", "queue@1s:queue=x", "queue@1s:every",
		"restart@1s:ratio=1" };
	static const char *const bad_dists[] = { "", "const", "const:", "const:x", "const:-1",
		"uniform:1", "uniform:5,1", "exp:1,2", "pareto:1,1", "gauss:1,2", "normal:1" };
	struct pl_gen_event e;
	struct pl_dist d;

	for (size_t i = 0; i < sizeof(bad_events) / sizeof(bad_events[0]); i++) {
		if (strcmp(bad_events[i], "path@1s:") == 0)
			continue; /* an empty list of keys is a list of keys */
		ok(pl_gen_event_parse(&e, bad_events[i], NULL) == -EINVAL, "event \"%s\"",
			bad_events[i]);
	}
	eq(pl_gen_event_parse(&e, "loss@1.5s+200ms:ratio=0.25,node=3,every=10s", NULL), 0);
	ok(e.kind == PL_GEN_EVENT_LOSS && e.at_ns == 1500000000 && e.duration_ns == 200000000 &&
		e.value == 0.25 && e.node == 3 && e.every_ns == 10000000000);
	for (size_t i = 0; i < sizeof(bad_dists) / sizeof(bad_dists[0]); i++)
		ok(pl_dist_parse(&d, bad_dists[i], false, NULL) == -EINVAL, "distribution \"%s\"",
			bad_dists[i]);
	eq(pl_dist_parse(&d, "uniform:1us,5us", true, NULL), 0);
	ok(d.kind == PL_DIST_UNIFORM && d.a == 1000 && d.b == 5000);
}

static void test_distributions(void)
{
	static const struct {
		const char *text;
		double mean, slack;
	} rows[] = { { "const:7", 7, 0 }, { "uniform:10,20", 15, 0.2 }, { "exp:100", 100, 3 },
		{ "normal:1000,50", 1000, 3 }, { "pareto:10,3", 15, 0.5 } };
	struct pl_rng rng;

	pl_rng_seed(&rng, 99);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_dist d;
		double sum = 0;

		eq(pl_dist_parse(&d, rows[i].text, false, NULL), 0);
		for (int k = 0; k < 100000; k++)
			sum += (double)pl_dist_draw(&d, &rng, UINT32_MAX);
		sum /= 100000;
		ok(sum >= rows[i].mean - rows[i].slack && sum <= rows[i].mean + rows[i].slack,
			"%s has mean %.2f", rows[i].text, sum);
	}
}

static void test_malform_table(void)
{
	size_t n;
	const struct pl_malform *rows = pl_malforms(&n);

	for (size_t i = 0; i < n; i++) {
		struct pl_gen_cfg cfg = { .count = 50, .topology = "chain:4", .flows = 3 };
		struct pl_diag diag = { .text = "" };
		struct pl_gen *g = NULL;
		struct pl_gen_cfg twice;

		ok(pl_malform_find(rows[i].name) == &rows[i], "%s has a name of its own",
			rows[i].name);
		ok((rows[i].verdict == PL_V_OK) == (rows[i].note != 0),
			"%s asks for a verdict or a note", rows[i].name);
		eq(pl_malform_add(&cfg, &rows[i], 1, &diag), 0, "%s: %s", rows[i].name, diag.text);
		twice = cfg;
		if (!ok(pl_gen_new(&g, &cfg, &diag) == 0, "%s: %s", rows[i].name, diag.text))
			continue;
		while (pl_gen_next(g, UINT64_MAX, &batch) > 0)
			;
		eq(pl_gen_counters(g)->malformed, 50, "%s damages every packet", rows[i].name);
		pl_gen_free(g);
		twice.udp = true;
		ok((pl_malform_add(&twice, &rows[i], 1, NULL) < 0) == rows[i].needs.frames,
			"%s through UDP", rows[i].name);
	}
	ok(pl_malform_find("nonsense") == NULL);
}

static void test_replays(void)
{
	for (int r = PL_GEN_REPLAY_INTCOLLECTOR_1; r < PL_GEN_REPLAY_MAX; r++) {
		struct pl_gen_cfg cfg = { .replay = (enum pl_gen_replay)r, .count = 200 };
		unsigned int n;

		ok(hash_run(&cfg, &n) != 0 && n == 200, "INTCollector test %d", r);
	}
}

int main(void)
{
	test_same_seed_same_bytes();
	test_templates();
	test_time();
	test_loss_is_counted();
	test_events();
	test_refusals();
	test_texts();
	test_distributions();
	test_malform_table();
	test_replays();
	return pl_test_done();
}
