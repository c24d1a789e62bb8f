/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A requester and a responder over links that lose, double, delay, reorder and corrupt frames, by
 * seeds. Whatever the links do: on a reliable connection everything happens once and in order, sums
 * are exact, each addition saw another value, a READ sees what was added before it, immediates
 * arrive in their order; on an unreliable one a slot holds what was written to it or what was there
 * before. PL_SEEDS sets how many seeds are tried, PL_SEED the first.
 */
#include "base/rng.h"
#include "base/test.h"
#include "rdma/requester.h"
#include "rdma/responder.h"

#define VA        UINT64_C(0x10000)
#define SLOT      1200
#define SLOTS     32
#define COUNTERS  4
#define BYTES     (SLOTS * SLOT + COUNTERS * 8)
#define MESSAGES  120
#define MTU       256
#define CANARY    64
#define LINK_ROOM 4096
#define FRAME     (MTU + PL_ROCE_OVERHEAD)

static _Alignas(64) uint8_t memory[BYTES + 2 * CANARY];
static uint8_t *const region = memory + CANARY;
static uint8_t model[BYTES];

/* One direction. */
struct link {
	struct {
		uint64_t at_ns;
		uint32_t len;
		uint8_t bytes[FRAME];
	} frames[LINK_ROOM];
	uint32_t n;
	uint64_t taken;
};

struct faults {
	double lose, twice, corrupt;
	uint64_t delay_ns;   /* up to; more than the distance of two frames reorders */
	uint32_t lose_every; /* so manieth frame to the responder, as on a clock; 0: none */
};

/* Of the requester; 0: as usual. */
static uint32_t window, retries;

static struct sim {
	struct pl_rng rng;
	struct faults faults;
	struct pl_requester *q;
	struct pl_responder *r;
	struct link there, back;
	uint64_t now_ns;
	uint32_t qpn, peer;
	uint32_t posted, completed, wrong;
	uint32_t imms, imms_done; /* messages with an immediate: posted, arrived */
	uint64_t adds[COUNTERS];
	uint64_t seen[COUNTERS][MESSAGES];
	struct {
		uint8_t counter;
		bool add, read;
		uint64_t before; /* READ: what was added to the counter before it */
		uint64_t value;
		uint32_t slot, bytes; /* WRITEs; all bytes are the message's number + 1 */
	} messages[MESSAGES];
} sim;

static void onto(struct link *l, const struct pl_frames *frames)
{
	for (uint32_t i = 0; i < frames->batch.n; i++) {
		const struct pl_packet *pkt = &frames->batch.pkts[i];
		unsigned int copies = 1;

		l->taken++;
		if (pl_rng_unit(&sim.rng) < sim.faults.lose ||
			(l == &sim.there && sim.faults.lose_every != 0 &&
				l->taken % sim.faults.lose_every == 0))
			copies = 0;
		else if (pl_rng_unit(&sim.rng) < sim.faults.twice)
			copies = 2;
		for (; copies > 0 && l->n < LINK_ROOM; copies--) {
			l->frames[l->n].at_ns = sim.now_ns + 1000 + i +
						pl_rng_below(&sim.rng, sim.faults.delay_ns + 1);
			l->frames[l->n].len = pkt->len;
			memcpy(l->frames[l->n].bytes, pkt->data, pkt->len);
			if (pl_rng_unit(&sim.rng) < sim.faults.corrupt)
				l->frames[l->n].bytes[pl_rng_below(&sim.rng, pkt->len)] ^=
					(uint8_t)(1u << pl_rng_below(&sim.rng, 8));
			l->n++;
		}
	}
}

/* Up to `max` frames that are due, the earliest first. `space` holds them. */
static void off(struct link *l, struct pl_batch *batch, uint8_t (*space)[FRAME], uint32_t max)
{
	batch->n = 0;
	while (batch->n < max) {
		uint32_t best = l->n;

		for (uint32_t i = 0; i < l->n; i++) {
			if (l->frames[i].at_ns <= sim.now_ns &&
				(best == l->n || l->frames[i].at_ns < l->frames[best].at_ns))
				best = i;
		}
		if (best == l->n)
			return;
		memcpy(space[batch->n], l->frames[best].bytes, l->frames[best].len);
		batch->pkts[batch->n] =
			(struct pl_packet){ .data = space[batch->n], .len = l->frames[best].len };
		batch->n++;
		l->frames[best] = l->frames[--l->n];
	}
}

static struct pl_roce_path path(uint8_t from, uint8_t to, bool v6)
{
	struct pl_roce_path p = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.ttl = 64,
		.sport = 49152 };

	if (v6) {
		p.src.b[0] = 0xfd;
		p.dst.b[0] = 0xfd;
	}
	return p;
}

static void start(uint64_t seed, uint8_t service)
{
	const bool v6 = seed % 2 == 1;
	struct pl_requester_qp qc = { .service = service,
		.mtu = MTU,
		.pkey = PL_ROCE_PKEY,
		.path = path(1, 2, v6),
		.messages = 24,
		.message_bytes = SLOT,
		.window = window != 0 ? window : 12,
		.atomics = 3,
		.timeout_ns = 60000,
		.retries = retries != 0 ? (uint8_t)retries : 250,
		.rnr_retries = PL_RDMA_FOR_EVER };
	struct pl_rdma_qp rc = { .service = service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.rnr_timer = 1,
		.depth = 3,
		.mtu = MTU,
		.pkey = PL_ROCE_PKEY,
		.domain = 1,
		.receives = 4,
		.path = path(2, 1, v6) };
	const struct pl_rdma_region reg = { .base = region,
		.bytes = BYTES,
		.va = VA,
		.key = 99,
		.domain = 1,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	uint32_t key;

	memset(&sim, 0, sizeof(sim));
	memset(memory, 0xee, sizeof(memory));
	memset(region, 0, BYTES);
	memset(model, 0, sizeof(model));
	pl_rng_seed(&sim.rng, seed);
	qc.psn = rc.psn = (uint32_t)(pl_rng_u64(&sim.rng) | 0xffff00) & PL_ROCE_PSN_MASK;
	sim.faults = (struct faults){ .lose = 0.25 * pl_rng_unit(&sim.rng),
		.twice = 0.2 * pl_rng_unit(&sim.rng),
		.corrupt = 0.05 * pl_rng_unit(&sim.rng),
		.delay_ns = pl_rng_below(&sim.rng, 4) * 8000 };
	if (pl_responder_new(&sim.r, &(struct pl_responder_options){ .seed = 3 }) < 0 ||
		pl_requester_new(&sim.q, &(struct pl_requester_options){ 0 }) < 0 ||
		pl_responder_region_add(sim.r, &reg, &key) < 0 ||
		pl_requester_qp_add(sim.q, &qc, &sim.qpn) < 0)
		abort();
	rc.peer_qpn = sim.qpn;
	if (pl_responder_qp_add(sim.r, &rc, &sim.peer) < 0 ||
		pl_requester_qp_ready(sim.q, sim.qpn, qc.psn, sim.peer) < 0)
		abort();
}

/* The next message, if there is room: what it will have done goes into the model. */
static bool post(uint8_t service)
{
	const uint64_t dice = pl_rng_below(&sim.rng, 10);
	const uint32_t slot = (uint32_t)pl_rng_below(&sim.rng, SLOTS);
	const uint32_t counter = (uint32_t)pl_rng_below(&sim.rng, COUNTERS);
	uint8_t bytes[SLOT];
	struct pl_rdma_work w = { .id = sim.posted, .rkey = 99, .data = bytes };
	const bool add = service == PL_ROCE_RC && dice < 3;
	const bool read = service == PL_ROCE_RC && dice == 3;

	if (read) {
		w.kind = PL_RDMA_WORK_READ;
		w.va = VA + SLOTS * SLOT + counter * 8u;
		w.bytes = 8;
		w.into = &sim.messages[sim.posted].value;
	} else if (add) {
		w.kind = PL_RDMA_WORK_ADD;
		w.va = VA + SLOTS * SLOT + counter * 8u;
		w.swap_add = 1;
	} else {
		w.bytes = 1 + (uint32_t)pl_rng_below(&sim.rng, dice < 6 ? 64 : SLOT);
		w.va = VA + slot * (uint64_t)SLOT;
		memset(bytes, (int)sim.posted + 1, sizeof(bytes));
		w.have_imm = dice == 9;
		w.imm = sim.imms;
	}
	if (pl_requester_post(sim.q, sim.qpn, &w) < 0)
		return false;
	sim.messages[sim.posted].add = add;
	sim.messages[sim.posted].read = read;
	sim.messages[sim.posted].before = sim.adds[counter];
	sim.messages[sim.posted].counter = (uint8_t)counter;
	sim.messages[sim.posted].slot = slot;
	sim.messages[sim.posted].bytes = w.bytes;
	if (add)
		sim.adds[counter]++;
	else if (!read)
		memcpy(model + slot * (size_t)SLOT, bytes, w.bytes);
	sim.imms += w.have_imm;
	sim.posted++;
	return true;
}

static void take_completed(void)
{
	struct pl_rdma_completed done[16];
	uint32_t n = pl_requester_completions(sim.q, done, 16);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t c = sim.messages[sim.completed % MESSAGES].counter;

		if (done[i].id != sim.completed || done[i].result != PL_RDMA_RESULT_OK) {
			sim.wrong++;
			return;
		}
		if (sim.messages[sim.completed].add) {
			/* Each value below the final one was there exactly once. */
			if (done[i].original >= MESSAGES || sim.seen[c][done[i].original]++ != 0)
				sim.wrong++;
		}
		if (sim.messages[sim.completed].read &&
			(sim.messages[sim.completed].value < sim.messages[sim.completed].before ||
				sim.messages[sim.completed].value > sim.adds[c]))
			sim.wrong++;
		sim.completed++;
	}
}

static void take_immediates(void)
{
	struct pl_rdma_completion done[8];
	uint32_t n = pl_responder_completions(sim.r, done, 8);

	for (uint32_t i = 0; i < n; i++) {
		if (done[i].kind != PL_RDMA_DONE_WRITE || done[i].imm != sim.imms_done)
			sim.wrong++;
		sim.imms_done++;
	}
}

static void step(void)
{
	static uint8_t memory_out[8 * FRAME], space[16][FRAME];
	static struct pl_frames frames;
	static struct pl_batch batch;
	uint8_t causes[16];

	sim.now_ns += 500 + pl_rng_below(&sim.rng, 1000);
	/* A receiver that is late with its receives. */
	if (pl_rng_below(&sim.rng, 80) == 0)
		pl_responder_post(sim.r, sim.peer, 0, NULL, 0);
	off(&sim.there, &batch, space, 1 + (uint32_t)pl_rng_below(&sim.rng, 16));
	pl_responder_batch(sim.r, &batch, causes);
	pl_frames_init(&frames, memory_out, sizeof(memory_out));
	pl_responder_answers(sim.r, &frames);
	onto(&sim.back, &frames);
	off(&sim.back, &batch, space, 16);
	pl_requester_batch(sim.q, &batch, NULL, sim.now_ns);
	pl_frames_init(&frames, memory_out, sizeof(memory_out));
	pl_requester_send(sim.q, sim.now_ns, &frames);
	onto(&sim.there, &frames);
	take_completed();
	take_immediates();
}

static void stop(void)
{
	pl_responder_free(sim.r);
	pl_requester_free(sim.q);
}

static bool sums_right(void)
{
	for (uint32_t c = 0; c < COUNTERS; c++) {
		uint64_t v;

		memcpy(&v, region + SLOTS * SLOT + c * 8, 8);
		if (v != sim.adds[c])
			return false;
	}
	return true;
}

static bool accounts_closed(void)
{
	const struct pl_responder_counters *r = pl_responder_counters(sim.r);
	const struct pl_requester_counters *q = pl_requester_counters(sim.q);
	uint64_t sum = 0;

	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		sum += pl_counter_read(&r->causes[i]);
	return sum == pl_counter_read(&r->packets) &&
	       pl_counter_read(&q->received) ==
		       pl_counter_read(&q->acks) + pl_counter_read(&q->atomic_acks) +
			       pl_counter_read(&q->read_responses) +
			       pl_counter_read(&q->sequence_naks) + pl_counter_read(&q->rnr_naks) +
			       pl_counter_read(&q->error_naks) + pl_counter_read(&q->cnps) +
			       pl_counter_read(&q->ghosts) + pl_counter_read(&q->foreign) +
			       pl_counter_read(&q->unknown) + pl_counter_read(&q->management);
}

static bool canaries(void)
{
	for (size_t i = 0; i < CANARY; i++) {
		if (memory[i] != 0xee || memory[CANARY + BYTES + i] != 0xee)
			return false;
	}
	return true;
}

static const char *come_to_its_end(void)
{
	for (uint32_t i = 0; i < 200000 && sim.completed < MESSAGES && sim.wrong == 0; i++) {
		while (sim.posted < MESSAGES && post(PL_ROCE_RC))
			;
		step();
	}
	if (sim.wrong > 0)
		return "a completion or an immediate out of order, or of a value seen before, or a READ of the past";
	if (sim.completed < MESSAGES)
		return "it did not come to an end";
	if (memcmp(region, model, SLOTS * SLOT) != 0)
		return "memory is not what was written";
	if (!sums_right())
		return "a sum is not exact";
	if (sim.imms_done != sim.imms)
		return "an immediate is missing or came twice";
	if (!canaries() || !accounts_closed())
		return "bytes outside, or accounts that do not close";
	return NULL;
}

static const char *reliable(uint64_t seed)
{
	start(seed, PL_ROCE_RC);
	return come_to_its_end();
}

/* Losses on a clock, which a requester that repeats on a clock can run into again and again. */
static unsigned int periodic(void)
{
	unsigned int failed = 0;

	retries = 12;
	for (uint32_t every = 2; every <= 40; every++) {
		for (window = 2; window <= 64; window++) {
			const char *why;

			start(2 * every, PL_ROCE_RC);
			sim.faults = (struct faults){ .lose_every = every };
			why = come_to_its_end();
			stop();
			if (why != NULL && failed++ < 10)
				printf("# every %u, window %u: %s (completed %u)\n", every, window,
					why, sim.completed);
		}
	}
	window = retries = 0;
	return failed;
}

/* Each byte is still as it was, or stands where a message to this slot had it. */
static bool slots_plausible(void)
{
	for (uint32_t at = 0; at < SLOTS * SLOT; at++) {
		const uint32_t i = region[at] - 1u;

		if (region[at] != 0 && (i >= sim.posted || sim.messages[i].slot != at / SLOT ||
					       sim.messages[i].bytes <= at % SLOT))
			return false;
	}
	return true;
}

static const char *unreliable(uint64_t seed)
{
	start(seed, PL_ROCE_UC);
	for (uint32_t i = 0; i < 3000; i++) {
		if (sim.posted < MESSAGES)
			post(PL_ROCE_UC);
		step();
	}
	if (sim.completed != MESSAGES || !canaries() || !accounts_closed())
		return "not all sent, bytes outside, or accounts that do not close";
	for (uint32_t at = SLOTS * SLOT; at < BYTES; at++) {
		if (region[at] != 0)
			return "written where nothing was sent to";
	}
	return slots_plausible() ? NULL : "a byte that no message put there";
}

static unsigned int setting(const char *name, unsigned int fallback)
{
	const char *text = getenv(name);

	return text == NULL ? fallback : (unsigned int)strtoul(text, NULL, 0);
}

int main(void)
{
	const unsigned int seeds = setting("PL_SEEDS", 2000), first = setting("PL_SEED", 1);
	unsigned int failed[2] = { 0, 0 };
	uint64_t timeouts = 0, rnrs = 0, naks = 0, duplicates = 0;

	for (unsigned int seed = first; seed < first + seeds; seed++) {
		const char *why = reliable(seed);

		timeouts += pl_counter_read(&pl_requester_counters(sim.q)->timeouts);
		rnrs += pl_counter_read(&pl_requester_counters(sim.q)->rnr_naks);
		naks += pl_counter_read(&pl_requester_counters(sim.q)->sequence_naks);
		duplicates +=
			pl_counter_read(&pl_responder_counters(sim.r)->causes[PL_RDMA_C_DUPLICATE]);
		stop();
		if (why != NULL && failed[0]++ < 10)
			printf("# reliable, seed %u: %s (completed %u)\n", seed, why,
				sim.completed);
		why = unreliable(seed);
		stop();
		if (why != NULL && failed[1]++ < 10)
			printf("# unreliable, seed %u: %s\n", seed, why);
	}
	eq(periodic(), 0, "each second to fortieth frame lost, windows of 2 to 64");
	eq(failed[0], 0, "reliable: %u seeds from %u", seeds, first);
	eq(failed[1], 0, "unreliable: %u seeds from %u", seeds, first);
	printf("# %" PRIu64 " timeouts, %" PRIu64 " not ready, %" PRIu64 " gaps told, %" PRIu64
	       " duplicates\n",
		timeouts, rnrs, naks, duplicates);
	ok(timeouts > seeds && rnrs > seeds && naks > seeds && duplicates > seeds,
		"and the links did their worst");
	return pl_test_done();
}
