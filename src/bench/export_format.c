/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records to lines of text, as an output's thread writes them before they are sent. The ceiling
 * copies the same lines, ready made, into the same buffer: what is left is the work of making them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "export/influx.h"

#define T      UINT64_C(1700000000000000000)
#define EVENTS 4096
#define HOPS   3

struct format_bench {
	void *format;
	struct pl_event *events;
	struct pl_path path;
	struct pl_hop *hops; /* HOPS for each of EVENTS */
	struct pl_buf out, ready;
	uint32_t *ends; /* of the lines in `ready` */
	uint64_t now_ns;
	bool paths;
};

/* One pass over all records; the time moves on so that nothing needs to be told apart. */
static int pass(struct format_bench *b)
{
	int r = 0;

	pl_buf_reset(&b->out);
	for (unsigned int i = 0; r == 0 && i < EVENTS; i++) {
		b->now_ns += 1000;
		if (b->paths) {
			b->path.ts_ns = b->now_ns;
			r = pl_influx_format.path(
				b->format, &b->path, &b->hops[i * HOPS], b->now_ns, &b->out);
		} else {
			b->events[i].ts_ns = b->now_ns;
			r = pl_influx_format.event(b->format, &b->events[i], b->now_ns, &b->out);
		}
	}
	return r;
}

static int make_lines(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct format_bench *b = arg;
	uint64_t start = pl_clock_cpu_ns();

	do {
		int r = pass(b);

		if (r < 0)
			return r;
		ret->items += EVENTS * (b->paths ? HOPS : 1);
		ret->ns = pl_clock_cpu_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int copy_lines(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct format_bench *b = arg;
	uint32_t lines = EVENTS * (b->paths ? HOPS : 1);
	uint64_t start = pl_clock_cpu_ns();

	do {
		pl_buf_reset(&b->out);
		for (uint32_t i = 0, at = 0; i < lines; at = b->ends[i++])
			pl_buf_add(&b->out, b->ready.data + at, b->ends[i] - at);
		if (b->out.len != b->ready.len)
			return -EIO;
		ret->items += lines;
		ret->ns = pl_clock_cpu_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static void make_records(struct format_bench *b)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, 1);
	for (unsigned int i = 0; i < EVENTS; i++) {
		struct pl_event *e = &b->events[i];

		*e = (struct pl_event){
			.event = PL_EVENT_QUEUE_DEPTH,
			.phase = (uint8_t)(i % 2 == 0 ? PL_PHASE_BEGIN : PL_PHASE_END),
			.present = PL_EVENT_HAS_queue | PL_EVENT_HAS_node | PL_EVENT_HAS_port |
				   PL_EVENT_HAS_seq | PL_EVENT_HAS_value | PL_EVENT_HAS_threshold |
				   PL_EVENT_HAS_src | PL_EVENT_HAS_sport | PL_EVENT_HAS_path_id |
				   PL_EVENT_HAS_exporter | PL_EVENT_HAS_report_id,
			.node = pl_rng_below(&rng, 32),
			.port = (uint32_t)pl_rng_below(&rng, 8),
			.queue = (uint16_t)pl_rng_below(&rng, 8),
			.seq = (uint32_t)pl_rng_u64(&rng),
			.value = pl_rng_below(&rng, 100000),
			.threshold = 1000,
			.sport = (uint16_t)pl_rng_u64(&rng),
			.dport = 443,
			.proto = 6,
			.path_id = pl_rng_u64(&rng),
			.report_id = i,
		};
		for (struct pl_addr *a = &e->src; a != NULL; a = a == &e->src   ? &e->dst
								 : a == &e->dst ? &e->exporter
										: NULL) {
			a->b[10] = a->b[11] = 0xff;
			a->b[12] = 10;
			for (int k = 13; k < 16; k++)
				a->b[k] = (uint8_t)pl_rng_u64(&rng);
		}
		memcpy(&e->exporter, &b->events[0].exporter, sizeof(e->exporter));
		for (unsigned int h = 0; h < HOPS; h++)
			b->hops[i * HOPS + h] = (struct pl_hop){
				.present = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns |
					   PL_HOP_HAS_node | PL_HOP_HAS_ingress_port |
					   PL_HOP_HAS_egress_port | PL_HOP_HAS_hop_latency_ns |
					   PL_HOP_HAS_queue_depth | PL_HOP_HAS_queue,
				.ingress_ts_ns = T + pl_rng_below(&rng, 1 << 30),
				.egress_ts_ns = T + pl_rng_below(&rng, 1 << 30),
				.node = pl_rng_below(&rng, 32),
				.ingress_port = (uint32_t)pl_rng_below(&rng, 8),
				.egress_port = (uint32_t)pl_rng_below(&rng, 8),
				.queue = (uint16_t)pl_rng_below(&rng, 8),
				.hop_latency_ns = (uint32_t)pl_rng_below(&rng, 100000),
				.queue_depth = (uint32_t)pl_rng_below(&rng, 10000),
			};
	}
	b->path.hop_count = HOPS;
	b->now_ns = T;
}

/* The lines of one pass, for the ceiling to copy. */
static int make_ready(struct format_bench *b)
{
	uint32_t n = 0;
	int r = pass(b);

	if (r < 0)
		return r;
	pl_buf_reset(&b->ready);
	pl_buf_add(&b->ready, b->out.data, b->out.len);
	for (size_t i = 0; i < b->ready.len; i++) {
		if (b->ready.data[i] == '\n')
			b->ends[n++] = (uint32_t)i + 1;
	}
	return b->ready.failed || n != EVENTS * (b->paths ? HOPS : 1) ? -EIO : 0;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct format_bench b;
	int r;

	b.events = calloc(EVENTS, sizeof(*b.events));
	b.hops = calloc(EVENTS, HOPS * sizeof(*b.hops));
	b.ends = calloc(EVENTS, HOPS * sizeof(*b.ends));
	pl_buf_init(&b.out);
	pl_buf_init(&b.ready);
	r = b.events != NULL && b.hops != NULL && b.ends != NULL
		    ? pl_influx_format_new(&b.format, 0)
		    : -ENOMEM;
	if (r == 0)
		make_records(&b);
	for (unsigned int i = 0; r == 0 && i < 2; i++) {
		struct pl_bench_case c = { .name = i == 0 ? "export-format/influx-events"
							  : "export-format/influx-hops",
			.ceiling_name = "copying ready lines",
			.subject = make_lines,
			.ceiling = copy_lines,
			.arg = &b };

		b.paths = i == 1;
		r = make_ready(&b);
		if (r == 0)
			r = pl_bench_compare(ctx, &c);
	}
	if (b.format != NULL)
		pl_influx_format.free(b.format);
	b.format = NULL;
	pl_buf_done(&b.out);
	pl_buf_done(&b.ready);
	free(b.events);
	free(b.hops);
	free(b.ends);
	return r;
}

const struct pl_bench pl_bench_export_format = {
	.name = "export-format",
	.summary = "events and hops to lines of text for a server, against copying ready lines",
	.run = run,
};
