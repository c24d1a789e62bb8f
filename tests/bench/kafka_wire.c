/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Live frames over the wire of benchmarks out of an AF_XDP port into records, and those into
 * messages of Kafka, against R2 (bench/afxdp.h). Processor time of the reading thread, of NAPI and
 * of librdkafka's threads, of which R2 has none. The brokers are in the namespace that the program
 * was started in.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/bench/afxdp.h"
#include "tests/bench/frames.h"
#include "tests/bench/kafka.h"

#define PARTITIONS  2
#define FRAME_BYTES 128

struct wire_bench {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	struct pl_kafka_bench kafka;
	uint8_t frame[FRAME_BYTES];
	uint64_t records; /* of this run */
};

/* Frames of as many flows as there are source addresses. */
static int set_frame(struct wire_bench *b)
{
	static const struct pl_live_field field = { .offset = 26, .len = 4, .kind = PL_LIVE_COUNT };
	static const uint8_t zero_rows[1][PL_LIVE_ROW_BYTES];
	static const uint8_t payload[FRAME_BYTES - 42];
	int r = pl_wire_frame(b->frame, sizeof(b->frame), payload, sizeof(payload));

	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = FRAME_BYTES,
		.restore_bytes = 48,
		.fields = &field,
		.nfields = 1,
		.rows = zero_rows,
		.nrows = 1 };
	b->wire.more_ns = pl_cluster_threads_ns;
	return r < 0 ? r : 0;
}

static int take(struct pl_afxdp_bench *wire, void *receiver)
{
	struct wire_bench *b = (struct wire_bench *)wire;
	struct pl_kafka_bench *k = &b->kafka;
	struct pl_port *port = receiver;
	int n = pl_port_recv(port, &k->batch, 10, NULL), r;
	uint32_t records;

	/* The carrier came: news for a daemon. */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n;
	records = pl_tap_batch(&k->tap, &k->batch, k->records, PL_BATCH_MAX);
	r = pl_kafka_bench_put(k, k->records, records);
	b->records += records;
	pl_port_release(port, &k->batch);
	return r < 0 ? r : n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct wire_bench *b = arg;
	int r;

	b->records = 0;
	r = pl_afxdp_measure_port(&b->wire, PL_AFXDP_URI, take, budget_ns, ret);
	return r < 0 ? r : pl_kafka_bench_settle(&b->kafka, b->records);
}

static const struct {
	const char *name, *codec;
} cases[] = { { "kafka/afxdp-none", "none" }, { "kafka/afxdp-lz4", "lz4" } };

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct wire_bench *b = (struct wire_bench *)wire;
	const struct pl_bench_case c = { .name = cases[i].name,
		.ceiling_name = "R2: touch and recycle",
		.subject = subject,
		.ceiling = pl_afxdp_bare,
		.arg = b,
		.crosses_cores = true };
	int r;

	if (!pl_bench_wanted(ctx, c.name))
		return 0;
	b->kafka.name = cases[i].name;
	b->kafka.codec = cases[i].codec;
	(void)pl_wire_enter(&wire->wire, PL_WIRE_HOME);
	r = pl_kafka_bench_open(&b->kafka);
	(void)pl_wire_enter(&wire->wire, PL_WIRE_RECEIVER);
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	pl_kafka_bench_close(&b->kafka);
	return r;
}

static bool any_wanted(const struct pl_bench_ctx *ctx)
{
	return pl_bench_wanted(ctx, cases[0].name) || pl_bench_wanted(ctx, cases[1].name);
}

int pl_kafka_bench_wire(struct pl_bench_ctx *ctx)
{
	struct wire_bench *b;
	int r;

	if (!any_wanted(ctx))
		return 0;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return -ENOMEM;
	r = set_frame(b);
	if (r == 0)
		r = pl_cluster_open(&b->kafka.cluster, ctx, "kafka", PARTITIONS);
	if (r == 0)
		r = pl_afxdp_run(ctx, &b->wire, "kafka", one, sizeof(cases) / sizeof(cases[0]));
	pl_cluster_close(&b->kafka.cluster);
	free(b);
	return r;
}
