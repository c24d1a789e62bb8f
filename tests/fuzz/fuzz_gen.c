/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * There and back: a form of telemetry picked by the input (versions, mode, carrier, dialect,
 * announcement, widths, network) is encoded by the generator and decoded. A form that cannot be had
 * is refused with a reason; every other decodes to what was encoded: as many reports, each with its
 * sequence number, its flow and its nodes, ports and values in path order.
 *
 * 24 bytes pick the form; what follows is a topology, an event and a distribution as text, a line
 * each.
 */
#include "decode/decode.h"
#include "fuzz.h"
#include "gen/event.h"
#include "gen/gen.h"
#include "gen/malform.h"
#include "gen/topology.h"

enum { FORM = 24, PACKETS = 6 };

static struct pl_batch batch;
static struct pl_record_batch out;

static void flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	(void)b;
	must(false); /* it holds more than the packets have */
}

static void pick(struct pl_gen_cfg *c, const uint8_t *b)
{
	static const uint16_t bitmaps[] = { 0, 0xfd00, 0xff00, 0x8000, 0xdc00, 0xff80, 0x9000,
		0xff81, 0xf000, 0xcc00 };
	static const char *const networks[] = { "chain:3", "leaf-spine:4x2", "ring:5", "chain:2",
		"chain:12", "random:6,3" };

	c->seed = b[0];
	c->topology = networks[b[1] % 6];
	c->report = b[2] % 5;
	c->version = b[3] % 4;
	c->mode = b[4] % 4;
	c->carrier = b[5] % 6;
	c->dialect = b[6] % PL_DIALECT_MAX;
	c->inner = b[7] % 6;
	c->sink = b[8] % 4;
	c->announce = b[9] % 4;
	c->bitmap = bitmaps[b[10] % 10];
	c->npt = b[11] % 3;
	c->ds_words = b[12] % 4;
	c->source_words = b[13] % 4;
	c->reports_per_datagram = b[14] % 5;
	c->outer_ip = b[15] & 1 ? 6 : 4;
	c->inner_ip = b[15] & 2 ? 6 : 4;
	c->udp = (b[15] & 4) != 0;
	c->tcp_before_options = (b[15] & 8) != 0;
	c->instrumented = (b[15] & 16) != 0;
	c->tcp_options = b[16] % 11;
	c->missing = b[17] % 4 == 3 ? 0.2 : 0;
	c->drop = b[18] % 4 == 3 ? 0.3 : 0;
	c->payload = b[19];
	c->hw_id = b[20] % 64;
	c->first_seq = b[21] * 0x01010101u;
	c->max_hops = b[22] % 8;
	c->queue_report = b[23] % 4 == 3 ? 30 : 0;
	c->truth = true;
	c->flows = 3;
	c->count = PACKETS;
}

static void compare(const struct pl_gen_cfg *cfg, const struct pl_path *p,
	const struct pl_hop *hops, const struct pl_gen_truth *t)
{
	must(p->seq == t->seq && p->hop_count == t->n_hops);
	must(pl_addr_equal(&p->src, &t->flow.src) && pl_addr_equal(&p->dst, &t->flow.dst));
	must(p->proto == t->flow.proto && p->dscp == t->flow.dscp);
	must(p->sport == t->flow.sport && p->dport == t->flow.dport);
	must(((p->flags & PL_FLAG_DROPPED) != 0) == t->dropped && p->drop_reason == t->drop_reason);
	must(cfg->report == PL_GEN_REPORT_NONE || p->hw_id == cfg->hw_id);
	for (unsigned int i = 0; i < t->n_hops; i++) {
		const struct pl_int_hop *want = &t->hops[i];

		/* A drop summary names its two ends and the ports between them, nothing more. */
		if (p->mode == PL_MODE_DROP_SUMMARY) {
			must(hops[i].node == want->node);
			continue;
		}
#define SAME(field, member, id)                                                                    \
	must(((hops[i].present & PL_HOP_HAS_##id) != 0) ==                                         \
		((want->have & PL_INT_HAS(field)) != 0));                                          \
	if ((want->have & PL_INT_HAS(field)) != 0)                                                 \
		must(hops[i].id == want->member);
		SAME(PL_INT_F_NODE, node, node)
		SAME(PL_INT_F_PORTS, ingress_port, ingress_port)
		SAME(PL_INT_F_PORTS, egress_port, egress_port)
		SAME(PL_INT_F_QUEUE, queue_depth, queue_depth)
		SAME(PL_INT_F_INGRESS_TS, ingress_ts, ingress_ts_ns)
		SAME(PL_INT_F_EGRESS_TS, egress_ts, egress_ts_ns)
		SAME(PL_INT_F_TX_UTIL, tx_util, tx_util)
#undef SAME
	}
}

/* The decoder as someone would set it who knows what is sent. */
static struct pl_decode *decoder(const struct pl_gen_cfg *cfg)
{
	struct pl_profile profile = {
		.hints = { .dialect = (uint8_t)cfg->dialect,
			.dialect_pinned = cfg->dialect == PL_DIALECT_V04,
			.source_words = cfg->source_words },
		.tcp_placement = cfg->tcp_before_options ? PL_TCP_BEFORE_OPTIONS : PL_TCP_AUTO,
	};
	struct pl_decode_options options = { .profiles = &profile,
		.n_profiles = 1,
		.max_exporters = 64,
		.max_paths = 64,
		.gre_int_ethertype = 0x88b5 };
	struct pl_decode *d;

	must(pl_decode_new(&d, &options) == 0);
	return d;
}

static void there_and_back(const struct pl_gen_cfg *cfg)
{
	struct pl_diag diag = { 0 };
	struct pl_decode *d;
	struct pl_gen *g = NULL;
	unsigned int packets = 0;

	if (pl_gen_new(&g, cfg, &diag) < 0) {
		must(diag.text[0] != '\0');
		return;
	}
	cfg = pl_gen_cfg(g);
	d = decoder(cfg);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		uint32_t at = 0;

		pl_decode_batch(d, &batch, &out);
		for (uint32_t i = 0; i < batch.n; i++) {
			unsigned int n = pl_gen_truth_reports(g, i);

			must(pl_decode_outcomes(d)[i].verdict == PL_V_OK);
			for (unsigned int k = 0; k < n; k++, at++) {
				must(at < out.n_paths && out.pkt[at] == i);
				compare(cfg, &out.paths[at], &out.hops[out.first_hop[at]],
					pl_gen_truth(g, i, k));
			}
		}
		must(at == out.n_paths);
		packets += batch.n;
		pl_record_batch_clear(&out);
	}
	must(packets == PACKETS);
	pl_decode_free(d);
	pl_gen_free(g);
}

static void texts(char *text)
{
	struct pl_gen_event event;
	struct pl_diag diag = { 0 };
	struct pl_topo *topo = NULL;
	struct pl_topo_step steps[PL_TOPO_PATH_MAX];
	struct pl_dist dist;
	struct pl_rng rng;
	char *network = strsep(&text, "\n"), *what = strsep(&text, "\n");

	/* The time of all shortest paths grows with the square. */
	if (strlen(network) < 200 && strpbrk(network, "3456789") == NULL &&
		pl_topo_new(&topo, network, 1, &diag) == 0) {
		unsigned int nodes = pl_topo_nodes(topo), edges = pl_topo_edges(topo), n;

		must(nodes > 0 && nodes <= PL_TOPO_NODES_MAX && edges <= nodes);
		if (edges > 1) {
			n = pl_topo_route(topo, pl_topo_edge(topo, 0),
				pl_topo_edge(topo, edges - 1), 7, steps, PL_TOPO_PATH_MAX);
			must(n <= PL_TOPO_PATH_MAX);
			must(n == 0 || (steps[0].node == pl_topo_edge(topo, 0) &&
					       steps[n - 1].node == pl_topo_edge(topo, edges - 1)));
		}
		pl_topo_free(topo);
	}
	if (what != NULL && pl_gen_event_parse(&event, what, &diag) == 0)
		must(event.kind < PL_GEN_EVENT_KIND_MAX && event.value == event.value);
	if (text != NULL && pl_dist_parse(&dist, text, true, &diag) == 0) {
		pl_rng_seed(&rng, 1);
		for (int i = 0; i < 8; i++)
			must(pl_dist_draw(&dist, &rng, 1000000) <= 1000000);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_gen_cfg cfg = { 0 };
	char *text;

	if (size < FORM)
		return 0;
	if (out.paths == NULL) {
		must(pl_record_batch_init(&out, 512, 8192) == 0);
		out.flush = flush;
	}
	pick(&cfg, data);
	there_and_back(&cfg);
	text = malloc(size - FORM + 1);
	must(text != NULL);
	memcpy(text, data + FORM, size - FORM);
	text[size - FORM] = '\0';
	texts(text);
	free(text);
	return 0;
}
