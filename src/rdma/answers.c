/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers: waiting ones of each queue pair, and their packets. */
#include <assert.h>
#include <string.h>

#include "rdma/responder_state.h"

void pl_responder_due(struct pl_responder *r, struct pl_responder_qp *qp)
{
	const uint32_t place = (uint32_t)(qp - r->qps);

	assert(!qp->due && place < r->options.max_qps);
	qp->due = true;
	qp->next_due = PL_RDMA_INDEX_NONE;
	if (r->due_first == PL_RDMA_INDEX_NONE)
		r->due_first = place;
	else
		r->qps[r->due_last].next_due = place;
	r->due_last = place;
}

static bool is_ack(const struct pl_rdma_answer *answer)
{
	return answer->kind == PL_RDMA_SAY_AETH && answer->syndrome == PL_ROCE_ACK_UNLIMITED;
}

bool pl_responder_say(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer)
{
	if (qp->answers_n > 0 && is_ack(answer)) {
		struct pl_rdma_answer *last = pl_responder_answer(qp, qp->answers_n - 1);

		if (is_ack(last)) {
			*last = *answer;
			return true;
		}
	}
	if (!pl_responder_may_say(qp, 1))
		return false;
	pl_responder_queue(r, qp, answer);
	return true;
}

static void put(struct pl_responder *r, const struct pl_responder_qp *qp, struct pl_roce *packet,
	const void *payload, size_t len, struct pl_frames *out)
{
	packet->path = qp->c.path;
	packet->path.ip_id = r->ip_id++;
	packet->pkey = qp->c.pkey;
	packet->migrated = true;
	packet->qpn = qp->c.peer_qpn;
	pl_frames_put(out, packet, payload, len);
}

/* Adds one response of a READ. Returns true when it was the last; lost access ends the READ with a
 * NAK. */
static bool put_read(struct pl_responder *r, struct pl_responder_qp *qp,
	struct pl_rdma_answer *answer, struct pl_frames *out)
{
	const uint32_t len = answer->left < qp->c.mtu ? answer->left : qp->c.mtu;
	const bool last = len == answer->left;
	enum pl_rdma_cause cause = PL_RDMA_C_OK;
	const uint8_t *data = NULL;
	struct pl_roce packet = {
		.psn = answer->psn, .msn = answer->msn, .syndrome = PL_ROCE_ACK_UNLIMITED
	};

	if (len > 0)
		data = pl_responder_reach(
			r, qp, answer->rkey, answer->value, len, PL_RDMA_READ, &cause);
	if (cause != PL_RDMA_C_OK) {
		packet.opcode = PL_ROCE_ACK;
		packet.syndrome = PL_ROCE_NAK_ACCESS;
		put(r, qp, &packet, NULL, 0, out);
		pl_count(&r->counters.naks, 1);
		if (qp->state == PL_RDMA_READY)
			pl_responder_fail(r, qp, cause);
		return true;
	}
	if (!answer->begun)
		packet.opcode = last ? PL_ROCE_READ_ONLY : PL_ROCE_READ_FIRST;
	else
		packet.opcode = last ? PL_ROCE_READ_LAST : PL_ROCE_READ_MIDDLE;
	put(r, qp, &packet, data, len, out);
	pl_count(&r->counters.read_responses, 1);
	answer->begun = true;
	answer->psn = pl_psn_add(answer->psn, 1);
	answer->value += len;
	answer->left -= len;
	return last;
}

/* The last words of an atomic's answer are all that differs between two of them: number, AETH,
 * value. They end where the ICRC begins. */
#define ICRC (PL_RDMA_ATOMIC_ACK - 4)
#define TAIL (ICRC - 16)

/* Adds an atomic's answer made from the one before. */
static void put_shaped(struct pl_responder *r, const struct pl_responder_qp *qp,
	const struct pl_rdma_answer *answer, struct pl_frames *out)
{
	/* The BTH asks for no acknowledgement. */
	const uint64_t said = (uint64_t)(answer->psn & PL_ROCE_PSN_MASK) << 32 |
			      (uint32_t)answer->syndrome << 24 | (answer->msn & PL_ROCE_PSN_MASK);
	const uint64_t tail[2] = { __builtin_bswap64(said), __builtin_bswap64(answer->value) };
	const uint32_t icrc = qp->atomic_icrc ^ pl_roce_icrc_tail(tail[0], tail[1]);
	uint8_t *const p = pl_frames_make(out, PL_RDMA_ATOMIC_ACK);

	memcpy(p, qp->atomic_ack, TAIL);
	memcpy(p + TAIL, tail, sizeof(tail));
	memcpy(p + ICRC, &icrc, sizeof(icrc));
	pl_count(&r->counters.atomic_acks, 1);
}

/* Keeps the last frame as the form of the next answers. All have its IP identification, which has
 * no meaning where fragments are forbidden (RFC 6864, 4.1). */
static void shape(struct pl_responder_qp *qp, const struct pl_frames *out)
{
	const struct pl_packet *last = &out->batch.pkts[out->batch.n - 1];
	uint64_t tail[2];

	assert(out->batch.n > 0);
	if (!qp->plain || qp->c.path.may_fragment || last->len != PL_RDMA_ATOMIC_ACK)
		return;
	memcpy(qp->atomic_ack, last->data, PL_RDMA_ATOMIC_ACK);
	memcpy(tail, qp->atomic_ack + TAIL, sizeof(tail));
	memcpy(&qp->atomic_icrc, qp->atomic_ack + ICRC, sizeof(qp->atomic_icrc));
	qp->atomic_icrc ^= pl_roce_icrc_tail(tail[0], tail[1]);
	qp->shaped = true;
}

static void put_aeth(struct pl_responder *r, const struct pl_responder_qp *qp,
	const struct pl_rdma_answer *answer, struct pl_frames *out)
{
	struct pl_roce packet = { .opcode = PL_ROCE_ACK,
		.psn = answer->psn,
		.msn = answer->msn,
		.syndrome = answer->syndrome };
	struct pl_counter *counter = &r->counters.naks;

	if (answer->kind == PL_RDMA_SAY_ATOMIC) {
		packet.opcode = PL_ROCE_ATOMIC_ACK;
		packet.original = answer->value;
		counter = &r->counters.atomic_acks;
	} else if (is_ack(answer)) {
		counter = &r->counters.acks;
	} else if ((answer->syndrome & 0x60) == PL_ROCE_RNR) {
		counter = &r->counters.rnr_naks;
	}
	put(r, qp, &packet, NULL, 0, out);
	pl_count(counter, 1);
}

#define CNP_BYTES 16 /* reserved */

/* Adds a notification for the queue pair that is to send more slowly (annex A17.9.3). */
static void put_cnp(struct pl_responder *r, const struct pl_responder_qp *qp, struct pl_frames *out)
{
	static const uint8_t reserved[CNP_BYTES];
	struct pl_roce packet = { .path = qp->c.path,
		.opcode = PL_ROCE_CNP,
		.notify = 0x40, /* BECN */
		.pkey = qp->c.pkey,
		.qpn = qp->c.peer_qpn };

	packet.path.ip_id = r->ip_id++;
	pl_frames_put(out, &packet, reserved, sizeof(reserved));
	pl_count(&r->counters.cnps, 1);
}

/* Adds the answers of one queue pair. Returns false when there is no more room. */
static bool answer_qp(struct pl_responder *r, struct pl_responder_qp *qp, struct pl_frames *out)
{
	if (qp->notify) {
		if (!pl_frames_room(out, 1, CNP_BYTES))
			return false;
		put_cnp(r, qp, out);
		qp->notify = false;
	}
	while (qp->answers_n > 0) {
		struct pl_rdma_answer *answer = pl_responder_answer(qp, 0);

		if (!pl_frames_room(out, 1, answer->kind == PL_RDMA_SAY_READ ? qp->c.mtu : 0))
			return false;
		if (answer->kind == PL_RDMA_SAY_ATOMIC && qp->shaped) {
			put_shaped(r, qp, answer, out);
		} else if (answer->kind != PL_RDMA_SAY_READ) {
			put_aeth(r, qp, answer, out);
			if (answer->kind == PL_RDMA_SAY_ATOMIC)
				shape(qp, out);
		} else if (!put_read(r, qp, answer, out)) {
			continue;
		}
		qp->answers_first =
			qp->answers_first + 1 < qp->answer_room ? qp->answers_first + 1 : 0;
		qp->answers_n--;
	}
	return true;
}

bool pl_responder_answers(struct pl_responder *r, struct pl_frames *out)
{
	while (r->due_first != PL_RDMA_INDEX_NONE) {
		struct pl_responder_qp *qp = &r->qps[r->due_first];

		if (!answer_qp(r, qp, out))
			return false;
		assert(qp->due &&
			(qp->next_due != PL_RDMA_INDEX_NONE || r->due_last == r->due_first));
		r->due_first = qp->next_due;
		qp->due = false;
	}
	return true;
}
