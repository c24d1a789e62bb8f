/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator and the numbers of reports: what is missing, repeated, begun anew or refused, and
 * what is asked for again. */
#include "dta/senders.h"
#include "dta/test_translator.h"

/* Gap, NACK, interval, tries, duplicates, the wrap of eight bits. */
static void test_sequence(void)
{
	const struct pl_dta_store store = PUBLISHED_KEY_WRITE;
	struct pl_translator *t =
		make_with(&store, (struct pl_translator_config){ .form = PL_DTA_TRACKING,
					  .nack_interval_ns = MS,
					  .nack_tries = 2,
					  .nack_port = PL_PORT_DTA_NACK });
	const struct pl_translator_counters *c = pl_translator_counters(t);
	uint8_t r[] = { 1, 0, 0x40, 1, 0, 0, 0, 1, 0, 0, 0, 0 };
	static const uint8_t want[] = { 255, 0x80 };

	r[1] = 1;
	send_bytes(t, 1, r, sizeof(r));
	eq(n_ops, 0, "the first one is missing");
	eq(n_nacks, 1);
	eq(nack_bytes, 2);
	eq(nack_to, 40044);
	memeq(nack, want, 2);
	r[1] = 2;
	send_bytes(t, 2, r, sizeof(r));
	eq(n_nacks, 1, "asked for once in an interval");
	for (unsigned int i = 0; i < 300; i++) {
		r[1] = (uint8_t)i;
		send_bytes(t, 3, r, sizeof(r));
	}
	eq(c->accepted, 300, "around the end of eight bits");
	send_bytes(t, 4, r, sizeof(r));
	eq(c->duplicates, 1);
	eq(c->refused[PL_REFUSED_GAP], 2);
	r[1] = (uint8_t)310;
	send_bytes(t, 2 * MS, r, sizeof(r));
	send_bytes(t, 3 * MS, r, sizeof(r));
	eq(n_nacks, 3);
	eq(c->accepted, 300);
	send_bytes(t, 4 * MS, r, sizeof(r));
	eq(c->accepted, 300, "the second one has twice the time for its answer");
	send_bytes(t, 5 * MS, r, sizeof(r));
	eq(c->accepted, 301, "two NACKs were not answered");
	eq(c->lost, 10);
	closed(t, "sequence");
	pl_translator_free(t);
}

/* Makes a translator of values, which come in reports of ours, numbered with 32 bits. */
static struct pl_translator *make_numbered(uint32_t nack_tries)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_KEY_WRITE,
			.hash = PL_HASH_PATHLINE,
			.key_write = { .slots = 100, .value_bytes = 4, .copies = 1 } },
	};

	return make_with(&store, (struct pl_translator_config){ .nack_tries = nack_tries });
}

/* From a port of its own; `n` reports in a datagram. */
static void numbered(struct pl_translator *t, uint64_t now, uint16_t port, uint32_t seq, uint32_t n)
{
	static uint8_t out[32768];
	struct pl_build b = pl_build(out, sizeof(out));

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
			.op = PL_DTA_KEY_WRITE,
			.key = (const uint8_t *)"key",
			.key_bytes = 3,
			.data = (const uint8_t *)"data",
			.data_bytes = 4,
			.sequenced = true,
			.seq = seq + i };

		ok(pl_dta_put(&b, &r) == 0);
	}
	pl_translator_push(t, now, &from, port, out, b.len);
	pl_translator_done(t);
}

static uint32_t asked_for(void)
{
	struct pl_cursor c = pl_cursor(nack, nack_bytes);
	struct pl_dta_nack n;

	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	return n.last + 1;
}

/* The same port again: what begins anew is taken, what is repeated or late is not. */
static void test_restart(void)
{
	struct pl_translator *t = make_numbered(10);
	const struct pl_translator_counters *c = pl_translator_counters(t);
	const uint64_t s = 1000 * MS;
	uint64_t now = s;

	for (uint32_t i = 0; i < 2000; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->accepted, 2000);
	for (uint32_t i = 0; i < 15 * 20; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->duplicates, 300, "fifteen datagrams once more are repeats");
	numbered(t, now++, 1, 2000, 1);
	eq(c->accepted, 2001, "what was expected comes");
	for (uint32_t i = 400; i < 700; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->duplicates, 600);
	numbered(t, now++, 1, 720, 20);
	eq(c->duplicates, 620, "and they did not go on from one another");
	eq(c->restarts, 0);
	eq(n_nacks, 0);

	for (uint32_t i = 0; i < 16 * 20; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->restarts, 1, "sixteen that go on: it began anew");
	eq(n_nacks, 1);
	eq(asked_for(), 0, "and is asked for what was taken for repeats");
	for (uint32_t i = 0; i < 600; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->accepted, 2601);
	eq(c->refused[PL_REFUSED_GAP], 20);
	for (uint32_t i = 0; i < 600; i += 20)
		numbered(t, now++, 1, i, 20);
	eq(c->restarts, 1, "a second answer to the NACK is none");

	now += 20 * s;
	numbered(t, now++, 1, 599, 1);
	eq(c->restarts, 1, "the last one, much later");
	now += 3 * s;
	numbered(t, now++, 1, 0, 5);
	eq(c->restarts, 2, "after a pause its first number tells");
	eq(c->accepted, 2606);
	now += 3 * s;
	numbered(t, now++, 1, 2, 1);
	eq(c->restarts, 3, "or one of the first");
	eq(n_nacks, 2);
	eq(asked_for(), 0);
	closed(t, "restarts");

	for (uint32_t i = 0; i < 100; i++)
		numbered(t, now++, 2, i, 1);
	for (uint32_t i = 0; i < 100; i++) {
		numbered(t, now++, 2, 100 + i, 1);
		numbered(t, now++, 2, i, 1);
	}
	eq(c->restarts, 3, "a whole stream twice, late, among what goes on");
	closed(t, "restarts");
	pl_translator_free(t);
}

/* Heard first in the middle of a stream: what came before is asked for, and where it goes on is
 * told. */
static void test_take_up(void)
{
	struct pl_translator *t = make_numbered(2);
	const struct pl_translator_counters *c = pl_translator_counters(t);

	numbered(t, MS, 1, 5000, 10);
	eq(c->accepted, 0);
	eq(n_nacks, 1);
	eq(asked_for(), 0, "all that there is");
	numbered(t, MS, 1, 5010, 10);
	eq(c->taken_up, 0, "not yet");
	numbered(t, MS, 1, 4200, 820);
	eq(c->taken_up, 1);
	eq(c->taken_up_at, 4200, "as far as the reporter has it");
	eq(c->accepted, 820);
	numbered(t, MS, 1, 5020, 10);
	eq(c->accepted, 830);

	numbered(t, 2 * MS, 2, 300, 1);
	numbered(t, 3 * MS, 2, 300, 5);
	eq(c->taken_up, 2, "the answer is that there is nothing before");
	eq(c->taken_up_at, 300);
	eq(c->accepted, 835);

	numbered(t, 4 * MS, 3, 1 << 24, 5);
	eq(asked_for(), (1 << 24) - PL_SEQ_BACK);
	eq(c->lost, 0);
	for (uint32_t i = 1; i < 4; i++)
		numbered(t, 5 * MS + 3 * i * MS, 3, (1 << 24) + 5 * i, 5);
	eq(c->taken_up, 3, "no answer");
	eq(c->taken_up_at, 1 << 24);
	eq(c->lost, 10);
	eq(c->accepted, 845);
	eq(c->gaps, 0);
	eq(c->restarts, 0);
	closed(t, "taken up");
	pl_translator_free(t);

	t = make_numbered(0);
	numbered(t, MS, 1, 5000, 10);
	c = pl_translator_counters(t);
	ok(c->taken_up == 1 && c->taken_up_at == 5000 && c->accepted == 10 && n_nacks == 0,
		"nobody is asked: at once");
	pl_translator_free(t);
}

/* Who may send, how much, and to whom: each refusal by its own counter, and a refused report is not
 * lost. */
static void test_policy(void)
{
	const struct pl_dta_store store = {
		.params = { .primitive = PL_KEY_WRITE,
			.hash = PL_HASH_PATHLINE,
			.key_write = { .slots = 100, .value_bytes = 2, .copies = 2 } },
		.quota = { .rate = 1000, .burst = 3 },
		.filter = { .on = true, .width = 2, .above = 9 },
	};
	const struct pl_prefix access[] = { { pl_addr_v4((uint8_t[]){ 10, 0, 0, 0 }), 96 + 31 } };
	struct pl_translator *t = make_with(&store,
		(struct pl_translator_config){
			.collectors = 3, .access = access, .n_access = 1, .nack_tries = 100 });
	const struct pl_translator_counters *c = pl_translator_counters(t);
	const struct pl_addr stranger = pl_addr_v4((uint8_t[]){ 10, 0, 0, 2 });
	struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
		.op = PL_DTA_KEY_WRITE,
		.key = (const uint8_t *)"key",
		.key_bytes = 3,
		.data = (const uint8_t *)"\x00\x0a",
		.data_bytes = 2,
		.sequenced = true };
	unsigned int home;

	pl_translator_push(t, 1, &stranger, 1, "x", 1);
	pl_translator_done(t);
	eq(c->refused[PL_REFUSED_ACCESS], 1);
	send_report(t, 1, &r);
	eq(n_ops, 2);
	home = ops[0].collector;
	pl_translator_set_collector(t, home, PL_COLLECTOR_DOWN);
	r.seq = 1;
	send_report(t, 1, &r);
	eq(n_ops, 4);
	ok(ops[2].collector != home, "another one has the key now");
	pl_translator_set_collector(t, home, PL_COLLECTOR_UP);
	r.seq = 2;
	send_report(t, 1, &r);
	eq(ops[4].collector, home, "and gives it back");
	r.seq = 3;
	send_report(t, 1, &r);
	eq(c->refused[PL_REFUSED_STORE_QUOTA], 1);
	r.seq = 4;
	send_report(t, 1, &r);
	eq(c->refused[PL_REFUSED_STORE_QUOTA], 2);
	eq(n_nacks, 0, "what is above a quota is not asked for again");
	r.seq = 5;
	pl_translator_set_collector(t, home, PL_COLLECTOR_BUSY);
	send_report(t, 5 * MS, &r);
	eq(c->refused[PL_REFUSED_CONGESTED], 1);
	pl_translator_set_collector(t, home, PL_COLLECTOR_UP);
	send_report(t, 5 * MS, &r);
	eq(c->accepted, 4, "what was refused for a time may come again");
	r.seq = 6;
	r.data = (const uint8_t *)"\x00\x09";
	send_report(t, 6 * MS, &r);
	eq(c->refused[PL_REFUSED_FILTERED], 1);
	r.seq = 7;
	r.data = (const uint8_t *)"\x01\x00";
	r.immediate = true;
	send_report(t, 6 * MS, &r);
	eq(c->accepted, 5, "what the filter leaves out is not missing");
	ok(ops[n_ops - 1].immediate && !ops[n_ops - 2].immediate, "one wake per report");
	r.seq = 8;
	r.store = 1;
	send_report(t, 6 * MS, &r);
	eq(c->refused[PL_REFUSED_STORE], 1);
	send_bytes(t, 7 * MS, "\xd1\x09", 2);
	eq(c->faults[PL_DTA_SHORT], 1);
	send_bytes(t, 7 * MS, "\x03\x00\x01\0\0\0\1\0\0\0\0\0\0\0\1", 15);
	eq(c->refused[PL_REFUSED_STORE], 2, "no store of this primitive");
	for (unsigned int i = 0; i < 3; i++)
		pl_translator_set_collector(t, i, PL_COLLECTOR_DOWN);
	r.seq = 9;
	r.store = 0;
	send_report(t, 8 * MS, &r);
	eq(c->refused[PL_REFUSED_COLLECTOR], 1);
	closed(t, "policy");
	pl_translator_free(t);
}

/* What is confirmed is written before, by a confirmation as by a NACK: a reporter forgets it. */
static void test_confirmed(void)
{
	static const struct pl_dta_store stores[] = {
		{ .params = { .primitive = PL_APPEND,
			  .hash = PL_HASH_PATHLINE,
			  .append = { .slots = 64,
				  .lists = 2,
				  .entry_bytes = 4,
				  .batch_max = 16 } },
			.batch = 16,
			.flush_ns = 1000 * MS },
		{ .params = { .primitive = PL_COUNTERS,
			  .hash = PL_HASH_PATHLINE,
			  .counters = { .width = 1000, .rows = 1 } },
			.cache_rows = 64,
			.merge_max = 1000,
			.flush_ns = 1000 * MS },
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		struct pl_translator *t =
			make_with(&stores[i], (struct pl_translator_config){ .nack_tries = 10 });
		const bool list = stores[i].params.primitive == PL_APPEND;
		const char *what = list ? "entries" : "increments";
		struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
			.op = list ? PL_DTA_APPEND : PL_DTA_INCREMENT,
			.list = 1,
			.key = (const uint8_t *)"key",
			.key_bytes = list ? 0 : 3,
			.data = (const uint8_t *)"data",
			.data_bytes = list ? 4 : 0,
			.increment = 1,
			.sequenced = true };

		for (r.seq = 0; r.seq < 3; r.seq++)
			send_report(t, r.seq + 1, &r);
		eq(n_ops, 0, "%s are gathered", what);
		r.asks = true;
		send_report(t, 4, &r);
		eq(n_nacks, 1, "%s: a confirmation", what);
		ok(ops_before_nack > 0, "%s: behind what it confirms", what);
		r.asks = false;
		n_ops = 0;
		r.seq = 4;
		send_report(t, 5, &r);
		eq(n_ops, 0, "%s are gathered again", what);
		r.seq = 6;
		send_report(t, 6, &r);
		eq(n_nacks, 2, "%s: a NACK", what);
		ok(ops_before_nack > 0, "%s: behind what it confirms, too", what);
		closed(t, what);
		pl_translator_free(t);
	}
}

int main(void)
{
	test_confirmed();
	test_sequence();
	test_restart();
	test_take_up();
	test_policy();
	return pl_test_done();
}
