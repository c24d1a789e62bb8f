/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder's rules, row by row; canaries around the region say that nothing else was
 * written. */
#include "rdma/test_responder.h"

/* ---- one request, one thing wrong ---- */

/* A field of the request, and what is done to it: set, added to, bits turned, or the opcode's lower
 * bits set. */
struct bend {
	uint16_t at;
	uint8_t size;
	char how;
	uint64_t by;
};

#define FIELD(f) offsetof(struct pl_roce, f), sizeof(((struct pl_roce *)NULL)->f)
#define SET(f, v)                                                                                  \
	{                                                                                          \
		FIELD(f), '=', v                                                                   \
	}
#define ADD(f, v)                                                                                  \
	{                                                                                          \
		FIELD(f), '+', (uint64_t)(v)                                                       \
	}
#define XOR(f, v)                                                                                  \
	{                                                                                          \
		FIELD(f), '^', v                                                                   \
	}
#define OP(op)                                                                                     \
	{                                                                                          \
		FIELD(opcode), 'o', PL_ROCE_##op                                                   \
	}

static void apply(struct pl_roce *p, const struct bend *bend)
{
	uint64_t v = 0;

	memcpy(&v, (uint8_t *)p + bend->at, bend->size);
	if (bend->how == '=')
		v = bend->by;
	else if (bend->how == '+')
		v += bend->by;
	else if (bend->how == '^')
		v ^= bend->by;
	else if (bend->how == 'o')
		v = (v & PL_ROCE_SERVICE_MASK) | bend->by;
	memcpy((uint8_t *)p + bend->at, &v, bend->size);
	p->psn &= PL_ROCE_PSN_MASK;
}

/* A WRITE Only of 64 bytes. nak: what RC answers (0x1f: ACK; 0: nothing). cause: on RC; uc: on
 * UC. */
static const struct row {
	const char *name;
	uint8_t nak;
	enum pl_rdma_cause cause, uc;
	struct bend bends[2];
} rows[] = {
#define SAME(c) PL_RDMA_C_##c, PL_RDMA_C_##c
	{ "good", 0x1f, SAME(OK), { { 0 } } },
	{ "of a class", 0x1f, SAME(OK), { SET(notify, 0xff), SET(path.tos, 26 << 2 | 2) } },
	{ "at the end of its way", 0x1f, SAME(OK), { SET(path.ttl, 1) } },
	{ "limited member", 0x1f, SAME(OK), { SET(pkey, 0x7fff) } },
	{ "VLAN 0", 0x1f, SAME(OK), { SET(path.tagged, 1), SET(path.tci, 0xe000) } },
	{ "odd address", 0x1f, SAME(OK), { ADD(va, 1) } },
	{ "the last 64 bytes", 0x1f, SAME(OK), { ADD(va, BYTES - 64) } },
	{ "another partition", 0, SAME(PKEY), { SET(pkey, 0x1234) } },
	{ "another source", 0, SAME(PEER), { SET(path.src.b[15], 99) } },
	{ "another destination", 0, SAME(PEER), { SET(path.dst.b[15], 99) } },
	{ "as RoCEv1", 0, SAME(PEER), { SET(path.v1, 1) } },
	{ "over IPv6", 0, SAME(PEER), { SET(path.src.b[0], 1), SET(path.dst.b[0], 1) } },
	{ "VLAN 5", 0, SAME(LINK), { SET(path.tagged, 1), SET(path.tci, 5) } },
	{ "unknown queue pair", 0, SAME(UNKNOWN_QP), { ADD(qpn, 1) } },
	{ "queue pair 0", 0, SAME(UNKNOWN_QP), { SET(qpn, 0) } },
	{ "queue pair 1", 0, SAME(MANAGEMENT), { SET(qpn, 1) } },
	{ "another service", 0, SAME(SERVICE), { XOR(opcode, 0x20) } },
	{ "key off by one", 0x62, SAME(KEY), { XOR(rkey, 1) } },
	{ "key 0", 0x62, SAME(KEY), { SET(rkey, 0) } },
	{ "a byte below", 0x62, SAME(BOUNDS), { ADD(va, -1) } },
	{ "a byte beyond", 0x62, SAME(BOUNDS), { ADD(va, BYTES - 63) } },
	{ "address wraps", 0x62, SAME(BOUNDS), { SET(va, UINT64_MAX - 31) } },
	{ "announces more", 0x61, SAME(LENGTH), { SET(length, 128) } },
	{ "announces less", 0x61, SAME(LENGTH), { SET(length, 32) } },
	{ "announces nothing", 0x61, SAME(LENGTH), { SET(length, 0) } },
	{ "announces 2^32 - 1", 0x61, SAME(LENGTH), { SET(length, UINT32_MAX) } },
	{ "announces 2^31 + 4", 0x61, SAME(LENGTH), { SET(length, 0x80000004) } },
	{ "First shorter than the MTU", 0x61, SAME(LENGTH), { OP(WRITE_FIRST), SET(length, 128) } },
	{ "one ahead", 0x60, PL_RDMA_C_GAP, PL_RDMA_C_OK, { ADD(psn, 1) } },
	{ "furthest ahead", 0x60, PL_RDMA_C_GAP, PL_RDMA_C_OK, { ADD(psn, 0x7fffff) } },
	{ "one behind", 0x1f, PL_RDMA_C_DUPLICATE, PL_RDMA_C_OK, { ADD(psn, -1) } },
	{ "half the space away", 0x1f, PL_RDMA_C_DUPLICATE, PL_RDMA_C_OK, { ADD(psn, 0x800000) } },
	{ "Middle without First", 0x61, PL_RDMA_C_ORDER, PL_RDMA_C_BROKEN, { OP(WRITE_MIDDLE) } },
	{ "Last without First", 0x61, PL_RDMA_C_ORDER, PL_RDMA_C_BROKEN, { OP(WRITE_LAST) } },
	{ "immediate, no receive", 0x2c, SAME(NO_RECEIVE), { OP(WRITE_ONLY_IMM) } },
	{ "SEND, no receive", 0x2c, SAME(NO_RECEIVE), { OP(SEND_ONLY) } },
	{ "a CNP", 0, SAME(CNP), { SET(opcode, PL_ROCE_CNP) } },
#undef SAME
};

static void check_row(const struct row *row, uint8_t service)
{
	const bool rc = service == PL_ROCE_RC;
	const enum pl_rdma_cause cause = rc ? row->cause : row->uc;
	const char *name = rc ? "RC" : "UC";
	const bool fatal = rc && row->nak >= 0x61;
	struct pl_roce p;
	struct bench b;

	init(&b, service);
	p = request(&b, PL_ROCE_WRITE_ONLY, 64);
	apply(&p, &row->bends[0]);
	apply(&p, &row->bends[1]);
	give_request(&b, &p, 64);
	streq(pl_rdma_cause_name(b.cause), pl_rdma_cause_name(cause), "%s, %s", name, row->name);
	if (!rc || row->nak == 0)
		eq(b.n, 0, "%s, %s: silence", name, row->name);
	else
		ok(answered(&b, PL_ROCE_ACK, row->nak, cause == PL_RDMA_C_DUPLICATE ? PSN - 1 : PSN,
			   cause == PL_RDMA_C_OK),
			"%s, %s: syndrome %02x", name, row->name, row->nak);
	eq(untouched(), cause != PL_RDMA_C_OK, "%s, %s: memory", name, row->name);
	eq(state(&b), fatal ? PL_RDMA_ERROR : PL_RDMA_READY, "%s, %s: state", name, row->name);
	/* What is not answered with an error changes nothing: the good request under the same
	 * number is taken. */
	if (cause != PL_RDMA_C_OK) {
		b.psn = PSN;
		send(&b, PL_ROCE_WRITE_ONLY, 64, 64);
		eq(b.cause == PL_RDMA_C_OK, !fatal, "%s, %s: and then a good one", name, row->name);
	}
	done(&b);
}

static void test_rows(void)
{
	static const struct row rc_only[] = {
		{ "SEND with Invalidate", 0x61, PL_RDMA_C_UNSUPPORTED, 0, { OP(SEND_ONLY_INV) } },
		{ "an ACK", 0, PL_RDMA_C_ANSWER, 0, { OP(ACK) } },
		{ "an ATOMIC ACK", 0, PL_RDMA_C_ANSWER, 0, { OP(ATOMIC_ACK) } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_row(&rows[i], PL_ROCE_RC);
		check_row(&rows[i], PL_ROCE_UC);
	}
	for (size_t i = 0; i < sizeof(rc_only) / sizeof(rc_only[0]); i++)
		check_row(&rc_only[i], PL_ROCE_RC);
}

/* What the queue pair or the region does not allow. */
static void test_access(void)
{
	static const struct {
		const char *name;
		uint8_t op, qp_access, region_access, depth, nak;
		uint32_t domain;
		enum pl_rdma_cause cause;
	} cases[] = {
		{ "WRITE, queue pair", PL_ROCE_WRITE_ONLY, 5, 7, 4, 0x61, 5, PL_RDMA_C_QP_ACCESS },
		{ "WRITE, region", PL_ROCE_WRITE_ONLY, 7, 5, 4, 0x62, 5, PL_RDMA_C_REGION_ACCESS },
		{ "WRITE, domain", PL_ROCE_WRITE_ONLY, 7, 7, 4, 0x62, 6, PL_RDMA_C_DOMAIN },
		{ "READ, queue pair", PL_ROCE_READ_REQUEST, 6, 7, 4, 0x61, 5, PL_RDMA_C_QP_ACCESS },
		{ "READ, region", PL_ROCE_READ_REQUEST, 7, 6, 4, 0x62, 5, PL_RDMA_C_REGION_ACCESS },
		{ "READ, domain", PL_ROCE_READ_REQUEST, 7, 7, 4, 0x62, 6, PL_RDMA_C_DOMAIN },
		{ "READ, depth 0", PL_ROCE_READ_REQUEST, 7, 7, 0, 0x61, 5, PL_RDMA_C_RESOURCES },
		{ "atomic, queue pair", PL_ROCE_FETCH_ADD, 3, 7, 4, 0x61, 5, PL_RDMA_C_QP_ACCESS },
		{ "atomic, region", PL_ROCE_CMP_SWAP, 7, 3, 4, 0x62, 5, PL_RDMA_C_REGION_ACCESS },
		{ "atomic, domain", PL_ROCE_FETCH_ADD, 7, 7, 4, 0x62, 6, PL_RDMA_C_DOMAIN },
		{ "atomic, depth 0", PL_ROCE_FETCH_ADD, 7, 7, 0, 0x61, 5, PL_RDMA_C_RESOURCES },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_rdma_qp c = qp_config(PL_ROCE_RC);
		struct bench b;

		c.access = cases[i].qp_access;
		c.depth = cases[i].depth;
		init_with(&b, &c, cases[i].region_access, cases[i].domain);
		send(&b, cases[i].op, 64, cases[i].op == PL_ROCE_WRITE_ONLY ? 64 : 0);
		streq(pl_rdma_cause_name(b.cause), pl_rdma_cause_name(cases[i].cause), "%s",
			cases[i].name);
		ok(answered(&b, PL_ROCE_ACK, cases[i].nak, PSN, 0), "%s: told", cases[i].name);
		ok(untouched() && state(&b) == PL_RDMA_ERROR, "%s: nothing done", cases[i].name);
		send(&b, PL_ROCE_WRITE_ONLY, 0, 0);
		ok(b.n == 0 && b.cause == PL_RDMA_C_QP_STATE, "%s: silence from then on",
			cases[i].name);
		done(&b);
	}
}

static void test_atomics(void)
{
	struct bench b;
	struct pl_roce p;
	uint64_t word;

	init(&b, PL_ROCE_RC);
	word = UINT64_MAX;
	memcpy(region + BYTES - 8, &word, 8);
	p = request(&b, PL_ROCE_FETCH_ADD, 0);
	p.va = VA + BYTES - 8;
	p.ack_req = false;
	give_request(&b, &p, 0);
	ok(answered(&b, PL_ROCE_ATOMIC_ACK, 0x1f, PSN, 1) && b.answers[0].original == UINT64_MAX,
		"FETCH_ADD answers what was there, asked for an answer or not");
	memcpy(&word, region + BYTES - 8, 8);
	eq(word, 1, "and wraps");
	p.swap_add = 1000; /* other operands under an old number */
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_DUPLICATE && answered(&b, PL_ROCE_ATOMIC_ACK, 0x1f, PSN, 1) &&
			b.answers[0].original == UINT64_MAX,
		"a duplicate is answered as it was");
	memcpy(&word, region + BYTES - 8, 8);
	eq(word, 1, "and not executed again");
	p = request(&b, PL_ROCE_CMP_SWAP, 0);
	p.compare = 0;
	p.swap_add = 77;
	give_request(&b, &p, 0);
	memcpy(&word, region, 8);
	ok(word == 77 && b.answers[0].original == 0, "CMP_SWAP, equal");
	p = request(&b, PL_ROCE_CMP_SWAP, 0);
	p.compare = 5;
	give_request(&b, &p, 0);
	memcpy(&word, region, 8);
	ok(word == 77 && b.answers[0].original == 77, "CMP_SWAP, unequal");
	for (int i = 0; i < 3; i++)
		send(&b, PL_ROCE_FETCH_ADD, 0, 0);
	p = request(&b, PL_ROCE_FETCH_ADD, 0);
	p.psn = PSN;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_FORGOTTEN && b.n == 0, "older than is remembered: silence");
	b.psn = pl_psn_add(PSN, 6);
	p = request(&b, PL_ROCE_FETCH_ADD, 0);
	p.va = VA + 4;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_ALIGNMENT && answered(&b, PL_ROCE_ACK, 0x61, pl_psn_add(PSN, 6), 6),
		"misaligned");
	done(&b);
	init(&b, PL_ROCE_RC);
	p = request(&b, PL_ROCE_FETCH_ADD, 0);
	p.va = VA + BYTES - 7;
	give_request(&b, &p, 0);
	ok(b.cause == PL_RDMA_C_BOUNDS && untouched(), "a byte of eight outside");
	done(&b);
}

/* A message of `bytes` in packets; the answer to the last. */
static void write_message(struct bench *b, uint32_t bytes)
{
	uint32_t left = bytes;

	if (bytes <= MTU) {
		send(b, PL_ROCE_WRITE_ONLY, bytes, bytes);
		return;
	}
	for (; left > MTU; left -= MTU) {
		struct pl_roce p = request(
			b, left == bytes ? PL_ROCE_WRITE_FIRST : PL_ROCE_WRITE_MIDDLE, bytes);

		p.ack_req = false;
		give_request(b, &p, MTU);
	}
	send(b, PL_ROCE_WRITE_LAST, bytes, left);
}

static void test_sizes(void)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 4, MTU - 1, MTU, MTU + 1, 3 * MTU,
		3 * MTU + 7 };
	static const uint8_t services[] = { PL_ROCE_RC, PL_ROCE_UC };

	for (size_t k = 0; k < 2; k++) {
		struct bench b;
		uint32_t packets = 0;

		init(&b, services[k]);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			bool right = true;

			memset(region, 0, BYTES);
			write_message(&b, sizes[i]);
			packets += pl_roce_packets(sizes[i], MTU);
			for (uint32_t at = 0; at < BYTES; at++)
				right = right && region[at] == (at < sizes[i] ? data[at % MTU] : 0);
			ok(right && b.cause == PL_RDMA_C_OK, "%s, %u bytes", k == 0 ? "RC" : "UC",
				sizes[i]);
			if (k == 0)
				ok(answered(&b, PL_ROCE_ACK, 0x1f, pl_psn_add(PSN, packets - 1),
					   (uint32_t)i + 1),
					"RC, %u bytes: one ACK", sizes[i]);
		}
		done(&b);
	}
}

static void test_broken_messages(void)
{
	static const struct {
		const char *name;
		uint32_t announced;
		uint8_t op2;
		size_t len2;
		enum pl_rdma_cause cause;
	} cases[] = {
		{ "Last brings more", 1100, PL_ROCE_WRITE_LAST, 200, PL_RDMA_C_LENGTH },
		{ "Last brings less", 1100, PL_ROCE_WRITE_LAST, 20, PL_RDMA_C_LENGTH },
		{ "Last brings nothing", 1100, PL_ROCE_WRITE_LAST, 0, PL_RDMA_C_LENGTH },
		{ "Middle is short", 4000, PL_ROCE_WRITE_MIDDLE, 512, PL_RDMA_C_LENGTH },
		{ "Middle is the end", 2 * MTU, PL_ROCE_WRITE_MIDDLE, MTU, PL_RDMA_C_LENGTH },
		{ "Only in between", 2 * MTU, PL_ROCE_WRITE_ONLY, 64, PL_RDMA_C_ORDER },
		{ "First again", 2 * MTU, PL_ROCE_WRITE_FIRST, MTU, PL_RDMA_C_ORDER },
		{ "SEND Last", 2 * MTU, PL_ROCE_SEND_LAST, 64, PL_RDMA_C_ORDER },
		{ "READ in between", 2 * MTU, PL_ROCE_READ_REQUEST, 0, PL_RDMA_C_ORDER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b;

		init(&b, PL_ROCE_RC);
		send(&b, PL_ROCE_WRITE_FIRST, cases[i].announced, MTU);
		ok(answered(&b, PL_ROCE_ACK, 0x1f, PSN, 0), "%s: the First", cases[i].name);
		send(&b, cases[i].op2, 64, cases[i].len2);
		streq(pl_rdma_cause_name(b.cause), pl_rdma_cause_name(cases[i].cause), "%s",
			cases[i].name);
		ok(answered(&b, PL_ROCE_ACK, 0x61, pl_psn_add(PSN, 1), 0), "%s: told",
			cases[i].name);
		done(&b);
	}
}

static void test_gap(void)
{
	struct bench b;
	struct pl_roce p;

	init(&b, PL_ROCE_RC);
	for (uint32_t i = 0; i < 3; i++) {
		p = request(&b, PL_ROCE_WRITE_ONLY, 4);
		p.psn = pl_psn_add(PSN, 2 + i);
		give_request(&b, &p, 4);
		eq(b.cause, i == 0 ? PL_RDMA_C_GAP : PL_RDMA_C_GAP_AGAIN);
		eq(b.n, i == 0, "one NAK for a gap");
	}
	b.psn = PSN;
	for (uint32_t i = 0; i < 4; i++) {
		send(&b, PL_ROCE_WRITE_ONLY, 4, 4);
		ok(answered(&b, PL_ROCE_ACK, 0x1f, pl_psn_add(PSN, i), i + 1), "it goes on");
	}
	p = request(&b, PL_ROCE_WRITE_ONLY, 4);
	p.psn = pl_psn_add(PSN, 9);
	give_request(&b, &p, 4);
	ok(answered(&b, PL_ROCE_ACK, 0x60, pl_psn_add(PSN, 4), 4), "a NAK for the next gap");
	/* A bad key under an old number disturbs nothing. */
	p.psn = pl_psn_add(PSN, 1);
	p.rkey ^= 0x55;
	give_request(&b, &p, 4);
	ok(b.cause == PL_RDMA_C_DUPLICATE && state(&b) == PL_RDMA_READY,
		"a bad key in a duplicate");
	done(&b);
}

int main(void)
{
	init_data();
	test_rows();
	test_access();
	test_atomics();
	test_sizes();
	test_broken_messages();
	test_gap();
	return pl_test_done();
}
