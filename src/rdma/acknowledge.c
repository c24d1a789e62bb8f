/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers that a requester gets. */
#include <string.h>

#include "rdma/requester_state.h"
#include "rdma/responder.h" /* causes */

static bool outstanding(const struct pl_requester_conn *conn, uint32_t psn)
{
	return ((psn - conn->unacked) & PL_ROCE_PSN_MASK) <
	       ((conn->high - conn->unacked) & PL_ROCE_PSN_MASK);
}

/* Takes the time of the timed packet when its answer came. */
static void take_time(struct pl_requester_conn *conn, uint64_t now_ns)
{
	uint64_t rtt, off;

	if (conn->timed_ns == 0 || pl_psn_diff(conn->unacked, conn->timed) <= 0)
		return;
	rtt = now_ns - conn->timed_ns;
	off = rtt > conn->rtt_ns ? rtt - conn->rtt_ns : conn->rtt_ns - rtt;
	conn->rtt_spread_ns = conn->rtt_ns == 0 ? rtt / 2 : (3 * conn->rtt_spread_ns + off) / 4;
	conn->rtt_ns = conn->rtt_ns == 0 ? rtt : (7 * conn->rtt_ns + rtt) / 8;
	conn->timed_ns = 0;
}

/*
 * Acknowledges everything before psn, except atomics and READs whose own answer did not come: that
 * answer was lost, and the first such number is sent again, once; after that only the timeout
 * repeats it. Completes messages and restarts timers.
 */
static void advance(
	struct pl_requester *q, struct pl_requester_conn *conn, uint32_t psn, uint64_t now_ns)
{
	const uint32_t before = conn->unacked;

	while (conn->n > 0) {
		const struct pl_requester_message *m = pl_requester_message(conn, 0);
		const uint32_t end = pl_psn_add(m->psn, m->packets);

		/* A message answered out of order completes in its turn. */
		if (pl_requester_asks(m) ? !m->answered : pl_psn_diff(end, psn) > 0) {
			if (!pl_requester_asks(m) && pl_psn_diff(psn, conn->unacked) > 0)
				conn->unacked = psn;
			break;
		}
		conn->unacked = end;
		pl_requester_finish(q, conn, PL_RDMA_RESULT_OK);
	}
	if (conn->unacked != before) {
		take_time(conn, now_ns);
		pl_requester_widen(conn, (conn->unacked - before) & PL_ROCE_PSN_MASK);
		conn->retries = conn->c.retries;
		conn->rnr_retries = conn->c.rnr_retries;
		conn->deadline_ns =
			conn->unacked == conn->high ? 0 : now_ns + pl_requester_timeout_ns(conn);
	}
	if (pl_psn_diff(conn->next, conn->unacked) < 0) {
		pl_requester_rewind(conn, conn->unacked);
	} else if (pl_psn_diff(conn->unacked, psn) < 0 && conn->missed != conn->unacked) {
		conn->missed = conn->unacked;
		pl_requester_rewind(conn, conn->unacked);
	}
}

/* Sends again from psn on, when a try is left. */
static void go_back(
	struct pl_requester *q, struct pl_requester_conn *conn, uint32_t psn, uint64_t now_ns)
{
	if (conn->retries == 0) {
		pl_requester_fail(q, conn, PL_RDMA_RESULT_RETRIES);
		return;
	}
	conn->retries--;
	conn->deadline_ns = now_ns + pl_requester_timeout_ns(conn);
	pl_requester_narrow(conn);
	pl_requester_rewind(conn, psn);
}

static void not_ready(
	struct pl_requester *q, struct pl_requester_conn *conn, uint8_t code, uint64_t now_ns)
{
	if (conn->rnr_retries == 0) {
		pl_requester_fail(q, conn, PL_RDMA_RESULT_RNR);
		return;
	}
	if (conn->rnr_retries != PL_RDMA_FOR_EVER)
		conn->rnr_retries--;
	conn->wait_ns = now_ns + pl_roce_rnr_ns(code);
	pl_requester_rewind(conn, conn->unacked);
}

static void nak(struct pl_requester *q, struct pl_requester_conn *conn, const struct pl_roce *p,
	uint64_t now_ns)
{
	const bool rnr = (p->syndrome & 0xe0) == PL_ROCE_RNR;

	pl_count(rnr                                   ? &q->counters.rnr_naks
		 : p->syndrome == PL_ROCE_NAK_SEQUENCE ? &q->counters.sequence_naks
						       : &q->counters.error_naks,
		1);
	advance(q, conn, p->psn, now_ns);
	if (pl_psn_diff(conn->unacked, p->psn) < 0)
		return; /* an answer before it is missing: that one comes first */
	if (rnr) {
		not_ready(q, conn, p->syndrome & 0x1f, now_ns);
	} else if (p->syndrome == PL_ROCE_NAK_SEQUENCE) {
		/* While the peer has no receive, packets behind the refused one get this NAK
		 * too. */
		if (conn->wait_ns == 0)
			go_back(q, conn, p->psn, now_ns);
	} else {
		pl_requester_fail(q, conn,
			p->syndrome == PL_ROCE_NAK_ACCESS      ? PL_RDMA_RESULT_ACCESS
			: p->syndrome == PL_ROCE_NAK_OPERATION ? PL_RDMA_RESULT_OPERATION
							       : PL_RDMA_RESULT_INVALID);
	}
}

/* Returns true when this is the answer that a message waits for. */
static bool fits(const struct pl_requester_message *m, const struct pl_roce *p)
{
	if (p->opcode == PL_ROCE_ATOMIC_ACK)
		return pl_rdma_work_is_atomic(&m->work);
	return m->work.kind == PL_RDMA_WORK_READ && pl_cursor_left(&p->payload) == m->work.bytes;
}

/* Takes the answer of an atomic or a READ. */
static void own_answer(struct pl_requester *q, struct pl_requester_conn *conn,
	const struct pl_roce *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < conn->n; i++) {
		struct pl_requester_message *m = pl_requester_message(conn, i);

		if (m->psn != p->psn)
			continue;
		if (!fits(m, p))
			break;
		if (!m->answered) {
			m->answered = true;
			m->original = p->original;
			if (m->work.kind == PL_RDMA_WORK_READ && m->work.bytes > 0)
				memcpy(m->work.into, p->payload.pos, m->work.bytes);
		}
		pl_count(p->opcode == PL_ROCE_ATOMIC_ACK ? &q->counters.atomic_acks
							 : &q->counters.read_responses,
			1);
		advance(q, conn, pl_psn_add(p->psn, 1), now_ns);
		return;
	}
	pl_count(&q->counters.ghosts, 1);
}

static bool is_answer(uint8_t opcode)
{
	return opcode == PL_ROCE_CNP || opcode == PL_ROCE_ACK || opcode == PL_ROCE_ATOMIC_ACK ||
	       opcode == PL_ROCE_READ_ONLY;
}

static bool from_peer(const struct pl_requester_conn *conn, const struct pl_roce *p)
{
	const struct pl_roce_path *own = &conn->c.path;

	return pl_addr_equal(&p->path.src, &own->dst) && pl_addr_equal(&p->path.dst, &own->src) &&
	       p->path.v1 == own->v1 && conn->c.service == PL_ROCE_RC &&
	       ((p->pkey ^ conn->c.pkey) & ~PL_ROCE_PKEY_FULL) == 0 &&
	       (p->opcode & PL_ROCE_SERVICE_MASK) == PL_ROCE_RC;
}

static void answer(struct pl_requester *q, const struct pl_packet *pkt, uint64_t now_ns)
{
	struct pl_requester_counters *c = &q->counters;
	struct pl_requester_conn *conn;
	struct pl_roce p;
	uint32_t place;

	pl_count(&c->received, 1);
	if (pl_roce_parse(&p, pl_cursor(pkt->data, pkt->len), (enum pl_link)pkt->link) !=
		PL_ROCE_F_OK) {
		pl_count(&c->unknown, 1);
		return;
	}
	if (p.qpn == 1) {
		pl_count(&c->management, 1);
		return;
	}
	place = p.qpn == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&q->index, p.qpn);
	if (place == PL_RDMA_INDEX_NONE || !is_answer(p.opcode)) {
		pl_count(&c->unknown, 1);
		return;
	}
	conn = &q->conns[place];
	if (p.opcode == PL_ROCE_CNP) {
		/* Only the sender of the packet can be checked. */
		if (!pl_addr_equal(&p.path.src, &conn->c.path.dst)) {
			pl_count(&c->foreign, 1);
			return;
		}
		pl_count(&c->cnps, 1);
		pl_pace_cut(&conn->pace, now_ns);
	} else if (!from_peer(conn, &p)) {
		pl_count(&c->foreign, 1);
	} else if (conn->failed || !outstanding(conn, p.psn) || (p.syndrome & 0x80) != 0) {
		pl_count(&c->ghosts, 1);
	} else if (p.opcode != PL_ROCE_ACK) {
		own_answer(q, conn, &p, now_ns);
	} else if ((p.syndrome & 0x60) != 0) {
		nak(q, conn, &p, now_ns);
	} else {
		pl_count(&c->acks, 1);
		advance(q, conn, pl_psn_add(p.psn, 1), now_ns);
	}
}

void pl_requester_batch(
	struct pl_requester *q, const struct pl_batch *in, const uint8_t *causes, uint64_t now_ns)
{
	for (uint32_t i = 0; i < in->n; i++) {
		if (causes == NULL || causes[i] == PL_RDMA_C_ANSWER || causes[i] == PL_RDMA_C_CNP)
			answer(q, &in->pkts[i], now_ns);
	}
}
