/* SPDX-License-Identifier: BSD-2-Clause */
/* What is counted of the translator's way to collectors over RoCE. */
#include "service/translate_roce_state.h"

static const char *const results[] = { "ok", "invalid", "access", "operation", "retries", "rnr",
	"flushed" };

/* What is counted of each collector: a member of its object, a family with the label collector. */
static uint64_t collector_value(const struct pl_roce_out *g, unsigned int i, unsigned int row)
{
	const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);
	const struct pl_dialer_counters *d = pl_dialer_counters(g->dialer, i);
	const uint64_t values[] = { c->given, c->done, pl_uplink_waiting(g->uplink, i), c->lost,
		c->full, c->down, c->outside, c->writes, c->adds, c->connections, d->tries,
		d->failures, d->losses };

	return values[row];
}

static const struct {
	const char *key, *name, *help;
	enum pl_metric_type type;
} collector_rows[] = {
#define ROW(KEY, HELP)                                                                             \
	{                                                                                          \
		KEY, "pathline_dta_collector_" KEY, HELP, PL_METRIC_COUNTER                        \
	}
	ROW("given", "Operations for this collector."),
	ROW("done",
		"Operations that the collector acknowledged, and unreliable ones that were sent."),
	{ "waiting", "pathline_dta_collector_waiting", "Operations that wait to be done.",
		PL_METRIC_GAUGE },
	ROW("lost", "Operations lost with a connection."),
	ROW("full", "Operations dropped because the queue was full."),
	ROW("down", "Operations dropped because the collector was not connected."),
	ROW("outside", "Operations outside the stores of the collector."),
	ROW("writes", "Writes done."),
	ROW("adds", "Additions done."),
	ROW("connections", "Connections established to the collector."),
	ROW("tries", "Attempts to connect to the collector."),
	ROW("tries_failed", "Failed attempts to connect to the collector."),
	ROW("connections_lost", "Connections to the collector that were lost."),
#undef ROW
};

#define COLLECTOR_ROWS (sizeof(collector_rows) / sizeof(collector_rows[0]))

static void collector_json(const struct pl_roce_out *g, unsigned int i, struct pl_json *json)
{
	const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);

	pl_json_object(json);
	pl_json_key(json, "collector");
	pl_json_str(json, g->servers[i]);
	for (unsigned int k = 0; k < COLLECTOR_ROWS; k++)
		pl_json_number(json, collector_rows[k].key, collector_value(g, i, k));
	pl_json_key(json, "failures");
	pl_json_object(json);
	for (int r = PL_RDMA_RESULT_INVALID; r < PL_RDMA_RESULT_FLUSHED; r++)
		pl_json_number(json, results[r], c->failures[r]);
	pl_json_object_end(json);
	pl_json_object_end(json);
}

static void collector_families(const struct pl_roce_out *g, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < COLLECTOR_ROWS; k++) {
		pl_exposition_family(page, collector_rows[k].name, collector_rows[k].type, NULL,
			collector_rows[k].help);
		for (unsigned int i = 0; i < g->collectors; i++) {
			const struct pl_label l = {
				.name = "collector", .form = PL_LABEL_TEXT, .text = g->servers[i]
			};

			pl_exposition_u64(page, &l, 1, collector_value(g, i, k));
		}
	}
}

static void put_wire(const struct pl_roce_out *g, const struct pl_account *a)
{
	const struct pl_requester_counters *p = pl_uplink_packets(g->uplink);
	const struct pl_nic_counters *n = pl_nic_counters(g->nic);
	struct pl_port_stats port;

#define WIRE(KEY, HELP, counter) PL_COUNT(a, "dta_out_", KEY, HELP, pl_counter_read(&(counter)))
	WIRE("packets", "RoCE packets sent to collectors.", p->packets);
	WIRE("repeated", "RoCE packets that were sent again.", p->repeated);
	WIRE("timeouts", "Timeouts of acknowledgements.", p->timeouts);
	WIRE("received", "RoCE packets received from collectors.", p->received);
	WIRE("acks", "Acknowledgements received.", p->acks);
	WIRE("atomic_acks", "Acknowledgements of atomics received.", p->atomic_acks);
	WIRE("read_responses", "Responses to READ received.", p->read_responses);
	WIRE("sequence_naks", "NAKs of a sequence error received.", p->sequence_naks);
	WIRE("rnr_naks", "NAKs of a receiver that was not ready received.", p->rnr_naks);
	WIRE("error_naks", "NAKs of other errors received.", p->error_naks);
	WIRE("cnps", "Congestion notifications received.", p->cnps);
	WIRE("ghosts", "Duplicate answers.", p->ghosts);
	WIRE("foreign", "Packets for queue pairs of this translator from wrong addresses.",
		p->foreign);
	WIRE("unknown", "Packets for unknown queue pairs.", p->unknown);
	WIRE("management", "Packets of connection management received.", p->management);
	WIRE("frames_sent", "Frames that the interface sent.", n->sent);
	WIRE("frames_unsent", "Frames that the interface did not send.", n->unsent);
#undef WIRE
	pl_nic_stats(g->nic, &port);
	PL_COUNT(a, "dta_out_", "ring_sent", "Frames sent by the ring of an AF_XDP socket.",
		port.ring_sent);
	PL_COUNT(a, "dta_out_", "ring_full", "Times that this ring was full.", port.ring_full);
	PL_COUNT(a, "dta_out_", "ring_drops", "Frames not sent because this ring stayed full.",
		port.ring_drops);
	PL_COUNT(a, "dta_out_", "slowed", "Times that sending was slowed for congestion.",
		pl_uplink_slowed(g->uplink));
	PL_COUNT(a, "dta_out_", "interface_errors", "Times that the interface gave an error.",
		g->unreadable);
}

void pl_roce_out_account(void *arg, const struct pl_account *a)
{
	struct pl_roce_out *g = arg;
	struct pl_uplink_counters sum = { 0 };

	for (unsigned int i = 0; i < g->collectors; i++) {
		const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);

		sum.given += c->given;
		sum.writes += c->writes;
		sum.adds += c->adds;
		sum.lost += c->lost;
		sum.full += c->full;
		sum.down += c->down;
		sum.outside += c->outside;
	}
	PL_COUNT(a, "dta_out_", "given", "Operations for collectors.", sum.given);
	PL_COUNT(a, "dta_out_", "writes", "Writes done by collectors.", sum.writes);
	PL_COUNT(a, "dta_out_", "adds", "Additions done by collectors.", sum.adds);
	PL_COUNT(a, "dta_out_", "lost", "Operations lost with connections.", sum.lost);
	PL_COUNT(a, "dta_out_", "full", "Operations dropped because the queues were full.",
		sum.full);
	PL_COUNT(a, "dta_out_", "down", "Operations dropped because no collector was connected.",
		sum.down);
	PL_COUNT(a, "dta_out_", "outside", "Operations outside the stores of the collectors.",
		sum.outside);
	put_wire(g, a);
	if (a->page != NULL) {
		collector_families(g, a->page);
		return;
	}
	pl_json_key(a->json, "collectors");
	pl_json_array(a->json);
	for (unsigned int i = 0; i < g->collectors; i++)
		collector_json(g, i, a->json);
	pl_json_array_end(a->json);
}
