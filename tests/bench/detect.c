/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection out of records, one thread: 3 hops with latency and depth at rest, in batches of 512 as
 * a worker has them. The ceiling reads the same records: every word that detection needs of path
 * and hops. Flows come in a fixed scramble of their numbers, so that none is near the one before;
 * node, port and queue make 192 places. What varies is the number of flows, and what is on.
 * Aggregates and the text of events are measured beside it.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/complain.h"
#include "detect/aggregate.h"
#include "detect/events.h"
#include "record/json.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

enum { PATHS = 512, HOPS = 3, EVENTS = 1024 };

struct detect_bench {
	struct pl_record_batch batch;
	struct pl_event_batch out;
	struct pl_detect *detect;
	struct pl_aggregate *aggregate;
	struct pl_buf text;
	uint32_t flows, next;
	uint64_t now_ns;
	uint64_t sink;
};

static void fill(struct detect_bench *b)
{
	struct pl_record_batch *r = &b->batch;

	for (uint32_t i = 0; i < PATHS; i++) {
		struct pl_path *p = &r->paths[i];

		*p = (struct pl_path){
			.ts_ns = i,
			.hop_count = HOPS,
			.proto = 17,
			.sport = 1000,
			.dport = 443,
			.path_id = i % 64 + 1,
			.report_id = i + 1,
			.record_version = PL_RECORD_VERSION,
			.present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_vni |
				   PL_PATH_HAS_path_id | PL_PATH_HAS_exporter,
		};
		p->src.b[15] = 1;
		p->dst.b[15] = 2;
		r->first_hop[i] = i * HOPS;
		for (uint32_t h = 0; h < HOPS; h++) {
			uint32_t place = i % 64 * HOPS + h;

			r->hops[i * HOPS + h] = (struct pl_hop){
				.node = 100 + place,
				.egress_port = place % 4,
				.ingress_port = 8 + place % 4,
				.queue = 1,
				.index = (uint8_t)h,
				.hop_latency_ns = 1000 + i,
				.queue_depth = i % 64,
				.tx_util = 40,
				.link_latency_ns = h > 0 ? 500 : 0,
				.present =
					PL_HOP_HAS_node | PL_HOP_HAS_egress_port |
					PL_HOP_HAS_ingress_port | PL_HOP_HAS_queue |
					PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_queue_depth |
					PL_HOP_HAS_tx_util |
					(h > 0 ? PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns : 0),
			};
		}
	}
	r->n_paths = PATHS;
	r->n_hops = PATHS * HOPS;
}

/* The next batch's flows, and time goes on: a million reports per second. */
static void turn(struct detect_bench *b)
{
	for (uint32_t i = 0; i < PATHS; i++) {
		uint32_t flow = (uint32_t)((uint64_t)b->next * 2654435761u % b->flows);

		b->next++;
		b->batch.paths[i].vni = flow;
		b->batch.paths[i].path_id = flow % 64 + 1;
	}
	b->now_ns += PATHS * UINT64_C(1000);
}

static void read_batch(struct detect_bench *b)
{
	uint64_t sum = 0, words[8];

	for (uint32_t i = 0; i < PATHS; i++) {
		const struct pl_path *p = &b->batch.paths[i];

		memcpy(words, &p->src, sizeof(words));
		for (unsigned int w = 0; w < 8; w++)
			sum += words[w];
		sum += p->path_id + p->present + p->flags;
		for (uint32_t h = 0; h < HOPS; h++) {
			memcpy(words, &b->batch.hops[i * HOPS + h], sizeof(words));
			for (unsigned int w = 2; w < 8; w++)
				sum += words[w];
		}
	}
	b->sink += sum;
	__asm__ volatile("" : : "r"(sum) : "memory");
}

static int timed(struct detect_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*step)(struct detect_bench *b))
{
	uint64_t start = pl_cpu_thread_ns();

	ret->items = 0;
	do {
		for (unsigned int i = 0; i < 16; i++) {
			turn(b);
			step(b);
		}
		ret->items += 16 * (uint64_t)PATHS;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static void detect_batch(struct detect_bench *b)
{
	pl_detect_batch(b->detect, &b->batch, b->now_ns, &b->out);
	b->out.n = 0;
}

static void aggregate_batch(struct detect_bench *b)
{
	pl_aggregate_batch(b->aggregate, &b->batch);
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, read_batch);
}

static int detection(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, detect_batch);
}

static int aggregation(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, aggregate_batch);
}

static int text(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct detect_bench *b = arg;
	uint64_t start = pl_cpu_thread_ns();

	ret->items = 0;
	do {
		pl_buf_reset(&b->text);
		for (uint32_t i = 0; i < EVENTS; i++)
			pl_event_json(&b->text, &b->out.events[i]);
		ret->items += EVENTS;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static void discard(struct pl_event_batch *batch, void *arg)
{
	(void)arg;
	batch->n = 0;
}

static int one(struct pl_bench_ctx *ctx, struct detect_bench *b, const char *name, uint32_t flows,
	const struct pl_detect_options *options)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "read the records",
		.subject = detection,
		.ceiling = ceiling,
		.arg = b,
		.warm_items = 2 * (uint64_t)flows };
	int r = pl_detect_new(&b->detect, options);

	if (r < 0) {
		pl_complain("benchmark %s: %s", name, strerror(-r));
		return r;
	}
	b->flows = flows;
	r = pl_bench_compare(ctx, &c);
	pl_detect_free(b->detect);
	b->detect = NULL;
	return r;
}

static int detections(struct pl_bench_ctx *ctx, struct detect_bench *b)
{
	struct pl_detect_options usual, all;
	int r;

	pl_detect_defaults(&usual);
	usual.max_flows = 1 << 21;
	all = usual;
	all.node_silent_ns = UINT64_C(10000000000);
	all.link_latency =
		(struct pl_detect_level){ .on = true, .threshold = 1000000, .anomaly = true };
	all.tx_util = (struct pl_detect_level){ .on = true, .threshold = 90, .step = 20 };
	all.queue_depth.anomaly = all.hop_latency.anomaly = true;
	all.microburst.on = true;
	all.microburst.threshold = 90;
	r = one(ctx, b, "detect/1-flow", 1, &usual);
	if (r == 0)
		r = one(ctx, b, "detect/5k-flows", 5000, &usual);
	if (r == 0)
		r = one(ctx, b, "detect/85k-flows", 85000, &usual);
	if (r == 0)
		r = one(ctx, b, "detect/1m-flows", 1000000, &usual);
	if (r == 0)
		r = one(ctx, b, "detect/everything-85k-flows", 85000, &all);
	return r;
}

static int others(struct pl_bench_ctx *ctx, struct detect_bench *b)
{
	const struct pl_aggregate_options options = { 0 };
	const struct pl_bench_case aggregate = { .name = "detect/aggregate",
		.ceiling_name = "read the records",
		.subject = aggregation,
		.ceiling = ceiling,
		.arg = b };
	const struct pl_bench_case json = {
		.name = "detect/event-json", .subject = text, .arg = b
	};
	struct pl_detect_options step = { .queue_depth = { .step = 1, .limit_burst = 1000000 } };
	int r = pl_aggregate_new(&b->aggregate, &options);

	if (r == 0)
		r = pl_detect_new(&b->detect, &step);
	if (r < 0) {
		pl_complain("benchmark detect: %s", strerror(-r));
		return r;
	}
	b->flows = 64;
	r = pl_bench_compare(ctx, &aggregate);
	b->next = 0;
	/* Events as they come: of queues whose depth moves. */
	while (r == 0 && b->out.n < EVENTS) {
		uint32_t n = b->out.n;

		turn(b);
		for (uint32_t i = 0; i < PATHS * HOPS; i++)
			b->batch.hops[i].queue_depth += b->next & 512 ? 40 : -40u;
		b->out.flush = NULL;
		pl_detect_batch(b->detect, &b->batch, b->now_ns, &b->out);
		if (b->out.n == n && b->next > 1u << 20)
			r = -EIO;
	}
	if (r == 0)
		r = pl_bench_compare(ctx, &json);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct detect_bench b;
	int r = pl_record_batch_init(&b.batch, PATHS, PATHS * HOPS);

	b.now_ns = UINT64_C(1000000000);
	pl_buf_init(&b.text);
	if (r == 0)
		r = pl_event_batch_init(&b.out, EVENTS);
	if (r < 0) {
		pl_complain("benchmark detect: %s", strerror(-r));
		pl_record_batch_done(&b.batch);
		return r;
	}
	b.out.flush = discard;
	fill(&b);
	r = detections(ctx, &b);
	if (r == 0)
		r = others(ctx, &b);
	pl_detect_free(b.detect);
	pl_aggregate_free(b.aggregate);
	pl_event_batch_done(&b.out);
	pl_record_batch_done(&b.batch);
	pl_buf_done(&b.text);
	b = (struct detect_bench){ 0 };
	return r;
}

const struct pl_bench pl_bench_detect = {
	.name = "detect",
	.summary = "records to events: per report of 3 hops, against a loop that reads the records",
	.run = run,
};
