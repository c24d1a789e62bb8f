/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares a report with the truth, field by field; for roundtrip_test.c. */
#pragma once

#include "gen/test_decode.h"

static bool differs(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return false;
	snprintf(why, sizeof(why),
		"%s: got %" PRIu64 " (%#" PRIx64 "), wanted %" PRIu64 " (%#" PRIx64 ")", what, got,
		got, want, want);
	return true;
}

static bool hop_differs(const struct pl_hop *h, const struct pl_int_hop *t, bool ts64)
{
	static const struct {
		enum pl_int_field field;
		uint32_t present;
	} presence[] = {
		{ PL_INT_F_NODE, PL_HOP_HAS_node },
		{ PL_INT_F_PORTS, PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port },
		{ PL_INT_F_QUEUE, PL_HOP_HAS_queue_depth },
		{ PL_INT_F_INGRESS_TS, PL_HOP_HAS_ingress_ts_ns },
		{ PL_INT_F_EGRESS_TS, PL_HOP_HAS_egress_ts_ns },
		{ PL_INT_F_TX_UTIL, PL_HOP_HAS_tx_util },
		{ PL_INT_F_BUFFER, PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth },
	};
	bool latency = (t->have & PL_INT_HAS(PL_INT_F_LATENCY)) != 0;
	bool both = (t->have & PL_INT_HAS(PL_INT_F_INGRESS_TS)) != 0 &&
		    (t->have & PL_INT_HAS(PL_INT_F_EGRESS_TS)) != 0;

	for (size_t i = 0; i < sizeof(presence) / sizeof(presence[0]); i++) {
		bool has = (t->have & PL_INT_HAS(presence[i].field)) != 0;

		if (differs("presence", h->present & presence[i].present,
			    has ? presence[i].present : 0)) {
			snprintf(why + strlen(why), sizeof(why) - strlen(why), " of field %d",
				presence[i].field);
			return true;
		}
	}
	if (differs("latency's presence", (h->present & PL_HOP_HAS_hop_latency_ns) != 0,
		    latency || both))
		return true;
#define SAME(field, member, want)                                                                  \
	if ((t->have & PL_INT_HAS(field)) != 0 && differs(#member, h->member, want))               \
		return true;
	SAME(PL_INT_F_NODE, node, t->node)
	SAME(PL_INT_F_PORTS, ingress_port, t->ingress_port)
	SAME(PL_INT_F_PORTS, egress_port, t->egress_port)
	SAME(PL_INT_F_QUEUE, queue, t->queue)
	SAME(PL_INT_F_QUEUE, queue_depth, t->queue_depth)
	SAME(PL_INT_F_INGRESS_TS, ingress_ts_ns, t->ingress_ts)
	SAME(PL_INT_F_EGRESS_TS, egress_ts_ns, t->egress_ts)
	SAME(PL_INT_F_TX_UTIL, tx_util, t->tx_util)
	SAME(PL_INT_F_BUFFER, buffer, t->buffer)
	SAME(PL_INT_F_BUFFER, buffer_depth, t->buffer_depth)
	SAME(PL_INT_F_LATENCY, hop_latency_ns, t->latency)
#undef SAME
	if (!latency && both) {
		uint64_t d = t->egress_ts - t->ingress_ts;

		return differs("derived latency", h->hop_latency_ns, ts64 ? d : (uint32_t)d);
	}
	return false;
}

static bool level2_differs(
	const struct pl_gen_cfg *cfg, const struct pl_hop *h, const struct pl_int_hop *t)
{
	bool has = (t->have & PL_INT_HAS(PL_INT_F_PORTS2)) != 0;

	if (cfg->version == PL_GEN_INT_V05 && cfg->report != PL_GEN_REPORT_V20) {
		if (differs("congestion's presence", (h->present & PL_HOP_HAS_congestion) != 0,
			    has))
			return true;
		return has &&
		       (differs("congestion", h->congestion, t->congestion) ||
			       differs("its queue", h->congestion_queue, t->congestion_queue));
	}
	if (cfg->version == PL_GEN_INT_V05)
		return false; /* the decoder may give either, depending on the position of the
			       * hop */
	if (differs("level 2's presence", (h->present & PL_HOP_HAS_ingress_port2) != 0, has))
		return true;
	return has && (differs("level-2 ingress", h->ingress_port2, t->ingress_port2) ||
			      differs("level-2 egress", h->egress_port2, t->egress_port2));
}

static bool flow_differs(const struct pl_path *p, const struct pl_flow *f)
{
	if (!pl_addr_equal(&p->src, &f->src) || !pl_addr_equal(&p->dst, &f->dst)) {
		snprintf(why, sizeof(why), "addresses");
		return true;
	}
	return differs("proto", p->proto, f->proto) || differs("dscp", p->dscp, f->dscp) ||
	       differs("sport", p->sport, f->sport) || differs("dport", p->dport, f->dport) ||
	       differs("has vlan", (p->present & PL_PATH_HAS_vlan) != 0,
		       (f->have & PL_FLOW_VLAN) != 0) ||
	       differs("vlan", p->vlan, (f->have & PL_FLOW_VLAN) != 0 ? f->vlan : 0) ||
	       differs("has vni", (p->present & PL_PATH_HAS_vni) != 0,
		       (f->have & PL_FLOW_VNI) != 0) ||
	       differs("vni", p->vni, (f->have & PL_FLOW_VNI) != 0 ? f->vni : 0);
}

static bool report_differs(const struct pl_gen_cfg *cfg, const struct pl_path *p,
	const struct pl_hop *hops, const struct pl_gen_truth *t)
{
	bool report = cfg->report != PL_GEN_REPORT_NONE;
	bool names_node =
		cfg->report == PL_GEN_REPORT_V10 || cfg->report == PL_GEN_REPORT_V20 ||
		(cfg->report == PL_GEN_REPORT_V05 && (p->present & PL_PATH_HAS_node) != 0);

	if (flow_differs(p, &t->flow) ||
		differs("has seq", (p->present & PL_PATH_HAS_seq) != 0, report) ||
		differs("seq", p->seq, t->seq) ||
		differs("dropped", (p->flags & PL_FLAG_DROPPED) != 0, t->dropped) ||
		differs("congested", (p->flags & PL_FLAG_CONGESTED) != 0, t->congested) ||
		differs("intermediate", (p->flags & PL_FLAG_INTERMEDIATE) != 0, t->intermediate) ||
		differs("drop summary", p->mode == PL_MODE_DROP_SUMMARY,
			t->form == PL_GEN_TRUTH_SUMMARY) ||
		differs("tracked", (p->flags & PL_FLAG_TRACKED) != 0, t->tracked) ||
		differs("drop reason", p->drop_reason, t->drop_reason) ||
		differs("hw id", p->hw_id, report ? cfg->hw_id : 0) ||
		(names_node && differs("node", p->node, t->node)) ||
		differs("hops", p->hop_count, t->n_hops))
		return true;
	if (p->present & PL_PATH_HAS_flow_seq) {
		uint32_t mask = cfg->dialect == PL_DIALECT_GEANT ? 0xffff : UINT32_MAX;

		if (differs("flow sequence", p->flow_seq, t->flow_seq & mask))
			return true;
	}
	if (t->form == PL_GEN_TRUTH_SUMMARY)
		return differs("source", hops[0].node, t->hops[0].node) ||
		       differs("its port", hops[0].egress_port, t->hops[0].egress_port) ||
		       differs("sink", hops[1].node, t->hops[1].node) ||
		       differs("its port", hops[1].ingress_port, t->hops[1].ingress_port) ||
		       differs("lost", (p->present & PL_PATH_HAS_lost_count) != 0 ? p->flow_id : 0,
			       t->lost_count);
	for (unsigned int i = 0; i < t->n_hops; i++) {
		if (hop_differs(&hops[i], &t->hops[i], hops[i].time_bits == 64) ||
			level2_differs(cfg, &hops[i], &t->hops[i])) {
			snprintf(why + strlen(why), sizeof(why) - strlen(why), " at hop %u of %u",
				i, t->n_hops);
			return true;
		}
	}
	return false;
}

static void describe(char *dst, size_t cap, const struct pl_gen_cfg *c)
{
	snprintf(dst, cap,
		"report %d int %d mode %d carrier %d dialect %d inner %d ip %d/%d sink %d announce %d npt %d "
		"bitmap %#x seed %" PRIu64 " net %s",
		(int)c->report, (int)c->version, (int)c->mode, (int)c->carrier, (int)c->dialect,
		(int)c->inner, c->outer_ip, c->inner_ip, (int)c->sink, (int)c->announce, c->npt,
		c->bitmap, c->seed, c->topology == NULL ? "" : c->topology);
}

/* Returns true when there was room for every exporter and path. */
static bool tables_held(const struct pl_decode *d)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);

	return pl_counter_read(&c->exporters_full) == 0 && pl_counter_read(&c->paths_full) == 0;
}

/* Runs a configuration through generator and decoder. Returns false for an invalid
 * configuration. */
static bool check_form(const struct pl_gen_cfg *cfg)
{
	struct pl_gen *g;
	struct pl_decode *d;
	const struct pl_gen_cfg *full;
	unsigned int reports = 0, wrong = 0;
	char form[256];

	if (pl_gen_new(&g, cfg, NULL) < 0)
		return false;
	full = pl_gen_cfg(g);
	d = decoder(full, false);
	describe(form, sizeof(form), full);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		const struct pl_outcome *o;
		uint32_t at = 0;

		pl_record_batch_clear(&out);
		pl_decode_batch(d, &batch, &out);
		o = pl_decode_outcomes(d);
		for (uint32_t i = 0; i < batch.n; i++) {
			unsigned int n = pl_gen_truth_reports(g, i);

			if (o[i].verdict != PL_V_OK) {
				snprintf(why, sizeof(why), "verdict %s",
					pl_verdict_name((enum pl_verdict)o[i].verdict));
				wrong++;
			}
			for (unsigned int k = 0; k < n && at < out.n_paths && out.pkt[at] == i;
				k++, at++) {
				reports++;
				if (report_differs(full, &out.paths[at],
					    &out.hops[out.first_hop[at]], pl_gen_truth(g, i, k)))
					wrong++;
			}
		}
		if (at != out.n_paths)
			wrong++;
	}
	if (wrong == 0 && reports != pl_gen_counters(g)->reports &&
		full->report != PL_GEN_REPORT_NONE) {
		snprintf(why, sizeof(why), "%u reports of %" PRIu64, reports,
			pl_gen_counters(g)->reports);
		wrong++;
	}
	ok(wrong == 0 && reports > 0 && tables_held(d), "%s", form);
	if (wrong > 0)
		printf("# %u wrong; the last: %s\n", wrong, why);
	pl_decode_free(d);
	pl_gen_free(g);
	return true;
}
