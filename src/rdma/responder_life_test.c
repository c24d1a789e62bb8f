/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder over more than one request: receives, READs, messages that break, answers that
 * wait, guesses. */
#include <errno.h>

#include "rdma/test_responder.h"

static void test_receives(uint8_t service)
{
	const bool rc = service == PL_ROCE_RC;
	struct pl_rdma_completion c[8];
	uint8_t buffer[1100];
	struct bench b;

	init(&b, service);
	eq(pl_responder_post(b.r, QPN, 71, NULL, 0), 0);
	eq(pl_responder_post(b.r, QPN, 72, buffer, sizeof(buffer)), 0);
	eq(pl_responder_post(b.r, QPN, 73, buffer, 64), 0);
	eq(pl_responder_post(b.r, QPN, 74, buffer, 64), 0);
	ok(pl_responder_post(b.r, QPN, 75, buffer, 64) < 0, "no room for a fifth");
	ok(pl_responder_post(b.r, 99, 75, buffer, 64) < 0, "no such queue pair");
	send(&b, PL_ROCE_WRITE_ONLY_IMM, 64, 64);
	memset(buffer, 0, sizeof(buffer));
	send(&b, PL_ROCE_SEND_FIRST, 0, MTU);
	ok(pl_responder_completions(b.r, c, 8) == 1 && c[0].id == 71 && c[0].bytes == 64 &&
			c[0].imm == 0xcafe && c[0].have_imm && c[0].kind == PL_RDMA_DONE_WRITE,
		"WRITE with immediate: completion");
	send(&b, PL_ROCE_SEND_LAST_IMM, 0, 10);
	ok(pl_responder_completions(b.r, c, 8) == 1 && c[0].id == 72 && c[0].bytes == MTU + 10 &&
			c[0].kind == PL_RDMA_DONE_SEND && memcmp(buffer, data, MTU) == 0 &&
			memcmp(buffer + MTU, data, 10) == 0 && buffer[MTU + 10] == 0,
		"SEND of two packets");
	send(&b, PL_ROCE_WRITE_FIRST, MTU + 4, MTU);
	send(&b, PL_ROCE_WRITE_LAST_IMM, 0, 4);
	ok(pl_responder_completions(b.r, c, 8) == 1 && c[0].id == 73 && c[0].bytes == MTU + 4,
		"an immediate at the end of two");
	send(&b, PL_ROCE_SEND_ONLY, 0, 65);
	eq(b.cause, PL_RDMA_C_RECEIVE_LENGTH, "a byte too long");
	if (rc) {
		ok(answered(&b, PL_ROCE_ACK, 0x63, pl_psn_add(PSN, 5), 3), "told");
		ok(pl_responder_completions(b.r, c, 8) == 2 && c[0].kind == PL_RDMA_DONE_ERROR &&
				c[0].cause == PL_RDMA_C_RECEIVE_LENGTH &&
				c[1].kind == PL_RDMA_DONE_FLUSHED && c[1].id == 74,
			"error and the receive that is given back");
		eq(pl_responder_qp_ready(b.r, QPN, 9), 0, "ready again");
		b.psn = 9;
	}
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_OK, "and goes on");
	done(&b);
}

static void test_rnr(void)
{
	struct pl_rdma_completion c;
	struct bench b;

	init(&b, PL_ROCE_RC);
	send(&b, PL_ROCE_WRITE_ONLY_IMM, 64, 64);
	ok(answered(&b, PL_ROCE_ACK, 0x2c, PSN, 0) && untouched(), "not ready, nothing written");
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(answered(&b, PL_ROCE_ACK, 0x60, PSN, 0) && untouched(), "what follows is ahead");
	pl_responder_post(b.r, QPN, 1, NULL, 0);
	b.psn = PSN;
	send(&b, PL_ROCE_WRITE_ONLY_IMM, 64, 64);
	ok(answered(&b, PL_ROCE_ACK, 0x1f, PSN, 1) && !untouched(), "then it is taken");
	eq(pl_responder_completions(b.r, &c, 1), 1);
	done(&b);
}

static void test_read(void)
{
	struct bench b;
	struct pl_roce p;

	init(&b, PL_ROCE_RC);
	for (size_t i = 0; i < BYTES; i++)
		region[i] = (uint8_t)(i * 13);
	p = request(&b, PL_ROCE_READ_REQUEST, 4 * MTU + 5);
	give_request(&b, &p, 0);
	eq(b.n, 5, "five responses through room for three frames");
	for (uint32_t i = 0; i < b.n; i++) {
		const uint8_t ops[] = { PL_ROCE_READ_FIRST, PL_ROCE_READ_MIDDLE,
			PL_ROCE_READ_MIDDLE, PL_ROCE_READ_MIDDLE, PL_ROCE_READ_LAST };
		const size_t len = i < 4 ? MTU : 5;

		ok(b.answers[i].opcode == ops[i] && b.answers[i].psn == pl_psn_add(PSN, i) &&
				pl_cursor_left(&b.answers[i].payload) == len,
			"response %u", i);
	}
	b.psn = pl_psn_add(PSN, 5);
	send(&b, PL_ROCE_READ_REQUEST, 0, 0);
	ok(b.n == 1 && b.answers[0].opcode == PL_ROCE_READ_ONLY && b.answers[0].msn == 2 &&
			b.answers[0].psn == pl_psn_add(PSN, 5),
		"nothing read, one number used");
	/* The last two responses once more; and one byte more than was read. */
	p.psn = pl_psn_add(PSN, 3);
	p.va += 3 * MTU;
	p.length = MTU + 5;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_DUPLICATE && b.n == 2 && b.answers[1].psn == pl_psn_add(PSN, 4),
		"the rest is read again");
	p.length++;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_FORGOTTEN && b.n == 0, "not more than was asked for");
	p = request(&b, PL_ROCE_READ_REQUEST, BYTES);
	p.va++;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_BOUNDS && answered(&b, PL_ROCE_ACK, 0x62, pl_psn_add(PSN, 6), 2),
		"a byte beyond");
	done(&b);
}

static void test_region_gone(void)
{
	static uint8_t space[2 * PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	struct bench b;

	init(&b, PL_ROCE_RC);
	send(&b, PL_ROCE_WRITE_FIRST, 2 * MTU, MTU);
	eq(pl_responder_region_remove(b.r, KEY), 0);
	ok(pl_responder_region_remove(b.r, KEY) < 0, "it is not there twice");
	memset(region, 0, BYTES);
	send(&b, PL_ROCE_WRITE_LAST, 0, MTU);
	ok(b.cause == PL_RDMA_C_KEY && untouched(), "in the middle of a message");
	done(&b);
	init(&b, PL_ROCE_RC);
	{
		static uint8_t frame[PL_ROCE_FRAME_MAX];
		const struct pl_roce p = request(&b, PL_ROCE_READ_REQUEST, 3 * MTU);
		struct pl_build f = pl_build(frame, sizeof(frame));
		static struct pl_batch batch;

		pl_roce_put(&f, &p, NULL, 0);
		batch.n = 1;
		batch.pkts[0] = (struct pl_packet){ .data = frame, .len = (uint32_t)f.len };
		pl_responder_batch(b.r, &batch, NULL);
		pl_frames_init(&frames, space, MTU + PL_ROCE_OVERHEAD);
		ok(!pl_responder_answers(b.r, &frames) && frames.batch.n == 1,
			"one response is out");
		pl_responder_region_remove(b.r, KEY);
		collect(&b);
		ok(answered(&b, PL_ROCE_ACK, 0x62, pl_psn_add(PSN, 1), 1) &&
				state(&b) == PL_RDMA_ERROR,
			"in the middle of an answer");
	}
	done(&b);
}

/* The same key and address name other memory from one packet to the next. */
static void test_region_moved(void)
{
	static _Alignas(8) uint8_t other[BYTES];
	static uint8_t before[BYTES];
	struct bench b;

	init(&b, PL_ROCE_RC);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(b.cause == PL_RDMA_C_OK && !untouched());
	memcpy(before, region, BYTES);
	memset(other, 0, BYTES);
	eq(pl_responder_region_move(b.r, KEY, other), 0);
	b.psn = pl_psn_add(PSN, 1);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(b.cause == PL_RDMA_C_OK && memcmp(region, before, BYTES) == 0,
		"the old one stays as it was");
	ok(memcmp(other, before, BYTES) == 0, "the other one has it, in the same place");
	b.psn = pl_psn_add(PSN, 1);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_DUPLICATE,
		"what was executed before the move is a duplicate after it");
	eq(-pl_responder_region_move(b.r, KEY + 1, other), ENOENT);
	eq(-pl_responder_region_move(b.r, KEY, other + 1), EINVAL, "atomics would be crooked");
	eq(-pl_responder_region_move(b.r, KEY, NULL), EINVAL);
	done(&b);
}

static void test_uc_messages(void)
{
	struct bench b;

	init(&b, PL_ROCE_UC);
	send(&b, PL_ROCE_WRITE_FIRST, 3 * MTU, MTU);
	b.psn = pl_psn_add(b.psn, 1); /* the Middle is lost */
	send(&b, PL_ROCE_WRITE_LAST, 0, MTU);
	eq(b.cause, PL_RDMA_C_BROKEN);
	ok(region[2 * MTU + 1] == 0, "its end is not placed");
	send(&b, PL_ROCE_WRITE_LAST, 0, MTU);
	eq(b.cause, PL_RDMA_C_BROKEN);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_OK, "the next message starts afresh");
	send(&b, PL_ROCE_WRITE_FIRST, 2 * MTU, MTU);
	send(&b, PL_ROCE_WRITE_FIRST, 2 * MTU, MTU); /* the Last never came */
	send(&b, PL_ROCE_WRITE_LAST, 0, MTU);
	eq(b.cause, PL_RDMA_C_OK, "a First ends what was not ended");
	done(&b);
	{
		struct pl_rdma_qp c = qp_config(PL_ROCE_UC);

		c.max_jump = 100;
		init_with(&b, &c, PL_RDMA_WRITE, 5);
		b.psn = pl_psn_add(PSN, 100);
		send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
		eq(b.cause, PL_RDMA_C_OK, "a jump of 100");
		b.psn = pl_psn_add(b.psn, 101);
		send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
		eq(b.cause, PL_RDMA_C_WINDOW, "a jump of 101");
		done(&b);
	}
}

static void test_ud(void)
{
	struct pl_rdma_completion c;
	uint8_t buffer[256];
	struct bench b;
	struct pl_roce p;

	init(&b, PL_ROCE_UD);
	send(&b, PL_ROCE_SEND_ONLY, 0, 64);
	eq(b.cause, PL_RDMA_C_NO_RECEIVE);
	pl_responder_post(b.r, QPN, 3, buffer, 104);
	send(&b, PL_ROCE_SEND_ONLY, 0, 65);
	eq(b.cause, PL_RDMA_C_RECEIVE_LENGTH);
	p = request(&b, PL_ROCE_SEND_ONLY, 0);
	p.qkey++;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_QKEY);
	send(&b, PL_ROCE_SEND_ONLY_IMM, 0, 64);
	ok(b.cause == PL_RDMA_C_OK && b.n == 0, "taken");
	ok(pl_responder_completions(b.r, &c, 1) == 1 && c.bytes == 104 && c.src_qpn == PEER &&
			memcmp(buffer + 40, data, 64) == 0 &&
			memcmp(buffer + 32, "\12\0\0\1\12\0\0\2", 8) == 0,
		"behind the addresses");
	done(&b);
}

/* Several requests in one batch: acknowledged once, in order with what must be answered by
 * itself. */
static void test_coalescing(void)
{
	static uint8_t frames[6][256];
	static struct pl_batch batch;
	struct bench b;

	init(&b, PL_ROCE_RC);
	batch.n = 6;
	for (uint32_t i = 0; i < 6; i++) {
		const bool atomic = i == 3;
		struct pl_roce p = request(&b, atomic ? PL_ROCE_FETCH_ADD : PL_ROCE_WRITE_ONLY, 4);
		struct pl_build f = pl_build(frames[i], sizeof(frames[i]));

		pl_roce_put(&f, &p, data, atomic ? 0 : 4);
		batch.pkts[i] = (struct pl_packet){ .data = frames[i], .len = (uint32_t)f.len };
	}
	pl_responder_batch(b.r, &batch, NULL);
	collect(&b);
	ok(b.n == 3 && b.answers[0].opcode == PL_ROCE_ACK &&
			b.answers[0].psn == pl_psn_add(PSN, 2) && b.answers[0].msn == 3,
		"three WRITEs, one ACK");
	ok(b.answers[1].opcode == PL_ROCE_ATOMIC_ACK && b.answers[1].psn == pl_psn_add(PSN, 3),
		"the atomic's own");
	ok(b.answers[2].opcode == PL_ROCE_ACK && b.answers[2].psn == pl_psn_add(PSN, 5) &&
			b.answers[2].msn == 6,
		"two WRITEs, one ACK");
	done(&b);
}

/* A request that comes marked; whether it was executed and what was answered in front of its ACK: a
 * notification? */
static bool notified(struct bench *b, uint8_t service, uint8_t tos)
{
	struct pl_roce p = request(b, PL_ROCE_WRITE_ONLY, 64);
	const uint32_t acks = service == PL_ROCE_RC;
	const struct pl_roce *cnp = &b->answers[0];

	p.path.tos = tos;
	give_request(b, &p, 64);
	ok(b->cause == PL_RDMA_C_OK, "type of service %u: it is executed", tos);
	if (b->n == acks)
		return false;
	ok(b->n == acks + 1 && cnp->opcode == PL_ROCE_CNP && cnp->qpn == PEER && cnp->psn == 0 &&
			cnp->notify == 0x40 && !cnp->ack_req && !cnp->migrated &&
			pl_cursor_left(&cnp->payload) == 16 && (cnp->path.tos & 3) == 0,
		"and its sender notified");
	ok(acks == 0 || b->answers[1].opcode == PL_ROCE_ACK, "besides its answer");
	return true;
}

static void test_congestion(uint8_t service)
{
	struct bench b;
	uint32_t n = 0;

	init(&b, service);
	ok(!notified(&b, service, 0) && !notified(&b, service, 1) && !notified(&b, service, 2),
		"nobody is notified of what is not marked");
	eq(pl_counter_read(&pl_responder_counters(b.r)->marked), 0);
	ok(notified(&b, service, 3), "of a mark at once");
	for (uint32_t i = 0; i < 127; i++)
		n += notified(&b, service, 26 << 2 | 3);
	eq(n, 1, "without a time of one in 64");
	done(&b);
	init(&b, service);
	pl_responder_now(b.r, 1000000);
	ok(notified(&b, service, 3), "with one at once, too");
	pl_responder_now(b.r, 1049999);
	ok(!notified(&b, service, 3), "not again within 50 us");
	pl_responder_now(b.r, 1050000);
	ok(notified(&b, service, 3) && !notified(&b, service, 3), "but then");
	eq(pl_counter_read(&pl_responder_counters(b.r)->marked), 4, "marks are counted");
	eq(pl_counter_read(&pl_responder_counters(b.r)->cnps), 2, "and notifications");
	pl_responder_now(b.r, 2000000);
	{
		struct pl_roce p = request(&b, PL_ROCE_WRITE_ONLY, 64);

		p.path.tos = 3;
		p.path.src = path(9, 2).src;
		give_request(&b, &p, 64);
		ok(b.cause == PL_RDMA_C_PEER && b.n == 0,
			"somebody else's mark is none of the peer's");
	}
	done(&b);
}

/* Answers that nobody fetches: requests beyond what may wait are not executed, so that they can
 * come again. */
static void test_busy(void)
{
	static uint8_t frame[256];
	static struct pl_batch batch;
	unsigned int busy = 0, executed = 0;
	uint64_t sum;
	struct bench b;

	init(&b, PL_ROCE_RC);
	for (uint32_t i = 0; i < 30; i++) {
		struct pl_roce p = request(&b, PL_ROCE_FETCH_ADD, 0);
		struct pl_build f = pl_build(frame, sizeof(frame));
		uint8_t cause;

		p.swap_add = 1;
		pl_roce_put(&f, &p, NULL, 0);
		batch.n = 1;
		batch.pkts[0] = (struct pl_packet){ .data = frame, .len = (uint32_t)f.len };
		pl_responder_batch(b.r, &batch, &cause);
		busy += cause == PL_RDMA_C_BUSY;
		executed += cause == PL_RDMA_C_OK;
	}
	memcpy(&sum, region, 8);
	collect(&b);
	ok(busy > 0 && executed > 0 && sum == executed && b.n == executed,
		"%u executed and answered, %u not executed", executed, busy);
	b.psn = pl_psn_add(PSN, executed);
	send(&b, PL_ROCE_FETCH_ADD, 0, 0);
	eq(b.cause, PL_RDMA_C_OK, "and it goes on where it stopped");
	done(&b);
}

static void test_set_up(void)
{
	struct pl_rdma_region reg = {
		.base = region, .bytes = BYTES, .va = VA + 1, .access = PL_RDMA_ATOMIC
	};
	struct pl_rdma_qp c = qp_config(PL_ROCE_RC);
	uint32_t keys[32], n, same = 0;
	struct bench b;

	init(&b, PL_ROCE_RC);
	ok(pl_responder_region_add(b.r, &reg, &n) < 0, "atomics that would not be aligned");
	reg.va = UINT64_MAX - 100;
	ok(pl_responder_region_add(b.r, &reg, &n) < 0, "end beyond 2^64");
	reg.va = VA;
	reg.key = KEY;
	ok(pl_responder_region_add(b.r, &reg, &n) < 0, "a key that is taken");
	reg.key = 0;
	reg.domain = 5;
	for (int i = 0; i < 32; i++) {
		eq(pl_responder_region_add(b.r, &reg, &keys[i]), 0, "a drawn key");
		for (int k = 0; k < i; k++)
			same += keys[k] == keys[i];
	}
	eq(same, 0, "no two alike");
	for (int i = 0; i < 32; i += 2)
		eq(pl_responder_region_remove(b.r, keys[i]), 0);
	for (int i = 1; i < 32; i += 2) {
		struct pl_roce p = request(&b, PL_ROCE_FETCH_ADD, 0);

		p.rkey = keys[i];
		give_request(&b, &p, 0);
		eq(b.cause, PL_RDMA_C_OK, "those that stay are found");
	}
	ok(pl_responder_qp_add(b.r, &c, &n) < 0, "a number that is taken");
	c.qpn = 1;
	ok(pl_responder_qp_add(b.r, &c, &n) < 0, "queue pair 1");
	c.qpn = 0;
	c.mtu = 1000;
	ok(pl_responder_qp_add(b.r, &c, &n) < 0, "no such MTU");
	c.mtu = 256;
	c.state = PL_RDMA_INIT;
	ok(pl_responder_qp_add(b.r, &c, &n) == 0 && n > 1 && n <= 0xffffff, "a drawn number");
	eq(pl_responder_qp_remove(b.r, n), 0);
	ok(pl_responder_qp_remove(b.r, n) < 0, "not twice");
	done(&b);
}

/* Somebody tries numbers: seen, counted by address, no longer answered; the genuine stream goes
 * on. */
static void test_guesses(void)
{
	struct pl_rdma_suspect suspect[PL_RDMA_SUSPECTS_MAX], alarm;
	const struct pl_responder_counters *c;
	unsigned int answers = 0, found = 0;
	struct bench b;
	struct pl_roce p;
	uint32_t n;

	init(&b, PL_ROCE_RC);
	c = pl_responder_counters(b.r);
	pl_responder_now(b.r, 5000000000);
	for (uint32_t i = 0; i < 300; i++) {
		p = request(&b, PL_ROCE_WRITE_ONLY, 64);
		p.psn = pl_psn_add(PSN, 0x800000 + i * 1000);
		give_request(&b, &p, 64);
		answers += b.n;
		p.qpn = 0x5000 + i;
		p.path.src.b[15] = 66;
		give_request(&b, &p, 64);
	}
	eq(answers, 100, "the first hundred are answered");
	eq(pl_counter_read(&c->alarms), 2, "two sources");
	eq(pl_counter_read(&c->causes[PL_RDMA_C_SUSPECT]), 200);
	eq(pl_counter_read(&c->guesses), 600);
	ok(pl_responder_suspects(b.r, suspect, 2) == 2 && suspect[0].guesses == 300 &&
			suspect[1].guesses == 300 && suspect[0].now && suspect[1].now,
		"by name");
	for (int i = 0; i < 2; i++) {
		const int kind =
			suspect[i].addr.b[15] == 66 ? PL_RDMA_GUESS_QP : PL_RDMA_GUESS_NUMBER;

		eq(suspect[i].kinds[kind], 300, "and by what was guessed");
		ok(pl_responder_alarm(b.r, &alarm) && alarm.guesses == 300, "an alarm");
	}
	ok(!pl_responder_alarm(b.r, &alarm), "each once");
	b.psn = PSN;
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(b.cause == PL_RDMA_C_OK && b.n == 1, "the genuine stream goes on");
	b.psn = PSN;
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(b.cause == PL_RDMA_C_DUPLICATE && b.n == 1, "and its repetitions are answered");
	pl_responder_now(b.r, 16000000000);
	ok(pl_responder_suspects(b.r, suspect, 2) == 2 && !suspect[0].now && !suspect[1].now,
		"ten quiet seconds");
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	p.psn = pl_psn_add(PSN, 0x900000);
	give_request(&b, &p, 64);
	ok(b.cause == PL_RDMA_C_DUPLICATE && b.n == 1, "forgiven");
	/* More sources than there are places: one that guesses fast is found all the same. */
	for (uint32_t i = 0; i < 100000; i++) {
		struct pl_addr other = pl_addr_v4(
			(const uint8_t[]){ 11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i });

		p.qpn = 0x5000;
		p.path.src = other;
		if (i % 4 == 0)
			p.path.src = pl_addr_v4("\12\11\11\11");
		if (i % 50 == 0 || i % 4 == 0)
			give_request(&b, &p, 0);
	}
	n = pl_responder_suspects(b.r, suspect, PL_RDMA_SUSPECTS_MAX);
	for (uint32_t i = 0; i < n; i++)
		found += suspect[i].now && suspect[i].addr.b[13] == 9;
	eq(found, 1, "one among many");
	ok(pl_responder_alarm(b.r, &alarm) && alarm.addr.b[13] == 9, "and told");
	done(&b);

	/* The right queue pair from another address. */
	init(&b, PL_ROCE_UC);
	pl_responder_now(b.r, 5000000000);
	for (uint32_t i = 0; i < 100; i++) {
		p = request(&b, PL_ROCE_WRITE_ONLY, 64);
		p.path.src.b[15] = 67;
		give_request(&b, &p, 64);
		eq(b.cause, PL_RDMA_C_PEER);
	}
	ok(pl_responder_alarm(b.r, &alarm) && alarm.addr.b[15] == 67 &&
			alarm.kinds[PL_RDMA_GUESS_PEER] == 100,
		"a stranger who knows the queue pair");
	done(&b);
}

static void test_init_state(void)
{
	struct pl_rdma_qp c = qp_config(PL_ROCE_RC);
	struct bench b;

	c.state = PL_RDMA_INIT;
	init_with(&b, &c, 7, 5);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	ok(b.cause == PL_RDMA_C_QP_STATE && b.n == 0 && untouched(), "INIT drops");
	pl_responder_qp_ready(b.r, QPN, PSN);
	b.psn = PSN;
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_OK, "READY takes");
	done(&b);
	c.state = PL_RDMA_READY;
	c.min_ttl = 255;
	init_with(&b, &c, 7, 5);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_LINK, "TTL below the rule");
	done(&b);
	c.min_ttl = 0;
	c.check_mac = true;
	c.path.dmac[0] ^= 4;
	init_with(&b, &c, 7, 5);
	send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
	eq(b.cause, PL_RDMA_C_LINK, "another MAC address");
	done(&b);
}

/* The source that is to be checked is that of the first request executed; until then answers go to
 * where each came from. */
static void test_learned_mac(void)
{
	struct pl_rdma_qp c = qp_config(PL_ROCE_UC);
	struct pl_roce p;
	struct bench b;

	c.check_mac = true;
	memset(c.path.dmac, 0, 6);
	init_with(&b, &c, PL_RDMA_WRITE, 5);
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	p.path.smac[5] ^= 9;
	p.rkey ^= 1;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_KEY, "who does not know the key");
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OK, "is not who is learned");
	p.path.smac[5] ^= 9;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_LINK, "from then on nobody else");
	p.path.smac[5] ^= 9;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OK, "but that one");
	done(&b);
}

/* Frames to others are none of ours, by either way. */
static void test_own_mac(void)
{
	struct pl_rdma_qp c = qp_config(PL_ROCE_UC);
	struct pl_roce p;
	uint8_t mac[6];
	struct bench b;

	init_with(&b, &c, PL_RDMA_WRITE, 5);
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	memcpy(mac, p.path.dmac, 6);
	pl_responder_now(b.r, 5000000000);
	pl_responder_own_mac(b.r, mac);
	for (int i = 0; i < 6; i++) {
		p.path.dmac[i] ^= 1;
		give_request(&b, &p, 64);
		ok(b.cause == PL_RDMA_C_OTHER_MAC && untouched(), "byte %d of the address", i);
		p.qpn++;
		give_request(&b, &p, 64);
		eq(b.cause, PL_RDMA_C_OTHER_MAC);
		p.qpn--;
		p.path.dmac[i] ^= 1;
	}
	eq(pl_counter_read(&pl_responder_counters(b.r)->guesses), 0, "nobody guesses");
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OK, "ours");
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OK, "the fast path");
	p.path.dmac[5] ^= 1;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OTHER_MAC, "another's there");
	pl_responder_own_mac(b.r, NULL);
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_OK, "any");
	done(&b);
}

/* The answers of atomics byte by byte, over the wrap of packet numbers and after others in between.
 * They have the first one's identification. */
static void test_atomic_answers(void)
{
	static uint8_t space[2 * PL_ROCE_FRAME_MAX], want[PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	static struct pl_batch batch = { .n = 1 };
	static uint8_t frame[PL_ROCE_FRAME_MAX];
	const struct pl_rdma_qp c = qp_config(PL_ROCE_RC);
	uint64_t sum = 0;
	unsigned int wrong = 0;
	uint16_t id = 0;
	struct bench b;

	init(&b, PL_ROCE_RC);
	for (unsigned int i = 0; i < 70000; i++) {
		struct pl_build f = pl_build(frame, sizeof(frame)),
				w = pl_build(want, sizeof(want));
		const bool write = i % 1000 == 5;
		struct pl_roce p =
			request(&b, write ? PL_ROCE_WRITE_ONLY : PL_ROCE_FETCH_ADD, write ? 4 : 0);
		struct pl_roce a = { .path = c.path,
			.opcode = write ? PL_ROCE_ACK : PL_ROCE_ATOMIC_ACK,
			.migrated = true,
			.pkey = c.pkey,
			.qpn = PEER,
			.psn = p.psn,
			.syndrome = PL_ROCE_ACK_UNLIMITED,
			.msn = (i + 1) & PL_ROCE_PSN_MASK,
			.original = sum };

		if (write)
			p.va += 64;
		else
			sum += p.swap_add = UINT64_C(0x9e3779b97f4a7c15) * i;
		pl_roce_put(&f, &p, data, write ? 4 : 0);
		batch.pkts[0] = (struct pl_packet){ .data = frame,
			.len = (uint32_t)f.len,
			.wire_len = (uint32_t)f.len,
			.link = PL_LINK_ETHERNET };
		pl_responder_batch(b.r, &batch, NULL);
		pl_frames_init(&frames, space, sizeof(space));
		a.path.ip_id = write ? ++id : 0;
		pl_roce_put(&w, &a, NULL, 0);
		wrong += !pl_responder_answers(b.r, &frames) || frames.batch.n != 1 ||
			 frames.batch.pkts[0].len != w.len ||
			 memcmp(frames.batch.pkts[0].data, want, w.len) != 0;
	}
	eq(wrong, 0, "each answer is what it would be alone");
	eq(pl_counter_read(&pl_responder_counters(b.r)->atomic_acks), 69930);
	done(&b);
}

static unsigned int misplaced;

/* Gives the record of a switch of this number, at its place in a list of 128, and returns the slot
 * of the last record. */
static uint32_t record(struct bench *b, uint32_t number, uint32_t psn)
{
	struct pl_roce p = request(b, PL_ROCE_WRITE_ONLY, 64);
	struct pl_rdma_qp_status s;

	p.opcode = PL_ROCE_RC | PL_ROCE_WRITE_ONLY;
	p.psn = psn;
	p.va = VA + number % (BYTES / 64) * 64;
	memset(region + number % (BYTES / 64) * 64, 0, 64);
	give_request(b, &p, 64);
	misplaced += b->cause != PL_RDMA_C_OK ||
		     memcmp(region + number % (BYTES / 64) * 64, data, 64) != 0;
	if (pl_responder_qp_status(b->r, QPN, &s) < 0 || s.at <= VA)
		abort();
	return (uint32_t)((s.at - VA) / 64 - 1);
}

/* Gives the records [from, to), whose numbers have `bits` bits. */
static uint32_t records(struct bench *b, uint32_t from, uint32_t to, unsigned int bits)
{
	uint32_t slot = 0;

	while (from < to) {
		slot = record(b, from, from & ((UINT32_C(1) << bits) - 1));
		from++;
	}
	return slot;
}

/* The records of a switch, which are late or of a switch that was started again: a late one does not
 * take the end of the list back, and a new beginning is the end. */
static void test_switch(void)
{
	struct pl_rdma_qp c = qp_config(PL_ROCE_UC);
	struct pl_roce p;
	struct bench b;

	c.rc_opcodes = true;
	c.psn = 0;
	init_with(&b, &c, PL_RDMA_WRITE, 5);
	eq(record(&b, 1, 1), 1, "the second record overtook the first");
	eq(record(&b, 0, 0), 1, "which is late by one");
	eq(records(&b, 2, 5, 24), 4, "the next ones");
	eq(records(&b, 0, 3, 24), 2, "the switch starts again after a few records");
	eq(record(&b, 4, 4), 4, "and goes on");
	eq(record(&b, 3, 3), 4, "a late one");
	eq(records(&b, 5, 1000, 24), 999 % 128);
	eq(records(&b, 0, 2, 24), 1, "it starts again after many rounds");
	eq(records(&b, 2, 10, 24), 9);
	eq(records(&b, 11, 411, 24), 410 % 128, "of what was lost,");
	eq(record(&b, 10, 10), 410 % 128, "one that is late by a few hundred");
	eq(record(&b, 10, 10), 10, "comes once");
	eq(records(&b, 11, 65535, 16), 65534 % 128, "numbers of 16 bits end");
	eq(record(&b, 65536, 0), 0, "and begin again");
	eq(record(&b, 65535, 65535), 0, "before the last one came");
	eq(record(&b, 65537, 1), 1);
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	p.opcode = PL_ROCE_RC | PL_ROCE_WRITE_ONLY;
	p.psn = 2;
	p.rkey ^= 1;
	give_request(&b, &p, 64);
	eq(b.cause, PL_RDMA_C_KEY);
	eq(record(&b, 65538, 2), 2, "one that was refused with a wrong key comes again");
	done(&b);

	init_with(&b, &c, PL_RDMA_WRITE, 5);
	eq(record(&b, 65500, 65500), 65500 % 128, "the first record that comes has any number");
	eq(misplaced, 0, "every record is in its place");
	done(&b);
}

int main(void)
{
	init_data();
	test_atomic_answers();
	test_receives(PL_ROCE_RC);
	test_receives(PL_ROCE_UC);
	test_rnr();
	test_read();
	test_region_gone();
	test_region_moved();
	test_uc_messages();
	test_ud();
	test_coalescing();
	test_congestion(PL_ROCE_RC);
	test_congestion(PL_ROCE_UC);
	test_busy();
	test_set_up();
	test_guesses();
	test_learned_mac();
	test_own_mac();
	test_init_state();
	test_switch();
	return pl_test_done();
}
