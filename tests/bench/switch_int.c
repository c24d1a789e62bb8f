/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry actions of the software switch in memory, on one processor: INT 2.1 over UDP in packets
 * of 128 bytes. Each packet is copied from a template into a packet of the pool, parsed, and handed
 * to the action; against the copy and the parser alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "dataplane/parse.h"
#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/telemetry/reporter.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "wire/layers.h"

#define TEMPLATES 256
#define BYTES     128
#define ROOM      1024

struct switch_bench {
	struct pl_dp_pool *pool;
	struct pl_dp_int_source source;
	struct pl_dp_int_transit transit;
	struct pl_dp_int_sink sink;
	struct pl_dp_reporter reporter;
	struct pl_dp_node node;
	struct {
		uint32_t len;
		uint8_t bytes[ROOM];
	} plain[TEMPLATES], instrumented[TEMPLATES];
	uint64_t wrong; /* packets with another outcome than the one that is measured */
};

typedef void each_fn(struct switch_bench *b, struct pl_dp_packet *pkt);

/* Into a packet as a port would give it, with what its queue knows of it. */
static struct pl_dp_packet *receive(
	struct switch_bench *b, const uint8_t *bytes, uint32_t len, uint64_t ns)
{
	struct pl_dp_packet *pkt = pl_dp_packet_of(b->pool, bytes, len);

	if (pkt == NULL)
		return NULL;
	pkt->in_port = 1;
	pkt->out_port = 2;
	pkt->in_ns = ns;
	pkt->out_ns = ns + 1000;
	pkt->depth_bytes = 3000;
	pl_dp_parse(pkt);
	return pkt;
}

static int run(struct switch_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	bool instrumented, each_fn *each)
{
	const uint64_t start = pl_cpu_thread_ns();

	b->wrong = 0;
	do {
		for (uint32_t i = 0; i < TEMPLATES; i++) {
			struct pl_dp_packet *pkt =
				instrumented ? receive(b, b->instrumented[i].bytes,
						       b->instrumented[i].len, ret->items + i)
					     : receive(b, b->plain[i].bytes, b->plain[i].len,
						       ret->items + i);

			if (pkt == NULL) {
				b->wrong++;
				continue;
			}
			if (each != NULL)
				each(b, pkt);
			pl_dp_packet_free(pkt);
		}
		ret->items += TEMPLATES;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	if (b->wrong == 0)
		return 0;
	pl_complain("bench switch-int: %" PRIu64 " packets were not handled", b->wrong);
	return -EIO;
}

static void do_source(struct switch_bench *b, struct pl_dp_packet *pkt)
{
	b->wrong += pl_dp_int_source(&b->source, &b->node, pkt) != PL_DP_INT_DONE;
}

static void do_transit(struct switch_bench *b, struct pl_dp_packet *pkt)
{
	b->wrong += pl_dp_int_transit(&b->transit, &b->node, pkt) != PL_DP_INT_DONE;
}

static void do_sink(struct switch_bench *b, struct pl_dp_packet *pkt)
{
	struct pl_dp_int_sink_look look;
	struct pl_dp_packet *report;

	if (pl_dp_int_sink_look(&b->sink, pkt, &look) != PL_DP_INT_DONE) {
		b->wrong++;
		return;
	}
	report = pl_dp_report(
		&b->reporter, &b->node, pkt, PL_DP_REPORT_F, pl_dp_int_found_keep(&look.found));
	b->wrong += report == NULL;
	pl_dp_packet_free(report);
	pl_dp_int_sink_strip(&b->sink, &look);
}

static int copies(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, true, NULL);
}

static int plain_copies(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, false, NULL);
}

static int sources(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, false, do_source);
}

static int transits(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, true, do_transit);
}

static int sinks(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, true, do_sink);
}

/* A packet of flow i, and the same behind a source. */
static int make(struct switch_bench *b, uint32_t i)
{
	const uint8_t a[8] = { 10, 0, (uint8_t)i, 1, 10, 1, 0, 1 };
	const struct pl_flow f = { .src = pl_addr_v4(a),
		.dst = pl_addr_v4(a + 4),
		.sport = (uint16_t)(5000 + i),
		.dport = 80,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	struct pl_build p = pl_build(b->plain[i].bytes, ROOM);
	struct pl_dp_packet *pkt;
	size_t at;

	pl_put_eth(&p, PL_ETH_IPV4, 0);
	at = pl_put_ip(&p, &f, 60, 0);
	pl_put_zero(&p, BYTES - p.len);
	pl_end_ip(&p, at);
	b->plain[i].len = (uint32_t)p.len;
	pkt = receive(b, p.data, (uint32_t)p.len, 1);
	if (pkt == NULL || pl_dp_int_source(&b->source, &b->node, pkt) != PL_DP_INT_DONE ||
		pkt->len > ROOM)
		return -EIO;
	b->instrumented[i].len = pkt->len;
	memcpy(b->instrumented[i].bytes, pkt->data, pkt->len);
	pl_dp_packet_free(pkt);
	return 0;
}

static int prepare(struct switch_bench *b)
{
	const uint8_t a[8] = { 10, 255, 0, 1, 10, 255, 0, 2 };
	const struct pl_dp_int_source_config source = { .version = PL_INT_V20, .bitmap = 0xfc00 };
	const struct pl_dp_reporter_config reporter = { .version = PL_REPORT_V20,
		.to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) },
		.snap = 16 };
	int r = pl_dp_pool_new(&b->pool, PL_DP_HEADROOM + ROOM + 512, 8);

	b->node.id = 1;
	if (r == 0)
		r = pl_dp_int_source_init(&b->source, &source, NULL);
	if (r == 0)
		r = pl_dp_reporter_init(&b->reporter, &reporter, b->pool, NULL);
	if (r < 0)
		return r;
	pl_dp_int_transit_init(&b->transit, &b->source.config.domain);
	pl_dp_int_sink_init(&b->sink, &b->source.config.domain);
	for (uint32_t i = 0; i < TEMPLATES && r == 0; i++)
		r = make(b, i);
	return r;
}

static int run_switch_int(struct pl_bench_ctx *ctx)
{
	struct switch_bench *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = prepare(b);
	if (r < 0) {
		pl_complain("bench switch-int: its packets could not be made");
	} else {
		const struct pl_bench_case cases[] = {
			{ .name = "switch-int/source",
				.ceiling_name = "copy and parse",
				.subject = sources,
				.ceiling = plain_copies,
				.arg = b },
			{ .name = "switch-int/transit",
				.ceiling_name = "copy and parse",
				.subject = transits,
				.ceiling = copies,
				.arg = b },
			{ .name = "switch-int/sink-report",
				.ceiling_name = "copy and parse",
				.subject = sinks,
				.ceiling = copies,
				.arg = b },
		};

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && r == 0; i++)
			r = pl_bench_compare(ctx, &cases[i]);
	}
	pl_dp_pool_free(b->pool);
	free(b);
	return r;
}

const struct pl_bench pl_bench_switch_int = {
	.name = "switch-int",
	.summary =
		"INT source, transit, and sink with report of the switch, against copy and parser",
	.run = run_switch_int,
};
