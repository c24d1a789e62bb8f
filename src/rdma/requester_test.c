/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester against answers made by hand, the forged ones too; simulation_test.c has it against
 * the responder. */
#include <errno.h>

#include "base/test.h"
#include "rdma/pace.h"
#include "rdma/requester.h"

#define QPN     0x21
#define PEER    0xabcd
#define PSN     0xfffffe
#define TIMEOUT 1000000
#define MTU     256

static struct pl_requester *q;
static uint8_t space[64 * (MTU + PL_ROCE_OVERHEAD)];
static struct pl_frames frames;
static struct pl_roce sent[64];
static uint64_t now_ns;
static uint8_t data[2048];

static struct pl_roce_path path(uint8_t from, uint8_t to)
{
	return (struct pl_roce_path){ .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.ttl = 64,
		.sport = 49152 };
}

static struct pl_requester_qp config(uint8_t service)
{
	return (struct pl_requester_qp){ .qpn = QPN,
		.service = service,
		.mtu = MTU,
		.pkey = PL_ROCE_PKEY,
		.psn = PSN,
		.peer_qpn = PEER,
		.path = path(1, 2),
		.messages = 16,
		.message_bytes = sizeof(data),
		.window = 8,
		.atomics = 2,
		.timeout_ns = TIMEOUT,
		.retries = 2,
		.rnr_retries = 2 };
}

static void init(uint8_t service)
{
	const struct pl_requester_qp c = config(service);
	uint32_t qpn;

	now_ns = 1000;
	if (pl_requester_new(&q, &(struct pl_requester_options){ 0 }) < 0 ||
		pl_requester_qp_add(q, &c, &qpn) < 0 || qpn != QPN)
		abort();
}

static int write_bytes(uint64_t id, uint32_t bytes)
{
	return pl_requester_post(q, QPN,
		&(struct pl_rdma_work){ .kind = PL_RDMA_WORK_WRITE,
			.id = id,
			.va = 0x1000,
			.rkey = 5,
			.bytes = bytes,
			.data = data });
}

static int add(uint64_t id)
{
	return pl_requester_post(q, QPN,
		&(struct pl_rdma_work){ .kind = PL_RDMA_WORK_ADD,
			.id = id,
			.va = 0x2000,
			.rkey = 5,
			.swap_add = 1 });
}

/* What is sent now: how many packets. */
static uint32_t send(void)
{
	pl_frames_init(&frames, space, sizeof(space));
	pl_requester_send(q, now_ns, &frames);
	for (uint32_t i = 0; i < frames.batch.n; i++) {
		if (pl_roce_parse(&sent[i],
			    pl_cursor(frames.batch.pkts[i].data, frames.batch.pkts[i].len),
			    PL_LINK_ETHERNET) != PL_ROCE_F_OK)
			abort();
	}
	return frames.batch.n;
}

static struct pl_roce answer(uint32_t psn, uint8_t syndrome)
{
	return (struct pl_roce){ .path = path(2, 1),
		.opcode = PL_ROCE_ACK,
		.pkey = PL_ROCE_PKEY,
		.qpn = QPN,
		.psn = pl_psn_add(PSN, psn),
		.syndrome = syndrome };
}

static void give(const struct pl_roce *p)
{
	static uint8_t frame[256];
	static struct pl_batch batch;
	struct pl_build b = pl_build(frame, sizeof(frame));

	pl_roce_put(&b, p, NULL, 0);
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame, .len = (uint32_t)b.len };
	pl_requester_batch(q, &batch, NULL, now_ns);
}

static void ack(uint32_t psn, uint8_t syndrome)
{
	const struct pl_roce p = answer(psn, syndrome);

	give(&p);
}

static void atomic_ack(uint32_t psn, uint64_t original)
{
	struct pl_roce p = answer(psn, 0x1f);

	p.opcode = PL_ROCE_ATOMIC_ACK;
	p.original = original;
	give(&p);
}

/* The next completions: "id:result" each. */
static const char *completed(void)
{
	static char text[256];
	struct pl_rdma_completed done[32];
	uint32_t n = pl_requester_completions(q, done, 32);

	text[0] = '\0';
	for (uint32_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64 ":%u",
			i > 0 ? " " : "", done[i].id, done[i].result);
	return text;
}

static void test_messages(void)
{
	static const uint8_t ops[] = { PL_ROCE_WRITE_FIRST, PL_ROCE_WRITE_MIDDLE,
		PL_ROCE_WRITE_LAST, PL_ROCE_WRITE_ONLY, PL_ROCE_FETCH_ADD };

	init(PL_ROCE_RC);
	write_bytes(1, 2 * MTU + 3);
	write_bytes(2, 0);
	add(3);
	eq(send(), 5);
	for (uint32_t i = 0; i < 5; i++)
		ok(sent[i].opcode == ops[i] && sent[i].psn == pl_psn_add(PSN, i) &&
				sent[i].qpn == PEER && sent[i].ack_req == (i >= 3),
			"packet %u", i);
	ok(sent[0].length == 2 * MTU + 3 && sent[0].rkey == 5 && sent[2].pad == 1, "its headers");
	eq(send(), 0, "nothing twice");
	eq(pl_requester_next_ns(q), now_ns + TIMEOUT, "the clock runs");
	ack(1, 0x1f);
	streq(completed(), "", "the middle of a message");
	ack(3, 0x1f);
	streq(completed(), "1:0 2:0", "two messages by one ACK");
	atomic_ack(4, 41);
	streq(completed(), "3:0");
	eq(pl_requester_next_ns(q), UINT64_MAX, "the clock rests");
	pl_requester_free(q);
}

static void test_window(void)
{
	init(PL_ROCE_RC);
	for (uint64_t i = 0; i < 16; i++)
		eq(write_bytes(i, 4), 0);
	ok(write_bytes(16, 4) == -EAGAIN, "no room for more");
	eq(send(), 8, "a window");
	ok(sent[3].ack_req && sent[7].ack_req && !sent[0].ack_req, "each half asks");
	ack(3, 0x1f);
	eq(send(), 4, "half a window more");
	ack(2, 0x1f);
	eq(pl_counter_read(&pl_requester_counters(q)->ghosts), 1, "an old ACK is a ghost");
	pl_requester_free(q);
}

static void test_go_back(void)
{
	init(PL_ROCE_RC);
	for (uint64_t i = 0; i < 6; i++)
		write_bytes(i, 4);
	eq(send(), 6);
	ack(2, 0x60);
	streq(completed(), "0:0 1:0", "a NAK acknowledges what is before it");
	eq(send(), 4, "and what it names is sent again");
	ok(sent[0].psn == pl_psn_add(PSN, 2) && sent[0].ack_req, "from there");
	now_ns += TIMEOUT - 1;
	eq(send(), 0);
	now_ns += 1;
	eq(send(), 2, "a timeout: half of what was sent again before");
	now_ns += TIMEOUT;
	eq(send(), 0, "no more tries");
	streq(completed(), "2:4 3:6 4:6 5:6", "given up");
	ok(write_bytes(9, 4) == -ENOTCONN, "in error");
	eq(pl_requester_qp_ready(q, QPN, 77, 78), 0);
	write_bytes(9, 4);
	ok(send() == 1 && sent[0].psn == 77 && sent[0].qpn == 78, "made anew");
	pl_requester_free(q);
}

static void test_progress_resets_tries(void)
{
	init(PL_ROCE_RC);
	for (uint64_t i = 0; i < 8; i++)
		write_bytes(i, 4);
	send();
	for (uint32_t i = 0; i < 7; i++) {
		now_ns += TIMEOUT;
		eq(send(), i < 2 ? 4u >> i : 1, "half each time, and one at least");
		ack(i, 0x1f);
	}
	streq(completed(), "0:0 1:0 2:0 3:0 4:0 5:0 6:0",
		"seven timeouts with progress in between");
	pl_requester_free(q);
}

static struct pl_requester_status status(void)
{
	struct pl_requester_status s = { 0 };

	pl_requester_qp_status(q, QPN, &s);
	return s;
}

/* A loss halves the window, once for all that was on its way; what arrives widens it again. */
static void test_window_after_loss(void)
{
	uint64_t id = 0;

	init(PL_ROCE_RC);
	while (id < 16)
		write_bytes(id++, 4);
	eq(send(), 8);
	ack(1, 0x60);
	eq(status().window, 4);
	eq(send(), 4, "half of it");
	ack(3, 0x60);
	eq(status().window, 4, "of the same flight");
	send();
	ack(4, 0x1f);
	eq(status().window, 5, "four arrived");
	ack(6, 0x1f);
	send();
	ack(7, 0x1f);
	send();
	ack(8, 0x60);
	eq(status().window, 2, "a new loss");
	for (uint32_t psn = 8; psn < 15; psn++) {
		send();
		ack(psn, 0x1f);
	}
	ok(status().window > 3 && status().window < 8, "and slowly back");
	pl_requester_free(q);
}

/* Packets that leave in the next `ms` when there is always work. */
static uint32_t sent_in(uint32_t ms)
{
	uint32_t n = 0;

	for (uint64_t end = now_ns + ms * UINT64_C(1000000); now_ns < end; now_ns += 100000) {
		while (write_bytes(0, 4) == 0)
			;
		n += send();
		completed();
	}
	return n;
}

/* 16 packets each tenth of a millisecond are 160,000 a second. */
static void test_congestion(void)
{
	struct pl_roce cnp = answer(0, 0);
	uint32_t n;

	init(PL_ROCE_UC);
	cnp.opcode = PL_ROCE_CNP;
	eq(sent_in(50), 8000, "no limit");
	give(&cnp);
	ok(status().rate > 75000 && status().rate < 85000, "half of it: %.0f", status().rate);
	give(&cnp);
	ok(status().rate > 75000, "more of them at once say the same");
	n = sent_in(5);
	ok(n > 350 && n < 420, "%u packets in 5 ms", n);
	ok(pl_requester_next_ns(q) > now_ns - 200000 && pl_requester_next_ns(q) < now_ns + 100000,
		"it says when the next may go");
	give(&cnp);
	ok(status().rate > 37000 && status().rate < 43000, "half again: %.0f", status().rate);
	sent_in(25);
	ok(status().rate > 55000 && status().rate < 65000, "two sixteenths back: %.0f",
		status().rate);
	sent_in(200);
	eq((uint64_t)status().rate, 0, "and then no limit");
	eq(sent_in(10), 1600);
	cnp.path.src.b[15] = 9;
	give(&cnp);
	ok(status().rate == 0 && pl_counter_read(&pl_requester_counters(q)->foreign) == 1,
		"not from the peer");
	for (int i = 0; i < 30; i++) {
		cnp = answer(0, 0);
		cnp.opcode = PL_ROCE_CNP;
		give(&cnp);
		now_ns += PL_PACE_CUT_NS;
	}
	eq((uint64_t)status().rate, (uint64_t)PL_PACE_LEAST, "never slower");
	ok(sent_in(9) >= 8, "it still moves");
	pl_requester_free(q);
}

/* Answers that take longer than the timeout are waited for longer the next time. */
static void test_slow_answers(void)
{
	init(PL_ROCE_RC);
	for (uint32_t i = 0; i < 8; i++) {
		write_bytes(i, 4);
		send();
		now_ns += TIMEOUT - 1;
		ack(i, 0x1f);
	}
	write_bytes(8, 4);
	send();
	ok(pl_requester_next_ns(q) > now_ns + TIMEOUT &&
			pl_requester_next_ns(q) < now_ns + 4 * TIMEOUT,
		"the timeout has room for how long answers take");
	now_ns = pl_requester_next_ns(q);
	eq(send(), 1, "then it is sent again");
	ack(8, 0x1f);
	for (uint32_t i = 9; i < 60; i++) {
		write_bytes(i, 4);
		send();
		now_ns += TIMEOUT / 100;
		ack(i, 0x1f);
	}
	write_bytes(60, 4);
	send();
	eq(pl_requester_next_ns(q), now_ns + TIMEOUT, "fast answers: as was asked for");
	pl_requester_free(q);
}

static void test_not_ready(void)
{
	init(PL_ROCE_RC);
	write_bytes(0, 4);
	write_bytes(1, 4);
	send();
	for (int i = 0; i < 2; i++) {
		ack(0, 0x20 | 12);
		ack(0, 0x60);
		eq(send(), 0, "waits, whatever else is refused meanwhile");
		eq(pl_requester_next_ns(q), now_ns + 640000);
		now_ns += 640000;
		eq(send(), 2, "and sends again");
	}
	ack(0, 0x20 | 12);
	streq(completed(), "0:5 1:6", "never ready");
	pl_requester_free(q);

	/* The peer accepts a repeat that was under way when it refused the first one. */
	init(PL_ROCE_RC);
	write_bytes(0, 4);
	send();
	ack(0, 0x20 | 12);
	ack(0, 0x1f);
	streq(completed(), "0:0");
	for (int i = 0; i < 8; i++) {
		now_ns += 4 * TIMEOUT;
		eq(send(), 0, "nothing is left to send");
	}
	eq(pl_requester_next_ns(q), UINT64_MAX, "the clock rests");
	eq(pl_counter_read(&pl_requester_counters(q)->timeouts), 0);
	eq(write_bytes(1, 4), 0, "the queue pair is not in error");
	pl_requester_free(q);
}

static void test_errors(void)
{
	static const struct {
		uint8_t syndrome;
		const char *done;
	} cases[] = { { 0x61, "0:0 1:1 2:6" }, { 0x62, "0:0 1:2 2:6" }, { 0x63, "0:0 1:3 2:6" },
		{ 0x64, "0:0 1:1 2:6" } };

	for (size_t i = 0; i < 4; i++) {
		init(PL_ROCE_RC);
		for (uint64_t k = 0; k < 3; k++)
			write_bytes(k, 4);
		send();
		ack(1, cases[i].syndrome);
		streq(completed(), cases[i].done, "NAK %02x", cases[i].syndrome);
		eq(send(), 0);
		pl_requester_free(q);
	}
}

static void test_atomics(void)
{
	init(PL_ROCE_RC);
	for (uint64_t i = 0; i < 3; i++)
		eq(add(i), 0);
	write_bytes(3, 4);
	eq(send(), 2, "no more at a time than the peer remembers");
	atomic_ack(0, 10);
	eq(send(), 2, "the third and what is behind it");
	ack(3, 0x1f);
	streq(completed(), "0:0", "an ACK behind it does not complete an atomic");
	ok(send() == 3 && sent[0].psn == pl_psn_add(PSN, 1), "its answer was lost: once more");
	ack(3, 0x1f);
	eq(send(), 0, "but not for each ACK");
	atomic_ack(2, 12);
	streq(completed(), "", "not before the one before it");
	atomic_ack(1, 11);
	streq(completed(), "1:0 2:0");
	ack(3, 0x1f);
	streq(completed(), "3:0");
	ok(pl_requester_post(
		   q, QPN, &(struct pl_rdma_work){ .kind = PL_RDMA_WORK_SWAP, .va = 4 }) == -EINVAL,
		"misaligned");
	pl_requester_free(q);
}

/* One that is answered out of order still stands between the oldest and the peer's memory of it. */
static void test_atomics_span(void)
{
	init(PL_ROCE_RC);
	for (uint64_t i = 0; i < 4; i++)
		add(i);
	eq(send(), 2);
	atomic_ack(1, 1);
	send();
	for (uint32_t i = 0; i < frames.batch.n; i++)
		ok(pl_psn_diff(sent[i].psn, pl_psn_add(PSN, 2)) < 0,
			"no third while the first has no answer");
	atomic_ack(0, 0);
	streq(completed(), "0:0 1:0");
	eq(send(), 2, "then two more");
	pl_requester_free(q);
}

static void read_response(uint32_t psn, const void *bytes, uint32_t n)
{
	static uint8_t frame[512];
	static struct pl_batch batch;
	struct pl_build b = pl_build(frame, sizeof(frame));
	struct pl_roce p = answer(psn, 0x1f);

	p.opcode = PL_ROCE_READ_ONLY;
	pl_roce_put(&b, &p, bytes, n);
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame, .len = (uint32_t)b.len };
	pl_requester_batch(q, &batch, NULL, now_ns);
}

static void test_reads(void)
{
	uint8_t into[6] = { 0 };
	struct pl_rdma_work w = { .kind = PL_RDMA_WORK_READ,
		.id = 7,
		.va = 0x3001,
		.rkey = 9,
		.bytes = 6,
		.into = into };

	init(PL_ROCE_RC);
	eq(pl_requester_post(q, QPN, &w), 0);
	write_bytes(8, 4);
	w.id = 9;
	w.bytes = 0;
	eq(pl_requester_post(q, QPN, &w), 0);
	ok(send() == 3 && sent[0].opcode == PL_ROCE_READ_REQUEST && sent[0].va == 0x3001 &&
			sent[0].length == 6 && pl_cursor_left(&sent[0].payload) == 0,
		"a request without payload");
	read_response(0, "short", 5);
	atomic_ack(0, 1);
	ack(1, 0x1f);
	streq(completed(), "", "neither of these is its answer");
	eq(into[0], 0, "and nothing was copied");
	read_response(0, "answer", 6);
	memeq(into, "answer", 6, "what was read");
	read_response(0, "forged", 6);
	memeq(into, "answer", 6, "once");
	ack(1, 0x1f);
	read_response(2, "", 0);
	streq(completed(), "7:0 8:0 9:0");
	w.bytes = MTU + 1;
	ok(pl_requester_post(q, QPN, &w) == -EMSGSIZE, "more than a packet");
	pl_requester_free(q);
	init(PL_ROCE_UC);
	w.bytes = 4;
	ok(pl_requester_post(q, QPN, &w) == -EINVAL, "not on an unreliable connection");
	pl_requester_free(q);
}

/* What somebody else sends, or the peer by mistake, changes nothing. */
static void test_forged(void)
{
	const struct pl_requester_counters *c;
	struct pl_roce p;

	init(PL_ROCE_RC);
	c = pl_requester_counters(q);
	for (uint64_t i = 0; i < 3; i++)
		write_bytes(i, 4);
	send();
	for (uint32_t psn = 3; psn < 3 + 0xfffffd; psn += 1013) {
		ack(psn, 0x1f);
		ack(psn, 0x62);
		ack(psn, 0x60);
		atomic_ack(psn, 1);
	}
	eq(pl_counter_read(&c->ghosts), pl_counter_read(&c->received), "numbers never sent");
	atomic_ack(1, 5);
	eq(pl_counter_read(&c->ghosts), pl_counter_read(&c->received),
		"an atomic's answer to a WRITE");
	p = answer(1, 0x62);
	p.path.src.b[15] = 9;
	give(&p);
	eq(pl_counter_read(&c->foreign), 1, "not from the peer");
	p = answer(1, 0x62);
	p.pkey = 0x8001;
	give(&p);
	eq(pl_counter_read(&c->foreign), 2, "another partition");
	p = answer(1, 0x62);
	p.qpn++;
	give(&p);
	eq(pl_counter_read(&c->unknown), 1, "no such queue pair");
	p = answer(1, 0x1f);
	p.syndrome = 0x9f;
	give(&p);
	p.opcode = PL_ROCE_CNP;
	give(&p);
	eq(pl_counter_read(&c->cnps), 1, "a congestion notification is counted");
	streq(completed(), "", "nothing is complete");
	eq(send(), 0, "nothing is sent again");
	ack(2, 0x1f);
	streq(completed(), "0:0 1:0 2:0", "the genuine one");
	pl_requester_free(q);
}

static void test_unreliable(void)
{
	init(PL_ROCE_UC);
	for (uint64_t i = 0; i < 16; i++)
		write_bytes(i, i == 0 ? 3 * MTU : 4);
	ok(add(99) == -EINVAL, "no atomics");
	eq(send(), 18, "no window");
	ok(sent[0].opcode == (PL_ROCE_UC | PL_ROCE_WRITE_FIRST) && !sent[17].ack_req,
		"and no answers");
	streq(completed(), "0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0 13:0 14:0 15:0");
	eq(pl_requester_next_ns(q), UINT64_MAX);
	write_bytes(20, 4);
	ok(send() == 1 && sent[0].psn == pl_psn_add(PSN, 18), "numbers go on");
	pl_requester_free(q);
}

int main(void)
{
	test_messages();
	test_window();
	test_go_back();
	test_progress_resets_tries();
	test_window_after_loss();
	test_slow_answers();
	test_congestion();
	test_not_ready();
	test_errors();
	test_atomics();
	test_atomics_span();
	test_reads();
	test_forged();
	test_unreliable();
	return pl_test_done();
}
