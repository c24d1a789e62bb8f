/* SPDX-License-Identifier: BSD-2-Clause */
/* The actions int_source, int_transit, int_sink and report of tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/telemetry/act.h"
#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/telemetry/report_filter.h"
#include "dataplane/telemetry/reporter.h"

static const struct pl_dp_choice int_versions[] = { { "0.5", PL_INT_V05 }, { "1.0", PL_INT_V10 },
	{ "2.1", PL_INT_V20 }, { NULL, 0 } };
static const struct pl_dp_choice report_versions[] = { { "0.5", PL_REPORT_V05 },
	{ "1.0", PL_REPORT_V10 }, { "2.0", PL_REPORT_V20 }, { NULL, 0 } };

/* ---- int_source ---- */

struct source {
	struct pl_dp_int_source source;
	struct pl_dp_act_node node;
	uint64_t (*outcomes[PL_DP_INT_MAX])[2];
};

static int make_source(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	static const struct pl_dp_choice modes[] = { { "md", PL_INT_MD }, { "mx", PL_INT_MX },
		{ NULL, 0 } };
	static const struct pl_dp_choice carriers[] = { { "l4", PL_INT_OVER_L4 },
		{ "gpe", PL_INT_OVER_GPE }, { "gre", PL_INT_OVER_GRE },
		{ "geneve", PL_INT_OVER_GENEVE }, { NULL, 0 } };
	static const struct pl_dp_choice ways[] = { { "dscp", PL_DP_BY_DSCP },
		{ "port", PL_DP_BY_PORT }, { "marker", PL_DP_BY_MARKER }, { NULL, 0 } };
	struct pl_dp_int_source_config c = {
		.version = PL_INT_V20, .kind = PL_INT_MD, .carrier = PL_INT_OVER_L4
	};
	struct pl_dp_node units;
	struct pl_dp_arg rows[8 + PL_DP_NODE_ARGS + PL_DP_DOMAIN_ARGS] = {
		PL_DP_ARG(CHOICE, "version", c.version, .choices = int_versions),
		PL_DP_ARG(CHOICE, "mode", c.kind, .choices = modes),
		PL_DP_ARG(CHOICE, "carrier", c.carrier, .choices = carriers),
		PL_DP_ARG(CHOICE, "by", c.by, .choices = ways),
		PL_DP_ARG(NUMBER, "npt", c.npt, .max = 2),
		PL_DP_ARG(NUMBER, "instructions", c.bitmap, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "hops", c.max_hops, .max = UINT8_MAX),
		PL_DP_ARG(FLAG, "no_block", c.no_block),
	};
	size_t n = 8;
	struct pl_diag inner = { 0 };
	struct source *s;

	n += pl_dp_node_args(&units, rows + n);
	n += pl_dp_domain_args(&c.domain, rows + n);
	if (pl_dp_args_read("int_source", text, rows, n, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	pl_dp_act_node_init(&s->node, p, &units);
	if (pl_dp_int_source_init(&s->source, &c, &inner) < 0) {
		pl_diag_set(diag, "action int_source: %s", inner.text);
		free(s);
		return -EINVAL;
	}
	if (pl_dp_act_outcomes(p, "int_source", s->outcomes, diag) < 0) {
		free(s);
		return -EINVAL;
	}
	*ret = s;
	return 0;
}

static enum pl_dp_run run_source(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct source *s = state;

	(void)call;
	pl_dp_act_count(s->outcomes[pkt->own ? PL_DP_INT_OWN
					     : pl_dp_int_source(&s->source, &s->node.node, pkt)],
		pkt);
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_INT_SOURCE = {
	.name = "int_source",
	.args = "[NAME=VALUE…]",
	.help = "put an INT header in, and the node's own block: version=0.5|1.0|2.1 mode=md|mx",
	.egress = true,
	.make = make_source,
	.free = free,
	.run = run_source,
};

/* ---- int_transit ---- */

struct transit {
	struct pl_dp_int_transit transit;
	struct pl_dp_act_node node;
	uint64_t (*outcomes[PL_DP_INT_MAX])[2];
};

static int make_transit(
	struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	struct pl_dp_arg rows[PL_DP_NODE_ARGS + PL_DP_DOMAIN_ARGS];
	struct pl_dp_int_domain domain;
	struct pl_dp_node units;
	struct transit *t;
	size_t n = pl_dp_node_args(&units, rows);

	n += pl_dp_domain_args(&domain, rows + n);
	if (pl_dp_args_read("int_transit", text, rows, n, diag) < 0)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	pl_dp_int_transit_init(&t->transit, &domain);
	pl_dp_act_node_init(&t->node, p, &units);
	if (pl_dp_act_outcomes(p, "int_transit", t->outcomes, diag) < 0) {
		free(t);
		return -EINVAL;
	}
	*ret = t;
	return 0;
}

static enum pl_dp_run run_transit(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct transit *t = state;

	(void)call;
	pl_dp_act_count(t->outcomes[pl_dp_int_transit(&t->transit, &t->node.node, pkt)], pkt);
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_INT_TRANSIT = {
	.name = "int_transit",
	.args = "[NAME=VALUE…]",
	.help = "push the node's block onto the INT stack of a packet that has one",
	.egress = true,
	.make = make_transit,
	.free = free,
	.run = run_transit,
};

/* ---- reports, of int_sink and report ---- */

struct reports {
	struct pl_dp_reporter reporter;
	uint16_t out;
	uint64_t (*made)[2], (*no_packet)[2], (*held)[2];
};

struct report_args {
	struct pl_dp_to_args to;
	struct pl_dp_reporter_config config;
};

#define REPORT_ARGS (4 + PL_DP_TO_ARGS)

static size_t report_args(struct report_args *a, struct pl_dp_arg *rows)
{
	const struct pl_dp_arg mine[] = {
		PL_DP_ARG(CHOICE, "report", a->config.version, .choices = report_versions),
		PL_DP_ARG(NUMBER, "hw", a->config.hw_id, .max = 63),
		PL_DP_ARG(NUMBER, "snap", a->config.snap, .max = 9000),
		PL_DP_ARG(NUMBER, "values", a->config.bitmap, .max = UINT16_MAX),
	};
	const size_t n = pl_dp_to_args(&a->to, rows);

	a->config = (struct pl_dp_reporter_config){ .version = PL_REPORT_V20, .snap = 16 };
	memcpy(rows + n, mine, sizeof(mine));
	return REPORT_ARGS;
}

static int reports_init(struct reports *r, const char *action, struct pl_dp_pipeline *p,
	struct report_args *a, struct pl_diag *diag)
{
	struct pl_diag inner = { 0 };
	char hw[8];

	if (pl_dp_to_of(action, &a->to, p, &a->config.to, diag) < 0)
		return -EINVAL;
	if (pl_dp_reporter_init(&r->reporter, &a->config, p->pool, &inner) < 0) {
		pl_diag_set(diag, "action %s: %s", action, inner.text);
		return -EINVAL;
	}
	r->out = a->to.out;
	/* All reports of a node with the same hardware id to the same collector share one
	 * sequence. */
	snprintf(hw, sizeof(hw), "seq%02u", a->config.hw_id);
	r->reporter.shared = pl_dp_act_register(p, "report", hw, &r->reporter.config.to, diag);
	r->made = pl_dp_act_counter(p, action, "reports", diag);
	r->no_packet = pl_dp_act_counter(p, action, "no_packet", diag);
	r->held = pl_dp_act_counter(p, action, "held", diag);
	return r->reporter.shared != NULL && r->made != NULL && r->no_packet != NULL &&
			       r->held != NULL
		       ? 0
		       : -EINVAL;
}

static void send_report(struct reports *r, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt, unsigned int bits, uint32_t keep,
	const struct pl_dp_call *call)
{
	struct pl_dp_packet *report = pl_dp_report(&r->reporter, node, pkt, bits, keep);

	if (report == NULL) {
		pl_dp_act_count(r->no_packet, pkt);
		return;
	}
	pl_dp_act_count(r->made, report);
	pl_dp_emit(call, report, r->out);
}

/* ---- int_sink ---- */

struct sink {
	struct pl_dp_int_sink sink;
	struct pl_dp_act_node node;
	bool reports; /* a collector was named */
	struct reports out;
	struct pl_dp_flow_change *change;
	uint64_t (*outcomes[PL_DP_INT_MAX])[2];
};

static void free_sink(void *state)
{
	struct sink *s = state;

	pl_dp_flow_change_free(s->change);
	free(s);
}

static int make_sink(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	struct pl_dp_flow_change_config change = { .seed = p->seed };
	struct pl_dp_int_domain domain;
	struct report_args reports;
	struct pl_dp_node units;
	struct pl_dp_arg rows[4 + PL_DP_NODE_ARGS + PL_DP_DOMAIN_ARGS + REPORT_ARGS] = {
		PL_DP_ARG(NUMBER, "latency", change.latency, .max = UINT32_MAX),
		PL_DP_ARG(FLAG, "path", change.path),
		PL_DP_ARG(DURATION, "interval", change.interval_ns),
		PL_DP_ARG(NUMBER, "flows", change.flows, .max = UINT32_C(1) << 24),
	};
	size_t n = 4;
	struct sink *s;
	int r;

	n += pl_dp_node_args(&units, rows + n);
	n += pl_dp_domain_args(&domain, rows + n);
	n += report_args(&reports, rows + n);
	if (pl_dp_args_read("int_sink", text, rows, n, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	pl_dp_int_sink_init(&s->sink, &domain);
	pl_dp_act_node_init(&s->node, p, &units);
	s->reports = !pl_addr_is_unspecified(&reports.to.to.addr);
	r = pl_dp_act_outcomes(p, "int_sink", s->outcomes, diag);
	if (r == 0 && s->reports) {
		r = reports_init(&s->out, "int_sink", p, &reports, diag);
		if (r == 0) {
			r = pl_dp_flow_change_new(&s->change, &change);
			if (r == -EINVAL)
				pl_diag_set(diag, "action int_sink: flows is a power of two");
		}
	}
	if (r < 0) {
		free_sink(s);
		return r;
	}
	*ret = s;
	return 0;
}

static enum pl_dp_run run_sink(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct sink *s = state;
	struct pl_dp_int_sink_look look;
	enum pl_dp_int_outcome r = pl_dp_int_sink_look(&s->sink, pkt, &look);

	pl_dp_act_count(s->outcomes[r], pkt);
	if (r != PL_DP_INT_DONE)
		return PL_DP_RUN_ON;
	if (s->reports) {
		if (pl_dp_flow_change(s->change, pkt, &look.found, call->now_ns))
			send_report(&s->out, &s->node.node, pkt, PL_DP_REPORT_F,
				pl_dp_int_found_keep(&look.found), call);
		else
			pl_dp_act_count(s->out.held, pkt);
	}
	if (pl_dp_int_sink_strip(&s->sink, &look))
		pkt->drop = PL_DP_DROP_PROBE;
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_INT_SINK = {
	.name = "int_sink",
	.args = "[NAME=VALUE…]",
	.help = "take the INT header out; with to=ADDRESS from=ADDRESS out=PORT report it",
	.ingress = true,
	.egress = true,
	.make = make_sink,
	.free = free_sink,
	.run = run_sink,
};

/* ---- report ---- */

enum kind { KIND_FLOW, KIND_QUEUE, KIND_DROP };

struct report {
	uint8_t kind; /* enum kind */
	struct pl_dp_act_node node;
	struct reports out;
	struct pl_dp_queue_watch watch;
	struct pl_dp_int_domain domain;
	struct pl_int_cache cache;
	bool busy; /* a report is being sent: its own drop is not reported */
};

static void free_report(void *state)
{
	struct report *r = state;

	pl_dp_queue_watch_done(&r->watch);
	free(r);
}

static int make_report(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	static const struct pl_dp_choice kinds[] = { { "flow", KIND_FLOW }, { "queue", KIND_QUEUE },
		{ "drop", KIND_DROP }, { NULL, 0 } };
	struct pl_dp_queue_watch_config watch = { .interval_ns = 0 };
	struct pl_dp_int_domain domain;
	struct report_args reports;
	struct pl_dp_node units;
	uint8_t kind = KIND_FLOW;
	struct pl_dp_arg rows[5 + PL_DP_NODE_ARGS + PL_DP_DOMAIN_ARGS + REPORT_ARGS] = {
		PL_DP_ARG(CHOICE, "kind", kind, .choices = kinds),
		PL_DP_ARG(SIZE, "threshold", watch.threshold_bytes, .max = UINT32_MAX),
		PL_DP_ARG(SIZE, "reset", watch.reset_bytes, .max = UINT32_MAX),
		PL_DP_ARG(NUMBER, "quota", watch.quota, .max = UINT32_MAX),
		PL_DP_ARG(DURATION, "interval", watch.interval_ns),
	};
	size_t n = 5;
	struct report *s;
	int r;

	n += pl_dp_node_args(&units, rows + n);
	n += pl_dp_domain_args(&domain, rows + n);
	n += report_args(&reports, rows + n);
	if (pl_dp_args_read("report", text, rows, n, diag) < 0)
		return -EINVAL;
	if ((kind == KIND_QUEUE) != rows[1].given ||
		(kind != KIND_QUEUE && (rows[2].given || rows[3].given || rows[4].given))) {
		pl_diag_set(diag,
			"action report: kind=queue needs threshold=BYTES, and only it has "
			"threshold, reset, quota and interval");
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->kind = kind;
	s->domain = pl_dp_int_domain(&domain);
	pl_dp_act_node_init(&s->node, p, &units);
	r = reports_init(&s->out, "report", p, &reports, diag);
	if (r == 0)
		r = pl_dp_queue_watch_init(&s->watch, &watch, PL_DP_PORTS_MAX + 1);
	if (r < 0) {
		free_report(s);
		return r;
	}
	*ret = s;
	return 0;
}

static enum pl_dp_run run_report(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct report *s = state;

	/* A report of a report by the same port would never end. */
	if (s->kind == KIND_DROP || pkt->own)
		return PL_DP_RUN_ON;
	if (s->kind == KIND_QUEUE) {
		uint64_t held = s->watch.held;

		if (!pl_dp_queue_watch(&s->watch, pkt, call->now_ns)) {
			if (s->watch.held != held)
				pl_dp_act_count(s->out.held, pkt);
			return PL_DP_RUN_ON;
		}
	}
	send_report(&s->out, &s->node.node, pkt,
		s->kind == KIND_QUEUE ? PL_DP_REPORT_Q : PL_DP_REPORT_F,
		pl_dp_int_keep(&s->domain, pkt, &s->cache), call);
	return PL_DP_RUN_ON;
}

static void dropped_report(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct report *s = state;

	if (s->kind != KIND_DROP || s->busy || pkt->own)
		return;
	s->busy = true;
	send_report(&s->out, &s->node.node, pkt, PL_DP_REPORT_D,
		pl_dp_int_keep(&s->domain, pkt, &s->cache), call);
	s->busy = false;
}

const struct pl_dp_extern pl_dp_extern_REPORT = {
	.name = "report",
	.args = "to=ADDRESS from=ADDRESS out=PORT [NAME=VALUE…]",
	.help = "send a telemetry report: kind=flow of the packet, kind=queue when it met a queue "
		"above threshold=BYTES, kind=drop of every packet that the node drops",
	.ingress = true,
	.egress = true,
	.make = make_report,
	.free = free_report,
	.run = run_report,
	.dropped = dropped_report,
};
