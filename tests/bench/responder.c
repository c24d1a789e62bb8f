/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software responder on frames in memory, one thread: ICRC verified, queue pair, key and bounds
 * checked, payload placed at random in a region (huge pages where the kernel gives them), answers
 * put. The ceiling stores 64 bytes at random in the same region. Frames are handed out in batches
 * of 64 as a port does, and both loops are timed by the thread's CPU clock. --size is the region's
 * (1 GiB).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/complain.h"
#include "base/rng.h"
#include "rdma/responder.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/roce.h"
#include "tests/bench/stores.h"

#define FRAMES      65536
#define FRAME_BYTES 256 /* frames lie packed in this distance */
#define BATCH       64
#define KEY         0x5eed
#define QPN         0x17
#define VA          UINT64_C(0x7f0000000000)
#define ANSWERS     (BATCH * 128)

struct variant {
	const char *name;
	uint8_t service, op;
	uint32_t bytes;     /* of the payload */
	uint32_t ask_every; /* packets */
};

struct responder_bench {
	uint8_t *region;
	uint64_t region_bytes;
	uint8_t *frames;
	uint32_t *len;
	struct pl_responder *responder;
	struct pl_batch batch;
	struct pl_frames answers;
	uint8_t answer_space[ANSWERS];
	struct pl_rng rng;
};

static int make_frame(struct responder_bench *b, const struct variant *v, uint32_t i)
{
	struct pl_build f = pl_build(b->frames + (size_t)i * FRAME_BYTES, FRAME_BYTES);
	const struct pl_roce p = { .path = pl_bench_path(1, 2),
		.opcode = v->service | v->op,
		.migrated = true,
		.ack_req = (i + 1) % v->ask_every == 0,
		.pkey = PL_ROCE_PKEY,
		.qpn = QPN,
		.psn = i,
		.va = VA + 64 * pl_rng_below(&b->rng, b->region_bytes / 64),
		.rkey = KEY,
		.length = v->bytes,
		.swap_add = 1 };
	uint8_t payload[64];

	memset(payload, (int)i, sizeof(payload));
	pl_roce_put(&f, &p, payload, v->bytes);
	b->len[i] = (uint32_t)f.len;
	return f.full ? -EMSGSIZE : 0;
}

/* The next batch of frames, as a port hands them out. */
static void fill(struct responder_bench *b, uint32_t first)
{
	b->batch.n = BATCH;
	for (uint32_t i = 0; i < BATCH; i++) {
		struct pl_packet *pkt = &b->batch.pkts[i];

		pkt->data = b->frames + (size_t)(first + i) * FRAME_BYTES;
		pkt->len = b->len[first + i];
		pkt->wire_len = pkt->len;
	}
}

static int respond(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct responder_bench *b = arg;
	const struct pl_responder_counters *c = pl_responder_counters(b->responder);
	const uint64_t before = pl_counter_read(&c->causes[PL_RDMA_C_OK]);
	const uint64_t start = pl_cpu_thread_ns();

	do {
		pl_responder_qp_ready(b->responder, QPN, 0);
		for (uint32_t i = 0; i < FRAMES; i += BATCH) {
			fill(b, i);
			pl_responder_batch(b->responder, &b->batch, NULL);
			while (!pl_responder_answers(b->responder, &b->answers))
				pl_frames_clear(&b->answers);
			pl_frames_clear(&b->answers);
		}
		ret->items += FRAMES;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	/* A figure for requests that were refused would mean nothing. */
	return pl_counter_read(&c->causes[PL_RDMA_C_OK]) - before == ret->items ? 0 : -EBADMSG;
}

static int store(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct responder_bench *b = arg;

	pl_bench_random_stores(&b->rng, b->region, b->region_bytes, budget_ns, ret);
	return 0;
}

static int set_up(struct responder_bench *b, const struct variant *v)
{
	const struct pl_rdma_region region = { .base = b->region,
		.bytes = b->region_bytes,
		.va = VA,
		.key = KEY,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	const struct pl_rdma_qp qp = { .qpn = QPN,
		.service = v->service,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.depth = PL_RDMA_DEPTH_MAX,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.peer_qpn = 5,
		.path = pl_bench_path(2, 1) };
	uint32_t number;
	int r = pl_responder_new(&b->responder, &(struct pl_responder_options){ 0 });

	if (r == 0)
		r = pl_responder_region_add(b->responder, &region, &number);
	if (r == 0)
		r = pl_responder_qp_add(b->responder, &qp, &number);
	for (uint32_t i = 0; r == 0 && i < FRAMES; i++)
		r = make_frame(b, v, i);
	return r;
}

static int measure(struct pl_bench_ctx *ctx, struct responder_bench *b, const struct variant *v)
{
	const struct pl_bench_case c = { .name = v->name,
		.ceiling_name = "random 64-byte stores",
		.subject = respond,
		.ceiling = store,
		.arg = b };
	int r = set_up(b, v);

	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	else
		pl_complain("benchmark %s: %s", v->name, strerror(-r));
	pl_responder_free(b->responder);
	b->responder = NULL;
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct variant variants[] = {
		{ "responder/uc-write-32", PL_ROCE_UC, PL_ROCE_WRITE_ONLY, 32, FRAMES },
		{ "responder/rc-write-32", PL_ROCE_RC, PL_ROCE_WRITE_ONLY, 32, 32 },
		{ "responder/rc-write-8", PL_ROCE_RC, PL_ROCE_WRITE_ONLY, 8, 32 },
		{ "responder/rc-write-64", PL_ROCE_RC, PL_ROCE_WRITE_ONLY, 64, 32 },
		{ "responder/fetch-add", PL_ROCE_RC, PL_ROCE_FETCH_ADD, 0, 1 },
	};
	static struct responder_bench b;
	int r = 0;

	b.region_bytes = pl_bench_size_bytes(ctx, UINT64_C(1) << 30) & ~UINT64_C(63);
	if (b.region_bytes == 0)
		b.region_bytes = 64;
	pl_rng_seed(&b.rng, 1);
	pl_frames_init(&b.answers, b.answer_space, sizeof(b.answer_space));
	b.region = mmap(
		NULL, b.region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b.frames = aligned_alloc(64, (size_t)FRAMES * FRAME_BYTES);
	b.len = calloc(FRAMES, sizeof(*b.len));
	if (b.region == MAP_FAILED || b.frames == NULL || b.len == NULL) {
		pl_complain("benchmark responder: %s", strerror(ENOMEM));
		r = -ENOMEM;
	} else {
		madvise(b.region, b.region_bytes, MADV_HUGEPAGE);
		memset(b.region, 0, b.region_bytes);
	}
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && r == 0; i++)
		r = measure(ctx, &b, &variants[i]);
	if (b.region != MAP_FAILED)
		munmap(b.region, b.region_bytes);
	free(b.frames);
	free(b.len);
	return r;
}

const struct pl_bench pl_bench_responder = {
	.name = "responder",
	.summary = "RDMA requests in memory, executed, against random stores to the same region",
	.run = run,
};
