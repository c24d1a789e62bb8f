/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connection managers over a link that loses what the test says, and over links that lose by
 * seeds. */
#include "rdma/test_cm.h"

#include <errno.h>

static void test_connect(void)
{
	struct pl_connection_event e;
	uint32_t active, passive;

	init();
	active = connect_to(1337);
	settle();
	eq(event(1, &e), PL_CONNECTION_REQUEST);
	passive = e.id;
	ok(e.port == 1337 && e.terms.qpn == 100 && e.terms.psn == 101 && e.terms.mtu == 1024 &&
			e.terms.service == PL_ROCE_UC && e.terms.depth == 3 &&
			e.terms.resources == 4 && e.terms.retries == 7 &&
			e.terms.rnr_retries == 6 && e.terms.ack_timeout == 14 &&
			memcmp(e.terms.private, "about me", 9) == 0 && e.path.dst.b[15] == 1,
		"what is asked");
	{
		const struct pl_connection_terms t = terms(200);

		eq(pl_connector_accept(sides[1], passive, &t, now_ns), 0);
		ok(pl_connector_accept(sides[1], passive, &t, now_ns) < 0, "once");
	}
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	ok(e.id == active && e.terms.qpn == 200 && e.terms.psn == 201 && e.terms.mtu == 1024 &&
			memcmp(e.terms.private, "about me", 9) == 0,
		"what is answered");
	eq(event(1, &e), PL_CONNECTION_CONNECTED);
	streq(sequence(), "REQ REP RTU");
	now_ns += 1000 * MS;
	settle();
	streq(sequence(), "", "quiet");
	eq(pl_connector_next_ns(sides[0]), UINT64_MAX);
	eq(pl_connector_disconnect(sides[1], passive, now_ns), 0);
	settle();
	eq(event(0, &e), PL_CONNECTION_CLOSED);
	eq(event(1, &e), PL_CONNECTION_CLOSED);
	streq(sequence(), "DREQ DREP");
	done();
}

/* One side has two addresses: what was asked of one is answered by it. */
static void test_addresses(void)
{
	const struct pl_roce_path path = { .src = addr(1), .dst = addr(102), .ttl = 64 };
	const struct pl_addr other = addr(102);
	const struct pl_connection_terms t = terms(100);
	struct pl_connection_event e;
	uint32_t id;

	init();
	eq(pl_connector_connect(sides[0], &path, 1337, &t, now_ns, &id), 0);
	settle();
	ok(event(1, &e) == PL_CONNECTION_REQUEST && pl_addr_equal(&e.path.src, &other),
		"asked at the second address");
	eq(pl_connector_accept(sides[1], e.id, &t, now_ns), 0);
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	eq(pl_counter_read(&pl_connector_counters(sides[0])->foreign), 0, "answered by it");
	done();
}

static void test_lost(void)
{
	struct pl_connection_event e;
	uint32_t passive;

	init();
	lose[0] = 1; /* the first REQ */
	lose[1] = 1; /* the first REP */
	connect_to(1337);
	settle();
	now_ns += 100 * MS;
	settle();
	passive = accept();
	settle();
	eq(event(0, &e), 0, "its REP is lost");
	now_ns += 100 * MS;
	lose[0] = 1u << 3; /* the REQ that is sent again meanwhile comes; the RTU does not */
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	now_ns += 200 * MS;
	settle();
	eq(event(1, &e), PL_CONNECTION_CONNECTED, "the RTU is sent again for the REP that is");
	settle();
	eq(pl_connector_disconnect(sides[1], passive, now_ns), 0);
	lose[0] = 1u << sent[0]; /* the DREP */
	settle();
	eq(event(0, &e), PL_CONNECTION_CLOSED);
	eq(event(1, &e), 0);
	now_ns += 100 * MS;
	settle();
	eq(event(1, &e), PL_CONNECTION_CLOSED, "a DREP for each DREQ");
	done();
	init();
	lose[0] = 0xfffffffe; /* only the REQ comes */
	connect_to(1337);
	settle();
	passive = accept();
	settle();
	eq(pl_connector_heard(sides[1], passive, now_ns), 0);
	eq(event(1, &e), PL_CONNECTION_CONNECTED, "data are as good as the RTU");
	done();
}

static void test_refused(void)
{
	struct pl_connection_event e;

	init();
	connect_to(1338);
	settle();
	ok(event(0, &e) == PL_CONNECTION_REJECTED && e.reason == PL_CM_INVALID_SERVICE_ID,
		"nobody listens");
	eq(event(1, &e), 0);
	connect_to(1337);
	settle();
	eq(event(1, &e), PL_CONNECTION_REQUEST);
	eq(pl_connector_reject(sides[1], e.id, PL_CM_CONSUMER, now_ns), 0);
	settle();
	ok(event(0, &e) == PL_CONNECTION_REJECTED && e.reason == PL_CM_CONSUMER, "not wanted");
	done();
	init();
	lose[0] = UINT32_MAX;
	connect_to(1337);
	for (int i = 0; i < 10; i++) {
		settle();
		now_ns += 100 * MS;
	}
	eq(event(0, &e), PL_CONNECTION_TIMEOUT, "nobody there");
	streq(sequence(), "REQ REQ REQ REQ REQ");
	done();
}

/* A path MTU that frames here cannot have is rejected, with the largest that can. */
static void test_mtu(void)
{
	struct pl_connection_event e;

	init();
	pl_connector_mtu(sides[1], 512);
	connect_to(1337);
	settle();
	eq(event(1, &e), 0, "a path MTU of 1024 is not asked for, where 512 is the largest");
	ok(event(0, &e) == PL_CONNECTION_REJECTED && e.reason == PL_CM_INVALID_MTU,
		"but rejected for its reason");
	eq(e.largest_mtu, 512, "with what would do");
	pl_connector_mtu(sides[1], 1024);
	connect_to(1337);
	settle();
	eq(event(1, &e), PL_CONNECTION_REQUEST, "the largest itself is taken");
	done();
}

/* A side answers for the addresses that it has now. */
static void test_other_addresses(void)
{
	const struct pl_addr others[] = { addr(77), addr(78) }, before = addr(2);
	struct pl_connection_event e;

	init();
	eq(pl_connector_own(sides[1], others, 2), 0);
	connect_to(1337);
	settle();
	eq(event(1, &e), 0, "not at an address that was taken away");
	eq(pl_counter_read(&pl_connector_counters(sides[1])->malformed), 1, "which is counted");
	eq(pl_connector_own(sides[1], NULL, 0), 0, "there may be none");
	now_ns += 100 * MS;
	settle();
	eq(event(1, &e), 0);
	eq(pl_connector_own(sides[1], &before, 1), 0);
	now_ns += 100 * MS;
	settle();
	eq(event(1, &e), PL_CONNECTION_REQUEST, "at one that came back");
	done();
}

/* The peer has vanished, or has nothing to say. A passive side with 10 s and five tries. */
static void test_silent(void)
{
	const struct pl_addr own = addr(1);
	struct pl_connection_event e;
	uint32_t passive;

	silent_ns = 10000 * MS;
	connected();
	eq(pass(22000 * MS, &e), 22000 * MS, "an idle one that answers keeps its connection");
	streq(sequence(), "REP RTU REP RTU REP RTU REP RTU");
	eq(pl_counter_read(&pl_connector_counters(sides[1])->repeated), 0,
		"answers are no repetitions");
	done();

	passive = connected();
	lose[0] = UINT32_MAX;
	eq(pass(60000 * MS, &e), 10000 * MS, "one that does not is given up after that time");
	ok(e.kind == PL_CONNECTION_SILENT && e.id == passive, "which is told");
	streq(sequence(), "REP RTU REP RTU REP RTU REP RTU REP RTU", "asked five times");
	eq(pl_counter_read(&pl_connector_counters(sides[1])->asked), 5);
	pass(2000 * MS, &e);
	eq(e.kind, PL_CONNECTION_CLOSED, "it is told of the end, which then is one");
	eq(event(0, &e), PL_CONNECTION_CLOSED, "should it hear, it knows");
	done();

	connected();
	lose[0] = ~(1u << (sent[0] + 4));
	eq(pass(12000 * MS, &e), 12000 * MS, "one answer of five is enough");
	eq(pl_counter_read(&pl_connector_counters(sides[1])->asked), 5);
	done();

	passive = connected();
	lose[0] = UINT32_MAX;
	for (int i = 0; i < 30; i++) {
		eq(pass(1000 * MS, &e), 1000 * MS);
		pl_connector_heard(sides[1], passive, now_ns);
	}
	streq(sequence(), "", "who sends data is not asked");
	done();

	connected();
	lose[0] = UINT32_MAX;
	now_ns += 3600000 * MS;
	settle();
	eq(event(1, &e), 0, "after an hour in which this side slept");
	eq(pass(60000 * MS, &e), 5000 * MS, "the peer still has its five tries");
	eq(e.kind, PL_CONNECTION_SILENT);
	done();

	connected();
	pl_connector_free(sides[0]);
	if (pl_connector_new(&sides[0], &(struct pl_connector_options){ .own = &own, .n_own = 1 }) <
		0)
		abort();
	eq(pass(60000 * MS, &e), 5000 * MS, "one that began anew says so");
	eq(e.kind, PL_CONNECTION_SILENT);
	done();
	silent_ns = 0;

	connected();
	lose[0] = UINT32_MAX;
	eq(pass(600000 * MS, &e), 600000 * MS, "without a time nobody is given up");
	streq(sequence(), "", "or asked");
	eq(pl_connector_next_ns(sides[1]), UINT64_MAX);
	done();
}

static void test_slow_consumer(void)
{
	struct pl_connection_event e;

	init();
	connect_to(1337);
	settle();
	now_ns += 100 * MS;
	settle();
	streq(sequence(), "REQ REQ MRA", "one who has not decided says so");
	now_ns += 1000 * MS;
	settle();
	streq(sequence(), "", "and is not asked again so soon");
	accept();
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	done();
}

/* Who asks and does not confirm, for the address may be forged. */
static void test_unconfirmed(void)
{
	const struct pl_connection_terms t = terms(200);
	struct pl_connection_event e;
	uint32_t first;

	init();
	connect_to(1337);
	settle();
	first = accept();
	lose[0] = UINT32_MAX;
	lose[1] = UINT32_MAX;
	kinds_n = 0;
	for (int i = 0; i < 40; i++) {
		deliver(1);
		now_ns += 50 * MS;
	}
	streq(sequence(), "REP REP REP",
		"is answered three times: a forged address is sent no more");
	eq(event(1, &e), PL_CONNECTION_TIMEOUT, "and given up");
	eq(e.id, first);
	done();

	init();
	connect_to(1337);
	settle();
	first = accept();
	deliver(1);
	eq(pl_connector_forget(sides[1], first), 0, "forgotten before the RTU");
	eq(event(1, &e), 0, "nothing is told");
	eq((uint64_t)pl_connector_accept(sides[1], first, &t, now_ns), (uint64_t)-ENOENT);
	eq((uint64_t)pl_connector_forget(sides[1], first), (uint64_t)-ENOENT, "there is none");
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	settle();
	streq(sequence(), "REQ REP RTU REJ", "a late RTU is rejected");
	eq(event(0, &e), PL_CONNECTION_CLOSED, "by which its sender knows");
	done();

	connected();
	connect_to(1337);
	settle();
	first = accept();
	settle();
	eq((uint64_t)pl_connector_forget(sides[1], first), (uint64_t)-EINVAL,
		"who is connected is not forgotten");
	done();
}

/* A request to side 1, as anybody can send it who forges the address. */
static void forge_req(const struct pl_addr *from, uint32_t number, uint32_t qpn)
{
	uint8_t mad[PL_CM_BYTES], private[PL_CM_IP_BYTES];
	struct pl_build b = pl_build(mad, sizeof(mad)), ip = pl_build(private, sizeof(private));
	const struct pl_roce p = { .path = { .src = *from, .dst = addr(2) },
		.qpn = 1,
		.qkey = PL_CM_QKEY,
		.opcode = PL_ROCE_UD | PL_ROCE_SEND_ONLY,
		.payload = pl_cursor(mad, sizeof(mad)) };

	pl_cm_put_ip(&ip, &(struct pl_cm_ip){ .src = *from, .dst = addr(2) });
	pl_cm_put(&b,
		&(struct pl_cm){ .kind = PL_CM_REQ,
			.transaction = number,
			.local_id = number,
			.service_id = PL_CM_SERVICE_TCP(1337),
			.qpn = qpn,
			.transport = 1,
			.cm_retries = 15,
			.mtu = 3,
			.src = *from,
			.dst = addr(2) },
		private, sizeof(private));
	pl_connector_receive(sides[1], &p, now_ns);
}

/* The peer begins anew with a queue pair that it has in a connection. */
static void test_stale(void)
{
	const struct pl_addr own = addr(1);
	const struct pl_connector_counters *c;
	struct pl_connection_event e;
	uint32_t old;

	old = connected();
	c = pl_connector_counters(sides[1]);
	pl_connector_free(sides[0]);
	if (pl_connector_new(
		    &sides[0], &(struct pl_connector_options){
				       .own = &own, .n_own = 1, .resend_ns = 100 * MS }) < 0)
		abort();
	next_qpn = 100;
	connect_to(1337);
	settle();
	accept();
	eq(pl_counter_read(&c->stale), 0, "what it asks proves nothing yet");
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED, "it is connected anew");
	eq(event(1, &e), PL_CONNECTION_CLOSED, "the old connection ends before");
	eq(e.id, old);
	eq(event(1, &e), PL_CONNECTION_CONNECTED, "the new one is told of");
	streq(sequence(), "REQ REP RTU DREQ DREP", "which the peer is told");
	eq(pl_counter_read(&c->stale), 1);
	done();

	/* While the first one is being made. */
	init();
	connect_to(1337);
	settle();
	old = accept();
	lose[1] = 1;
	settle();
	next_qpn = 100;
	connect_to(1337);
	settle();
	accept();
	settle();
	eq(event(1, &e), PL_CONNECTION_CLOSED, "one that is not confirmed ends too");
	eq(e.id, old);
	eq(pl_counter_read(&pl_connector_counters(sides[1])->stale), 1);
	done();
}

/* A request with the peer's address and queue pair, from somebody who does not see what is
 * answered. */
static void test_forged_req(void)
{
	const struct pl_addr peer = addr(1);
	struct pl_connection_event e;
	const uint32_t standing = connected();

	forge_req(&peer, 0xbeef, 100);
	accept();
	settle();
	eq(event(1, &e), PL_CONNECTION_REJECTED, "the peer says that it asked for nothing");
	ok(e.id != standing, "of that, not of its connection");
	streq(sequence(), "REP REJ");
	eq(event(0, &e), 0, "which stands");
	eq(pl_connector_heard(sides[1], standing, now_ns), 0);
	eq(pl_connector_disconnect(sides[1], standing, now_ns), 0, "on both sides");
	settle();
	eq(event(0, &e), PL_CONNECTION_CLOSED);
	eq(pl_counter_read(&pl_connector_counters(sides[1])->stale), 0);
	done();
}

static void test_limits(void)
{
	const struct pl_addr other = addr(9), outsider = addr(77);
	const struct pl_connector_counters *c;
	struct pl_connection_event e;

	requests_each = 3;
	init();
	c = pl_connector_counters(sides[1]);
	for (int i = 0; i < 4; i++)
		connect_to(1337);
	settle();
	eq(pl_counter_read(&c->limited), 1, "three requests of one source a second");
	for (int i = 0; i < 3; i++)
		eq(event(1, &e), PL_CONNECTION_REQUEST);
	eq(event(1, &e), 0);
	forge_req(&other, 1, 900);
	eq(event(1, &e), PL_CONNECTION_REQUEST, "another source has its own");
	{
		const struct pl_roce_path path = { .src = addr(1), .dst = addr(2) };
		struct pl_connection_terms t = terms(1);
		uint32_t id;

		ok(pl_connector_connect(sides[0], &path, 1, &t, now_ns, &id) < 0,
			"no room for a fifth");
		t.mtu = 1000;
		ok(pl_connector_connect(sides[0], &path, 1, &t, now_ns, &id) < 0, "no such MTU");
	}
	done();
	requests_each = 0;

	/* What is not allowed takes nothing from what is. */
	requests_total = 2;
	denied = outsider;
	init();
	c = pl_connector_counters(sides[1]);
	for (uint32_t i = 0; i < 1000; i++)
		forge_req(&outsider, 10 + i, 10 + i);
	eq(pl_counter_read(&c->denied), 1000, "a thousand that are not allowed");
	deliver(1);
	streq(sequence(), "REJ REJ REJ REJ REJ REJ REJ REJ REJ REJ", "ten are told so");
	eq(event(1, &e), 0);
	connect_to(1337);
	settle();
	eq(event(1, &e), PL_CONNECTION_REQUEST, "and one that is allowed asks all the same");
	forge_req(&other, 1, 900);
	eq(event(1, &e), PL_CONNECTION_REQUEST);
	forge_req(&other, 2, 901);
	eq(event(1, &e), 0, "two a second of all together");
	eq(pl_counter_read(&c->limited), 1);
	now_ns += 1000 * MS;
	forge_req(&other, 3, 902);
	eq(event(1, &e), PL_CONNECTION_REQUEST, "and two in the next one");
	done();
	requests_total = 0;
	denied = (struct pl_addr){ .b = { 0 } };
}

/* From somebody else, or about somebody else's connection. */
static void test_forged(void)
{
	const struct pl_connector_counters *c;
	struct pl_connection_event e;
	uint8_t mad[PL_CM_BYTES];
	struct pl_build b = pl_build(mad, sizeof(mad));
	struct pl_roce p = { .path = { .src = addr(9), .dst = addr(1) },
		.qpn = 1,
		.qkey = PL_CM_QKEY,
		.opcode = PL_ROCE_UD | PL_ROCE_SEND_ONLY,
		.payload = pl_cursor(mad, sizeof(mad)) };
	uint32_t active;

	init();
	c = pl_connector_counters(sides[0]);
	active = connect_to(1337);
	settle();
	accept();
	settle();
	eq(event(0, &e), PL_CONNECTION_CONNECTED);
	pl_cm_put(&b, &(struct pl_cm){ .kind = PL_CM_DREQ, .local_id = 5, .remote_id = active },
		NULL, 0);
	pl_connector_receive(sides[0], &p, now_ns);
	eq(pl_counter_read(&c->foreign), 1, "an end from another address");
	p.path.src = addr(2);
	pl_connector_receive(sides[0], &p, now_ns);
	eq(pl_counter_read(&c->foreign), 2, "an end from another connection of the peer");
	p.qkey++;
	pl_connector_receive(sides[0], &p, now_ns);
	p.qkey--;
	p.path.dst = addr(7);
	pl_connector_receive(sides[0], &p, now_ns);
	p.path.dst = addr(1);
	p.payload = pl_cursor(mad, 255);
	pl_connector_receive(sides[0], &p, now_ns);
	eq(pl_counter_read(&c->malformed), 3, "another key, another address, another length");
	eq(event(0, &e), 0, "nothing happened");
	b = pl_build(mad, sizeof(mad));
	pl_cm_put(
		&b, &(struct pl_cm){ .kind = PL_CM_DREQ, .local_id = 5, .remote_id = 6 }, NULL, 0);
	p.payload = pl_cursor(mad, sizeof(mad));
	kinds_n = 0;
	pl_connector_receive(sides[0], &p, now_ns);
	deliver(0);
	streq(sequence(), "DREP", "an end of what is not known is confirmed");
	done();
}

/* Made, used and ended over links that lose a third: both sides always agree in the end. */
static void test_seeds(void)
{
	unsigned int connected = 0, disagree = 0, unfinished = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		bool up[2] = { false, false }, over[2] = { false, false };
		struct pl_connection_event e;
		uint32_t id;

		init();
		pl_rng_seed(&rng, seed);
		loss = 0.33;
		id = connect_to(1337);
		for (int i = 0; i < 60 && !(over[0] && over[1]); i++) {
			for (int side = 0; side < 2; side++) {
				while (event(side, &e) != 0) {
					const struct pl_connection_terms t = terms(200);

					if (e.kind == PL_CONNECTION_REQUEST)
						pl_connector_accept(sides[1], e.id, &t, now_ns);
					up[side] = up[side] || e.kind == PL_CONNECTION_CONNECTED;
					over[side] = over[side] || e.kind >= PL_CONNECTION_REJECTED;
				}
			}
			if (i == 30 && up[0])
				pl_connector_disconnect(sides[0], id, now_ns);
			deliver(0);
			deliver(1);
			now_ns += 50 * MS;
		}
		connected += up[0] && up[1];
		/* One that knows of a connection that the other gave up learns of its end. */
		disagree += up[0] && !over[0];
		unfinished += up[1] && !over[1] && !up[0];
		done();
	}
	printf("# %u of 2000 connected\n", connected);
	ok(connected > 1650, "most come about");
	eq(disagree, 0, "and are closed");
	eq(unfinished, 0);
	loss = 0;
}

int main(void)
{
	pl_rng_seed(&rng, 1);
	for (int i = 0; i < 2; i++) {
		v6 = i == 1;
		test_connect();
		test_addresses();
		test_lost();
		test_refused();
		test_mtu();
		test_other_addresses();
		test_silent();
		test_slow_consumer();
		test_unconfirmed();
		test_stale();
		test_forged_req();
		test_limits();
		test_forged();
		test_seeds();
	}
	return pl_test_done();
}
