/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collector's answers made of bytes: its half of the queue pairs, and then frames for them, good
 * but for some field or a turned bit, between operations, sends and steps of time. Whatever it
 * says, frames go to the queue pair and into the store that were agreed, no more operations are
 * done than frames were sent, nothing is forgotten, and accounts close.
 */
#include "fuzz.h"
#include "rdma/responder.h"
#include "remote/uplink.h"

#define STORES 2
#define BYTES  4096u
#define FRAME  (PL_ROCE_OVERHEAD + 64)
#define STEP   6

static struct {
	struct pl_uplink *u;
	struct pl_exchange ours[STORES], theirs[STORES];
	uint64_t now_ns, sent;
} side;

static const struct pl_addr nowhere;

static struct pl_roce_path path(uint8_t from, uint8_t to)
{
	return (struct pl_roce_path){ .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.smac = { 2, 0, 0, 0, 0, from },
		.ttl = 64,
		.sport = 49152 };
}

static void look_at_account(void)
{
	const struct pl_uplink_counters *c = pl_uplink_counters(side.u, 0);

	must(c->given == c->posted + c->full + c->down + c->outside && c->outside == 0);
	must(c->posted == c->done + c->lost + pl_uplink_waiting(side.u, 0));
	must(c->writes + c->adds == c->done && c->done <= side.sent);
}

/* Store 0 takes writes by an unreliable or a reliable queue pair, store 1 additions. */
static void agree(const uint8_t b[STEP])
{
	const struct pl_roce_path there = path(1, 2);
	bool all = true;

	for (unsigned int s = 0; s < STORES; s++) {
		struct pl_diag diag = { .text = "" };
		struct pl_exchange *x = &side.theirs[s];

		must(pl_uplink_offer(side.u, 0, s, s == 0 && b[0] & 1 ? PL_ROCE_UC : PL_ROCE_RC,
			     &there, 1024, &side.ours[s]) == 0);
		*x = (struct pl_exchange){ .service = side.ours[s].service ^ (b[1] == 7 ? 0x20 : 0),
			.gid = b[0] & 2 ? path(2, 1).src : nowhere,
			.pkey = PL_ROCE_PKEY,
			.va = UINT64_C(0x100000000) + b[2],
			.bytes = BYTES - (b[1] == 8),
			.key = b[3],
			.qpn = 2 + s,
			.psn = 0xfffffeu + (b[4] & 1),
			.mtu = (uint16_t)(256u << b[5] % 5),
			.depth = b[1] & 15,
			.access = b[1] >> 4 | PL_RDMA_WRITE };
		if (pl_uplink_answer(side.u, 0, s, x, BYTES, s == 1, &diag) < 0) {
			must(diag.text[0] != '\0');
			all = false;
		}
	}
	must(pl_uplink_up(side.u, 0) == all && pl_uplink_is_up(side.u, 0) == all);
}

static void operate(const uint8_t b[STEP])
{
	static const uint8_t data[BYTES];
	const bool add = b[1] & 1;
	const uint32_t offset = b[2] * 16u & ~7u;
	const struct pl_op op = { .kind = add ? PL_OP_ADD : PL_OP_WRITE,
		.immediate = !add && b[1] & 2,
		.store = add,
		.bytes = add ? 8 : 1 + b[3] * 8u % (BYTES - offset),
		.offset = offset,
		.data = data };

	pl_uplink_ops(side.u, &op, 1);
}

static void send_frames(void)
{
	static uint8_t space[64 * 4400];
	static struct pl_frames frames;
	bool all;

	do {
		pl_frames_init(&frames, space, sizeof(space));
		all = pl_uplink_send(side.u, side.now_ns, &frames);
		must(all || frames.batch.n > 0);
		for (uint32_t i = 0; i < frames.batch.n; i++) {
			const struct pl_packet *pkt = &frames.batch.pkts[i];
			struct pl_roce p;
			const struct pl_exchange *x;

			must(pl_roce_parse(&p, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET) ==
				PL_ROCE_F_OK);
			must(p.qpn == 2 || p.qpn == 3);
			x = &side.theirs[p.qpn - 2];
			must(p.rkey == x->key && p.va >= x->va && p.va - x->va < BYTES);
			must(p.length <= BYTES - (p.va - x->va));
		}
		side.sent += frames.batch.n;
	} while (!all);
}

static void answer(const uint8_t b[STEP])
{
	static const uint8_t opcodes[] = { 0x11, 0x12, 0x11, 0x10, 0x0f, 0x11, 0x12, PL_ROCE_CNP };
	static struct pl_batch batch;
	uint8_t frame[FRAME], payload[16] = { 0 };
	struct pl_build f = pl_build(frame, sizeof(frame));
	const unsigned int s = b[1] & 1;
	struct pl_roce p = { .path = path(b[1] & 2 ? 3 : 2, 1),
		.opcode = opcodes[b[0] & 7],
		.pkey = PL_ROCE_PKEY,
		.qpn = side.ours[s].qpn,
		.psn = pl_psn_add(side.theirs[s].psn, b[2] < 200 ? b[2] : b[2] * 60000u),
		.syndrome = b[3] < 128 ? PL_ROCE_ACK_UNLIMITED : b[3],
		.msn = b[2],
		.original = b[4] };

	pl_roce_put(&f, &p, payload,
		p.opcode == PL_ROCE_CNP                ? 16
		: p.opcode == 0x10 || p.opcode == 0x0f ? 8
						       : 0);
	must(!f.full);
	if (b[5] >= 192)
		frame[b[4] % f.len] ^= (uint8_t)(1u << (b[5] & 7));
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame,
		.len = (uint32_t)(b[5] >= 128 && b[5] < 160 ? f.len - (b[5] & 31) : f.len),
		.link = PL_LINK_ETHERNET };
	pl_uplink_batch(side.u, &batch, side.now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pl_uplink_options options = {
		.collectors = 1, .n_stores = STORES, .queue = 64, .window = 8, .retries = 3
	};

	if (size < STEP)
		return 0;
	memset(&side, 0, sizeof(side));
	side.now_ns = 1000000000;
	must(pl_uplink_new(&side.u, &options) == 0);
	agree(data);
	for (data += STEP, size -= STEP; size >= STEP; data += STEP, size -= STEP) {
		switch (data[0] >> 5) {
		case 0:
		case 1:
			operate(data);
			break;
		case 2:
			side.now_ns += (uint64_t)data[1] * data[2] * 100000;
			send_frames();
			break;
		case 3:
			if (data[1] < 250) {
				send_frames();
				break;
			}
			pl_uplink_down(side.u, 0);
			must(pl_uplink_waiting(side.u, 0) == 0);
			agree(data);
			break;
		default:
			answer(data);
		}
		look_at_account();
	}
	pl_uplink_down(side.u, 0);
	must(pl_uplink_waiting(side.u, 0) == 0 && !pl_uplink_is_up(side.u, 0));
	look_at_account();
	pl_uplink_free(side.u);
	return 0;
}
