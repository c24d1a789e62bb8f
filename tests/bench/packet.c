/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets to records, one thread. "tcp", "udp": frames in memory (64 k of 2 KiB slots, so that the
 * headers are not in the cache), TCP with timestamps and UDP, into records; the ceiling reads the
 * line that the headers begin on and writes a record of its first bytes. "tmpkt": datagrams of 20
 * records in memory into records, with their sequence; the ceiling copies the datagrams.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/prefetch.h"
#include "record/packet.h"
#include "tap/receiver.h"
#include "tap/tap.h"
#include "tap/tmpkt.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/frames.h"
#include "wire/layers.h"

enum { EACH = 20 };

struct packet_bench {
	struct pl_frames frames;
	struct pl_tap tap;
	struct pl_tmpkt_receiver *receiver;
	struct pl_batch batch;
	struct pl_pkt96 records[PL_BATCH_MAX];
	uint64_t sink;
};

static void make(struct packet_bench *b)
{
	pl_frames_lend(&b->frames, &b->batch);
	b->sink += pl_tap_batch(&b->tap, &b->batch, b->records, PL_BATCH_MAX);
}

static void copy_headers(struct packet_bench *b)
{
	pl_frames_lend(&b->frames, &b->batch);
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		if (i + 4 < PL_BATCH_MAX)
			pl_prefetch(b->batch.pkts[i + 4].data);
		memcpy(&b->records[i], b->batch.pkts[i].data, 64);
		memset((uint8_t *)&b->records[i] + 64, 0, 32);
	}
}

static void receive(struct packet_bench *b)
{
	pl_frames_lend(&b->frames, &b->batch);
	pl_tmpkt_receiver_feed(b->receiver, &b->batch);
}

/* The receiver misses none of these numbers. */
static void copy_datagrams(struct packet_bench *b)
{
	const uint32_t seq = b->frames.seq;

	pl_frames_lend(&b->frames, &b->batch);
	b->frames.seq = seq;
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++)
		memcpy(b->records, b->batch.pkts[i].data + PL_TMPKT_HEADER_BYTES,
			EACH * sizeof(struct pl_pkt64));
	b->sink += b->records[0].ts_ns;
}

static int timed(struct packet_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*step)(struct packet_bench *b), uint32_t each)
{
	const uint64_t start = pl_cpu_thread_ns();

	ret->items = 0;
	do {
		for (unsigned int i = 0; i < 16; i++)
			step(b);
		ret->items += UINT64_C(16) * PL_BATCH_MAX * each;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int making(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, make, 1);
}

static int copying(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, copy_headers, 1);
}

static int receiving(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, receive, EACH);
}

static int unpacking(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, copy_datagrams, EACH);
}

static int packets(
	struct pl_bench_ctx *ctx, struct packet_bench *b, const char *name, uint8_t proto)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "copy headers",
		.subject = making,
		.ceiling = copying,
		.arg = b,
		.warm_items = PL_FRAMES_SLOTS };

	int r;

	if (!pl_bench_wanted(ctx, name))
		return 0;
	r = pl_frames_packets(&b->frames, proto);
	return r < 0 ? r : pl_bench_compare(ctx, &c);
}

static void take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct packet_bench *b = arg;
	const struct pl_pkt96 *r = records;

	(void)kind;
	b->sink += r[n - 1].flow_hash;
}

static int tmpkt(struct pl_bench_ctx *ctx, struct packet_bench *b)
{
	const struct pl_bench_case c = { .name = "packet/tmpkt-20",
		.ceiling_name = "copy datagrams",
		.subject = receiving,
		.ceiling = unpacking,
		.arg = b,
		.warm_items = PL_FRAMES_DATAGRAMS * EACH };
	int r;

	if (!pl_bench_wanted(ctx, c.name))
		return 0;
	r = pl_frames_tmpkt(&b->frames, EACH);
	if (r == 0)
		r = pl_tmpkt_receiver_new(&b->receiver, 64, false, take, b);
	if (r < 0)
		return r;
	r = pl_bench_compare(ctx, &c);
	if (r == 0 && pl_tmpkt_receiver_stats(b->receiver)->lost > 0) {
		pl_complain("benchmark packet: datagrams were taken for lost");
		r = -EBADMSG;
	}
	pl_tmpkt_receiver_free(b->receiver);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct packet_bench *b = calloc(1, sizeof(*b));
	int r = -ENOMEM;

	if (b != NULL) {
		r = packets(ctx, b, "packet/tcp", PL_IP_TCP);
		if (r == 0)
			r = packets(ctx, b, "packet/udp", PL_IP_UDP);
		if (r == 0)
			r = tmpkt(ctx, b);
		pl_frames_done(&b->frames);
	}
	if (r == -ENOMEM)
		pl_complain("benchmark packet: %s", strerror(ENOMEM));
	free(b);
	return r;
}

const struct pl_bench pl_bench_packet = {
	.name = "packet",
	.summary = "packets, and datagrams of tmpkt/1, to records, against copying their bytes",
	.run = run,
};
