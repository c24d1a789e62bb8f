/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of packets into a topic of Kafka, messages of 64 KiB: frames in memory to records
 * (packets-…) or datagrams of tmpkt/1 with 20 records each (tmpkt-…), and those into messages, which
 * a broker acknowledges, without compression and with lz4. Processor time of the whole process:
 * librdkafka's threads are in it, brokers are not (bench/cluster.h). The ceiling makes the same
 * records and writes them to a TCP connection on loopback, 64 KiB at a time.
 *
 * afxdp-…: see bench/kafka_wire.c.
 */
#include "tests/bench/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "tap/receiver.h"
#include "tests/bench/frames.h"
#include "wire/layers.h"

#define PARTITIONS  2
#define EACH        20
#define WAIT_MS     10000
#define PATIENCE_NS UINT64_C(20000000000)
#define PAUSE_NS    50000
#define CHUNK       (PL_KAFKA_BENCH_RECORDS * sizeof(struct pl_pkt64))

/* ---- the producer ---- */

int pl_kafka_bench_open(struct pl_kafka_bench *b)
{
	const struct pl_kafka_producer_config config = {
		.uri = &b->uri, .kind = PL_FLAT_PKT64, .wait_ms = WAIT_MS
	};
	struct pl_diag diag = { .text = "" };
	char query[96];
	int r;

	snprintf(query, sizeof(query), "?records=%d&compression.codec=%s", PL_KAFKA_BENCH_RECORDS,
		b->codec);
	r = pl_cluster_uri(&b->cluster, &b->uri, query);
	if (r < 0)
		return r;
	r = pl_kafka_producer_open(&b->producer, &config, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", b->name, diag.text);
	b->before = 0;
	return r;
}

void pl_kafka_bench_close(struct pl_kafka_bench *b)
{
	if (b->producer != NULL)
		pl_kafka_producer_close(b->producer, 0, NULL);
	b->producer = NULL;
}

int pl_kafka_bench_put(struct pl_kafka_bench *b, const struct pl_pkt96 *records, uint32_t n)
{
	const uint64_t until = pl_clock_mono_ns() + PATIENCE_NS;

	for (uint32_t i = 0; i < n; i++) {
		while (pl_kafka_producer_put(b->producer, records[i].flow_hash, &records[i]) < 0) {
			if (pl_clock_mono_ns() > until)
				return -ETIMEDOUT;
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
			pl_kafka_producer_turn(b->producer, pl_clock_mono_ns());
		}
	}
	pl_kafka_producer_turn(b->producer, pl_clock_mono_ns());
	return 0;
}

int pl_kafka_bench_settle(struct pl_kafka_bench *b, uint64_t records)
{
	const uint64_t until = pl_clock_mono_ns() + PATIENCE_NS;
	struct pl_kafka_producer_stats s;

	for (pl_kafka_producer_stats(b->producer, &s); s.waiting > 0 && pl_clock_mono_ns() < until;
		pl_kafka_producer_stats(b->producer, &s)) {
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		pl_kafka_producer_turn(b->producer, pl_clock_mono_ns());
	}
	records += b->before;
	b->before = s.delivered;
	if (s.delivered == records)
		return 0;
	pl_complain("benchmark %s: not every record was delivered: %s", b->name,
		pl_kafka_producer_trouble(b->producer));
	return -EIO;
}

/* ---- from memory ---- */

struct memory_bench {
	struct pl_kafka_bench kafka; /* first */
	struct pl_frames frames;
	struct pl_tmpkt_receiver *receiver;
	bool tmpkt;
	int sink; /* a socket; -1: records go to Kafka */
	int failed;
	uint64_t records;
	uint8_t chunk[CHUNK];
	size_t filled;
};

static uint64_t process_ns(void)
{
	return pl_clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

static void write_chunk(struct memory_bench *b)
{
	size_t done = 0;

	while (done < b->filled) {
		const ssize_t n = send(b->sink, b->chunk + done, b->filled - done, MSG_NOSIGNAL);

		if (n <= 0) {
			b->failed = -EIO;
			break;
		}
		done += (size_t)n;
	}
	b->filled = 0;
}

static void out(struct memory_bench *b, const struct pl_pkt96 *records, uint32_t n)
{
	b->records += n;
	if (b->sink < 0) {
		const int r = pl_kafka_bench_put(&b->kafka, records, n);

		b->failed = r < 0 ? r : b->failed;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(b->chunk + b->filled, &records[i], sizeof(struct pl_pkt64));
		b->filled += sizeof(struct pl_pkt64);
		if (b->filled == CHUNK)
			write_chunk(b);
	}
}

static void take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	(void)kind;
	out(arg, records, n);
}

static void step(struct memory_bench *b)
{
	struct pl_kafka_bench *k = &b->kafka;

	pl_frames_lend(&b->frames, &k->batch);
	if (b->tmpkt)
		pl_tmpkt_receiver_feed(b->receiver, &k->batch);
	else
		out(b, k->records, pl_tap_batch(&k->tap, &k->batch, k->records, PL_BATCH_MAX));
}

static int timed(struct memory_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t start = process_ns();
	int r = 0;

	b->records = 0;
	b->failed = 0;
	do {
		for (unsigned int i = 0; i < 16 && b->failed == 0; i++)
			step(b);
	} while (b->failed == 0 && process_ns() - start < budget_ns);
	r = b->failed;
	if (r == 0 && b->sink < 0)
		r = pl_kafka_bench_settle(&b->kafka, b->records);
	else if (r == 0)
		write_chunk(b);
	ret->items = b->records;
	ret->ns = process_ns() - start;
	return r;
}

static int to_kafka(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct memory_bench *b = arg;

	b->sink = -1;
	return timed(b, budget_ns, ret);
}

static int to_socket(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct memory_bench *b = arg;
	pid_t pid;
	int r;

	b->sink = pl_cluster_sink(&pid);
	if (b->sink < 0)
		return b->sink;
	r = timed(b, budget_ns, ret);
	close(b->sink);
	(void)waitpid(pid, NULL, 0);
	return r;
}

static const struct memory_case {
	const char *name, *codec;
	bool tmpkt;
} cases[] = {
	{ "kafka/packets-none", "none", false },
	{ "kafka/packets-lz4", "lz4", false },
	{ "kafka/tmpkt-none", "none", true },
	{ "kafka/tmpkt-lz4", "lz4", true },
};

static int one(struct pl_bench_ctx *ctx, struct memory_bench *b, const struct memory_case *c)
{
	const struct pl_bench_case bench = { .name = c->name,
		.ceiling_name = "to a socket, 64 KiB at a time",
		.subject = to_kafka,
		.ceiling = to_socket,
		.arg = b,
		.warm_items = PL_FRAMES_SLOTS };
	int r;

	if (!pl_bench_wanted(ctx, c->name))
		return 0;
	b->kafka.name = c->name;
	b->kafka.codec = c->codec;
	b->tmpkt = c->tmpkt;
	r = c->tmpkt ? pl_frames_tmpkt(&b->frames, EACH) : pl_frames_packets(&b->frames, PL_IP_TCP);
	if (r == 0)
		r = pl_tmpkt_receiver_new(&b->receiver, 64, false, take, b);
	if (r == 0)
		r = pl_kafka_bench_open(&b->kafka);
	if (r == 0)
		r = pl_bench_compare(ctx, &bench);
	pl_kafka_bench_close(&b->kafka);
	pl_tmpkt_receiver_free(b->receiver);
	b->receiver = NULL;
	return r;
}

static int run_memory(struct pl_bench_ctx *ctx)
{
	struct memory_bench *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = pl_cluster_open(&b->kafka.cluster, ctx, "kafka", PARTITIONS);
	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++)
		r = one(ctx, b, &cases[i]);
	pl_cluster_close(&b->kafka.cluster);
	pl_frames_done(&b->frames);
	free(b);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	int r = run_memory(ctx);

#if PL_HAVE_BPF
	if (r == 0)
		r = pl_kafka_bench_wire(ctx);
#endif
	return r;
}

const struct pl_bench pl_bench_kafka = {
	.name = "kafka",
	.summary = "records of packets into messages of Kafka, from memory and from AF_XDP",
	.run = run,
};
