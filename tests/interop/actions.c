/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the telemetry actions of the data plane make of packets, for witnesses: lines of JSON, one for
 * each packet: the form, the packet before and behind a source and two transit nodes, what each node
 * put in, and the reports about it. Run as: actions SEED
 */
#include <inttypes.h>

#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/telemetry/ioam_node.h"
#include "dataplane/telemetry/reporter.h"
#include "dataplane/test_packets.h"

#define NODES   3
#define PACKETS 12 /* of each form */

static struct pl_dp_pool *pool;

static const struct form {
	const char *name;
	struct pl_dp_int_source_config c;
	enum test_kind kind;
} forms[] = {
	{ "0.5", { .version = PL_INT_V05, .bitmap = 0xbd00 }, TEST_PLAIN },
	{ "1.0", { .version = PL_INT_V10, .bitmap = 0xff00 }, TEST_PLAIN },
	{ "1.0 complement", { .version = PL_INT_V10, .bitmap = 0xc001 }, TEST_PLAIN },
	{ "2.1", { .version = PL_INT_V20, .bitmap = 0xff80 }, TEST_PLAIN },
	{ "2.1 complement", { .version = PL_INT_V20, .bitmap = 0x8001 }, TEST_PLAIN },
	{ "2.1 mx", { .version = PL_INT_V20, .kind = PL_INT_MX }, TEST_PLAIN },
	{ "2.1 npt 2", { .version = PL_INT_V20, .by = PL_DP_BY_PORT, .npt = 2 }, TEST_PLAIN },
	{ "2.1 vxlan", { .version = PL_INT_V20, .carrier = PL_INT_OVER_GPE }, TEST_VXLAN },
	{ "2.1 geneve", { .version = PL_INT_V20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000 },
		TEST_GENEVE },
	{ "2.1 gre", { .version = PL_INT_V20, .carrier = PL_INT_OVER_GRE }, TEST_GRE },
};

static void hex(const char *key, const struct pl_dp_packet *pkt, const char *behind)
{
	printf("\"%s\":\"", key);
	for (uint32_t i = 0; i < pkt->len; i++)
		printf("%02x", pkt->data[i]);
	printf("\"%s", behind);
}

static void visit(struct pl_dp_packet *pkt, uint32_t i, struct pl_rng *rng)
{
	pkt->in_port = (uint16_t)(1 + i);
	pkt->out_port = (uint16_t)(50 + i);
	pkt->queue = (uint8_t)i;
	pkt->depth_bytes = (uint32_t)pl_rng_below(rng, 1 << 20);
	pkt->in_ns = UINT64_C(1700000000000000000) + pl_rng_below(rng, 1u << 30);
	pkt->out_ns = pkt->in_ns + 1 + pl_rng_below(rng, 1 << 20);
	pkt->tx_util = 32768; /* half */
}

static void node_json(const struct pl_dp_packet *pkt, uint32_t id, bool last)
{
	printf("{\"node\":%u,\"in\":%u,\"out\":%u,\"queue\":%u,\"depth\":%u,\"in_ns\":%" PRIu64
	       ",\"out_ns\":%" PRIu64 "}%s",
		id, pkt->in_port, pkt->out_port, pkt->queue, pkt->depth_bytes, pkt->in_ns,
		pkt->out_ns, last ? "" : ",");
}

static void reports(const struct pl_dp_node *node, struct pl_dp_packet *pkt, uint32_t keep)
{
	const uint8_t a[8] = { 10, 255, 0, 1, 10, 255, 0, 2 };
	const char *const names[] = { "0.5", "1.0", "2.0" };

	for (uint8_t v = 0; v < PL_REPORT_VERSION_MAX; v++) {
		const struct pl_dp_reporter_config c = { .to = { .src = pl_addr_v4(a),
								 .dst = pl_addr_v4(a + 4) },
			.version = v,
			.hw_id = 7 };
		struct pl_dp_reporter r;
		struct pl_dp_packet *report;

		pl_dp_reporter_init(&r, &c, pool, NULL);
		report = pl_dp_report(&r, node, pkt, PL_DP_REPORT_F, keep);
		hex(names[v], report, v + 1 < PL_REPORT_VERSION_MAX ? "," : "");
		pl_dp_packet_free(report);
	}
}

static void one(const struct form *form, struct pl_rng *rng)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	uint8_t bytes[TEST_BYTES];
	struct pl_dp_packet *pkt = pl_dp_packet_of(pool, bytes, test_make(bytes, rng, form->kind));
	struct pl_dp_node node = { .id = 100 };

	pl_dp_int_source_init(&source, &form->c, NULL);
	pl_dp_int_transit_init(&transit, &source.config.domain);
	printf("{\"form\":\"%s\",\"l3\":%d,", form->name, test_locate(pkt) ? pkt->headers.l3 : -1);
	hex("before", pkt, ",\"nodes\":[");
	for (uint32_t i = 0; i < NODES; i++) {
		node.id = 100 + i;
		visit(pkt, i, rng);
		node_json(pkt, node.id, i + 1 == NODES);
		if (i == 0)
			pl_dp_int_source(&source, &node, pkt);
		else
			pl_dp_int_transit(&transit, &node, pkt);
	}
	printf("],");
	hex("behind", pkt, ",");
	reports(&node, pkt, pl_dp_int_keep(&transit.domain, pkt, &transit.cache));
	printf("}\n");
	pl_dp_packet_free(pkt);
}

static void ioam(bool incremental, struct pl_rng *rng)
{
	const struct pl_dp_ioam_config c = { .ns = 123, .nodes = 4, .incremental = incremental };
	uint8_t bytes[TEST_BYTES];
	struct pl_dp_packet *pkt;
	struct pl_dp_ioam io;

	do { /* IPv6 without a Hop-by-Hop header */
		pkt = pl_dp_packet_of(pool, bytes, test_make(bytes, rng, TEST_PLAIN));
		test_locate(pkt);
		if (pkt->headers.ip_version == 6 && pkt->data[pkt->headers.l3 + 6] != 0)
			break;
		pl_dp_packet_free(pkt);
		pkt = NULL;
	} while (pkt == NULL);
	pl_dp_ioam_init(&io, &c, NULL);
	printf("{\"form\":\"ioam %s\",\"l3\":%d,", incremental ? "incremental" : "pre-allocated",
		pkt->headers.l3);
	hex("before", pkt, ",\"nodes\":[");
	for (uint32_t i = 0; i < NODES; i++) {
		const struct pl_dp_node node = { .id = 100 + i };

		visit(pkt, i, rng);
		node_json(pkt, node.id, i + 1 == NODES);
		if (i == 0)
			pl_dp_ioam_encapsulate(&io, &node, pkt);
		else
			pl_dp_ioam_transit(&io, &node, pkt);
	}
	printf("],");
	hex("behind", pkt, "");
	printf("}\n");
	pl_dp_packet_free(pkt);
}

int main(int argc, char **argv)
{
	struct pl_rng rng;

	if (argc != 2 || pl_dp_pool_new(&pool, 8192, 8) < 0)
		return 2;
	pl_rng_seed(&rng, strtoull(argv[1], NULL, 10));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		for (int k = 0; k < PACKETS; k++)
			one(&forms[i], &rng);
	}
	for (int k = 0; k < 2 * PACKETS; k++)
		ioam(k % 2 != 0, &rng);
	pl_dp_pool_free(pool);
	return 0;
}
