/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software responder behind an AF_XDP port over a veth pair, against R2, a loop that only
 * touches and recycles the same frames (bench_afxdp.h): the ICRC is verified, queue pair, key and
 * bounds are checked, the payload is placed, answers are put. The frames are made in the kernel
 * from a table of 2^20 packets that each have their right ICRC.
 *
 *   key-write     32 bytes to a random slot, unreliable
 *   4-copies      the same value to four random slots, one after the other: items are frames
 *   append        32 bytes behind the ones before, unreliable
 *   list          64 bytes to a list in a file, which is published behind each batch; and on disk
 *                 every 10 ms
 *   fetch-add     to a random cell, reliable: every addition is answered, and the answers are built
 *                 but not sent
 *   answered      the same, and they are sent, by the port's own ring as `pathline collect` does;
 *                 by-packet: by a packet socket
 *
 * Streams whose order matters come with a window, so that nothing is lost in the pair; where the
 * table of a reliable one begins anew, and behind frames that were lost all the same, the queue
 * pair is made ready for the number that comes, as a requester's resynchronisation would. Executed
 * and taken frames must agree, or there is no figure. --size is the region's (1 GiB), in huge pages
 * where the kernel gives them. The list has 64 MiB.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/rng.h"
#include "memory/append.h"
#include "memory/region.h"
#include "netio/port.h"
#include "rdma/responder.h"
#include "tests/bench/afxdp.h"
#include "tests/bench/roce.h"

#define ROWS      (1u << 20)
#define PSNS      (1u << 16) /* unreliable: numbers this near to each other are no guesses */
#define KEY       0x5eed
#define QPN       0x17
#define VA        UINT64_C(0x7f0000000000)
#define PAYLOAD   32
#define ENTRY     64 /* of the list: what is behind the first 32 bytes is the same in each */
#define WINDOW    224
#define URI       "afxdp:" PL_WIRE_RECEIVER_NAME "?ring=16384&port=4791"
#define AT_PSN    50 /* in the frame: Ethernet 14, IPv4 20, UDP 8, then 8 of the BTH */
#define AT_VA     54
#define AT_DATA   70 /* of a WRITE; an atomic's operand stands at 66 */
#define ROW_VA    0  /* in a row of the table */
#define ROW_DATA  8
#define ROW_PSN   40
#define ROW_ICRC  44
/* At most one of so many may be refused: those behind one that was lost. */
#define LOST_PART 1000
#define PART      64 /* requests at once of a reliable peer */

enum flow {
	FLOOD,
	WINDOWED,
	SELF_CLOCKED,
};

enum place {
	RANDOM,
	BEHIND, /* the one before */
	IN_LIST,
};

struct wire_case {
	const char *name;
	uint8_t service, op, flow, place;
	uint8_t copies; /* of a value, to places of their own */
	uint8_t answer; /* enum pl_afxdp_send */
	bool committed; /* against the same list left to the kernel */
};

struct responder_wire {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	const struct wire_case *c;
	uint8_t *region;
	uint64_t region_bytes;
	struct pl_responder *responder;
	struct wire_list {
		struct pl_region *region;
		struct pl_append append;
		struct pl_responder *responder;
	} lists[2], *list; /* left to the kernel, committed; the one that is written or NULL */
	uint64_t unsent;
	uint8_t frame[PL_LIVE_FRAME_MAX];
	struct pl_live_field fields[PL_LIVE_FIELDS_MAX];
	uint8_t (*rows)[PL_LIVE_ROW_BYTES];
	struct pl_rng rng;
	struct pl_batch batch, part;
	struct pl_frames answers;
	uint8_t answer_space[PL_BATCH_MAX * 128];
};

/* ---- what is sent ---- */

static void add_field(struct responder_wire *b, uint32_t *n, uint16_t at, uint8_t len, uint16_t row)
{
	b->fields[(*n)++] =
		(struct pl_live_field){ .offset = at, .len = len, .kind = PL_LIVE_ROW, .at = row };
}

/* Row i of the table: what differs from the frame before it, its ICRC too. Returns the frame's
 * length. */
static int make_row(struct responder_wire *b, uint32_t i)
{
	const struct wire_case *c = b->c;
	const bool atomic = c->op == PL_ROCE_FETCH_ADD;
	const uint32_t bytes = c->place == IN_LIST ? ENTRY : PAYLOAD;
	const uint64_t slots = b->region_bytes / 64;
	uint64_t at = c->place == IN_LIST  ? (uint64_t)i * ENTRY
		      : c->place == BEHIND ? (uint64_t)i * PAYLOAD % b->region_bytes
					   : 64 * pl_rng_below(&b->rng, slots);
	const struct pl_roce p = { .path = pl_bench_path(1, 2),
		.opcode = c->service | c->op,
		.migrated = true,
		.pkey = PL_ROCE_PKEY,
		.qpn = QPN,
		.psn = c->flow != FLOOD || c->place == BEHIND ? i : i % PSNS,
		.va = VA + at,
		.rkey = KEY,
		.length = bytes,
		.swap_add = 1 };
	struct pl_build f = pl_build(b->frame, sizeof(b->frame));
	uint8_t payload[ENTRY] = { 0 }, *row = b->rows[i];

	for (uint32_t k = 0; k < PAYLOAD; k++)
		payload[k] = (uint8_t)(i / c->copies + k);
	pl_roce_put(&f, &p, payload, atomic ? 0 : bytes);
	if (f.full)
		return -EMSGSIZE;
	memset(row, 0, PL_LIVE_ROW_BYTES);
	memcpy(row + ROW_VA, b->frame + AT_VA, 8);
	if (!atomic)
		memcpy(row + ROW_DATA, b->frame + AT_DATA, PAYLOAD);
	memcpy(row + ROW_PSN, b->frame + AT_PSN, 4);
	memcpy(row + ROW_ICRC, b->frame + f.len - 4, 4);
	return (int)f.len;
}

static int set_live(struct responder_wire *b)
{
	uint32_t n = 0;
	int len = 0;

	for (uint32_t i = 0; i < ROWS; i++) {
		len = make_row(b, i);
		if (len < 0)
			return len;
	}
	add_field(b, &n, AT_PSN, 4, ROW_PSN);
	add_field(b, &n, AT_VA, 8, ROW_VA);
	for (uint16_t k = 0; b->c->op != PL_ROCE_FETCH_ADD && k < PAYLOAD; k += 8)
		add_field(b, &n, AT_DATA + k, 8, ROW_DATA + k);
	add_field(b, &n, (uint16_t)(len - 4), 4, ROW_ICRC);
	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = (uint32_t)len,
		.restore_bytes = 48,
		.fields = b->fields,
		.nfields = n,
		.rows = (const uint8_t(*)[PL_LIVE_ROW_BYTES])b->rows,
		.nrows = ROWS,
		.in_order = b->c->flow != FLOOD || b->c->place != RANDOM || b->c->copies > 1,
		.window = b->c->flow == WINDOWED ? WINDOW : 0 };
	return 0;
}

/* ---- what is measured ---- */

static uint32_t psn_of(const struct pl_packet *p)
{
	return pl_be24(p->data + AT_PSN + 1);
}

static void send_answers(struct responder_wire *b)
{
	const uint32_t n = b->answers.batch.n;
	int sent = n == 0 || b->wire.send == NULL
			   ? (int)n
			   : pl_port_send(b->wire.send, &b->answers.batch, NULL);

	b->unsent += n - (sent > 0 ? (uint32_t)sent : 0);
	pl_frames_clear(&b->answers);
}

/* As a collector tells readers of a list whose writer does not. */
static void publish(struct responder_wire *b, const struct pl_packet *last)
{
	const struct pl_append *a = &b->list->append;
	const uint64_t slot = (pl_be64(last->data + AT_VA) - VA) / ENTRY + 1,
		       head = pl_append_head(a, 0);

	pl_append_publish(a, 0, head + (slot + a->slots - head % a->slots) % a->slots);
}

static void execute(struct responder_wire *b, const struct pl_batch *in)
{
	bool all;

	pl_responder_batch(b->responder, in, NULL);
	do {
		all = pl_responder_answers(b->responder, &b->answers);
		send_answers(b);
	} while (!all);
	if (b->list != NULL)
		publish(b, &in->pkts[in->n - 1]);
}

/* No more at once than a peer has on its way. Of a stream of which a part is missing, or that
 * begins anew, the queue pair is made ready for what comes. */
static void execute_reliable(struct responder_wire *b)
{
	struct pl_rdma_qp_status s;

	for (uint32_t at = 0; at < b->batch.n; at += b->part.n) {
		const uint32_t left = b->batch.n - at;

		b->part.n = left < PART ? left : PART;
		memcpy(b->part.pkts, b->batch.pkts + at, b->part.n * sizeof(b->part.pkts[0]));
		if (pl_responder_qp_status(b->responder, QPN, &s) == 0 &&
			s.psn != psn_of(&b->part.pkts[0]))
			(void)pl_responder_qp_ready(b->responder, QPN, psn_of(&b->part.pkts[0]));
		execute(b, &b->part);
	}
}

static int take(struct pl_afxdp_bench *wire, void *receiver)
{
	struct responder_wire *b = (struct responder_wire *)wire;
	struct pl_port *port = receiver;
	int n = pl_port_recv(port, &b->batch, 10, NULL);

	if (n == -EAGAIN) /* the carrier came */
		return 0;
	if (n <= 0)
		return n;
	if (b->c->service == PL_ROCE_RC)
		execute_reliable(b);
	else
		execute(b, &b->batch);
	pl_port_release(port, &b->batch);
	return n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct responder_wire *b = arg;
	const struct pl_responder_counters *c = pl_responder_counters(b->responder);
	const uint64_t packets = pl_counter_read(&c->packets),
		       good = pl_counter_read(&c->causes[PL_RDMA_C_OK]);
	uint64_t seen, executed;
	int r;

	b->wire.send_by = b->c->answer;
	r = pl_afxdp_measure_port(&b->wire, URI, take, budget_ns, ret);
	seen = pl_counter_read(&c->packets) - packets;
	executed = pl_counter_read(&c->causes[PL_RDMA_C_OK]) - good;
	/* A figure for requests that were refused would mean nothing. */
	if (r == 0 && seen - executed > seen / LOST_PART) {
		pl_complain("benchmark %s: of %" PRIu64 " requests %" PRIu64 " were refused",
			b->c->name, seen, seen - executed);
		r = -EBADMSG;
	}
	return r;
}

static int write_list(
	struct responder_wire *b, unsigned int i, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	int r;

	b->list = &b->lists[i];
	b->responder = b->list->responder;
	r = subject(b, budget_ns, ret);
	b->list = NULL;
	b->responder = NULL;
	return r;
}

static int lazy_list(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return write_list(arg, 0, budget_ns, ret);
}

static int committed_list(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return write_list(arg, 1, budget_ns, ret);
}

/* ---- the cases ---- */

static int make_responder(
	const struct responder_wire *b, void *base, uint64_t bytes, struct pl_responder **ret)
{
	const struct pl_rdma_region region = { .base = base,
		.bytes = bytes,
		.va = VA,
		.key = KEY,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	const struct pl_rdma_qp qp = { .qpn = QPN,
		.service = b->c->service,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.depth = PL_RDMA_DEPTH_MAX,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.peer_qpn = 5,
		.path = pl_bench_path(2, 1) };
	uint32_t number;
	int r = pl_responder_new(ret, &(struct pl_responder_options){ 0 });

	if (r == 0)
		r = pl_responder_region_add(*ret, &region, &number);
	return r == 0 ? pl_responder_qp_add(*ret, &qp, &number) : r;
}

/* In a file on a disk, where nobody else finds it. */
static int open_list(struct responder_wire *b, unsigned int i)
{
	struct wire_list *l = &b->lists[i];
	const struct pl_region_options options = { .populate = true,
		.sync_ns = i == 1 ? 10000000 : 0 };
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { ROWS, 1, ENTRY, PL_BATCH_MAX, 0 } };
	struct pl_diag diag = { .text = "" };
	char name[64];
	int r;

	snprintf(name, sizeof(name), "/var/tmp/pathline-bench-%ld-%u", (long)getpid(), i);
	r = pl_region_create(&l->region, name, &params, &options, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		return r;
	}
	(void)unlink(name);
	r = pl_append_init(&l->append, &params, pl_region_store(l->region, 0));
	if (r == 0)
		r = make_responder(b, l->append.base + PL_APPEND_RING_AT, (uint64_t)ROWS * ENTRY,
			&l->responder);
	return r;
}

static int begin(struct responder_wire *b)
{
	int r = 0;

	b->wire.lost = b->unsent = 0;
	b->wire.self_clocked = b->c->flow == SELF_CLOCKED;
	b->wire.mark = pl_afxdp_mark_lost;
	if (b->c->place != IN_LIST)
		r = make_responder(b, b->region, b->region_bytes, &b->responder);
	for (unsigned int i = 0; r == 0 && b->c->place == IN_LIST && i < 2; i++)
		r = open_list(b, i);
	return r == 0 ? set_live(b) : r;
}

static void end(struct responder_wire *b)
{
	pl_responder_free(b->responder);
	b->responder = NULL;
	for (unsigned int i = 0; i < 2; i++) {
		pl_responder_free(b->lists[i].responder);
		(void)pl_region_close(b->lists[i].region);
		b->lists[i] = (struct wire_list){ .region = NULL };
	}
}

#define UC        PL_ROCE_UC
#define RC        PL_ROCE_RC
#define WRITE     PL_ROCE_WRITE_ONLY
#define FETCH_ADD PL_ROCE_FETCH_ADD

static const struct wire_case cases[] = {
	{ "responder-wire/key-write", UC, WRITE, FLOOD, RANDOM, 1, PL_AFXDP_UNSENT, false },
	{ "responder-wire/key-write-4-copies", UC, WRITE, WINDOWED, RANDOM, 4, PL_AFXDP_UNSENT,
		false },
	{ "responder-wire/append", UC, WRITE, FLOOD, BEHIND, 1, PL_AFXDP_UNSENT, false },
	{ "responder-wire/append-windowed", UC, WRITE, WINDOWED, BEHIND, 1, PL_AFXDP_UNSENT,
		false },
	{ "responder-wire/list", UC, WRITE, WINDOWED, IN_LIST, 1, PL_AFXDP_UNSENT, false },
	{ "responder-wire/list-on-disk", UC, WRITE, WINDOWED, IN_LIST, 1, PL_AFXDP_UNSENT, true },
	{ "responder-wire/fetch-add", RC, FETCH_ADD, WINDOWED, RANDOM, 1, PL_AFXDP_UNSENT, false },
	{ "responder-wire/fetch-add-answered", RC, FETCH_ADD, WINDOWED, RANDOM, 1, PL_AFXDP_BY_RING,
		false },
	{ "responder-wire/fetch-add-answered-by-packet", RC, FETCH_ADD, WINDOWED, RANDOM, 1,
		PL_AFXDP_BY_PACKET, false },
	{ "responder-wire/key-write-self-clocked", UC, WRITE, SELF_CLOCKED, RANDOM, 1,
		PL_AFXDP_UNSENT, false },
};

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct responder_wire *b = (struct responder_wire *)wire;
	const struct wire_case *c = &cases[i];
	struct pl_bench_case compared = { .name = c->name,
		.ceiling_name = c->flow == WINDOWED       ? "R2, with the same window"
				: c->flow == SELF_CLOCKED ? "R2, self-clocked"
							  : "R2: touch and recycle",
		.subject = c->place == IN_LIST ? lazy_list : subject,
		.ceiling = pl_afxdp_bare,
		.arg = b,
		.lost = c->flow == FLOOD ? NULL : &b->wire.lost,
		.crosses_cores = true };
	int r;

	if (c->committed) {
		compared.ceiling_name = "the same list left to the kernel";
		compared.subject = committed_list;
		compared.ceiling = lazy_list;
	}
	b->c = c;
	r = begin(b);
	if (r == 0)
		r = pl_bench_compare(ctx, &compared);
	else
		pl_complain("benchmark %s: %s", c->name, strerror(-r));
	if (b->unsent > 0)
		pl_complain("benchmark %s: %" PRIu64 " answers were not sent", c->name, b->unsent);
	end(b);
	return r;
}

static int make_memory(struct responder_wire *b, uint64_t bytes)
{
	b->region_bytes = bytes < 64 ? 64 : bytes & ~UINT64_C(63);
	b->region = mmap(
		NULL, b->region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b->rows = calloc(ROWS, sizeof(b->rows[0]));
	if (b->region == MAP_FAILED || b->rows == NULL)
		return -ENOMEM;
	(void)madvise(b->region, b->region_bytes, MADV_HUGEPAGE);
	memset(b->region, 0, b->region_bytes);
	return 0;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct responder_wire b;
	int r = make_memory(&b, pl_bench_size_bytes(ctx, UINT64_C(1) << 30));

	pl_rng_seed(&b.rng, 1);
	pl_frames_init(&b.answers, b.answer_space, sizeof(b.answer_space));
	if (r < 0)
		pl_complain("benchmark responder-wire: %s", strerror(-r));
	else
		r = pl_afxdp_run(
			ctx, &b.wire, "responder-wire", one, sizeof(cases) / sizeof(cases[0]));
	if (b.region != NULL && b.region != MAP_FAILED)
		munmap(b.region, b.region_bytes);
	free(b.rows);
	return r;
}

const struct pl_bench pl_bench_responder_wire = {
	.name = "responder-wire",
	.summary =
		"RDMA requests of an AF_XDP port executed, against a loop that only takes them (root)",
	.run = run,
};
