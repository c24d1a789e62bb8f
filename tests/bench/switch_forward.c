/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The match-action engine of the software switch in memory, on one processor: packets of 128 bytes of
 * 4096 flows. Each is copied from a template into a packet of the pool, in batches of 64, parsed,
 * looked up, rewritten, handed over and freed; against the copy into the pool alone.
 *
 *   route        256 prefixes of four lengths, next hop by MAC address, TTL and checksum
 *   bridge       1024 MAC addresses
 *   ternary      an access list of 64 entries with eight sets of masks, then route
 *   int-transit  route, the queue of the output port, and behind it INT 2.1: packets carry the header and
 *                seven values of one node, and get those of this one
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "dataplane/pipeline.h"
#include "dataplane/queues.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/int_frame.h"
#include "wire/layers.h"

#define TEMPLATES 4096
#define BATCH     64
#define BYTES     128
#define PORTS     3

struct forward_bench {
	struct pl_dp_pool *pool;
	struct pl_dp_pipeline *pipeline;      /* of the case */
	struct pl_dp_port *queues[PORTS + 1]; /* by port; NULL: a case without queues */
	uint64_t now_ns;
	uint64_t out; /* packets; of a case with queues those that got their values */
	uint8_t frames[TEMPLATES][BYTES];
};

static void give(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct forward_bench *b = arg;
	struct pl_dp_port *queue = b->queues[pkt->out_port];

	if (queue != NULL && stage == PL_DP_INGRESS) {
		if (!pl_dp_port_enqueue(queue, pkt, b->now_ns))
			pl_dp_pipeline_dropped(b->pipeline, pkt, b->now_ns);
		return;
	}
	b->out += queue == NULL || pkt->len > BYTES;
	pl_dp_packet_free(pkt);
}

static void leave_queues(struct forward_bench *b)
{
	struct pl_dp_packet *pkt;

	for (unsigned int i = 1; i <= PORTS && b->queues[i] != NULL; i++) {
		while ((pkt = pl_dp_port_dequeue(b->queues[i], b->now_ns)) != NULL)
			pl_dp_pipeline_egress(b->pipeline, &pkt, 1);
	}
}

static int fill(struct forward_bench *b, uint32_t first, struct pl_dp_packet *ret[BATCH])
{
	b->now_ns += 1000;
	for (uint32_t i = 0; i < BATCH; i++) {
		ret[i] = pl_dp_packet_of(b->pool, b->frames[first + i], BYTES);
		if (ret[i] == NULL)
			return -ENOMEM;
		ret[i]->in_port = 1;
		ret[i]->in_ns = b->now_ns;
	}
	return 0;
}

static int run(struct forward_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret, bool all)
{
	const uint64_t start = pl_cpu_thread_ns(), before = b->out;
	struct pl_dp_packet *packets[BATCH];

	do {
		for (uint32_t at = 0; at < TEMPLATES; at += BATCH) {
			if (fill(b, at, packets) < 0)
				return -ENOMEM;
			if (all) {
				pl_dp_pipeline_ingress(b->pipeline, packets, BATCH);
				leave_queues(b);
			}
			for (uint32_t i = 0; !all && i < BATCH; i++)
				pl_dp_packet_free(packets[i]);
		}
		ret->items += TEMPLATES;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	if (!all || b->out - before == ret->items)
		return 0;
	pl_complain("benchmark switch: of %" PRIu64 " packets %" PRIu64 " were forwarded",
		ret->items, b->out - before);
	return -EBADMSG;
}

static int forwards(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, true);
}

static int copies(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return run(arg, budget_ns, ret, false);
}

/* Flow i: to 10.(i % 256).x.y, and to one of 1024 MAC addresses. */
static void make_frame(struct forward_bench *b, uint32_t i, uint32_t bytes)
{
	const uint8_t a[8] = { 192, 168, (uint8_t)(i >> 8), (uint8_t)i, 10, (uint8_t)i,
		(uint8_t)(i >> 8), 1 };
	const struct pl_flow f = { .src = pl_addr_v4(a),
		.dst = pl_addr_v4(a + 4),
		.sport = (uint16_t)(5000 + i),
		.dport = 80,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS };
	struct pl_build p = pl_build(b->frames[i], bytes);
	size_t at;

	pl_put_eth(&p, PL_ETH_IPV4, 0);
	at = pl_put_ip(&p, &f, 60, 0);
	pl_put_zero(&p, bytes - p.len);
	pl_end_ip(&p, at);
	memcpy(b->frames[i], (const uint8_t[]){ 2, 0, 0, 0, (uint8_t)(i % 1024 >> 8), (uint8_t)i },
		6);
}

/* ---- tables ---- */

static int add(struct forward_bench *b, const char *table, const char *entry)
{
	const struct pl_dp_change c = { PL_DP_ADD, table, entry };
	struct pl_diag diag = { .text = "" };
	size_t bad;
	int r = pl_dp_pipeline_change(b->pipeline, &c, 1, &bad, &diag);

	if (r < 0)
		pl_complain("benchmark switch: %s: %s", entry, diag.text);
	return r;
}

static int table(struct forward_bench *b, const char *name, const char *const *key, size_t n)
{
	size_t bad;

	return pl_dp_pipeline_table(b->pipeline, name, PL_DP_INGRESS, 2048, key, n, &bad, NULL);
}

/* Half of the networks by a /16, the others by longer prefixes and the /8 that has them all. */
static int routes(struct forward_bench *b)
{
	char text[96];
	int r = table(b, "routes", (const char *const[]){ "ip.dst prefix" }, 1);

	for (unsigned int i = 0; r == 0 && i < 255; i++) {
		static const unsigned int bits[] = { 16, 20, 24 };

		snprintf(text, sizeof(text), "ip.dst=10.%u.0.0/%u -> route 2 02:00:00:00:01:%02x",
			i, bits[i % 3], i);
		r = add(b, "routes", text);
	}
	return r == 0 ? add(b, "routes", "ip.dst=10.0.0.0/8 -> route 3 02:00:00:00:02:00") : r;
}

static int bridge(struct forward_bench *b)
{
	char text[96];
	int r = table(b, "stations", (const char *const[]){ "eth.dst exact" }, 1);

	for (unsigned int i = 0; r == 0 && i < 1024; i++) {
		snprintf(text, sizeof(text), "eth.dst=02:00:00:00:%02x:%02x -> forward %u", i >> 8,
			i & 255, 2 + i % 2);
		r = add(b, "stations", text);
	}
	return r;
}

/* No packet of ours is of the list, so each is compared with all sets of masks. */
static int access_list(struct forward_bench *b)
{
	char text[128];
	int r = table(b, "list",
		(const char *const[]){ "ip.src ternary", "ip.dst ternary", "l4.dst ternary" }, 3);

	for (unsigned int i = 0; r == 0 && i < 64; i++) {
		snprintf(text, sizeof(text), "priority %u ip.src=172.16.%u.0/%u l4.dst=%u -> drop",
			i, i * 4 % 256, 24 - i % 8 / 4 * 2, 1000 + i);
		if (i % 4 == 1)
			snprintf(text, sizeof(text), "priority %u ip.dst=11.%u.0.0/16 -> drop", i,
				i);
		else if (i % 4 == 2)
			snprintf(text, sizeof(text), "priority %u ip.src=173.%u.0.0/16 -> drop", i,
				i);
		else if (i % 4 == 3)
			snprintf(text, sizeof(text),
				"priority %u l4.dst=%u&0xff00 ip.dst=12.%u.0.0/%u -> drop", i,
				i << 8, i, 16 + i % 8 / 4 * 8);
		r = add(b, "list", text);
	}
	return r == 0 ? routes(b) : r;
}

static int make_queues(struct forward_bench *b)
{
	const struct pl_dp_port_cfg cfg = { .n_classes = 1,
		.classes = { { .limit_bytes = 1 << 20 } } };
	int r = 0;

	for (unsigned int i = 1; r == 0 && i <= PORTS; i++)
		r = pl_dp_port_new(&b->queues[i], &cfg, NULL);
	return r;
}

static void free_queues(struct forward_bench *b)
{
	for (unsigned int i = 1; i <= PORTS; i++) {
		pl_dp_port_free(b->queues[i]);
		b->queues[i] = NULL;
	}
}

static int transit(struct forward_bench *b)
{
	size_t bad;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < TEMPLATES; i++) {
		make_frame(b, i, BYTES - PL_BENCH_INT_BYTES);
		r = pl_bench_instrument(b->frames[i], BYTES - PL_BENCH_INT_BYTES);
	}
	if (r == 0)
		r = make_queues(b);
	if (r == 0)
		r = routes(b);
	if (r == 0)
		r = pl_dp_pipeline_table(
			b->pipeline, "telemetry", PL_DP_EGRESS, 1, NULL, 0, &bad, NULL);
	return r == 0 ? pl_dp_pipeline_miss(b->pipeline, "telemetry", "int_transit", NULL) : r;
}

static const struct {
	const char *name;
	int (*make)(struct forward_bench *b);
} tables[] = {
	{ "switch/route", routes },
	{ "switch/bridge", bridge },
	{ "switch/ternary", access_list },
	{ "switch/int-transit", transit },
};

static int one(struct pl_bench_ctx *ctx, struct forward_bench *b, size_t i)
{
	const struct pl_dp_pipeline_options o = {
		.name = "bench", .node_id = 1, .pool = b->pool, .ops = { .out = give, .arg = b }
	};
	const struct pl_bench_case compared = { .name = tables[i].name,
		.ceiling_name = "copy into a packet",
		.subject = forwards,
		.ceiling = copies,
		.arg = b };
	int r = pl_dp_pipeline_new(&b->pipeline, &o);

	for (uint32_t k = 0; k < TEMPLATES; k++)
		make_frame(b, k, BYTES);
	for (unsigned int port = 1; r == 0 && port <= PORTS; port++)
		r = pl_dp_pipeline_port(b->pipeline, port, port, 1500, NULL);
	if (r == 0)
		r = tables[i].make(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &compared);
	else
		pl_complain("benchmark %s: %s", tables[i].name, strerror(-r));
	free_queues(b);
	pl_dp_pipeline_free(b->pipeline);
	b->pipeline = NULL;
	return r;
}

static int run_switch(struct pl_bench_ctx *ctx)
{
	struct forward_bench *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = pl_dp_pool_new(&b->pool, PL_DP_HEADROOM + 1536, BATCH);
	for (size_t i = 0; r == 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
		r = one(ctx, b, i);
	pl_dp_pool_free(b->pool);
	free(b);
	return r;
}

const struct pl_bench pl_bench_switch = {
	.name = "switch",
	.summary =
		"match-action engine of the switch in memory: route, bridge, access list, INT transit",
	.run = run_switch,
};
