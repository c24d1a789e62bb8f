/* SPDX-License-Identifier: BSD-2-Clause */
/* A responder with one queue pair and one region between canaries, for its tests. */
#pragma once

#include "base/test.h"
#include "rdma/responder.h"

#define VA     UINT64_C(0x7f0000001000)
#define BYTES  8192
#define CANARY 64
#define KEY    0x51f00d
#define QPN    0x17
#define PEER   0xabcd
#define PSN    0xfffffe /* wraps soon */
#define MTU    1024

static _Alignas(64) uint8_t memory[BYTES + 2 * CANARY];
static uint8_t *const region = memory + CANARY;

struct bench {
	struct pl_responder *r;
	uint32_t psn;
	uint8_t service;
	struct pl_roce answers[64];
	unsigned int n;
	uint8_t cause; /* of the last packet */
};

static inline struct pl_roce_path path(uint8_t from, uint8_t to)
{
	return (struct pl_roce_path){ .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.ttl = 64,
		.sport = 49152 };
}

static inline struct pl_rdma_qp qp_config(uint8_t service)
{
	return (struct pl_rdma_qp){ .qpn = QPN,
		.service = service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.rnr_timer = 12,
		.depth = 4,
		.mtu = MTU,
		.pkey = PL_ROCE_PKEY,
		.domain = 5,
		.psn = PSN,
		.peer_qpn = PEER,
		.qkey = 0x1111,
		.receives = 4,
		.path = path(2, 1) };
}

static inline void init_with(
	struct bench *b, const struct pl_rdma_qp *c, uint8_t access, uint32_t domain)
{
	const struct pl_rdma_region reg = { .base = region,
		.bytes = BYTES,
		.va = VA,
		.key = KEY,
		.domain = domain,
		.access = access };
	uint32_t n;

	*b = (struct bench){ .psn = c->psn, .service = c->service };
	memset(memory, 0xee, sizeof(memory));
	memset(region, 0, BYTES);
	/* A fixed seed: with a drawn one, two sources that guess share a place in one run of
	 * 256. */
	if (pl_responder_new(&b->r, &(struct pl_responder_options){ .seed = 3 }) < 0 ||
		pl_responder_region_add(b->r, &reg, &n) < 0 || n != KEY ||
		pl_responder_qp_add(b->r, c, &n) < 0 || n != QPN)
		abort();
}

static inline void init(struct bench *b, uint8_t service)
{
	const struct pl_rdma_qp c = qp_config(service);

	init_with(b, &c, PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC, 5);
}

static inline bool canaries(void)
{
	for (size_t i = 0; i < CANARY; i++) {
		if (memory[i] != 0xee || memory[CANARY + BYTES + i] != 0xee)
			return false;
	}
	return true;
}

static inline bool untouched(void)
{
	for (size_t i = 0; i < BYTES; i++) {
		if (region[i] != 0)
			return false;
	}
	return canaries();
}

/* Takes all answers, with room for three frames at a time to see them wait. */
static inline void collect(struct bench *b)
{
	static uint8_t space[3 * PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	bool all;

	b->n = 0;
	do {
		pl_frames_init(&frames, space, sizeof(space));
		all = pl_responder_answers(b->r, &frames);
		for (uint32_t i = 0; i < frames.batch.n && b->n < 64; i++) {
			const struct pl_packet *pkt = &frames.batch.pkts[i];

			if (pl_roce_parse(&b->answers[b->n++], pl_cursor(pkt->data, pkt->len),
				    PL_LINK_ETHERNET) != PL_ROCE_F_OK)
				abort();
		}
	} while (!all);
}

static inline void give(struct bench *b, const uint8_t *frame, size_t n)
{
	static struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = frame, .len = (uint32_t)n, .wire_len = (uint32_t)n, .link = PL_LINK_ETHERNET
	};
	pl_responder_batch(b->r, &batch, &b->cause);
	collect(b);
}

static uint8_t data[PL_ROCE_PATH_MTU];

/* Makes a good request of this opcode for the beginning of the region, with the next number. */
static inline struct pl_roce request(struct bench *b, uint8_t op, uint32_t length)
{
	struct pl_roce p = { .path = path(1, 2),
		.opcode = b->service | op,
		.ack_req = true,
		.pkey = PL_ROCE_PKEY,
		.qpn = QPN,
		.psn = b->psn,
		.va = VA,
		.rkey = KEY,
		.length = length,
		.swap_add = 2,
		.imm = 0xcafe,
		.qkey = 0x1111,
		.src_qpn = PEER };

	b->psn = pl_psn_add(b->psn, 1);
	return p;
}

static inline void give_request(struct bench *b, const struct pl_roce *p, size_t len)
{
	static uint8_t frame[PL_ROCE_FRAME_MAX];
	struct pl_build f = pl_build(frame, sizeof(frame));

	pl_roce_put(&f, p, data, len);
	if (f.full)
		abort();
	give(b, frame, f.len);
}

static inline void send(struct bench *b, uint8_t op, uint32_t length, size_t len)
{
	const struct pl_roce p = request(b, op, length);

	give_request(b, &p, len);
}

static inline enum pl_rdma_state state(const struct bench *b)
{
	struct pl_rdma_qp_status s;

	return pl_responder_qp_status(b->r, QPN, &s) < 0 ? PL_RDMA_INIT : s.state;
}

static inline bool answered(
	const struct bench *b, uint8_t op, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct pl_roce *a = &b->answers[0];
	const struct pl_roce_path back = path(2, 1);

	return b->n == 1 && a->opcode == op && a->syndrome == syndrome && a->psn == psn &&
	       a->msn == msn && a->qpn == PEER && pl_addr_equal(&a->path.dst, &back.dst);
}

static inline void done(struct bench *b)
{
	const struct pl_responder_counters *c = pl_responder_counters(b->r);
	uint64_t sum = 0;

	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		sum += pl_counter_read(&c->causes[i]);
	eq(sum, pl_counter_read(&c->packets), "packets are the sum of their causes");
	ok(canaries(), "no byte outside the region was written");
	pl_responder_free(b->r);
}

static inline void init_data(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
}
