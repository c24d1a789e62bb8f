/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handling of a request in a responder: defines the correct result, in the order of the
 * architecture's checks. The common WRITE has a fast path, fast.c.
 */
#include <string.h>

#include "memory/words.h"
#include "rdma/responder_state.h"

/* Properties of an operation, by its lower five bits. */
enum {
	FIRST = 1,
	MIDDLE = 2,
	LAST = 4,
	ONLY = FIRST | LAST,
	SEND = 8,
	WRITE = 16,
	ATOMIC = 32,
	READ = 64
};

static const uint8_t kinds[PL_ROCE_OP_MASK + 1] = {
	[PL_ROCE_SEND_FIRST] = SEND | FIRST,
	[PL_ROCE_SEND_MIDDLE] = SEND | MIDDLE,
	[PL_ROCE_SEND_LAST] = SEND | LAST,
	[PL_ROCE_SEND_LAST_IMM] = SEND | LAST,
	[PL_ROCE_SEND_ONLY] = SEND | ONLY,
	[PL_ROCE_SEND_ONLY_IMM] = SEND | ONLY,
	[PL_ROCE_WRITE_FIRST] = WRITE | FIRST,
	[PL_ROCE_WRITE_MIDDLE] = WRITE | MIDDLE,
	[PL_ROCE_WRITE_LAST] = WRITE | LAST,
	[PL_ROCE_WRITE_LAST_IMM] = WRITE | LAST,
	[PL_ROCE_WRITE_ONLY] = WRITE | ONLY,
	[PL_ROCE_WRITE_ONLY_IMM] = WRITE | ONLY,
	[PL_ROCE_READ_REQUEST] = READ | ONLY,
	[PL_ROCE_CMP_SWAP] = ATOMIC | ONLY,
	[PL_ROCE_FETCH_ADD] = ATOMIC | ONLY,
	[PL_ROCE_SEND_LAST_INV] = SEND | LAST,
	[PL_ROCE_SEND_ONLY_INV] = SEND | ONLY,
};

/* A request while it is checked. */
struct request {
	const struct pl_roce *p;
	uint8_t kind;
	uint32_t len;  /* of the payload */
	uint8_t *dest; /* destination of the payload or the atomic; NULL: none */
};

static bool takes_receive(const struct request *q)
{
	return (q->kind & LAST) != 0 &&
	       ((q->kind & SEND) != 0 || (q->p->headers & PL_ROCE_H_IMM) != 0);
}

static enum pl_rdma_cause check_order(const struct pl_responder_qp *qp, const struct request *q)
{
	if (q->kind & FIRST)
		return qp->in == PL_RDMA_NONE ? PL_RDMA_C_OK : PL_RDMA_C_ORDER;
	return qp->in == (q->kind & SEND ? PL_RDMA_IN_SEND : PL_RDMA_IN_WRITE) ? PL_RDMA_C_OK
									       : PL_RDMA_C_ORDER;
}

static enum pl_rdma_cause check_allowed(const struct pl_responder_qp *qp, const struct request *q)
{
	const uint8_t access = q->kind & WRITE    ? PL_RDMA_WRITE
			       : q->kind & READ   ? PL_RDMA_READ
			       : q->kind & ATOMIC ? PL_RDMA_ATOMIC
						  : 0;

	if ((qp->c.access & access) != access)
		return PL_RDMA_C_QP_ACCESS;
	if (q->p->headers & PL_ROCE_H_IETH)
		return PL_RDMA_C_UNSUPPORTED;
	/* A SEND needs its receive from its first packet on. */
	if ((takes_receive(q) || (q->kind & SEND) != 0) && qp->posted == 0)
		return PL_RDMA_C_NO_RECEIVE;
	if ((q->kind & (READ | ATOMIC)) != 0 && qp->c.depth == 0)
		return PL_RDMA_C_RESOURCES;
	return PL_RDMA_C_OK;
}

/* Checks the size of a packet of SEND or WRITE against the path MTU and the announced length. */
static enum pl_rdma_cause check_length(const struct pl_responder_qp *qp, const struct request *q)
{
	const uint32_t mtu = qp->c.mtu;

	if (q->kind & (READ | WRITE) && q->p->headers & PL_ROCE_H_RETH &&
		q->p->length > PL_ROCE_LEN_MAX)
		return PL_RDMA_C_LENGTH;
	if ((q->kind & (SEND | WRITE)) == 0)
		return PL_RDMA_C_OK;
	if (((q->len + q->p->pad) & 3) != 0 || q->len > mtu)
		return PL_RDMA_C_LENGTH;
	if ((q->kind & LAST) == 0 && (q->len != mtu || q->p->pad != 0))
		return PL_RDMA_C_LENGTH;
	if ((q->kind & FIRST) == 0 && q->len == 0)
		return PL_RDMA_C_LENGTH;
	if (q->kind & WRITE) {
		const uint32_t left = q->kind & FIRST ? q->p->length : qp->left;

		/* The last packet brings the rest; those before leave something. */
		return (q->kind & LAST ? q->len == left : q->len < left) ? PL_RDMA_C_OK
									 : PL_RDMA_C_LENGTH;
	}
	return PL_RDMA_C_OK;
}

static enum pl_rdma_cause check_memory(
	const struct pl_responder *r, const struct pl_responder_qp *qp, struct request *q)
{
	const struct pl_roce *p = q->p;
	enum pl_rdma_cause cause = PL_RDMA_C_OK;

	if (q->kind & SEND) {
		const struct pl_rdma_receive *receive = &qp->receives[qp->first];
		const uint64_t at = q->kind & FIRST ? 0 : qp->at;

		if (at + q->len > receive->bytes)
			return PL_RDMA_C_RECEIVE_LENGTH;
		q->dest = q->len > 0 ? receive->buffer + at : NULL;
	} else if (q->kind & WRITE && (q->kind & FIRST) == 0) {
		/* Checked again: the region may have gone since the first packet. */
		q->dest =
			pl_responder_reach(r, qp, qp->rkey, qp->at, q->len, PL_RDMA_WRITE, &cause);
	} else if (q->kind & ATOMIC) {
		q->dest = pl_responder_reach(r, qp, p->rkey, p->va, 8, PL_RDMA_ATOMIC, &cause);
		if (cause == PL_RDMA_C_OK && (p->va & 7) != 0)
			cause = PL_RDMA_C_ALIGNMENT;
	} else if (p->length > 0) {
		q->dest = pl_responder_reach(r, qp, p->rkey, p->va, p->length,
			q->kind & READ ? PL_RDMA_READ : PL_RDMA_WRITE, &cause);
	}
	return cause;
}

/* Makes all checks, before anything is done. */
static enum pl_rdma_cause check(
	const struct pl_responder *r, const struct pl_responder_qp *qp, struct request *q)
{
	enum pl_rdma_cause cause = check_order(qp, q);

	if (cause == PL_RDMA_C_OK)
		cause = check_allowed(qp, q);
	if (cause == PL_RDMA_C_OK)
		cause = check_length(qp, q);
	if (cause == PL_RDMA_C_OK)
		cause = check_memory(r, qp, q);
	return cause;
}

/* ---- execution: what was checked cannot fail ---- */

static void complete(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct request *q, uint32_t bytes)
{
	const struct pl_rdma_completion done = {
		.id = qp->receives[qp->first].id,
		.qpn = qp->c.qpn,
		.bytes = bytes,
		.imm = q->p->imm,
		.src_qpn = q->p->src_qpn,
		.kind = q->kind & SEND ? PL_RDMA_DONE_SEND : PL_RDMA_DONE_WRITE,
		.have_imm = (q->p->headers & PL_ROCE_H_IMM) != 0,
		.solicited = q->p->solicited,
	};

	qp->first = (qp->first + 1) % qp->c.receives;
	qp->posted--;
	pl_responder_complete(r, &done);
}

static void do_place(struct pl_responder *r, struct pl_responder_qp *qp, const struct request *q)
{
	const struct pl_roce *p = q->p;
	const bool write = (q->kind & WRITE) != 0;

	if (q->kind & FIRST) {
		qp->in = write ? PL_RDMA_IN_WRITE : PL_RDMA_IN_SEND;
		qp->at = write ? p->va : 0;
		qp->rkey = p->rkey;
		qp->left = qp->length = write ? p->length : 0;
	}
	/* Others may read a region meanwhile. A receive belongs to its owner once it is
	 * completed. */
	if (q->dest != NULL && write)
		pl_words_place(q->dest, p->payload.pos, q->len);
	else if (q->dest != NULL)
		memcpy(q->dest, p->payload.pos, q->len);
	qp->at += q->len;
	if (write) {
		qp->left -= q->len;
		pl_count(&r->counters.write_bytes, q->len);
	} else {
		qp->length += q->len;
	}
	if ((q->kind & LAST) == 0)
		return;
	pl_count(write ? &r->counters.writes : &r->counters.sends, 1);
	if (takes_receive(q))
		complete(r, qp, q, qp->length);
	qp->in = PL_RDMA_NONE;
}

/* Executes an atomic in this machine's byte order, atomic for its processors too. */
static uint64_t do_atomic(struct pl_responder *r, const struct request *q)
{
	uint64_t *const word = (uint64_t *)(void *)q->dest;
	uint64_t expected = q->p->compare;

	if (q->p->opcode == PL_ROCE_FETCH_ADD) {
		pl_count(&r->counters.adds, 1);
		return __atomic_fetch_add(word, q->p->swap_add, __ATOMIC_SEQ_CST);
	}
	pl_count(&r->counters.swaps, 1);
	__atomic_compare_exchange_n(
		word, &expected, q->p->swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}

/* ---- reliable connections ---- */

static bool say_aeth(
	struct pl_responder *r, struct pl_responder_qp *qp, uint32_t psn, uint8_t syndrome)
{
	return pl_responder_say(r, qp,
		&(struct pl_rdma_answer){ .kind = PL_RDMA_SAY_AETH,
			.syndrome = syndrome,
			.psn = psn,
			.msn = qp->msn });
}

static void read_begins(struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_roce *p,
	uint32_t packets)
{
	pl_count(&r->counters.reads, 1);
	pl_responder_remember(qp, &(struct pl_rdma_memory){ .used = true,
					  .read = true,
					  .psn = p->psn,
					  .packets = packets,
					  .value = p->va,
					  .rkey = p->rkey,
					  .length = p->length });
	pl_responder_say(r, qp,
		&(struct pl_rdma_answer){ .kind = PL_RDMA_SAY_READ,
			.psn = p->psn,
			.msn = qp->msn,
			.value = p->va,
			.rkey = p->rkey,
			.left = p->length });
}

static void rc_execute(struct pl_responder *r, struct pl_responder_qp *qp, const struct request *q)
{
	const struct pl_roce *p = q->p;
	uint32_t packets = q->kind & READ ? pl_roce_packets(p->length, qp->c.mtu) : 1;

	if (q->kind & (SEND | WRITE))
		do_place(r, qp, q);
	qp->psn = pl_psn_add(qp->psn, packets);
	if (q->kind & LAST)
		qp->msn = pl_psn_add(qp->msn, 1);
	if (q->kind & ATOMIC)
		pl_responder_atomic_done(r, qp, p->psn, do_atomic(r, q));
	else if (q->kind & READ)
		read_begins(r, qp, p, packets);
	else if (p->ack_req)
		say_aeth(r, qp, p->psn, PL_ROCE_ACK_UNLIMITED);
}

static const struct pl_rdma_memory *recall(
	const struct pl_responder_qp *qp, uint32_t psn, bool read)
{
	/* From the newest on: numbers of old ones come again after 2^24 packets. */
	for (uint32_t i = 1; i <= qp->c.depth; i++) {
		const struct pl_rdma_memory *m =
			&qp->memory[(qp->remembered + qp->c.depth - i) % qp->c.depth];

		if (m->used && m->read == read && ((psn - m->psn) & PL_ROCE_PSN_MASK) < m->packets)
			return m;
	}
	return NULL;
}

/* Answers a request behind the expected number again, without executing it again. A READ is read
 * again. */
static enum pl_rdma_cause rc_duplicate(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct request *q)
{
	const struct pl_roce *p = q->p;
	const struct pl_rdma_memory *m;
	struct pl_rdma_answer answer = { .psn = p->psn, .msn = qp->msn };

	if (pl_responder_is_far(qp, p->psn) && r->now_ns != 0 &&
		pl_guard_suspects(&r->guard, &p->path.src, r->now_ns))
		return PL_RDMA_C_SUSPECT;
	if (q->kind & (SEND | WRITE)) {
		return say_aeth(r, qp, pl_psn_add(qp->psn, PL_ROCE_PSN_MASK), PL_ROCE_ACK_UNLIMITED)
			       ? PL_RDMA_C_DUPLICATE
			       : PL_RDMA_C_BUSY;
	}
	m = recall(qp, p->psn, (q->kind & READ) != 0);
	if (m == NULL)
		return PL_RDMA_C_FORGOTTEN;
	if (q->kind & READ) {
		const uint64_t skipped =
			(uint64_t)((p->psn - m->psn) & PL_ROCE_PSN_MASK) * qp->c.mtu;

		/* The same READ, or the rest of it from this packet on. */
		if (p->rkey != m->rkey || p->va != m->value + skipped ||
			p->length > m->length - skipped)
			return PL_RDMA_C_FORGOTTEN;
		answer.kind = PL_RDMA_SAY_READ;
		answer.value = p->va;
		answer.rkey = p->rkey;
		answer.left = p->length;
	} else {
		answer.kind = PL_RDMA_SAY_ATOMIC;
		answer.syndrome = PL_ROCE_ACK_UNLIMITED;
		answer.value = m->value;
	}
	return pl_responder_say(r, qp, &answer) ? PL_RDMA_C_DUPLICATE : PL_RDMA_C_BUSY;
}

static enum pl_rdma_cause rc_receive(
	struct pl_responder *r, struct pl_responder_qp *qp, struct request *q)
{
	const int32_t ahead = pl_psn_diff(q->p->psn, qp->psn);
	enum pl_rdma_cause cause;
	uint8_t nak;

	if (ahead < 0)
		return rc_duplicate(r, qp, q);
	/* A request that is executed has two answers at most: its own and, later, a NAK. */
	if (!pl_responder_may_say(qp, 2))
		return PL_RDMA_C_BUSY;
	if (ahead > 0) {
		if (qp->told)
			return PL_RDMA_C_GAP_AGAIN;
		qp->told = true;
		say_aeth(r, qp, qp->psn, PL_ROCE_NAK_SEQUENCE);
		return PL_RDMA_C_GAP;
	}
	qp->told = false;
	cause = check(r, qp, q);
	if (cause == PL_RDMA_C_OK) {
		rc_execute(r, qp, q);
		return cause;
	}
	nak = pl_rdma_cause_nak(cause);
	if (nak == PL_ROCE_RNR) {
		say_aeth(r, qp, qp->psn, PL_ROCE_RNR | qp->c.rnr_timer);
		return cause;
	}
	say_aeth(r, qp, qp->psn, nak);
	pl_responder_fail(r, qp, cause);
	return cause;
}

/* ---- unreliable services ---- */

/*
 * Notes the number of a switch's record. Returns true when the record is late: others overtook it.
 * A switch that was started again has lower numbers too, and may be at any of them, but those have
 * come before; a late record's number has not. Only the lower 16 bits count: some switches have no
 * more, and begin with 0 behind them.
 */
static bool note_number(struct pl_responder_qp *qp, uint32_t psn)
{
	const int16_t ahead = (int16_t)(uint16_t)(psn - qp->psn);
	uint64_t *word = &qp->came[psn % PL_RDMA_LATE / 64];
	const uint64_t bit = UINT64_C(1) << psn % 64;
	const bool late = ahead < 0 && ahead >= -PL_RDMA_LATE && (*word & bit) == 0;

	if (!late && (ahead < 0 || ahead >= PL_RDMA_LATE))
		memset(qp->came, 0, sizeof(qp->came));
	for (int16_t i = 0; i < ahead && ahead < PL_RDMA_LATE; i++) {
		const uint32_t skipped = qp->psn + (uint32_t)i;

		qp->came[skipped % PL_RDMA_LATE / 64] &= ~(UINT64_C(1) << skipped % 64);
	}
	*word |= bit;
	return late;
}

static enum pl_rdma_cause uc_receive(
	struct pl_responder *r, struct pl_responder_qp *qp, struct request *q)
{
	const int32_t ahead = pl_psn_diff(q->p->psn, qp->psn);
	const uint32_t far = (uint32_t)(ahead < 0 ? -ahead : ahead);
	const uint64_t at = qp->at;
	enum pl_rdma_cause cause;
	bool late;

	if ((q->kind & (READ | ATOMIC)) != 0) /* with an opcode of RC */
		return PL_RDMA_C_UNSUPPORTED;
	if (qp->c.max_jump != 0 && far > qp->c.max_jump)
		return PL_RDMA_C_WINDOW;
	if (q->kind & FIRST) {
		qp->in = PL_RDMA_NONE; /* a message that had begun has lost its end */
	} else if (ahead != 0 || check_order(qp, q) != PL_RDMA_C_OK) {
		qp->in = PL_RDMA_NONE;
		return PL_RDMA_C_BROKEN;
	}
	late = qp->c.rc_opcodes && note_number(qp, q->p->psn) && (q->kind & ONLY) == ONLY;
	if (!late)
		qp->psn = pl_psn_add(q->p->psn, 1);
	cause = check(r, qp, q);
	if (cause != PL_RDMA_C_OK) {
		qp->in = PL_RDMA_NONE;
		return cause;
	}
	do_place(r, qp, q);
	if (late)
		qp->at = at; /* the newest record stays the last one */
	if (q->kind & LAST)
		qp->msn = pl_psn_add(qp->msn, 1);
	return cause;
}

#define GRH_BYTES 40

static enum pl_rdma_cause ud_receive(
	struct pl_responder *r, struct pl_responder_qp *qp, struct request *q)
{
	const struct pl_roce *p = q->p;
	struct pl_rdma_receive *receive;

	if (p->qkey != qp->c.qkey)
		return PL_RDMA_C_QKEY;
	if (((q->len + p->pad) & 3) != 0 || q->len > qp->c.mtu)
		return PL_RDMA_C_LENGTH;
	if (qp->posted == 0)
		return PL_RDMA_C_NO_RECEIVE;
	receive = &qp->receives[qp->first];
	if (receive->bytes < GRH_BYTES + q->len)
		return PL_RDMA_C_RECEIVE_LENGTH;
	/* A receiver of datagrams finds the sender's address in the GRH before the payload; an IPv4
	 * header stands in its last 20 bytes. */
	memset(receive->buffer, 0, GRH_BYTES);
	if (!p->path.v1 && pl_addr_is_v4(&p->path.src)) {
		receive->buffer[20] = 0x45;
		receive->buffer[28] = p->path.ttl;
		receive->buffer[29] = 17;
		memcpy(receive->buffer + 32, p->path.src.b + 12, 4);
		memcpy(receive->buffer + 36, p->path.dst.b + 12, 4);
	} else {
		receive->buffer[0] = 0x60;
		receive->buffer[7] = p->path.ttl;
		memcpy(receive->buffer + 8, p->path.src.b, 16);
		memcpy(receive->buffer + 24, p->path.dst.b, 16);
	}
	if (q->len > 0)
		memcpy(receive->buffer + GRH_BYTES, p->payload.pos, q->len);
	pl_count(&r->counters.sends, 1);
	complete(r, qp, q, GRH_BYTES + q->len);
	return PL_RDMA_C_OK;
}

/* ---- all services ---- */

static bool pkey_fits(uint16_t a, uint16_t b)
{
	return ((a ^ b) & ~PL_ROCE_PKEY_FULL) == 0 && ((a | b) & PL_ROCE_PKEY_FULL) != 0;
}

static enum pl_rdma_cause check_path(
	const struct pl_responder_qp *qp, const struct pl_roce_path *from)
{
	const struct pl_roce_path *own = &qp->c.path;
	const uint16_t vlan = own->tagged ? own->tci & 0xfff : 0;
	const bool any_peer = qp->c.service == PL_ROCE_UD && pl_addr_is_unspecified(&own->dst);

	if (!pl_addr_equal(&from->dst, &own->src) ||
		(!any_peer && !pl_addr_equal(&from->src, &own->dst)) || from->v1 != own->v1)
		return PL_RDMA_C_PEER;
	if ((!qp->c.any_vlan && (from->tagged ? from->tci & 0xfff : 0) != vlan) ||
		from->ttl < qp->c.min_ttl ||
		(qp->c.check_mac && !qp->learn && memcmp(from->smac, own->dmac, 6) != 0))
		return PL_RDMA_C_LINK;
	return PL_RDMA_C_OK;
}

static enum pl_rdma_cause check_qp(const struct pl_responder_qp *qp, const struct pl_roce *p)
{
	if (qp->state != PL_RDMA_READY)
		return PL_RDMA_C_QP_STATE;
	if ((p->opcode & PL_ROCE_SERVICE_MASK) != qp->c.service &&
		(!qp->c.rc_opcodes || (p->opcode & PL_ROCE_SERVICE_MASK) != PL_ROCE_RC))
		return PL_RDMA_C_SERVICE;
	if (!pkey_fits(p->pkey, qp->c.pkey))
		return PL_RDMA_C_PKEY;
	return check_path(qp, &p->path);
}

static enum pl_rdma_cause by_service(
	struct pl_responder *r, struct pl_responder_qp *qp, struct request *q)
{
	switch (qp->c.service) {
	case PL_ROCE_RC:
		return rc_receive(r, qp, q);
	case PL_ROCE_UC:
		return uc_receive(r, qp, q);
	default:
		return ud_receive(r, qp, q);
	}
}

static void count_guess(
	struct pl_responder *r, const struct pl_addr *source, enum pl_rdma_guess kind)
{
	pl_count(&r->counters.guesses, 1);
	if (pl_guard_guess(&r->guard, source, kind, r->now_ns))
		pl_count(&r->counters.alarms, 1);
}

#define CONGESTED      3     /* both ECN bits: a switch on the way marked the packet (RFC 3168) */
#define NOTIFY_NS      50000 /* least time between two notifications of a queue pair */
#define NOTIFY_PACKETS 64    /* without a time: packets between two notifications */

/* Notes that the peer is to send more slowly (annex A17.9). Datagrams have no peer, and a switch
 * that takes no answers reads no notification. */
static void note_mark(struct pl_responder *r, struct pl_responder_qp *qp)
{
	const bool early = qp->notified_packets != 0 &&
			   (r->now_ns != 0 ? r->now_ns - qp->notified_ns < NOTIFY_NS
					   : qp->packets - qp->notified_packets < NOTIFY_PACKETS);

	pl_count(&r->counters.marked, 1);
	if (early || qp->c.service == PL_ROCE_UD || qp->c.rc_opcodes)
		return;
	qp->notified_ns = r->now_ns;
	qp->notified_packets = qp->packets;
	qp->notify = true;
	if (!qp->due)
		pl_responder_due(r, qp);
}

enum pl_rdma_cause pl_responder_receive(struct pl_responder *r, const struct pl_packet *pkt)
{
	struct pl_responder_qp *qp;
	enum pl_rdma_cause cause;
	struct request q;
	struct pl_roce p;
	bool far, wrong_key;

	/* Faults of frames are the first causes. */
	cause = (enum pl_rdma_cause)pl_roce_parse(
		&p, pl_cursor(pkt->data, pkt->len), (enum pl_link)pkt->link);
	if (cause != PL_RDMA_C_OK)
		return cause;
	if (pkt->link == PL_LINK_ETHERNET && !pl_responder_is_meant(r, pkt->data))
		return PL_RDMA_C_OTHER_MAC;
	if (p.opcode == PL_ROCE_CNP)
		return PL_RDMA_C_CNP;
	if (p.qpn == 1)
		return PL_RDMA_C_MANAGEMENT;
	q = (struct request){ .p = &p,
		.kind = kinds[p.opcode & PL_ROCE_OP_MASK],
		.len = (uint32_t)pl_cursor_left(&p.payload) };
	if (q.kind == 0)
		return PL_RDMA_C_ANSWER;
	qp = p.qpn == 0 ? NULL : pl_responder_qp_of(r, p.qpn);
	if (qp == NULL) {
		if (r->now_ns != 0)
			count_guess(r, &p.path.src, PL_RDMA_GUESS_QP);
		return PL_RDMA_C_UNKNOWN_QP;
	}
	qp->packets++;
	qp->refused++; /* taken back when the request is executed */
	cause = check_qp(qp, &p);
	if (cause == PL_RDMA_C_PEER && r->now_ns != 0)
		count_guess(r, &p.path.src, PL_RDMA_GUESS_PEER);
	if (cause != PL_RDMA_C_OK)
		return cause;
	if (qp->learn) {
		memcpy(qp->c.path.dmac, p.path.smac, 6);
		/* With check_mac only a request that is executed proves the address. */
		qp->learn = qp->c.check_mac;
	}
	if ((p.path.tos & CONGESTED) == CONGESTED && !p.path.v1)
		note_mark(r, qp);
	far = pl_responder_is_far(qp, p.psn);
	cause = by_service(r, qp, &q);
	qp->refused -= cause == PL_RDMA_C_OK;
	qp->learn = qp->learn && cause != PL_RDMA_C_OK;
	/* A key of another domain is as wrong as one that does not exist. */
	wrong_key = cause == PL_RDMA_C_KEY || cause == PL_RDMA_C_DOMAIN;
	if (r->now_ns != 0 && (wrong_key || far) && qp->c.service != PL_ROCE_UD)
		count_guess(r, &p.path.src, wrong_key ? PL_RDMA_GUESS_KEY : PL_RDMA_GUESS_NUMBER);
	return cause;
}
