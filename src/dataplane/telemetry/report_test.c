/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the data plane, read by the collector's decoder: every version of INT and of reports
 * has the nodes' values. */
#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/telemetry/report_filter.h"
#include "dataplane/telemetry/reporter.h"
#include "dataplane/test_packets.h"
#include "decode/decode.h"

#define PACKETS   60 /* of each form */
#define NODES_MAX 5

static struct pl_dp_pool *pool;
static struct pl_record_batch out;
static struct pl_batch batch;
static char why[200];

struct form {
	const char *name;
	struct pl_dp_int_source_config c;
	enum test_kind kind;
};

#define MD(v, ...)                                                                                 \
	{                                                                                          \
		.version = PL_INT_V##v, .kind = PL_INT_MD, __VA_ARGS__                             \
	}

static const struct form forms[] = {
	{ "0.5", MD(05, .by = 0), TEST_PLAIN },
	{ "0.5 port", MD(05, .by = PL_DP_BY_PORT), TEST_PLAIN },
	{ "1.0", MD(10, .by = 0), TEST_PLAIN },
	{ "1.0 level 2", MD(10, .bitmap = 0xff01), TEST_PLAIN },
	{ "1.0 marker", MD(10, .by = PL_DP_BY_MARKER), TEST_PLAIN },
	{ "1.0 gpe", MD(10, .carrier = PL_INT_OVER_GPE), TEST_GPE },
	{ "2.1", MD(20, .by = 0), TEST_PLAIN },
	{ "2.1 all", MD(20, .bitmap = 0xff80), TEST_PLAIN },
	{ "2.1 npt 1", MD(20, .by = PL_DP_BY_PORT, .npt = 1), TEST_PLAIN },
	{ "2.1 npt 2", MD(20, .by = PL_DP_BY_PORT, .npt = 2), TEST_PLAIN },
	{ "2.1 geneve", MD(20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000), TEST_GENEVE },
	{ "2.1 gre", MD(20, .carrier = PL_INT_OVER_GRE), TEST_GRE },
	{ "2.1 mx", { .version = PL_INT_V20, .kind = PL_INT_MX }, TEST_PLAIN },
};

static struct pl_decode *decoder(const struct form *form)
{
	struct pl_profile profile = {
		.tcp_placement = PL_TCP_AUTO,
		.dscp_set = form->c.by == 0,
		.dscp_value = 0x17,
		.dscp_mask = 0x3f,
		.int_port = 33122,
		.marker_set = form->c.by == PL_DP_BY_MARKER,
		.marker = UINT64_C(0xaaaaaaaabbbbbbbb),
	};
	struct pl_decode_options options = {
		.profiles = &profile,
		.n_profiles = 1,
		.gre_int_ethertype = 0x88b5,
		.max_exporters = 64,
		.max_paths = 1024,
	};
	struct pl_decode *d = NULL;

	eq(pl_decode_new(&d, &options), 0);
	return d;
}

static void pass_node(struct pl_dp_packet *pkt, uint32_t i, struct pl_rng *rng)
{
	pkt->in_port = (uint16_t)(1 + i);
	pkt->out_port = (uint16_t)(50 + i);
	pkt->queue = (uint8_t)(i % 8);
	pkt->depth_bytes = (uint32_t)pl_rng_below(rng, 1 << 24);
	pkt->in_ns = UINT64_C(1700000000000000000) + pl_rng_below(rng, UINT64_C(1) << 40);
	pkt->out_ns = pkt->in_ns + 1 + pl_rng_below(rng, 1 << 20);
	pkt->tx_util = (uint32_t)pl_rng_below(rng, 65537);
}

static bool differs(const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		snprintf(why, sizeof(why), "%s: got %" PRIu64 ", wanted %" PRIu64, what, got, want);
	return got != want;
}

/* Returns true when the record lacks a field of `must` or has a value other than the node's. */
static bool hop_differs(const struct pl_hop *h, const struct pl_int_hop *t, uint32_t must)
{
	uint64_t mask = h->time_bits == 64 ? UINT64_MAX : UINT32_MAX;

#define SAME(field, has, member, want)                                                             \
	if ((must & PL_INT_HAS(field)) != 0 && (h->present & (has)) == 0) {                        \
		snprintf(why, sizeof(why), "no " #member);                                         \
		return true;                                                                       \
	}                                                                                          \
	if ((h->present & (has)) != 0 && differs(#member, h->member, want))                        \
		return true;
	SAME(PL_INT_F_NODE, PL_HOP_HAS_node, node, t->node)
	SAME(PL_INT_F_PORTS, PL_HOP_HAS_ingress_port, ingress_port, t->ingress_port)
	SAME(PL_INT_F_PORTS, PL_HOP_HAS_egress_port, egress_port, t->egress_port)
	SAME(PL_INT_F_LATENCY, PL_HOP_HAS_hop_latency_ns, hop_latency_ns, t->latency)
	SAME(PL_INT_F_QUEUE, PL_HOP_HAS_queue_depth, queue_depth, t->queue_depth)
	SAME(PL_INT_F_QUEUE, PL_HOP_HAS_queue, queue, t->queue)
	SAME(PL_INT_F_INGRESS_TS, PL_HOP_HAS_ingress_ts_ns, ingress_ts_ns, t->ingress_ts & mask)
	SAME(PL_INT_F_EGRESS_TS, PL_HOP_HAS_egress_ts_ns, egress_ts_ns, t->egress_ts & mask)
	SAME(PL_INT_F_PORTS2, PL_HOP_HAS_ingress_port2, ingress_port2, t->ingress_port2)
	SAME(PL_INT_F_TX_UTIL, PL_HOP_HAS_tx_util, tx_util, t->tx_util)
	SAME(PL_INT_F_BUFFER, PL_HOP_HAS_buffer_depth, buffer_depth, t->buffer_depth)
#undef SAME
	return false;
}

/* Returns the fields for which a report's header of this version has a place. */
static uint32_t header_fields(uint8_t version)
{
	uint32_t f = PL_INT_HAS(PL_INT_F_NODE) | PL_INT_HAS(PL_INT_F_PORTS) |
		     PL_INT_HAS(PL_INT_F_QUEUE) | PL_INT_HAS(PL_INT_F_EGRESS_TS);

	if (version != PL_REPORT_V05)
		f |= PL_INT_HAS(PL_INT_F_LATENCY) | PL_INT_HAS(PL_INT_F_TX_UTIL);
	if (version == PL_REPORT_V20)
		f |= PL_INT_HAS(PL_INT_F_INGRESS_TS);
	return f;
}

static uint32_t stack_fields(const struct pl_dp_int_source_config *c)
{
	uint32_t f = 0;

	for (unsigned int i = 0; i < PL_INT_F_MAX; i++) {
		if ((c->bitmap & PL_INT_BIT(i)) != 0)
			f |= PL_INT_HAS(i);
	}
	return c->version == PL_INT_V05 ? f & ~PL_INT_HAS(PL_INT_F_PORTS2) : f;
}

/* Decodes the only report in a packet; false when there is not exactly one. */
static bool read_report(struct pl_decode *d, struct pl_dp_packet *report)
{
	bool good;

	report->in_port = report->out_port = 0;
	if (!test_locate(report) || test_wrong(report) != NULL) {
		snprintf(why, sizeof(why), "the report's own headers");
		return false;
	}
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = report->data,
		.len = report->len,
		.wire_len = report->len,
		.link = PL_LINK_ETHERNET,
		.ts_ns = 1 };
	pl_record_batch_clear(&out);
	pl_decode_batch(d, &batch, &out);
	good = pl_decode_outcomes(d)[0].verdict == PL_V_OK && out.n_paths == 1;
	if (!good)
		snprintf(why, sizeof(why), "verdict %s, %u reports",
			pl_verdict_name((enum pl_verdict)pl_decode_outcomes(d)[0].verdict),
			out.n_paths);
	return good;
}

static bool flow_differs(const struct pl_path *p, const struct pl_layers *l)
{
	return differs("source", !pl_addr_equal(&p->src, &l->flow.src), 0) ||
	       differs("destination", !pl_addr_equal(&p->dst, &l->flow.dst), 0) ||
	       differs("dport", p->dport, l->flow.dport) ||
	       differs("proto", p->proto, l->flow.proto) || differs("dscp", p->dscp, l->flow.dscp);
}

static uint32_t one(const struct form *form, struct pl_dp_reporter *reporter,
	struct pl_dp_int_source *source, struct pl_decode *d, struct pl_rng *rng)
{
	static struct pl_dp_int_transit transit;
	static struct pl_dp_int_sink sink;
	uint8_t bytes[TEST_BYTES];
	uint32_t len = test_make(bytes, rng, form->kind),
		 hops = (uint32_t)pl_rng_below(rng, NODES_MAX), wrong = 0;
	struct pl_dp_packet *pkt = pl_dp_packet_of(pool, bytes, len), *report;
	struct pl_int_hop told[NODES_MAX + 1];
	struct pl_dp_int_sink_look look;
	struct pl_dp_node node = { .id = 100, .have_buffer = true, .buffer_bytes = 4321 };
	struct pl_layers original;
	bool mx = form->c.kind == PL_INT_MX;
	uint32_t i;

	pl_dp_int_transit_init(&transit, &source->config.domain);
	pl_dp_int_sink_init(&sink, &source->config.domain);
	if (!test_locate(pkt) || pl_layers_walk(&original, pl_cursor(bytes, len), PL_LINK_ETHERNET,
					 false) != PL_V_OK)
		goto out;
	for (i = 0; i <= hops; i++) {
		node.id = 100 + i;
		pass_node(pkt, i, rng);
		pl_dp_node_hop(&told[i], &node, pkt);
		if (i == 0 && pl_dp_int_source(source, &node, pkt) != PL_DP_INT_DONE)
			goto out;
		if (i > 0)
			pl_dp_int_transit(&transit, &node, pkt);
		if (mx) { /* each node reports */
			report = pl_dp_report(reporter, &node, pkt, PL_DP_REPORT_F,
				pl_dp_int_keep(&sink.domain, pkt, &sink.cache));
			wrong += report == NULL || !read_report(d, report) ||
				 differs("hops", out.paths[0].hop_count, 1) ||
				 hop_differs(out.hops, &told[i],
					 header_fields(reporter->config.version));
			pl_dp_packet_free(report);
		}
	}
	/* the sink, with its values in the header */
	node.id = 100 + i;
	pass_node(pkt, i, rng);
	pl_dp_node_hop(&told[i], &node, pkt);
	if (pl_dp_int_sink_look(&sink, pkt, &look) != PL_DP_INT_DONE) {
		wrong++;
		goto out;
	}
	report = pl_dp_report(
		reporter, &node, pkt, PL_DP_REPORT_F, pl_dp_int_found_keep(&look.found));
	pl_dp_int_sink_strip(&sink, &look);
	if (report == NULL || !read_report(d, report)) {
		wrong++;
	} else {
		const struct pl_path *p = &out.paths[0];
		uint32_t n = mx ? 0 : i;

		if (differs("hops", p->hop_count, n + 1) || differs("node", p->node, node.id) ||
			differs("seq", p->seq, reporter->seq - 1) ||
			differs("flags", p->flags & (PL_FLAG_DROPPED | PL_FLAG_TRACKED),
				PL_FLAG_TRACKED) ||
			(form->kind == TEST_PLAIN && flow_differs(p, &original)))
			wrong++;
		for (uint32_t k = 0; k < n; k++)
			wrong += hop_differs(&out.hops[k], &told[k], stack_fields(&source->config));
		wrong += hop_differs(
			&out.hops[n], &told[i], header_fields(reporter->config.version));
	}
	pl_dp_packet_free(report);
	if (pkt->len != len || memcmp(pkt->data, bytes, len) != 0)
		wrong++;
	/* dropped here */
	pkt->drop = PL_DP_DROP_QUEUE;
	report = pl_dp_report(reporter, &node, pkt, PL_DP_REPORT_D, 0);
	if (report == NULL || !read_report(d, report) ||
		differs("dropped", (out.paths[0].flags & PL_FLAG_DROPPED) != 0, 1) ||
		differs("reason", out.paths[0].drop_reason, 71) ||
		(form->kind == TEST_PLAIN && flow_differs(&out.paths[0], &original)))
		wrong++;
	pl_dp_packet_free(report);
	pkt->drop = 0;
	/* congested here */
	report = pl_dp_report(reporter, &node, pkt, PL_DP_REPORT_Q, 0);
	if (report == NULL || !read_report(d, report) ||
		differs("congested", (out.paths[0].flags & PL_FLAG_CONGESTED) != 0, 1) ||
		differs("depth", out.hops[0].queue_depth, told[i].queue_depth))
		wrong++;
	pl_dp_packet_free(report);
out:
	pl_dp_packet_free(pkt);
	return wrong;
}

static void test_forms(void)
{
	static const char *const versions[] = { "0.5", "1.0", "2.0" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		for (uint8_t v = 0; v < PL_REPORT_VERSION_MAX; v++) {
			const uint8_t a[8] = { 10, 9, 9, 1, 10, 9, 9, 2 };
			struct pl_dp_reporter_config c = { .version = v,
				.hw_id = 5,
				.to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) },
				.bitmap = 0xff80,
				.snap = (uint16_t)(16 * v) };
			static struct pl_dp_int_source source;
			struct pl_dp_reporter reporter;
			struct pl_decode *d = decoder(&forms[i]);
			struct pl_rng rng;
			uint32_t wrong = 0;

			pl_rng_seed(&rng, 3);
			eq(pl_dp_reporter_init(&reporter, &c, pool, NULL), 0);
			eq(pl_dp_int_source_init(&source, &forms[i].c, NULL), 0);
			for (uint32_t k = 0; k < PACKETS; k++)
				wrong += one(&forms[i], &reporter, &source, d, &rng);
			ok(wrong == 0 && reporter.seq > 3 * (PACKETS / 4), "INT %s in reports %s",
				forms[i].name, versions[v]);
			if (wrong > 0)
				printf("# %u wrong; the last: %s\n", wrong, why);
			pl_decode_free(d);
		}
	}
}

/* Destination port of the packets of changed(), and NPT of their INT (0: announced by DSCP). */
static uint16_t to_port = 9;
static uint8_t by_npt;

static bool changed(struct pl_dp_flow_change *c, uint16_t port, const uint32_t *latency, uint32_t n,
	uint32_t first_node, uint64_t now_ns)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	static struct pl_dp_int_sink sink;
	const struct pl_dp_int_source_config config = { .version = by_npt != 0 ? PL_INT_V20
									       : PL_INT_V10,
		.by = by_npt != 0 ? PL_DP_BY_PORT : 0,
		.npt = by_npt,
		.bitmap = 0xe000 };
	const uint8_t a[8] = { 10, 0, 0, 1, 10, 0, 0, 2 };
	const struct pl_flow f = { .src = pl_addr_v4(a),
		.dst = pl_addr_v4(a + 4),
		.sport = port,
		.dport = to_port,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	struct pl_dp_int_sink_look look;
	uint8_t bytes[200];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	struct pl_dp_packet *pkt;
	size_t at;
	bool r;

	pl_put_eth(&b, PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &f, 9, 0);
	pl_end_ip(&b, at);
	pkt = pl_dp_packet_of(pool, bytes, (uint32_t)b.len);
	test_locate(pkt);
	pl_dp_int_source_init(&source, &config, NULL);
	pl_dp_int_transit_init(&transit, &source.config.domain);
	pl_dp_int_sink_init(&sink, &source.config.domain);
	for (uint32_t i = 0; i < n; i++) {
		struct pl_dp_node node = { .id = first_node + i };

		pkt->in_ns = 1000;
		pkt->out_ns = 1000 + latency[i];
		if (i == 0)
			pl_dp_int_source(&source, &node, pkt);
		else
			pl_dp_int_transit(&transit, &node, pkt);
	}
	eq(pl_dp_int_sink_look(&sink, pkt, &look), PL_DP_INT_DONE);
	r = pl_dp_flow_change(c, pkt, &look.found, now_ns);
	pl_dp_packet_free(pkt);
	return r;
}

static void test_change(void)
{
	struct pl_dp_flow_change_config config = {
		.flows = 64, .latency = 100, .path = true, .interval_ns = 1000000
	};
	const uint32_t flat[2] = { 500, 600 }, less[2] = { 500, 501 }, more[2] = { 599, 600 };
	struct pl_dp_flow_change *c = NULL;

	eq(pl_dp_flow_change_new(&c, &config), 0);
	ok(changed(c, 1, flat, 2, 1, 10), "a new flow");
	ok(!changed(c, 1, flat, 2, 1, 20), "the same again");
	ok(!changed(c, 1, less, 2, 1, 20), "99 ns less");
	ok(!changed(c, 1, more, 2, 1, 20), "99 ns more");
	ok(changed(c, 2, flat, 2, 1, 20), "another flow");
	ok(changed(c, 1, flat, 2, 7, 30), "other nodes");
	ok(!changed(c, 1, flat, 2, 7, 30 + 999999), "nearly the interval");
	ok(changed(c, 1, flat, 2, 7, 30 + 1000000), "the interval");
	ok(changed(c, 1, flat, 1, 7, 30 + 1000000), "a hop less");
	ok(changed(c, 1, (const uint32_t[]){ 400 }, 1, 7, 30 + 1000000), "100 ns less");
	pl_dp_flow_change_free(c);
	/* no condition: every packet */
	eq(pl_dp_flow_change_new(&c, &(struct pl_dp_flow_change_config){ .flows = 4 }), 0);
	ok(changed(c, 1, flat, 2, 1, 10) && changed(c, 1, flat, 2, 1, 10), "every packet");
	pl_dp_flow_change_free(c);
	/* more flows than places: replaced flows are reported again */
	config.flows = 4;
	eq(pl_dp_flow_change_new(&c, &config), 0);
	for (uint16_t i = 0; i < 100; i++)
		ok(changed(c, i, flat, 2, 1, 50 + i), "flow %u of many", i);
	pl_dp_flow_change_free(c);
	config.flows = 3;
	eq(pl_dp_flow_change_new(&c, &config), -22);
	/* the port that announces INT is not the flow's */
	config.flows = 64;
	for (by_npt = 1; by_npt <= 2; by_npt++) {
		eq(pl_dp_flow_change_new(&c, &config), 0);
		ok(changed(c, 1, flat, 2, 1, 10), "NPT %u: a new flow", by_npt);
		to_port = 10;
		ok(changed(c, 1, flat, 2, 1, 10), "another one, from the same port");
		to_port = 9;
		ok(!changed(c, 1, flat, 2, 1, 10), "the first one again");
		pl_dp_flow_change_free(c);
	}
	by_npt = 0;
}

static void test_queue_watch(void)
{
	const struct pl_dp_queue_watch_config config = {
		.threshold_bytes = 1000, .reset_bytes = 400, .quota = 3, .interval_ns = 1000
	};
	struct pl_dp_queue_watch w;
	struct pl_dp_packet pkt = { .out_port = 2, .queue = 1, .depth_bytes = 999 };
	uint32_t told = 0;

	eq(pl_dp_queue_watch_init(&w, &config, 4), 0);
	ok(!pl_dp_queue_watch(&w, &pkt, 5000), "below the threshold");
	pkt.depth_bytes = 1000;
	for (int i = 0; i < 10; i++)
		told += pl_dp_queue_watch(&w, &pkt, 5000 + (uint64_t)i);
	eq(told, 3, "the quota");
	eq(w.held, 7);
	pkt.depth_bytes = 500;
	ok(pl_dp_queue_watch(&w, &pkt, 6000), "a new interval, the breach goes on");
	pkt.depth_bytes = 399;
	ok(!pl_dp_queue_watch(&w, &pkt, 6001), "over");
	pkt.depth_bytes = 500;
	ok(!pl_dp_queue_watch(&w, &pkt, 6002), "not begun again");
	pkt.queue = 0;
	pkt.depth_bytes = 2000;
	ok(pl_dp_queue_watch(&w, &pkt, 6003), "another queue has a quota of its own");
	pkt.out_port = 4;
	ok(!pl_dp_queue_watch(&w, &pkt, 6003), "no such port");
	pl_dp_queue_watch_done(&w);
}

int main(void)
{
	eq(pl_record_batch_init(&out, 64, 1024), 0);
	eq(pl_dp_pool_new(&pool, 4096, 16), 0);
	test_forms();
	test_change();
	test_queue_watch();
	eq(pl_dp_pool_alive(pool), 0);
	pl_dp_pool_free(pool);
	pl_record_batch_done(&out);
	return pl_test_done();
}
