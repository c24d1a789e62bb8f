/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Translator, uplink and responder in one process, frames handed over in memory, some of them lost.
 * What the operations mean is told by dta/apply.h, which carries the same ones out in memory
 * beside: whatever happens on the way, on reliable connections both memories are the same in the
 * end.
 */
#include "remote/uplink.h"

#include <errno.h>

#include "base/rng.h"
#include "base/test.h"
#include "dta/apply.h"
#include "dta/translator.h"
#include "memory/append.h"
#include "memory/key_write.h"
#include "rdma/responder.h"

#define STORES     3
#define COLLECTORS 2
#define KEYS       1200
#define VA         UINT64_C(0x7f0000000000)
#define MTU        256
#define QUEUE      512

static const struct pl_store_params params[STORES] = {
	{ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { .slots = 65536, .value_bytes = 8, .copies = 2 } },
	{ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { .slots = 1024,
			.lists = 3,
			.entry_bytes = 24,
			.batch_max = 16,
			.sealed = 1 } },
	{ .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.counters = { .width = 4096, .rows = 3 } },
};

static struct world {
	struct pl_uplink *u;
	struct pl_translator *t;
	struct pl_apply model;
	struct pl_responder *r[COLLECTORS];
	void *memory[COLLECTORS][STORES], *beside[COLLECTORS][STORES];
	uint64_t bytes[STORES];
	uint32_t qpn[COLLECTORS][STORES], key[COLLECTORS][STORES];
	bool reliable; /* all stores */
	uint32_t drop; /* one frame in so many is lost; 0: none */
	struct pl_rng rng;
	uint64_t now_ns;
	bool deaf; /* nothing gets through */
} w;

static struct pl_roce_path path_to(unsigned int collector, bool back)
{
	struct pl_roce_path p = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, (uint8_t)(2 + collector) }),
		.smac = { 2, 0, 0, 0, 0, 1 },
		.dmac = { 2, 0, 0, 0, 0, (uint8_t)(2 + collector) },
		.ttl = 64,
		.sport = 49152 };

	if (back) {
		const struct pl_addr a = p.src;

		p.src = p.dst;
		p.dst = a;
	}
	return p;
}

/* The frames of `from` that are not lost. */
static void pass(const struct pl_batch *from, struct pl_batch *to)
{
	to->n = 0;
	for (uint32_t i = 0; i < from->n; i++) {
		if (!w.deaf && (w.drop == 0 || pl_rng_below(&w.rng, w.drop) != 0))
			to->pkts[to->n++] = from->pkts[i];
	}
}

static void exchange_frames(void)
{
	static uint8_t there[64 * (MTU + PL_ROCE_OVERHEAD)], back[32768];
	static struct pl_frames out, answers;
	static struct pl_batch arrived;

	pl_frames_init(&out, there, sizeof(there));
	(void)pl_uplink_send(w.u, w.now_ns, &out);
	pass(&out.batch, &arrived);
	for (unsigned int c = 0; c < COLLECTORS; c++) {
		static struct pl_batch got;

		pl_responder_batch(w.r[c], &arrived, NULL);
		pl_frames_init(&answers, back, sizeof(back));
		(void)pl_responder_answers(w.r[c], &answers);
		pass(&answers.batch, &got);
		pl_uplink_batch(w.u, &got, w.now_ns);
	}
	w.now_ns += 100000;
}

static bool wait_for_room(void *arg, unsigned int collector)
{
	const uint64_t done = pl_uplink_counters(w.u, collector)->done;

	(void)arg;
	for (int i = 0; i < 2000 && pl_uplink_counters(w.u, collector)->done < done + 32; i++)
		exchange_frames();
	return pl_uplink_counters(w.u, collector)->done > done;
}

static bool drained(void)
{
	return pl_uplink_waiting(w.u, 0) + pl_uplink_waiting(w.u, 1) == 0;
}

static void drain(void)
{
	for (int i = 0; i < 100000 && !drained(); i++)
		exchange_frames();
}

static void ops(void *arg, const struct pl_op *o, size_t n)
{
	(void)arg;
	pl_apply_ops(&w.model, o, n);
	pl_uplink_ops(w.u, o, n);
}

/* What the collector's side tells: its queue pair and region. */
static struct pl_exchange their_half(
	unsigned int collector, unsigned int store, const struct pl_exchange *ours)
{
	const struct pl_rdma_qp qp = { .service = ours->service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.depth = 16,
		.mtu = ours->mtu,
		.pkey = PL_ROCE_PKEY,
		.domain = 1,
		.psn = 0xfffffa,
		.peer_qpn = ours->qpn,
		.receives = 64,
		.path = path_to(collector, true) };
	uint32_t *qpn = &w.qpn[collector][store];

	if (*qpn != 0)
		(void)pl_responder_qp_remove(w.r[collector], *qpn);
	*qpn = 0;
	if (pl_responder_qp_add(w.r[collector], &qp, qpn) < 0)
		abort();
	return (struct pl_exchange){ .service = ours->service,
		.pkey = PL_ROCE_PKEY,
		.va = VA,
		.bytes = w.bytes[store],
		.key = w.key[collector][store],
		.qpn = *qpn,
		.psn = 0xfffffa,
		.mtu = ours->mtu,
		.depth = 16,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
}

static uint8_t service_of(unsigned int store)
{
	return w.reliable ? PL_ROCE_RC : pl_uplink_service(&params[store]);
}

static bool adds(unsigned int store)
{
	return params[store].primitive == PL_COUNTERS;
}

static void connect(unsigned int collector)
{
	const struct pl_roce_path path = path_to(collector, false);

	for (unsigned int s = 0; s < STORES; s++) {
		struct pl_exchange ours, theirs;
		struct pl_diag diag = { .text = "" };
		int r = pl_uplink_offer(w.u, collector, s, service_of(s), &path, MTU, &ours);

		if (r == 0) {
			theirs = their_half(collector, s, &ours);
			r = pl_uplink_answer(
				w.u, collector, s, &theirs, w.bytes[s], adds(s), &diag);
		}
		if (r < 0)
			ok(false, "collector %u store %u: %d %s", collector, s, r, diag.text);
	}
	ok(pl_uplink_up(w.u, collector), "collector %u is up", collector);
}

static void begin_translator(void)
{
	static struct pl_dta_store stores[STORES];
	const struct pl_op_sink sink = { .ops = ops };
	const struct pl_translator_config config = {
		.stores = stores, .n_stores = STORES, .collectors = COLLECTORS
	};
	struct pl_diag diag = { .text = "" };

	for (unsigned int s = 0; s < STORES; s++)
		stores[s] = (struct pl_dta_store){ .params = params[s], .flush_ns = 1000000 };
	if (pl_translator_new(&w.t, &config, &sink, &diag) < 0)
		abort();
}

static void begin(bool reliable, uint32_t drop, bool (*wait)(void *, unsigned int))
{
	const struct pl_uplink_options o = {
		.collectors = COLLECTORS, .n_stores = STORES, .queue = QUEUE, .wait = wait
	};
	static struct pl_apply_store places[COLLECTORS * STORES];

	memset(&w, 0, sizeof(w));
	w.reliable = reliable;
	w.drop = drop;
	w.now_ns = 1;
	pl_rng_seed(&w.rng, 1);
	if (pl_uplink_new(&w.u, &o) < 0)
		abort();
	for (unsigned int c = 0; c < COLLECTORS; c++) {
		if (pl_responder_new(&w.r[c], &(struct pl_responder_options){ 0 }) < 0)
			abort();
		for (unsigned int s = 0; s < STORES; s++) {
			struct pl_rdma_region region = { .va = VA,
				.domain = 1,
				.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };

			(void)pl_store_bytes(&params[s], &w.bytes[s], NULL);
			w.memory[c][s] = aligned_alloc(64, w.bytes[s]);
			w.beside[c][s] = aligned_alloc(64, w.bytes[s]);
			if (w.memory[c][s] == NULL || w.beside[c][s] == NULL)
				abort();
			memset(w.memory[c][s], 0, w.bytes[s]);
			memset(w.beside[c][s], 0, w.bytes[s]);
			region.base = w.memory[c][s];
			region.bytes = w.bytes[s];
			if (pl_responder_region_add(w.r[c], &region, &w.key[c][s]) < 0)
				abort();
			places[c * STORES + s] =
				(struct pl_apply_store){ w.beside[c][s], w.bytes[s] };
		}
	}
	w.model =
		(struct pl_apply){ .stores = places, .collectors = COLLECTORS, .n_stores = STORES };
	begin_translator();
}

static void end(void)
{
	pl_translator_free(w.t);
	pl_uplink_free(w.u);
	for (unsigned int c = 0; c < COLLECTORS; c++) {
		pl_responder_free(w.r[c]);
		for (unsigned int s = 0; s < STORES; s++) {
			free(w.memory[c][s]);
			free(w.beside[c][s]);
		}
	}
}

static void report(uint32_t i)
{
	uint8_t key[4], data[24] = { 0 };
	struct pl_dta_report r = {
		.form = PL_DTA_PATHLINE, .key = key, .key_bytes = sizeof(key), .data = data
	};

	memcpy(key, &i, sizeof(key));
	memcpy(data, &i, sizeof(i));
	r.op = PL_DTA_KEY_WRITE;
	r.data_bytes = 8;
	(void)pl_translator_report(w.t, w.now_ns, &r);
	r.op = PL_DTA_APPEND;
	r.store = 1;
	r.list = i % 3;
	r.key_bytes = 0;
	r.data_bytes = 24;
	(void)pl_translator_report(w.t, w.now_ns, &r);
	r.op = PL_DTA_INCREMENT;
	r.store = 2;
	r.key_bytes = sizeof(key);
	r.data_bytes = 0;
	r.increment = i;
	(void)pl_translator_report(w.t, w.now_ns, &r);
}

static void report_all(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		report(i);
		if (i % 8 == 0)
			exchange_frames();
		pl_translator_tick(w.t, w.now_ns);
	}
	pl_translator_flush(w.t, w.now_ns);
}

static unsigned int stores_alike(void)
{
	unsigned int n = 0;

	for (unsigned int c = 0; c < COLLECTORS; c++) {
		for (unsigned int s = 0; s < STORES; s++)
			n += memcmp(w.memory[c][s], w.beside[c][s], w.bytes[s]) == 0;
	}
	return n;
}

/* Of the keys below n: right, wrong; the rest is not found. */
static void look_up(uint32_t n, uint32_t *ret_right, uint32_t *ret_wrong)
{
	*ret_right = *ret_wrong = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (unsigned int c = 0; c < COLLECTORS; c++) {
			struct pl_key_write kw;
			uint8_t value[8];
			uint64_t v;

			(void)pl_key_write_init(&kw, &params[0], w.memory[c][0]);
			if (pl_key_write_get(&kw, pl_key_write_key(&kw, &i, 4), 1, value).answer !=
				PL_FOUND)
				continue;
			memcpy(&v, value, 8);
			*ret_right += v == i;
			*ret_wrong += v != i;
		}
	}
}

static bool closed(unsigned int collector)
{
	const struct pl_uplink_counters *c = pl_uplink_counters(w.u, collector);

	return c->given == c->posted + c->full + c->down + c->outside &&
	       c->posted == c->done + c->lost + pl_uplink_waiting(w.u, collector) &&
	       c->done == c->writes + c->adds;
}

static uint64_t sum(uint64_t (*of)(const struct pl_uplink_counters *))
{
	return of(pl_uplink_counters(w.u, 0)) + of(pl_uplink_counters(w.u, 1));
}

static uint64_t done(const struct pl_uplink_counters *c)
{
	return c->done;
}

static uint64_t full(const struct pl_uplink_counters *c)
{
	return c->full;
}

static uint64_t lost(const struct pl_uplink_counters *c)
{
	return c->lost;
}

static uint64_t down(const struct pl_uplink_counters *c)
{
	return c->down;
}

static void test_clean(void)
{
	uint32_t right, wrong;

	begin(false, 0, wait_for_room);
	connect(0);
	connect(1);
	report_all(0, KEYS);
	drain();
	eq(stores_alike(), 6, "without loss both memories are the same");
	look_up(KEYS, &right, &wrong);
	ok(right >= KEYS - 2 && wrong == 0, "%u keys found, %u wrong", right, wrong);
	eq(sum(done), w.model.writes + w.model.adds, "every operation was done");
	ok(closed(0) && closed(1) && sum(full) + sum(lost) + sum(down) == 0, "accounts close");
	eq(pl_uplink_next_ns(w.u), UINT64_MAX, "nothing more to do");
	end();
}

static void test_reliable_loss(void)
{
	const struct pl_requester_counters *p;

	begin(true, 9, wait_for_room);
	connect(0);
	connect(1);
	report_all(0, KEYS);
	drain();
	eq(stores_alike(), 6, "one frame in nine is lost, and both memories are the same");
	eq(sum(done), w.model.writes + w.model.adds, "every operation was done");
	ok(closed(0) && closed(1) && sum(full) + sum(lost) + sum(down) == 0, "accounts close");
	p = pl_uplink_packets(w.u);
	printf("# %" PRIu64 " packets, %" PRIu64 " sent again, %" PRIu64 " timeouts\n",
		pl_counter_read(&p->packets), pl_counter_read(&p->repeated),
		pl_counter_read(&p->timeouts));
	ok(pl_counter_read(&p->repeated) < 2 * pl_counter_read(&p->packets),
		"and not everything was sent again");
	end();
}

static void test_unreliable_loss(void)
{
	struct pl_append a;
	struct pl_append_reader reader;
	uint32_t right, wrong;
	uint8_t entry[24];
	uint64_t number, bad = 0, n = 0;

	begin(false, 9, wait_for_room);
	connect(0);
	connect(1);
	report_all(0, KEYS);
	drain();
	look_up(KEYS, &right, &wrong);
	ok(right < KEYS && right > KEYS * 9 / 10 && wrong == 0, "of %u keys %u are found, %u wrong",
		KEYS, right, wrong);
	for (unsigned int c = 0; c < COLLECTORS; c++) {
		ok(memcmp(w.memory[c][2], w.beside[c][2], w.bytes[2]) == 0,
			"sums are exact: they go by a reliable connection");
		(void)pl_append_init(&a, &params[1], w.memory[c][1]);
		for (uint32_t list = 0; list < 3; list++) {
			pl_append_reader_init(&reader, &a, list, 0);
			while (pl_append_read(&reader, entry, &number, 1) == 1) {
				uint32_t v;

				memcpy(&v, entry, 4);
				bad += v != number * 3 + list;
				n++;
			}
		}
	}
	ok(bad == 0 && n > KEYS / 2 && n < KEYS, "%" PRIu64 " entries, none of them wrong", n);
	ok(closed(0) && closed(1), "accounts close");
	end();
}

static void test_full(void)
{
	begin(true, 0, NULL);
	connect(0);
	connect(1);
	w.deaf = true;
	for (uint32_t i = 0; i < KEYS; i++)
		report(i);
	ok(sum(full) > 0 && sum(done) == 0, "%" PRIu64 " operations found no room", sum(full));
	eq(pl_uplink_queued(w.u, 0), QUEUE, "the queue is full");
	ok(closed(0) && closed(1), "accounts close");
	w.deaf = false;
	drain();
	ok(drained() && pl_uplink_queued(w.u, 0) == 0 && closed(0) && closed(1),
		"what waited went when it could");
	end();
}

/* A collector that answers no more is given up; the other has its keys; then it is there again. */
static void test_down(void)
{
	uint32_t right, wrong;

	begin(true, 0, wait_for_room);
	connect(0);
	connect(1);
	report_all(0, 400);
	drain();
	for (uint32_t i = 400; i < 500; i++)
		report(i);
	w.deaf = true;
	for (int i = 0; i < 100000 && !pl_uplink_broken(w.u, 0); i++)
		exchange_frames();
	ok(pl_uplink_broken(w.u, 0) &&
			pl_uplink_counters(w.u, 0)->failures[PL_RDMA_RESULT_RETRIES] > 0,
		"no answer for too long");
	pl_uplink_down(w.u, 0);
	ok(!pl_uplink_is_up(w.u, 0) && !pl_uplink_broken(w.u, 0) &&
			pl_uplink_waiting(w.u, 0) == 0 && sum(lost) > 0,
		"what waited is lost");
	w.deaf = false;
	pl_uplink_down(w.u, 1);
	connect(1);
	pl_translator_set_collector(w.t, 0, PL_COLLECTOR_DOWN);
	report_all(500, 800);
	drain();
	eq(sum(down), 0, "nothing is asked of one that is down");
	connect(0);
	pl_translator_set_collector(w.t, 0, PL_COLLECTOR_UP);
	report_all(800, KEYS);
	drain();
	eq(pl_uplink_counters(w.u, 0)->connections, 2);
	look_up(KEYS, &right, &wrong);
	ok(wrong == 0 && right >= KEYS - 110, "%u keys, %u wrong", right, wrong);
	ok(closed(0) && closed(1), "accounts close");
	pl_uplink_down(w.u, 0);
	report(1);
	report(2);
	pl_translator_flush(w.t, w.now_ns);
	ok(pl_uplink_counters(w.u, 0)->down > 0 && closed(0), "and without connection: counted");
	end();
}

/* What a collector may say that cannot be. */
static void test_answers(void)
{
	const struct pl_roce_path path = path_to(0, false);
	struct pl_exchange ours, good, bad;

	begin(false, 0, NULL);
	eq(pl_uplink_offer(w.u, 0, 2, PL_ROCE_RC, &path, MTU, &ours), 0);
	ok(ours.qpn > 1 && ours.psn <= PL_ROCE_PSN_MASK && ours.depth > 0, "our half");
	good = their_half(0, 2, &ours);
	bad = good;
	bad.service = PL_ROCE_UC;
	eq(pl_uplink_answer(w.u, 0, 2, &bad, w.bytes[2], true, NULL), -EPROTO, "service");
	bad = good;
	bad.bytes--;
	eq(pl_uplink_answer(w.u, 0, 2, &bad, w.bytes[2], true, NULL), -EPROTO, "a byte short");
	bad = good;
	bad.access = PL_RDMA_WRITE;
	eq(pl_uplink_answer(w.u, 0, 2, &bad, w.bytes[2], true, NULL), -EPROTO, "no atomics");
	bad = good;
	bad.depth = 0;
	eq(pl_uplink_answer(w.u, 0, 2, &bad, w.bytes[2], true, NULL), -EPROTO, "no depth");
	bad = good;
	bad.va = VA + 4;
	eq(pl_uplink_answer(w.u, 0, 2, &bad, w.bytes[2], true, NULL), -EPROTO, "not aligned");
	eq(pl_uplink_answer(w.u, 1, 2, &good, w.bytes[2], true, NULL), -EPROTO, "never offered");
	good.key++;
	eq(pl_uplink_answer(w.u, 0, 2, &good, w.bytes[2], true, NULL), 0);
	eq(pl_uplink_answer(w.u, 0, 2, &good, w.bytes[2], true, NULL), -EPROTO, "twice");
	ok(!pl_uplink_up(w.u, 0) && !pl_uplink_is_up(w.u, 0), "two stores are missing");
	eq(pl_uplink_offer(w.u, 2, 0, PL_ROCE_RC, &path, MTU, &ours), -EINVAL);
	eq(pl_uplink_offer(w.u, 0, 3, PL_ROCE_RC, &path, MTU, &ours), -EINVAL);
	end();
}

/* Heads of lists, before operations go there. */
static void test_reads(void)
{
	uint64_t heads[3] = { 1, 1, 1 };
	struct pl_append a;

	begin(true, 9, wait_for_room);
	eq(pl_uplink_read(w.u, 0, 1, 0, &heads[0]), -ENOTCONN, "nothing is connected");
	(void)pl_append_init(&a, &params[1], w.memory[0][1]);
	for (uint32_t list = 0; list < 3; list++)
		(void)pl_append_put(&a, list, "an entry of 24 bytes....", 1);
	(void)pl_append_put(&a, 1, "an entry of 24 bytes....", 1);
	connect(0);
	for (uint32_t list = 0; list < 3; list++)
		eq(pl_uplink_read(w.u, 0, 1, pl_append_head_place(&a, list).offset, &heads[list]),
			0);
	eq(pl_uplink_reads(w.u, 0), 3);
	for (int i = 0; i < 10000 && pl_uplink_reads(w.u, 0) > 0; i++)
		exchange_frames();
	ok(heads[0] == 1 && heads[1] == 2 && heads[2] == 1, "as many as there are entries");
	eq(pl_uplink_counters(w.u, 0)->done, 0, "reads are no operations");
	eq(pl_uplink_read(w.u, 0, 1, w.bytes[1] - 4, &heads[0]), 0);
	for (int i = 0; i < 10000 && pl_uplink_reads(w.u, 0) > 0; i++)
		exchange_frames();
	ok(pl_uplink_broken(w.u, 0), "beyond the end: refused");
	end();
}

/* A key that the collector does not know: refused there, and told here. */
static void test_refused(void)
{
	begin(true, 0, wait_for_room);
	connect(0);
	connect(1);
	(void)pl_responder_region_remove(w.r[1], w.key[1][0]);
	for (uint32_t i = 0; i < 100; i++)
		report(i);
	for (int i = 0; i < 1000; i++)
		exchange_frames();
	ok(pl_uplink_broken(w.u, 1) && !pl_uplink_broken(w.u, 0), "the second refused");
	eq(pl_uplink_counters(w.u, 1)->failures[PL_RDMA_RESULT_ACCESS], 1);
	ok(closed(0) && closed(1) && pl_uplink_counters(w.u, 1)->lost > 0, "accounts close");
	end();
}

static void test_options(void)
{
	const struct pl_uplink_options bad[] = {
		{ .collectors = 0, .n_stores = 1 },
		{ .collectors = 1, .n_stores = 0 },
		{ .collectors = PL_COLLECTORS_MAX + 1, .n_stores = 1 },
		{ .collectors = 1, .n_stores = PL_DTA_STORES_MAX + 1 },
		{ .collectors = 1, .n_stores = 1, .queue = PL_RDMA_WINDOW_MAX + 1 },
		{ .collectors = 1, .n_stores = 1, .window = 1 },
		{ .collectors = 64, .n_stores = 256, .queue = 65536 },
	};
	struct pl_uplink *u;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		eq(pl_uplink_new(&u, &bad[i]), -EINVAL, "options %zu", i);
}

int main(void)
{
	test_clean();
	test_reliable_loss();
	test_unreliable_loss();
	test_full();
	test_down();
	test_answers();
	test_reads();
	test_refused();
	test_options();
	return pl_test_done();
}
