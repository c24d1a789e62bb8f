/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a decoder counted. */
#include "service/decode_stats.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/num.h"
#include "wire/report.h"

/* v0.5 names a device by its address only. */
static bool has_node(const struct pl_exporter *e)
{
	return e->report_version != PL_REPORT_V05;
}

static void json_exporter(struct pl_json *json, const struct pl_exporter *e)
{
	char addr[PL_ADDR_TEXT_MAX];

	pl_json_object(json);
	pl_json_key(json, "exporter");
	pl_json_strn(json, addr, pl_format_addr(addr, &e->addr));
	pl_json_text(json, "report_version",
		pl_report_version_name((enum pl_report_version)e->report_version));
	if (has_node(e))
		pl_json_number(json, "node", e->node);
	pl_json_number(json, "hw_id", e->hw_id);
	pl_stats_json(&pl_exporter_stats, e, NULL, json);
	pl_json_number(json, "first_ts_ns", e->first_ts_ns);
	pl_json_number(json, "last_ts_ns", e->last_ts_ns);
	pl_json_number(json, "last_seq", e->last_seq);
	pl_json_key(json, "unsequenced");
	pl_json_bool(json, e->unsequenced);
	pl_json_key(json, "shared");
	pl_json_bool(json, e->shared);
	pl_json_object_end(json);
}

static void json_verdicts(struct pl_json *json, const struct pl_decode_counters *c)
{
	pl_json_key(json, "verdicts");
	pl_json_object(json);
	for (int v = 0; v < PL_V_MAX; v++) {
		uint64_t n = pl_counter_read(&c->verdicts[v]);

		if (n == 0 && v != PL_V_OK)
			continue;
		pl_json_number(json, pl_verdict_name((enum pl_verdict)v), n);
	}
	pl_json_object_end(json);
	pl_json_key(json, "notes");
	pl_json_object(json);
	for (int i = 0; i < PL_N_MAX; i++) {
		uint64_t n = pl_counter_read(&c->notes[i]);

		if (n == 0)
			continue;
		pl_json_number(json, pl_note_name((enum pl_note)i), n);
	}
	pl_json_object_end(json);
}

void pl_decode_stats_json(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);
	struct pl_exporter e;
	struct pl_json json;

	pl_json_init(&json, out);
	pl_json_object(&json);
	pl_json_text(&json, "kind", "stats");
#define PL_STAT(kind, member, ...) pl_json_number(&json, #member, pl_counter_read(&c->member));
#include "decode/counters.def"
#undef PL_STAT
	if (ports != NULL) {
		pl_json_key(&json, "port");
		pl_json_object(&json);
		pl_stats_json(&pl_port_stats_list, ports, NULL, &json);
		pl_json_object_end(&json);
	}
	json_verdicts(&json, c);
	pl_json_key(&json, "exporters");
	pl_json_array(&json);
	for (uint32_t pos = 0; pl_decode_exporter(d, &pos, &e);)
		json_exporter(&json, &e);
	pl_json_array_end(&json);
	pl_json_object_end(&json);
	pl_buf_chr(out, '\n');
}

static void text_exporters(struct pl_buf *out, const struct pl_decode *d)
{
	struct pl_exporter e;

	for (uint32_t pos = 0; pl_decode_exporter(d, &pos, &e);) {
		char addr[PL_ADDR_TEXT_MAX], node[24] = "-";

		pl_format_addr(addr, &e.addr);
		if (has_node(&e))
			snprintf(node, sizeof(node), "%" PRIu64, e.node);
		if (pos == 1)
			pl_buf_printf(out, "%-20s %8s %3s %9s %9s %9s %9s %8s\n", "EXPORTER",
				"NODE", "HW", "REPORTS", "LOST", "REORDERED", "DUPLICATE",
				"RESTARTS");
		pl_buf_printf(out, "%-20s %8s %3u %9" PRIu64, addr, node, e.hw_id, e.reports);
		if (e.unsequenced || e.shared)
			pl_buf_printf(out, " %9s %9s %9s %8s%s\n", "?", "?", "?", "?",
				e.shared ? "  several senders under this identity" : "");
		else
			pl_buf_printf(out, " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8" PRIu64 "\n",
				e.lost, e.reordered, e.duplicates, e.restarts);
	}
}

void pl_decode_stats_text(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);

	pl_buf_printf(out,
		"%" PRIu64 " packets, %" PRIu64 " reports, %" PRIu64 " paths, %" PRIu64 " hops\n",
		pl_counter_read(&c->packets), pl_counter_read(&c->reports),
		pl_counter_read(&c->paths), pl_counter_read(&c->hops));
	for (int v = 0; v < PL_V_MAX; v++) {
		uint64_t n = pl_counter_read(&c->verdicts[v]);

		if (n != 0)
			pl_buf_printf(out, "  %10" PRIu64 " %-19s %s\n", n,
				pl_verdict_name((enum pl_verdict)v),
				pl_verdict_help((enum pl_verdict)v));
	}
	for (int i = 0; i < PL_N_MAX; i++) {
		uint64_t n = pl_counter_read(&c->notes[i]);

		if (n != 0)
			pl_buf_printf(out, "  %10" PRIu64 " %-19s note: %s\n", n,
				pl_note_name((enum pl_note)i), pl_note_help((enum pl_note)i));
	}
	if (ports != NULL)
		pl_buf_printf(out,
			"lost before pathline: %" PRIu64
			" (no room in the socket or ring; ?rcvbuf= or ?ring= makes more)\n",
			ports->kernel_drops);
	if (ports != NULL && ports->not_matched > 0)
		pl_buf_printf(
			out, "that do not match the filter: %" PRIu64 "\n", ports->not_matched);
	if (ports != NULL && ports->cut + ports->errors > 0)
		pl_buf_printf(out, "cut: %" PRIu64 ", receive errors: %" PRIu64 "\n", ports->cut,
			ports->errors);
	if (ports != NULL && ports->filtered + ports->no_socket > 0)
		pl_buf_printf(out,
			"left to the host: %" PRIu64 " frames, and %" PRIu64
			" of reports on queues that are not read\n",
			ports->filtered, ports->no_socket);
	if (ports != NULL && ports->fragments > 0)
		pl_buf_printf(out, "IP fragments, which only the host puts together: %" PRIu64 "\n",
			ports->fragments);
	if (ports != NULL && ports->outages > 0)
		pl_buf_printf(
			out, "interfaces went down or away: %" PRIu64 " times\n", ports->outages);
	text_exporters(out, d);
}

void pl_decode_stats_faults(struct pl_buf *out, const struct pl_decode *d)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);
	uint64_t good = pl_counter_read(&c->verdicts[PL_V_OK]) +
			pl_counter_read(&c->verdicts[PL_V_NOT_TELEMETRY]);
	uint64_t packets = pl_counter_read(&c->packets);
	const char *sep = "";

	if (good == packets)
		return;
	pl_buf_printf(out, "%" PRIu64 " of %" PRIu64 " packets did not decode: ", packets - good,
		packets);
	for (int v = 0; v < PL_V_MAX; v++) {
		uint64_t n = pl_counter_read(&c->verdicts[v]);

		if (n == 0 || v == PL_V_OK || v == PL_V_NOT_TELEMETRY)
			continue;
		pl_buf_printf(out, "%s%s %" PRIu64, sep, pl_verdict_name((enum pl_verdict)v), n);
		sep = ", ";
	}
}
