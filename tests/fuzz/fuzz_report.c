/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry reports. Byte 0 is the version to assume, or none. A datagram holds a bounded number of
 * reports, and what they point at lies in it; what was read is written again, and reading that
 * gives the same report.
 */
#include "fuzz.h"
#include "wire/report.h"

/* The metadata bits for what a report has, in the version's own order. */
static uint16_t md_bits(const struct pl_report *r)
{
	static const struct {
		enum pl_int_field field;
		uint16_t v10;
	} rows[] = { { PL_INT_F_PORTS, 0x20 }, { PL_INT_F_LATENCY, 0x10 }, { PL_INT_F_QUEUE, 0x08 },
		{ PL_INT_F_EGRESS_TS, 0x04 }, { PL_INT_F_TX_UTIL, 0x01 } };
	uint16_t bits = 0;

	if (r->version == PL_REPORT_V10) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			bits |= (r->hop.have & PL_INT_HAS(rows[i].field)) != 0 ? rows[i].v10 : 0;
		return bits | (r->have_drop_reason ? 0x02 : 0);
	}
	for (unsigned int f = PL_INT_F_PORTS; f < PL_INT_F_MAX; f++)
		bits |= (r->hop.have & PL_INT_HAS(f)) != 0 ? PL_INT_BIT(f) : 0;
	return bits | (r->have_drop_reason ? 1 : 0);
}

static void again(const struct pl_report *r, unsigned int nproto)
{
	static uint8_t memory[8192];
	struct pl_build b = pl_build(memory, sizeof(memory));
	size_t inner = pl_cursor_left(&r->inner), at;
	struct pl_report_head h = { .version = r->version,
		.hw_id = r->hw_id,
		.dropped = r->dropped,
		.congested = r->congested,
		.tracked = r->tracked,
		.intermediate = r->intermediate,
		.seq = r->seq,
		.node = (uint32_t)r->node,
		.ingress_ts = (uint32_t)r->ingress_ts,
		.md_bits = md_bits(r),
		.drop_header = r->version == PL_REPORT_V05 && nproto == 1,
		.local_header = r->version == PL_REPORT_V05 && nproto == 2,
		.drop_reason = r->drop_reason,
		.drop_queue = r->drop_queue,
		.inner_link = r->inner_link,
		.inner_ip_version = inner > 0 && r->inner.pos[0] >> 4 == 6 ? 6 : 4 };
	struct pl_report_iter it;
	struct pl_report out;
	enum pl_verdict v;

	pl_report_put_group(&b, &h);
	at = pl_report_put(&b, &h, &r->hop);
	if (inner > 0)
		pl_put(&b, r->inner.pos, inner);
	pl_report_end(&b, &h, at);
	must(!b.full);
	must(pl_report_begin(&it, pl_cursor(memory, b.len), r->version, false) == PL_V_OK);
	memset(&out, 0, sizeof(out));
	must(pl_report_next(&it, &out, &v) && v == PL_V_OK);
	must(out.version == r->version && out.form == r->form && out.hw_id == r->hw_id);
	must(out.dropped == r->dropped && out.congested == r->congested);
	must(out.tracked == r->tracked && out.intermediate == r->intermediate);
	must(out.have_node == r->have_node && out.node == r->node && out.seq == r->seq);
	must(out.have_ingress_ts == r->have_ingress_ts && out.ingress_ts == r->ingress_ts);
	/* A drop header of all ones says nothing, but is a drop header. */
	must(out.have_drop_reason == r->have_drop_reason || nproto == 1);
	must(nproto == 1 || (out.drop_reason == r->drop_reason && out.drop_queue == r->drop_queue));
	must(memcmp(&out.hop, &r->hop, sizeof(out.hop)) == 0);
	must(pl_cursor_left(&out.inner) >= inner && pl_cursor_left(&out.inner) < inner + 4);
	must(inner == 0 || memcmp(out.inner.pos, r->inner.pos, inner) == 0);
	/* Padding to whole words may make room for an IP header. */
	must(inner % 4 != 0 || out.inner_link == r->inner_link);
	must(!pl_report_next(&it, &out, &v) && v == PL_V_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_report_iter it;
	struct pl_report report;
	struct pl_cursor c;
	enum pl_verdict v;
	size_t n = 0;

	if (size < 1)
		return 0;
	c = pl_cursor(data + 1, size - 1);
	v = pl_report_begin(&it, c, data[0] % 4 - 1, (data[0] & 0x80) != 0);
	must(v < PL_V_MAX);
	if (v != PL_V_OK)
		return 0;
	memset(&report, 0, sizeof(report));
	while (pl_report_next(&it, &report, &v)) {
		/* The smallest individual report is a word; the older versions hold one. */
		must(++n <= size / 4 + 1);
		must(report.version < PL_REPORT_VERSION_MAX);
		must(report.version == PL_REPORT_V20 || n == 1);
		must(report.hw_id < 64);
		must(report.inner_link <= PL_LINK_MAX);
		if (report.inner.pos != NULL)
			must(report.inner.pos >= data && report.inner.pos <= report.inner.end &&
				report.inner.end <= data + size);
		/* The drop summary and the shim of Host-INT are only read. */
		if (report.verdict == PL_V_OK && report.form == PL_REPORT_LOCAL && size < 4096 &&
			(report.version != PL_REPORT_V05 || (data[1] & 0xf) < 3))
			again(&report, report.version == PL_REPORT_V05 ? data[1] & 0xf : 0);
	}
	must(v < PL_V_MAX);
	return 0;
}
