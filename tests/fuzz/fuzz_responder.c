/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests made of bytes, to two responders alike: one takes them as batches (the fast path
 * where it applies), the other one by one the general way. Both say the same of each packet, answer
 * the same and leave the same memory; no byte outside the region changes; a packet that was not
 * executed changes no byte at all; every packet has one cause.
 */
#include "fuzz.h"
#include "rdma/responder_state.h"

#define VA       UINT64_C(0x7f0000000100)
#define BYTES    4096
#define CANARY   64
#define MTU      256
#define KEY      0x12345678
#define RECEIVES 8
#define FRAME    (MTU * 2 + PL_ROCE_OVERHEAD)

struct side {
	struct pl_responder *r;
	_Alignas(64) uint8_t memory[BYTES + 2 * CANARY];
	uint8_t buffer[RECEIVES * MTU];
	uint8_t answers[32768];
	size_t answers_len;
};

static struct side sides[2];

static struct pl_roce_path path(uint8_t from, uint8_t to)
{
	return (struct pl_roce_path){ .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.smac = { 2, 0, 0, 0, 0, from },
		.ttl = 64,
		.sport = 49152 };
}

/* Queue pair 2 is RC, 3 UC, 4 UD, 5 RC that may nothing. */
static void set_up(struct side *s)
{
	static const uint8_t services[] = { PL_ROCE_RC, PL_ROCE_UC, PL_ROCE_UD, PL_ROCE_RC };
	const struct pl_rdma_region region = { .base = s->memory + CANARY,
		.bytes = BYTES,
		.va = VA,
		.key = KEY,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	uint32_t n;

	memset(s->memory, 0xee, sizeof(s->memory));
	memset(s->buffer, 0, sizeof(s->buffer));
	s->answers_len = 0;
	must(pl_responder_new(&s->r, &(struct pl_responder_options){ 0 }) == 0);
	must(pl_responder_region_add(s->r, &region, &n) == 0);
	pl_responder_now(s->r, 5000000000);
	for (uint32_t i = 0; i < 4; i++) {
		const struct pl_rdma_qp qp = { .qpn = 2 + i,
			.service = services[i],
			.access = i == 3 ? 0 : PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
			.state = PL_RDMA_READY,
			.depth = 4,
			.mtu = MTU,
			.pkey = PL_ROCE_PKEY,
			.psn = 0xfffff0,
			.peer_qpn = 77,
			.receives = RECEIVES,
			.path = path(2, 1) };

		must(pl_responder_qp_add(s->r, &qp, &n) == 0);
		for (uint32_t k = 0; k < 2; k++)
			must(pl_responder_post(s->r, n, k, s->buffer + k * MTU, MTU) == 0);
	}
}

static void collect(struct side *s)
{
	static uint8_t space[16 * FRAME];
	static struct pl_frames frames;
	bool all;

	do {
		pl_frames_init(&frames, space, sizeof(space));
		all = pl_responder_answers(s->r, &frames);
		must(!frames.build.full && (all || frames.batch.n > 0));
		if (frames.build.len <= sizeof(s->answers) - s->answers_len) {
			memcpy(s->answers + s->answers_len, space, frames.build.len);
			s->answers_len += frames.build.len;
		}
	} while (!all);
}

static bool canaries(const struct side *s)
{
	for (size_t i = 0; i < CANARY; i++) {
		if (s->memory[i] != 0xee || s->memory[CANARY + BYTES + i] != 0xee)
			return false;
	}
	return true;
}

/* The packet sequence number that the responder expects next of a queue pair. */
static uint32_t expected_psn(uint32_t qpn)
{
	const struct pl_responder_qp *qp = pl_responder_qp_of(sides[1].r, qpn);

	must(qp != NULL);
	return qp->psn;
}

/* Ten bytes say how a request differs from a good one. */
#define STEP 10

static size_t make(uint8_t frame[FRAME], const uint8_t *b)
{
	static uint8_t data[2 * MTU];
	static const uint8_t services[] = { PL_ROCE_RC, PL_ROCE_UC, PL_ROCE_UD, PL_ROCE_RC };
	static const uint32_t lengths[] = { 0, 1, 4, 8, 61, 64, MTU - 1, MTU, MTU + 4, 2 * MTU };
	const uint8_t pair = b[0] & 3;
	const uint32_t len = lengths[b[3] % 10];
	struct pl_build f = pl_build(frame, FRAME);
	struct pl_roce p = { .path = path(1, 2),
		.opcode = services[pair] | (b[1] & 0x1f),
		.ack_req = b[0] & 0x80,
		.solicited = b[0] & 0x40,
		.pkey = PL_ROCE_PKEY,
		.qpn = 2u + pair,
		.psn = pl_psn_add(expected_psn(2u + pair), b[2] < 200 ? 0
							   : b[2] < 240
								   ? (uint32_t)(int8_t)(b[2] * 5)
								   : b[2] * 60000u),
		.va = VA + (uint64_t)(int16_t)(b[4] << 8 | b[5]),
		.rkey = KEY,
		.length = b[6] < 200 ? len : b[6] * 7u,
		.swap_add = b[7],
		.compare = 0xeeeeeeeeeeeeeeee };
	size_t at;

	memset(data, b[7], sizeof(data));
	if ((b[1] & 0x1f) == PL_ROCE_WRITE_FIRST && b[6] < 100)
		p.length = MTU + b[6];
	pl_roce_put(&f, &p, data, len > MTU * 2 ? 0 : len);
	if (f.full || b[8] >= 128 || f.len < 18)
		return f.full ? 0 : f.len;
	if (b[8] < 16)
		return f.len - (b[9] & 31); /* cut */
	if (b[8] < 64)
		return f.len;
	at = b[9] % (f.len - 4);
	frame[at] ^= (uint8_t)(1u << (b[8] & 7));
	if ((b[8] & 8) && at >= 14) {
		uint32_t icrc = pl_roce_icrc(frame + 14, f.len - 18, PL_ROCE_NET_IP4);

		memcpy(frame + f.len - 4, &icrc, sizeof(icrc));
	}
	return f.len;
}

static void one_by_one(struct side *s, const struct pl_batch *in, uint8_t *ret_causes)
{
	static uint8_t before[BYTES];

	for (uint32_t i = 0; i < in->n; i++) {
		enum pl_rdma_cause cause;

		memcpy(before, s->memory + CANARY, BYTES);
		cause = pl_responder_receive(s->r, &in->pkts[i]);
		must(cause < PL_RDMA_CAUSE_MAX);
		must(cause == PL_RDMA_C_OK || memcmp(before, s->memory + CANARY, BYTES) == 0);
		ret_causes[i] = (uint8_t)cause;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frames[16][FRAME];
	static struct pl_batch batch;
	const struct pl_responder_counters *c;
	uint64_t sum = 0;

	set_up(&sides[0]);
	set_up(&sides[1]);
	while (size >= STEP) {
		uint8_t causes[2][16];

		/* Numbers follow from the state, which is that before the batch: good ones follow
		 * each other only in batches of one. */
		batch.n = 0;
		for (uint32_t want = 1 + data[0] % 3; batch.n < want && size >= STEP; batch.n++) {
			struct pl_packet *pkt = &batch.pkts[batch.n];

			*pkt = (struct pl_packet){ .data = frames[batch.n],
				.len = (uint32_t)make(frames[batch.n], data) };
			data += STEP;
			size -= STEP;
		}
		pl_responder_batch(sides[0].r, &batch, causes[0]);
		one_by_one(&sides[1], &batch, causes[1]);
		must(memcmp(causes[0], causes[1], batch.n) == 0);
		must(memcmp(sides[0].memory, sides[1].memory, sizeof(sides[0].memory)) == 0);
		must(memcmp(sides[0].buffer, sides[1].buffer, sizeof(sides[0].buffer)) == 0);
		must(canaries(&sides[0]));
		collect(&sides[0]);
		collect(&sides[1]);
	}
	must(sides[0].answers_len == sides[1].answers_len &&
		memcmp(sides[0].answers, sides[1].answers, sides[0].answers_len) == 0);
	for (uint32_t qpn = 2; qpn < 6; qpn++) {
		struct pl_rdma_qp_status a, b;

		must(pl_responder_qp_status(sides[0].r, qpn, &a) == 0);
		must(pl_responder_qp_status(sides[1].r, qpn, &b) == 0);
		must(memcmp(&a, &b, sizeof(a)) == 0);
	}
	c = pl_responder_counters(sides[0].r);
	must(pl_counter_read(&c->guesses) ==
		pl_counter_read(&pl_responder_counters(sides[1].r)->guesses));
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		sum += pl_counter_read(&c->causes[i]);
	must(sum == pl_counter_read(&c->packets));
	pl_responder_free(sides[0].r);
	pl_responder_free(sides[1].r);
	return 0;
}
