/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold of every telemetry action of the data plane, whatever packet it is given; for the
 * fuzz target and for the vectors. Each action gets the packet as the parser sees it, and
 *
 *   ends in one outcome, which is counted;
 *   leaves every byte as it was unless it says that it did something or set a flag;
 *   leaves a packet well-formed that was so: its headers are where they are said to be, lengths and
 *   checksums are right;
 *   what a source put in, a sink takes out again, to the byte.
 */
#pragma once

#include "dataplane/parse.h"
#include "dataplane/telemetry/exports.h"
#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/telemetry/ioam_node.h"
#include "dataplane/telemetry/reporter.h"
#include "dataplane/test_packets.h"
#include "fuzz.h"
#include "wire/roce.h"

#define ACTIONS_BYTES_MAX 9000

static const struct pl_dp_int_source_config actions_sources[] = {
	{ .version = PL_INT_V05 },
	{ .version = PL_INT_V05, .by = PL_DP_BY_PORT, .bitmap = 0xffff },
	{ .version = PL_INT_V10, .bitmap = 0xff01 },
	{ .version = PL_INT_V10, .by = PL_DP_BY_MARKER, .domain = { .tcp_before_options = true } },
	{ .version = PL_INT_V10, .carrier = PL_INT_OVER_GPE },
	{ .version = PL_INT_V20, .bitmap = 0xff81 },
	{ .version = PL_INT_V20, .by = PL_DP_BY_PORT, .npt = 1 },
	{ .version = PL_INT_V20, .by = PL_DP_BY_PORT, .npt = 2 },
	{ .version = PL_INT_V20, .carrier = PL_INT_OVER_GPE },
	{ .version = PL_INT_V20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000 },
	{ .version = PL_INT_V20, .carrier = PL_INT_OVER_GRE },
	{ .version = PL_INT_V20, .kind = PL_INT_MX },
};

#define ACTIONS_FORMS (sizeof(actions_sources) / sizeof(actions_sources[0]))

/* Packets end where their buffers do, so that a sanitizer sees a byte read behind them. */
static struct pl_dp_pool *actions_tight, *actions_pool;
static size_t actions_tight_bytes;

static void actions_end(void)
{
	if (actions_tight != NULL)
		pl_dp_pool_free(actions_tight);
	if (actions_pool != NULL)
		pl_dp_pool_free(actions_pool);
	actions_tight = actions_pool = NULL;
}

static struct pl_dp_packet *actions_packet(const uint8_t *bytes, size_t n)
{
	struct pl_dp_packet *pkt = pl_dp_packet_of(actions_tight, bytes, (uint32_t)n);

	must(pkt != NULL);
	pkt->in_port = 1;
	pkt->out_port = 2;
	pkt->in_ns = 1000;
	pkt->out_ns = 5000;
	pkt->depth_bytes = 77;
	return pkt;
}

static bool actions_same(const struct pl_dp_packet *pkt, const uint8_t *bytes, size_t n)
{
	return pkt->len == n && memcmp(pkt->data, bytes, n) == 0;
}

/* Offsets that later actions rely on stay inside the packet. */
static void actions_places(const struct pl_dp_packet *pkt)
{
	const struct pl_dp_headers *h = &pkt->headers;

	must(h->l3 == PL_DP_NONE || h->l3 <= pkt->len);
	must(h->l4 == PL_DP_NONE || h->l4 <= pkt->len);
}

static void actions_int(const uint8_t *bytes, size_t n, size_t form, bool good)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	static struct pl_dp_int_sink sink;
	const struct pl_dp_node node = { .id = 7 };
	struct pl_dp_int_sink_look look;
	struct pl_dp_packet *pkt = actions_packet(bytes, n);
	enum pl_dp_int_outcome r;

	must(pl_dp_int_source_init(&source, &actions_sources[form], NULL) == 0);
	pl_dp_int_transit_init(&transit, &source.config.domain);
	pl_dp_int_sink_init(&sink, &source.config.domain);
	if (!pl_dp_parse(pkt)) {
		pl_dp_packet_free(pkt);
		return;
	}

	/* as a node on the way would meet it */
	r = pl_dp_int_transit(&transit, &node, pkt);
	must(r == PL_DP_INT_DONE ? pkt->len > n : pkt->len == n);
	must(r == PL_DP_INT_DONE || r == PL_DP_INT_HOP_LIMIT || r == PL_DP_INT_LENGTH ||
		r == PL_DP_INT_MTU || actions_same(pkt, bytes, n));
	must(!good || test_wrong(pkt) == NULL);
	actions_places(pkt);
	pl_dp_packet_free(pkt);

	/* as the last one would */
	pkt = actions_packet(bytes, n);
	must(pl_dp_parse(pkt));
	r = pl_dp_int_sink_look(&sink, pkt, &look);
	must(actions_same(pkt, bytes, n));
	if (r == PL_DP_INT_DONE) {
		pl_dp_int_sink_strip(&sink, &look);
		must(pkt->len < n);
		actions_places(pkt);
		/* a checksum behind INT of NPT 2 is the sender's, right or wrong */
		must(!good || pl_dp_parse(pkt));
		must(!good || look.found.in.npt == 2 || test_wrong(pkt) == NULL);
	}
	pl_dp_packet_free(pkt);

	/* from here on with a header of our own */
	pkt = actions_packet(bytes, n);
	must(pl_dp_parse(pkt));
	r = pl_dp_int_source(&source, &node, pkt);
	must(r == PL_DP_INT_DONE || actions_same(pkt, bytes, n));
	if (r == PL_DP_INT_DONE) {
		must(!good || test_wrong(pkt) == NULL);
		for (int i = 0; i < 3; i++)
			r = pl_dp_int_transit(&transit, &node, pkt);
		must(r == PL_DP_INT_DONE || r == PL_DP_INT_NO_BLOCK || r == PL_DP_INT_LENGTH ||
			r == PL_DP_INT_HOP_LIMIT || r == PL_DP_INT_ROOM);
		must(!good || test_wrong(pkt) == NULL);
		must(pl_dp_int_sink_look(&sink, pkt, &look) == PL_DP_INT_DONE);
		pl_dp_int_sink_strip(&sink, &look);
		/* a checksum of 0xffff and one of 0 say the same, and a wrong packet may have either */
		must(pkt->len == n);
		must(!good || actions_same(pkt, bytes, n));
	}
	pl_dp_packet_free(pkt);
}

static void actions_ioam(const uint8_t *bytes, size_t n, bool incremental, bool good)
{
	const struct pl_dp_ioam_config c = { .ns = 123, .incremental = incremental };
	const struct pl_dp_node node = { .id = 7 };
	struct pl_dp_packet *pkt = actions_packet(bytes, n);
	enum pl_dp_int_outcome r;
	struct pl_dp_ioam io;

	must(pl_dp_ioam_init(&io, &c, NULL) == 0);
	if (pl_dp_parse(pkt)) {
		r = pl_dp_ioam_transit(&io, &node, pkt);
		must(r == PL_DP_INT_DONE || pkt->len == n);
		actions_places(pkt);
		r = pl_dp_ioam_decapsulate(&io, pkt);
		actions_places(pkt);
	}
	pl_dp_packet_free(pkt);
	pkt = actions_packet(bytes, n);
	if (pl_dp_parse(pkt)) {
		r = pl_dp_ioam_encapsulate(&io, &node, pkt);
		must(r == PL_DP_INT_DONE || actions_same(pkt, bytes, n));
		if (r == PL_DP_INT_DONE) {
			must(!good || test_wrong(pkt) == NULL);
			must(pl_dp_ioam_transit(&io, &node, pkt) == PL_DP_INT_DONE);
			must(!good || test_wrong(pkt) == NULL);
			must(pl_dp_ioam_decapsulate(&io, pkt) == PL_DP_INT_DONE);
			must(actions_same(pkt, bytes, n));
		}
	}
	pl_dp_packet_free(pkt);
}

/* What is sent about the packet is well-formed. */
static void actions_one_sent(struct pl_dp_packet *sent)
{
	if (sent == NULL)
		return;
	must(pl_dp_parse(sent));
	must(test_wrong(sent) == NULL);
	pl_dp_packet_free(sent);
}

/* One field of the hop. */
static struct pl_pack actions_fields(const char *name)
{
	struct pl_pack p;

	must(pl_pack_init(&p, PL_KIND_HOP, &name, 1, NULL) == 0);
	return p;
}

static void actions_dta(const struct pl_dp_datagram *to, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt)
{
	for (uint8_t op = PL_DTA_KEY_WRITE; op <= PL_DTA_POSTCARD; op++) {
		const struct pl_dp_dta_config c = { .to = *to,
			.op = op,
			.hop = 1,
			.key = actions_fields("flow"),
			.value = actions_fields("ingress_port") };
		struct pl_dp_packet *sent;
		struct pl_dp_dta d;

		must(pl_dp_dta_init(&d, &c, actions_pool, NULL) == 0);
		sent = pl_dp_dta(&d, node, pkt);
		must((sent == NULL) == (d.missing == 1));
		actions_one_sent(sent);
	}
}

static void actions_roce(const struct pl_dp_datagram *to, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt)
{
	for (int v1 = 0; v1 < 2; v1++) {
		const struct pl_dp_roce_config c = { .to = *to,
			.service = PL_ROCE_UC,
			.v1 = v1 != 0,
			.slots = 2,
			.value = actions_fields("ingress_port") };
		struct pl_dp_packet *sent;
		struct pl_dp_roce d;
		struct pl_roce w;

		must(pl_dp_roce_init(&d, &c, actions_pool, NULL) == 0);
		sent = pl_dp_roce_write(&d, node, pkt);
		must(sent != NULL);
		/* its parser checks lengths and the ICRC */
		must(pl_roce_parse(&w, pl_cursor(sent->data, sent->len), PL_LINK_ETHERNET) ==
			PL_ROCE_F_OK);
		if (v1 == 0)
			actions_one_sent(sent);
		else
			pl_dp_packet_free(sent);
	}
}

/* Reports, records, reports of DTA and WRITEs about the packet, whatever it is. */
static void actions_sent(const uint8_t *bytes, size_t n)
{
	const uint8_t a[8] = { 10, 0, 0, 1, 10, 0, 0, 2 };
	const struct pl_dp_datagram to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) };
	const struct pl_dp_node node = { .id = 7 };
	struct pl_dp_packet *pkt = actions_packet(bytes, n), *sent;
	struct pl_dp_recorder_config rc = { .to = to, .kind = PL_FLAT_PKT64 };
	struct pl_dp_recorder *recorder = NULL;

	(void)pl_dp_parse(pkt);
	for (uint8_t v = 0; v < PL_REPORT_VERSION_MAX; v++) {
		struct pl_dp_reporter_config c = { .to = to, .version = v, .snap = 20 };
		struct pl_dp_reporter r;

		must(pl_dp_reporter_init(&r, &c, actions_pool, NULL) == 0);
		sent = pl_dp_report(&r, &node, pkt, PL_DP_REPORT_D, 0);
		actions_one_sent(sent);
	}
	must(pl_dp_recorder_new(&recorder, &rc, actions_pool, NULL) == 0);
	actions_one_sent(pl_dp_record(recorder, pkt));
	pl_dp_recorder_free(recorder);
	actions_dta(&to, &node, pkt);
	actions_roce(&to, &node, pkt);
	must(actions_same(pkt, bytes, n));
	pl_dp_packet_free(pkt);
}

/* All of it; bytes begin with an Ethernet header. */
static void actions_check(const uint8_t *bytes, size_t n)
{
	struct pl_dp_packet *pkt;
	bool good;

	if (n > ACTIONS_BYTES_MAX)
		n = ACTIONS_BYTES_MAX;
	if (actions_pool == NULL)
		must(pl_dp_pool_new(&actions_pool, 12000, 16) == 0);
	if (actions_tight == NULL || n != actions_tight_bytes) {
		if (actions_tight != NULL)
			pl_dp_pool_free(actions_tight);
		must(pl_dp_pool_new(&actions_tight, PL_DP_HEADROOM + (uint32_t)n, 2) == 0);
		actions_tight_bytes = n;
	}
	pkt = actions_packet(bytes, n);
	good = pl_dp_parse(pkt) && pkt->headers.l4 != PL_DP_NONE && !pkt->headers.fragment &&
	       test_wrong(pkt) == NULL;
	pl_dp_packet_free(pkt);
	for (size_t i = 0; i < ACTIONS_FORMS; i++)
		actions_int(bytes, n, i, good);
	actions_ioam(bytes, n, false, good);
	actions_ioam(bytes, n, true, good);
	actions_sent(bytes, n);
	must(pl_dp_pool_alive(actions_pool) == 0 && pl_dp_pool_alive(actions_tight) == 0);
}
