/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random requests, good ones and such with one thing wrong, against a model of what they may do to
 * memory: written from the rules, without the responder's code. Behind every batch all of memory is
 * compared: three regions, of which one may only be read and one is another domain's, with canaries
 * around them. usage: responder_model_test [REQUESTS]
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "rdma/responder.h"

#define SPACE    65536u
#define VA       UINT64_C(0x7f0000001000)
#define MTU      256u
#define QPN      0x17u
#define DOMAIN   5u
#define TOGETHER 8u
#define PACKETS  4u /* of a message, at most */

static _Alignas(64) uint8_t memory[SPACE], wanted[SPACE];

static const struct place {
	uint32_t key, domain, at, bytes;
	uint8_t access;
} places[] = {
	{ 0x51f00d, DOMAIN, 4096, 8192 + 24, PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC },
	{ 0x0b0b0b, DOMAIN, 20480, 4096, PL_RDMA_READ },
	{ 0x0c0c0c, DOMAIN + 1, 32768, 4096, PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* ---- the model ---- */

struct model {
	bool reliable, broken;
	uint32_t psn;
	bool within; /* a WRITE of several packets, of which these are left */
	uint32_t left;
	uint8_t *to;
};

/* What this key lets this queue pair reach there; NULL: nothing. */
static uint8_t *reach(uint32_t key, uint64_t va, uint64_t bytes, uint8_t access)
{
	for (size_t i = 0; i < PLACES; i++) {
		const struct place *p = &places[i];

		if (p->key == key && p->domain == DOMAIN && (p->access & access) != 0 &&
			va >= VA + p->at && bytes <= p->bytes &&
			va - (VA + p->at) <= p->bytes - bytes)
			return wanted + (va - VA);
	}
	return NULL;
}

/* Executes the request, all of it, or finds a fault. */
static bool execute(struct model *m, const struct pl_roce *p, const uint8_t *data, uint32_t len)
{
	const uint8_t op = p->opcode & PL_ROCE_OP_MASK;
	const bool first = op == PL_ROCE_WRITE_FIRST, only = op == PL_ROCE_WRITE_ONLY,
		   last = op == PL_ROCE_WRITE_LAST;
	uint64_t old, value;

	if (op == PL_ROCE_FETCH_ADD || op == PL_ROCE_CMP_SWAP) {
		uint8_t *to = reach(p->rkey, p->va, 8, PL_RDMA_ATOMIC);

		if (!m->reliable || m->within || to == NULL || (p->va & 7) != 0)
			return false;
		memcpy(&old, to, 8);
		value = op == PL_ROCE_FETCH_ADD ? old + p->swap_add
			: old == p->compare     ? p->swap_add
						: old;
		memcpy(to, &value, 8);
		return true;
	}
	if (op == PL_ROCE_READ_REQUEST)
		return m->reliable && !m->within &&
		       (p->length == 0 || reach(p->rkey, p->va, p->length, PL_RDMA_READ) != NULL);
	if (first || only) {
		if (m->within || (only ? len != p->length : len != MTU || p->length <= MTU) ||
			len > MTU)
			return false;
		m->to = reach(p->rkey, p->va, p->length, PL_RDMA_WRITE);
		if (m->to == NULL && p->length > 0)
			return false;
		m->left = p->length;
	} else if (!m->within ||
		   (last ? len != m->left || len == 0 : len != MTU || m->left <= MTU)) {
		return false;
	}
	if (len > 0)
		memcpy(m->to, data, len);
	m->to += m->to != NULL ? len : 0;
	m->left -= len;
	m->within = !only && !last;
	return true;
}

static void model_take(
	struct model *m, const struct pl_roce *p, const uint8_t *data, uint32_t len, bool whole)
{
	const uint8_t op = p->opcode & PL_ROCE_OP_MASK;
	const bool begins = op == PL_ROCE_WRITE_FIRST || op == PL_ROCE_WRITE_ONLY;

	if (!whole || p->qpn != QPN || p->path.src.b[15] != 1 || p->pkey != PL_ROCE_PKEY ||
		(p->opcode & PL_ROCE_SERVICE_MASK) != (m->reliable ? PL_ROCE_RC : PL_ROCE_UC))
		return;
	if (m->reliable) {
		if (m->broken || p->psn != m->psn)
			return;
	} else if (begins) {
		m->within = false; /* what there was of another message is over */
	} else if (p->psn != m->psn) {
		m->within = false; /* a part is missing */
		return;
	}
	if (execute(m, p, data, len)) {
		/* A READ has the numbers of its answers. */
		m->psn = pl_psn_add(p->psn, op == PL_ROCE_READ_REQUEST && p->length > MTU
						    ? (p->length + MTU - 1) / MTU
						    : 1);
	} else if (m->reliable) {
		m->broken = true;
	} else {
		m->within = false;
		m->psn = pl_psn_add(p->psn, 1);
	}
}

/* ---- requests ---- */

struct bench {
	struct pl_responder *r;
	struct model m;
	struct pl_rng rng;
	uint32_t psn; /* of the peer's next packet */
	/* the rest of a message that the peer is sending */
	uint32_t left;
	struct pl_batch batch;
	uint8_t bytes[TOGETHER][1024];
	uint64_t given, bent;
};

static uint32_t below(struct bench *b, uint32_t n)
{
	return (uint32_t)pl_rng_below(&b->rng, n);
}

/* Mostly within the region, often at one of its ends. */
static uint64_t some_va(struct bench *b, uint32_t bytes)
{
	const struct place *p = &places[0];
	const uint64_t end = VA + p->at + p->bytes - bytes;

	switch (below(b, 8)) {
	case 0:
		return VA + p->at;
	case 1:
		return end;
	default:
		return VA + p->at + below(b, p->bytes - bytes + 1);
	}
}

static struct pl_roce good(struct bench *b, uint32_t *ret_len)
{
	struct pl_roce p = { .path = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 }),
				     .dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 2 }),
				     .smac = { 2, 0, 0, 0, 0, 1 },
				     .dmac = { 2, 0, 0, 0, 0, 2 },
				     .ttl = 64,
				     .sport = 49152 },
		.ack_req = below(b, 4) == 0,
		.pkey = PL_ROCE_PKEY,
		.qpn = QPN,
		.psn = b->psn,
		.rkey = places[0].key,
		.swap_add = pl_rng_u64(&b->rng) >> 40 };
	const uint32_t kind = below(b, 16);

	b->psn = pl_psn_add(b->psn, 1);
	if (b->left > 0) {
		*ret_len = b->left < MTU ? b->left : MTU;
		p.opcode = b->left <= MTU ? PL_ROCE_WRITE_LAST : PL_ROCE_WRITE_MIDDLE;
		b->left -= *ret_len;
	} else if (b->m.reliable && kind < 4) {
		*ret_len = 0;
		p.opcode = kind == 0   ? PL_ROCE_READ_REQUEST
			   : kind == 1 ? PL_ROCE_CMP_SWAP
				       : PL_ROCE_FETCH_ADD;
		p.length = kind == 0 ? below(b, MTU + 1) : 0;
		p.va = kind == 0 ? some_va(b, p.length) : some_va(b, 8) & ~UINT64_C(7);
	} else if (kind < 6) {
		p.length = MTU + 1 + below(b, (PACKETS - 1) * MTU);
		p.va = some_va(b, p.length);
		*ret_len = MTU;
		p.opcode = PL_ROCE_WRITE_FIRST;
		b->left = p.length - MTU;
	} else {
		*ret_len = p.length = below(b, 8) == 0 ? 0 : 1 + below(b, MTU);
		p.va = some_va(b, p.length);
		p.opcode = PL_ROCE_WRITE_ONLY;
	}
	p.opcode |= b->m.reliable ? PL_ROCE_RC : PL_ROCE_UC;
	return p;
}

/* One thing is wrong. */
static void bend(struct bench *b, struct pl_roce *p, uint32_t *len)
{
	static const uint8_t ops[] = { PL_ROCE_WRITE_FIRST, PL_ROCE_WRITE_MIDDLE,
		PL_ROCE_WRITE_LAST, PL_ROCE_WRITE_ONLY, PL_ROCE_FETCH_ADD, PL_ROCE_CMP_SWAP };

	b->bent++;
	switch (below(b, 14)) {
	case 0:
		p->qpn ^= 1u << below(b, 24);
		break;
	case 1:
		p->path.src.b[15] = 3;
		break;
	case 2:
		p->pkey = 0x8001;
		break;
	case 3:
		p->psn = pl_psn_add(p->psn, 1 + below(b, 3));
		break;
	case 4:
		p->psn = pl_psn_add(p->psn, PL_ROCE_PSN_MASK - below(b, 3));
		break;
	case 5:
		p->rkey ^= 1u << below(b, 32);
		break;
	case 6:
		p->rkey = places[1 + below(b, 2)].key;
		p->va = VA + places[p->rkey == places[1].key ? 1 : 2].at;
		break;
	case 7: /* one byte before it */
		p->va = VA + places[0].at - 1;
		break;
	case 8: /* one byte behind it */
		p->va = VA + places[0].at + places[0].bytes - p->length + 1;
		break;
	case 9:
		p->va = UINT64_MAX - below(b, 16);
		break;
	case 10:
		p->length += 1 + below(b, 4);
		break;
	case 11:
		*len = below(b, MTU + 5);
		break;
	case 12:
		p->opcode = (p->opcode & PL_ROCE_SERVICE_MASK) | ops[below(b, sizeof(ops))];
		if ((p->opcode & PL_ROCE_OP_MASK) >= PL_ROCE_CMP_SWAP)
			*len = 0;
		break;
	default:
		p->opcode ^= PL_ROCE_UC;
		break;
	}
}

/* Makes the i-th of a batch and has the model take it. */
static void make(struct bench *b, uint32_t i)
{
	struct pl_build f = pl_build(b->bytes[i], sizeof(b->bytes[i]));
	uint8_t data[MTU + 8];
	uint32_t len;
	struct pl_roce p = good(b, &len);
	bool whole = true;

	if (below(b, 6) == 0)
		bend(b, &p, &len);
	for (uint32_t k = 0; k < len; k++)
		data[k] = (uint8_t)pl_rng_u64(&b->rng);
	/* An operation that the service has not is no packet at all. */
	if (pl_roce_headers(p.opcode) < 0)
		p.opcode = (p.opcode & PL_ROCE_SERVICE_MASK) | PL_ROCE_WRITE_ONLY;
	p.migrated = true;
	pl_roce_put(&f, &p, data, len);
	if (f.full)
		abort();
	if (below(b, 64) == 0) { /* damaged on its way, where the ICRC sees it */
		b->bytes[i][42 + 5 + below(b, (uint32_t)f.len - 47)] ^= 1u << below(b, 8);
		whole = false;
	}
	b->batch.pkts[i] = (struct pl_packet){ .data = b->bytes[i],
		.len = (uint32_t)f.len,
		.wire_len = (uint32_t)f.len,
		.link = PL_LINK_ETHERNET };
	b->given++;
	model_take(&b->m, &p, data, len, whole);
}

static void drain(struct bench *b)
{
	static uint8_t space[16 * PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	bool all;

	do {
		pl_frames_init(&frames, space, sizeof(space));
		all = pl_responder_answers(b->r, &frames);
	} while (!all);
}

/* The peer begins anew where it is, as after a connection was made. */
static void settle(struct bench *b)
{
	struct pl_rdma_completion done[64];

	while (pl_responder_completions(b->r, done, 64) > 0)
		;
	if (b->m.reliable && (b->m.broken || b->m.psn != b->psn)) {
		(void)pl_responder_qp_ready(b->r, QPN, b->psn);
		b->m.broken = b->m.within = false;
		b->m.psn = b->psn;
		b->left = 0;
	}
}

static void init(struct bench *b, uint8_t service, uint64_t seed)
{
	const struct pl_rdma_qp qp = { .qpn = QPN,
		.service = service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.depth = 64,
		.mtu = MTU,
		.pkey = PL_ROCE_PKEY,
		.domain = DOMAIN,
		.psn = 0xfffff0, /* wraps soon */
		.peer_qpn = 0xabcd,
		.path = { .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 2 }),
			.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, 1 }),
			.smac = { 2, 0, 0, 0, 0, 2 },
			.dmac = { 2, 0, 0, 0, 0, 1 },
			.ttl = 64 } };
	uint32_t n;

	*b = (struct bench){ .m = { .reliable = service == PL_ROCE_RC, .psn = qp.psn },
		.psn = qp.psn };
	pl_rng_seed(&b->rng, seed);
	memset(memory, 0xee, sizeof(memory));
	memset(wanted, 0xee, sizeof(wanted));
	if (pl_responder_new(&b->r, &(struct pl_responder_options){ .seed = 3 }) < 0 ||
		pl_responder_qp_add(b->r, &qp, &n) < 0)
		abort();
	for (size_t i = 0; i < PLACES; i++) {
		const struct pl_rdma_region region = { .base = memory + places[i].at,
			.bytes = places[i].bytes,
			.va = VA + places[i].at,
			.key = places[i].key,
			.domain = places[i].domain,
			.access = places[i].access };

		if (pl_responder_region_add(b->r, &region, &n) < 0)
			abort();
	}
}

static void run(uint8_t service, uint64_t seed, uint64_t requests)
{
	static struct bench b;
	const struct pl_responder_counters *c;
	uint64_t wrong = 0;

	init(&b, service, seed);
	c = pl_responder_counters(b.r);
	while (b.given < requests && wrong == 0) {
		b.batch.n = 1 + below(&b, TOGETHER);
		for (uint32_t i = 0; i < b.batch.n; i++)
			make(&b, i);
		pl_responder_batch(b.r, &b.batch, NULL);
		drain(&b);
		settle(&b);
		wrong += memcmp(memory, wanted, SPACE) != 0;
	}
	ok(wrong == 0, "%s: memory is as the model has it behind %" PRIu64 " requests",
		service == PL_ROCE_RC ? "RC" : "UC", b.given);
	ok(b.bent > b.given / 8 && pl_counter_read(&c->causes[PL_RDMA_C_OK]) > b.given / 4,
		"of which %" PRIu64 " were executed and %" PRIu64 " had something wrong",
		pl_counter_read(&c->causes[PL_RDMA_C_OK]), b.bent);
	pl_responder_free(b.r);
}

int main(int argc, char **argv)
{
	const uint64_t requests = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;

	run(PL_ROCE_UC, 1, requests);
	run(PL_ROCE_RC, 2, requests);
	return pl_test_done();
}
