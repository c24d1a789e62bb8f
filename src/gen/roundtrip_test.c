/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the generator encodes, the decoder must give back, field by field: every report version x
 * INT version x mode x carrier x dialect x way of beginning, over random networks. Damage is
 * malform_test.c's.
 */
#include "gen/test_roundtrip.h"

#include "gen/preset.h"

#define PACKETS 60

/* ---- all forms ---- */

static const char *const networks[] = { "chain:3", "leaf-spine:4x2", "random:12,3", "ring:9",
	"chain:2", "fat-tree:4" };

static void vary(struct pl_gen_cfg *cfg, uint64_t i)
{
	static const uint16_t bitmaps[] = { 0xfd00, 0xff00, 0x8000, 0xdc00, 0xff80, 0x9000, 0xff81,
		0xf000 };

	cfg->seed = 1000 + i;
	cfg->topology = networks[i % (sizeof(networks) / sizeof(networks[0]))];
	cfg->bitmap = bitmaps[i / 3 % (sizeof(bitmaps) / sizeof(bitmaps[0]))];
	if (cfg->version != PL_GEN_INT_V21 && cfg->report != PL_GEN_REPORT_V20)
		cfg->bitmap &= 0xff01;
	if (cfg->version == PL_GEN_INT_V05)
		cfg->bitmap &= 0xff00;
	cfg->count = PACKETS;
	cfg->flows = 7;
	cfg->truth = true;
	cfg->drop = i % 4 == 1 ? 0.2 : 0;
	cfg->missing = i % 5 == 2 ? 0.1 : 0;
	cfg->queue_report = i % 7 == 3 ? 40 : 0;
	cfg->hw_id = (uint8_t)(i % 64);
	cfg->clock_offset_ns = i % 3 == 0 ? 100000 : 0;
	cfg->tcp_options = (uint8_t)(i % 4);
}

/* The next of n choices, which `rest` holds as the digits of a number: numbers from 0 on are all
 * combinations. */
static unsigned int choose(uint64_t *rest, unsigned int n)
{
	const unsigned int choice = (unsigned int)(*rest % n);

	*rest /= n;
	return choice;
}

#define CHOOSE(rest, first, last) ((first) + choose(&(rest), (last) - (first) + 1))

static void test_forms(void)
{
	unsigned int forms = 0;

	for (uint64_t i = 0;; i++) {
		uint64_t rest = i;
		struct pl_gen_cfg cfg = { 0 };

		cfg.outer_ip = choose(&rest, 2) == 0 ? 4 : 6;
		cfg.inner_ip = choose(&rest, 2) == 0 ? 4 : 6;
		cfg.inner = CHOOSE(rest, PL_GEN_ETHERNET, PL_GEN_IP);
		cfg.carrier = CHOOSE(rest, PL_GEN_UDP, PL_GEN_GENEVE);
		cfg.mode = CHOOSE(rest, PL_GEN_MD, PL_GEN_XD);
		cfg.version = CHOOSE(rest, PL_GEN_INT_V05, PL_GEN_INT_V21);
		cfg.report = CHOOSE(rest, PL_GEN_REPORT_NONE, PL_GEN_REPORT_V20);
		if (rest != 0)
			break;
		vary(&cfg, i);
		forms += check_form(&cfg);
	}
	ok(forms > 300, "%u forms", forms);
}

static void test_sinks_and_announcements(void)
{
	unsigned int forms = 0;

	for (uint64_t i = 0;; i++) {
		uint64_t rest = i;
		const unsigned int tcp = choose(&rest, 3);
		struct pl_gen_cfg cfg = {
			.carrier = tcp > 0 ? PL_GEN_TCP : PL_GEN_UDP,
			.tcp_before_options = tcp == 2,
		};

		cfg.npt = (uint8_t)choose(&rest, 3);
		cfg.announce = CHOOSE(rest, PL_GEN_ANNOUNCE_DSCP, PL_GEN_ANNOUNCE_MARKER);
		cfg.sink = CHOOSE(rest, PL_GEN_SINK_STACK, PL_GEN_SINK_BOTH);
		cfg.version = CHOOSE(rest, PL_GEN_INT_V05, PL_GEN_INT_V21);
		cfg.report = CHOOSE(rest, PL_GEN_REPORT_NONE, PL_GEN_REPORT_V20);
		if (rest != 0)
			break;
		vary(&cfg, i);
		forms += check_form(&cfg);
	}
	ok(forms > 50, "%u forms", forms);
}

static void test_dialects_and_more(void)
{
	static const struct pl_gen_cfg rows[] = {
		{ .dialect = PL_DIALECT_INTCOLLECTOR },
		{ .dialect = PL_DIALECT_INTCOLLECTOR, .carrier = PL_GEN_TCP },
		{ .dialect = PL_DIALECT_INTCOLLECTOR, .version = PL_GEN_INT_V05, .bitmap = 0xff00 },
		{ .dialect = PL_DIALECT_GEANT },
		{ .dialect = PL_DIALECT_GEANT, .report = PL_GEN_REPORT_NONE },
		{ .dialect = PL_DIALECT_NOVIFLOW },
		{ .dialect = PL_DIALECT_NOVIFLOW,
			.carrier = PL_GEN_TCP,
			.tcp_before_options = true },
		{ .dialect = PL_DIALECT_HOST_INT, .topology = "chain:2" },
		{ .dialect = PL_DIALECT_HOST_INT, .topology = "chain:2", .carrier = PL_GEN_TCP },
		{ .dialect = PL_DIALECT_V04,
			.queue = { PL_DIST_CONST, 5, 0 },
			.start_ns = 1000000000 },
		{ .reports_per_datagram = 4 },
		{ .reports_per_datagram = 8, .mode = PL_GEN_XD },
		{ .reports_per_datagram = 3, .mode = PL_GEN_MX, .udp = true },
		{ .ds_words = 2 },
		{ .source_words = 3 },
		{ .bitmap = 0x8000, .drop = 0.5 },
		{ .ds_words = 1, .source_words = 2, .sink = PL_GEN_SINK_STACK },
		{ .topology = "chain:40" },
		{ .topology = "chain:40", .version = PL_GEN_INT_V05 },
		{ .topology = "chain:40", .version = PL_GEN_INT_V10, .report = PL_GEN_REPORT_NONE },
		{ .topology = "chain:20", .carrier = PL_GEN_GENEVE },
		{ .max_hops = 2, .topology = "chain:5" },
		{ .instrumented = true },
		{ .instrumented = true, .report = PL_GEN_REPORT_V10 },
		{ .payload = 1000 },
		{ .first_seq = 0x3fffff },
		{ .first_seq = UINT32_MAX, .report = PL_GEN_REPORT_V10 },
		{ .loss = 0.2, .duplicate = 0.2, .reorder = 0.2 },
		{ .udp = true, .version = PL_GEN_INT_V05 },
		/* stacks flushed on the way */
		{ .flush_hops = 1, .topology = "chain:5" },
		{ .flush_hops = 2, .topology = "chain:9", .sink = PL_GEN_SINK_STACK },
		{ .flush_hops = 3, .topology = "chain:9", .max_hops = 5 },
		{ .flush_hops = 2,
			.topology = "fat-tree:4",
			.source_words = 1,
			.reports_per_datagram = 3 },
		/* inner contents as TLVs */
		{ .inner_tlv = true },
		{ .inner_tlv = true, .inner = PL_GEN_IP, .mode = PL_GEN_XD },
		{ .inner_tlv = true, .inner = PL_GEN_IP, .inner_ip = 6, .reports_per_datagram = 2 },
		{ .inner_tlv = true, .inner = PL_GEN_QINQ, .mode = PL_GEN_MX, .payload = 13 },
		/* what original packets can be */
		{ .inner = PL_GEN_MPLS },
		{ .inner = PL_GEN_MPLS, .inner_ip = 6, .report = PL_GEN_REPORT_V10 },
		{ .inner = PL_GEN_MPLS, .report = PL_GEN_REPORT_NONE },
		{ .mode = PL_GEN_XD, .proto = PL_GEN_PROTO_ICMP },
		{ .mode = PL_GEN_XD,
			.proto = PL_GEN_PROTO_ICMP,
			.inner_ip = 6,
			.report = PL_GEN_REPORT_V05 },
		{ .carrier = PL_GEN_GPE, .proto = PL_GEN_PROTO_ICMP },
		{ .carrier = PL_GEN_GENEVE,
			.proto = PL_GEN_PROTO_TCP,
			.report = PL_GEN_REPORT_NONE },
		{ .carrier = PL_GEN_GRE, .proto = PL_GEN_PROTO_UDP },
		{ .ip_options = 1 },
		{ .ip_options = 10, .carrier = PL_GEN_TCP, .report = PL_GEN_REPORT_V10 },
		{ .ip_options = 3, .inner_ip = 6 },
		{ .ip_options = 10, .inner_ip = 6, .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V05 },
		{ .ip_options = 2, .report = PL_GEN_REPORT_NONE },
		{ .fragments = 0.5, .mode = PL_GEN_XD },
		{ .fragments = 0.5, .mode = PL_GEN_XD, .inner_ip = 6, .inner = PL_GEN_VLAN },
		{ .fragments = 1,
			.mode = PL_GEN_XD,
			.inner = PL_GEN_VXLAN,
			.report = PL_GEN_REPORT_V05 },
		{ .fragments = 0.5,
			.mode = PL_GEN_XD,
			.inner = PL_GEN_IP,
			.report = PL_GEN_REPORT_V10 },
		/* more than one shim */
		{ .destination_shim = true },
		{ .destination_shim = true, .version = PL_GEN_INT_V05 },
		{ .destination_shim = true, .version = PL_GEN_INT_V10, .carrier = PL_GEN_TCP },
		{ .destination_shim = true, .carrier = PL_GEN_GPE },
		{ .destination_shim = true, .carrier = PL_GEN_GPE, .version = PL_GEN_INT_V05 },
		{ .destination_shim = true, .carrier = PL_GEN_GRE },
		{ .destination_shim = true, .carrier = PL_GEN_GENEVE },
		{ .gpe_chain = 1 },
		{ .gpe_chain = 2, .version = PL_GEN_INT_V10, .report = PL_GEN_REPORT_NONE },
		{ .gpe_chain = 2, .destination_shim = true },
		{ .gpe_chain = 1, .mode = PL_GEN_MX },
		/* the longest lengths */
		{ .topology = "chain:63", .bitmap = 0xf000, .sink = PL_GEN_SINK_STACK },
		{ .topology = "chain:63",
			.bitmap = 0xf000,
			.sink = PL_GEN_SINK_STACK,
			.version = PL_GEN_INT_V10,
			.report = PL_GEN_REPORT_V20 },
		{ .payload = 2000, .mode = PL_GEN_XD },
		/* queue reports and drop reports or summaries of every kind */
		{ .report = PL_GEN_REPORT_V05, .drop = 0.3, .queue_report = 20 },
		{ .report = PL_GEN_REPORT_V10, .drop = 0.3, .queue_report = 20 },
		{ .report = PL_GEN_REPORT_V20, .drop = 0.3, .queue_report = 20 },
		{ .report = PL_GEN_REPORT_V05, .drop = 0.3, .queue_report = 20, .mode = PL_GEN_XD },
		{ .report = PL_GEN_REPORT_V10,
			.drop = 0.3,
			.queue_report = 20,
			.sink = PL_GEN_SINK_BOTH },
		{ .report = PL_GEN_REPORT_V20, .drop = 0.3, .queue_report = 20, .mode = PL_GEN_MX },
		{ .dialect = PL_DIALECT_HOST_INT,
			.drop = 0.3,
			.queue_report = 20,
			.topology = "chain:2" },
		{ .dialect = PL_DIALECT_HOST_INT,
			.drop = 0.9,
			.carrier = PL_GEN_TCP,
			.topology = "chain:3" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint64_t k = 0; k < 6; k++) {
			struct pl_gen_cfg cfg = rows[i];
			struct pl_gen_cfg v = cfg;

			vary(&v, k * 7 + i);
			cfg.seed = v.seed;
			cfg.count = 200;
			cfg.truth = true;
			cfg.drop = rows[i].drop != 0 ? rows[i].drop : v.drop;
			cfg.missing = cfg.dialect == PL_DIALECT_V04 ? 0 : v.missing;
			if (rows[i].queue_report == 0)
				cfg.queue_report = v.queue_report;
			cfg.flows = 5;
			if (cfg.topology == NULL)
				cfg.topology = v.topology;
			ok(check_form(&cfg), "row %zu can be had", i);
		}
	}
}

/* ---- IOAM ---- */

/* The time as the namespace's format carries it, in ns. */
static uint64_t carried(uint64_t ns, enum pl_gen_ioam_time format)
{
	uint64_t rest = ns % 1000000000;

	if (format == PL_GEN_IOAM_POSIX)
		return ns / 1000 * 1000;
	if (format == PL_GEN_IOAM_NTP)
		return ns - rest + (((rest << 32) / 1000000000 * 1000000000) >> 32);
	return ns;
}

static bool node_differs(const struct pl_gen_ioam *io, const struct pl_hop *h,
	const struct pl_ioam_node *n, const struct pl_int_hop *model)
{
	uint32_t type = io->trace_type, have = n->have;
	const uint32_t both = PL_IOAM_BIT(2) | PL_IOAM_BIT(3);
	bool wide = (type & PL_IOAM_BIT(8)) != 0 && (have & PL_IOAM_HAS_NODE_WIDE) != 0;
	bool id = (type & PL_IOAM_BIT(0)) != 0 && (have & PL_IOAM_HAS_NODE) != 0;
	bool delay = (type & PL_IOAM_BIT(4)) != 0 && (have & PL_IOAM_HAS_DELAY) != 0;
	bool time = (type & both) == both && (have & PL_IOAM_HAS_SECONDS) != 0;
	bool schema = (type & PL_IOAM_SNAPSHOT) != 0 && (have & PL_IOAM_HAS_SCHEMA) != 0;
	bool queue = (type & PL_IOAM_BIT(6)) != 0 && (have & PL_IOAM_HAS_QUEUE) != 0;
	uint64_t at = carried(model->ingress_ts, io->time);

#define SAME(flag, member, want)                                                                   \
	if (differs("presence of " #member, (h->present & PL_HOP_HAS_##member) != 0, flag) ||      \
		((flag) && differs(#member, h->member, want)))                                     \
		return true;
	SAME(id || wide, node, id ? n->node : n->node_wide)
	SAME(wide, node_wide, n->node_wide)
	SAME((type & (PL_IOAM_BIT(0) | PL_IOAM_BIT(8))) != 0, hop_limit, n->hop_limit)
	SAME(delay, hop_latency_ns, n->delay_ns)
	SAME(time, ingress_ts_ns, at)
	SAME(time && delay, egress_ts_ns, at + n->delay_ns)
	SAME(queue, queue_depth, n->queue)
	SAME(schema, schema_id, n->schema)
#undef SAME
	return false;
}

static bool ioam_differs(const struct pl_gen_cfg *cfg, const struct pl_path *p,
	const struct pl_hop *hops, const struct pl_gen_truth *t)
{
	const struct pl_gen_ioam *io = &cfg->ioam;
	bool trace = (io->options & (PL_GEN_IOAM_TRACE | PL_GEN_IOAM_INCREMENTAL)) != 0;
	bool dex = (io->options & PL_GEN_IOAM_DEX) != 0, e2e = (io->options & PL_GEN_IOAM_E2E) != 0;
	enum pl_mode mode = trace ? PL_MODE_IOAM_TRACE
			    : dex ? PL_MODE_IOAM_DEX
			    : e2e ? PL_MODE_IOAM_E2E
				  : PL_MODE_IOAM_POT;

	if (flow_differs(p, &t->flow) || differs("mode", p->mode, mode) ||
		differs("flow id", (p->present & PL_PATH_HAS_flow_id) != 0 ? p->flow_id : 0,
			dex ? t->flow_index : 0) ||
		differs("has flow_seq", (p->present & PL_PATH_HAS_flow_seq) != 0, dex || e2e) ||
		((dex || e2e) && differs("flow seq", p->flow_seq, t->flow_seq)) ||
		differs("partial", (p->flags & PL_FLAG_PARTIAL) != 0,
			trace && ((io->flags & PL_IOAM_OVERFLOW) != 0 || t->n_nodes < t->n_hops)) ||
		differs("active", (p->flags & PL_FLAG_COPY) != 0,
			trace && (io->flags & PL_IOAM_ACTIVE) != 0))
		return true;
	if (!trace) {
		/* edge to edge alone: the encapsulating node's time */
		return differs("hops", p->hop_count, e2e) ||
		       (e2e && differs("time", hops[0].egress_ts_ns,
				       carried(t->hops[0].ingress_ts, io->time)));
	}
	if (differs("hops", p->hop_count, t->n_nodes))
		return true;
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		if (node_differs(io, &hops[i], &t->nodes[i], &t->hops[i]))
			return true;
	}
	return false;
}

static void check_ioam(const struct pl_gen_cfg *cfg)
{
	struct pl_decode_options options = { .n_ioam_namespaces = 1 };
	unsigned int wrong = 0, n = 0;
	struct pl_diag diag = { .text = "" };
	struct pl_gen *g;
	struct pl_decode *d;

	if (!ok(pl_gen_new(&g, cfg, &diag) == 0, "IOAM form: %s", diag.text))
		return;
	options.ioam_namespaces[0].ns = cfg->ioam.ns;
	options.ioam_namespaces[0].time = cfg->ioam.time == PL_GEN_IOAM_PTP   ? PL_IOAM_TIME_PTP
					  : cfg->ioam.time == PL_GEN_IOAM_NTP ? PL_IOAM_TIME_NTP
									      : PL_IOAM_TIME_POSIX;
	eq(pl_decode_new(&d, &options), 0);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		const struct pl_outcome *o;

		pl_record_batch_clear(&out);
		pl_decode_batch(d, &batch, &out);
		o = pl_decode_outcomes(d);
		for (uint32_t i = 0; i < batch.n; i++, n++) {
			if (o[i].verdict != PL_V_OK || i >= out.n_paths || out.pkt[i] != i) {
				snprintf(why, sizeof(why), "verdict %s",
					pl_verdict_name((enum pl_verdict)o[i].verdict));
				wrong++;
			} else if (ioam_differs(pl_gen_cfg(g), &out.paths[i],
					   &out.hops[out.first_hop[i]], pl_gen_truth(g, i, 0))) {
				wrong++;
			}
		}
	}
	ok(wrong == 0 && n == PACKETS,
		"IOAM options %#x in %#x type %#x snapshot %u time %d net %s seed %" PRIu64,
		cfg->ioam.options, cfg->ioam.destination, pl_gen_cfg(g)->ioam.trace_type,
		cfg->ioam.snapshot_words, (int)cfg->ioam.time, cfg->topology, cfg->seed);
	if (wrong > 0)
		printf("# %u of %u wrong; the last: %s\n", wrong, n, why);
	pl_decode_free(d);
	pl_gen_free(g);
}

/* Every combination of options but both traces at once, in either place, with varying types. */
static void test_ioam(void)
{
	static const uint32_t types[] = { 0, 0xf00000, 0xfff002, 0x800000, 0x00f000, 0xb80002,
		0xfffffe, 0x200000, 0xfa0400 };
	uint64_t i = 0;

	for (unsigned int set = 1; set < 2 * PL_GEN_IOAM_DEX; set++) {
		if ((set & 3) == 3)
			continue;
		for (unsigned int k = 0; k < 9; k++, i++) {
			struct pl_gen_cfg cfg = {
				.seed = 5000 + i,
				.count = PACKETS,
				.flows = 7,
				.truth = true,
				.topology = networks[i % (sizeof(networks) / sizeof(networks[0]))],
				.missing = i % 4 == 3 ? 0.1 : 0,
				.carrier = i % 2 == 0 ? PL_GEN_UDP : PL_GEN_TCP,
				.inner = i % 5 == 1   ? PL_GEN_VLAN
					 : i % 5 == 2 ? PL_GEN_QINQ
					 : i % 5 == 3 ? PL_GEN_IP
						      : PL_GEN_ETHERNET,
				.ioam = {
					.options = (uint8_t)set,
					.destination = (uint8_t)(i * 7 % 32),
					.trace_type = types[k],
					.ns = (uint16_t)(i * 11),
					.nodes = k == 3 ? 1 : 0,
					.snapshot_words = (types[k] & PL_IOAM_SNAPSHOT) != 0 ? k : 0,
					.flags = i % 6 == 5   ? PL_IOAM_ACTIVE
						 : i % 6 == 4 ? PL_IOAM_OVERFLOW | PL_IOAM_LOOPBACK
							      : 0,
					.time = (enum pl_gen_ioam_time)(i % 3),
					.seq_64 = i % 2 == 1,
				},
			};

			check_ioam(&cfg);
		}
	}
}

/* ---- sequence accounts ---- */

static void test_sequences(void)
{
	static const struct pl_gen_cfg rows[] = {
		{ .report = PL_GEN_REPORT_V05, .drop = 0.1 },
		{ .report = PL_GEN_REPORT_V05, .drop = 0.1, .udp = true },
		{ .report = PL_GEN_REPORT_V05, .mode = PL_GEN_XD, .udp = true },
		{ .report = PL_GEN_REPORT_V10, .drop = 0.1 },
		{ .report = PL_GEN_REPORT_V20, .mode = PL_GEN_XD },
		{ .report = PL_GEN_REPORT_V20, .udp = true, .first_seq = 0x3ffff0 },
		{ .dialect = PL_DIALECT_HOST_INT, .topology = "chain:2", .udp = true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_gen_cfg cfg = rows[i];
		const struct pl_decode_counters *c;
		const struct pl_gen_counters *made;
		struct pl_gen *g;
		struct pl_decode *d;

		for (int lossy = 0; lossy < 2; lossy++) {
			cfg.count = 20000;
			cfg.loss = lossy ? 0.1 : 0;
			cfg.duplicate = lossy ? 0.05 : 0;
			if (!ok(pl_gen_new(&g, &cfg, NULL) == 0))
				continue;
			d = decoder(pl_gen_cfg(g), false);
			while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
				pl_record_batch_clear(&out);
				pl_decode_batch(d, &batch, &out);
			}
			c = pl_decode_counters(d);
			made = pl_gen_counters(g);
			/* losses at the very ends of a sequence cannot be seen */
			ok(pl_counter_read(&c->lost) <= made->lost &&
					pl_counter_read(&c->lost) + 12 >= made->lost,
				"row %zu: %" PRIu64 " lost, %" PRIu64 " seen as lost", i,
				made->lost, pl_counter_read(&c->lost));
			eq(pl_counter_read(&c->duplicates), made->duplicated, "row %zu: duplicates",
				i);
			eq(pl_counter_read(&c->restarts), 0, "row %zu: no restart", i);
			pl_decode_free(d);
			pl_gen_free(g);
		}
	}
}

static void test_presets(void)
{
	size_t n;
	const struct pl_gen_preset *p = pl_gen_presets(&n);

	for (size_t i = 0; i < n; i++) {
		struct pl_gen_cfg cfg = { 0 };
		const struct pl_decode_counters *c;
		struct pl_gen *g;
		struct pl_decode *d;

		eq(pl_gen_preset_set(&cfg, p[i].name, NULL), 0);
		cfg.count = 500;
		if (!ok(pl_gen_new(&g, &cfg, NULL) == 0, "preset %s", p[i].name))
			continue;
		d = decoder(pl_gen_cfg(g), false);
		/* INTCollector's own streams leave the shim length of v0.5 out, which only their
		 * dialect forgives. */
		if (cfg.replay != PL_GEN_REPLAY_NONE) {
			const struct pl_profile dialect = { .hints.dialect =
								    PL_DIALECT_INTCOLLECTOR };
			const struct pl_decode_options o = {
				.profiles = &dialect,
				.n_profiles = 1,
				.report_ports = { 54321, 1234 },
				.n_report_ports = 2,
			};

			pl_decode_free(d);
			if (pl_decode_new(&d, &o) < 0)
				abort();
		}
		while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
			pl_record_batch_clear(&out);
			pl_decode_batch(d, &batch, &out);
		}
		c = pl_decode_counters(d);
		eq(pl_counter_read(&c->verdicts[PL_V_OK]), 500, "preset %s decodes", p[i].name);
		ok(pl_counter_read(&c->hops) >= 500, "preset %s has hops", p[i].name);
		pl_decode_free(d);
		pl_gen_free(g);
	}
}

int main(void)
{
	begin();
	test_forms();
	test_sinks_and_announcements();
	test_dialects_and_more();
	test_ioam();
	test_sequences();
	test_presets();
	pl_record_batch_done(&out);
	return pl_test_done();
}
