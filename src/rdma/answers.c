/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers: what waits with each queue pair, and how it becomes packets. */
#include <string.h>

#include "rdma/responder_state.h"
#include "wire/layers.h"

static void due(struct pl_responder *r, struct pl_responder_qp *qp)
{
	const uint32_t place = (uint32_t)(qp - r->qps);

	if (qp->due)
		return;
	qp->due = true;
	qp->next_due = PL_RDMA_INDEX_NONE;
	if (r->due_first == PL_RDMA_INDEX_NONE)
		r->due_first = place;
	else
		r->qps[r->due_last].next_due = place;
	r->due_last = place;
}

/* Of the i-th that waits, or where it will; i is at most answer_room. */
static uint32_t ring_place(const struct pl_responder_qp *qp, uint32_t i)
{
	const uint32_t at = qp->answers_first + i;

	return at < qp->answer_room ? at : at - qp->answer_room;
}

static bool is_ack(const struct pl_rdma_answer *answer)
{
	return answer->kind == PL_RDMA_SAY_AETH && answer->syndrome == PL_ROCE_ACK_UNLIMITED;
}

bool pl_responder_say(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer)
{
	if (qp->answers_n > 0 && is_ack(answer)) {
		struct pl_rdma_answer *last = &qp->answers[ring_place(qp, qp->answers_n - 1)];

		if (is_ack(last)) {
			*last = *answer;
			return true;
		}
	}
	if (!pl_responder_may_say(qp, 1))
		return false;
	qp->answers[ring_place(qp, qp->answers_n)] = *answer;
	qp->answers_n++;
	due(r, qp);
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

/* One response of a READ. True when it was the last; an access that is lost ends it with a NAK. */
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

/* Where things stand in the shape of an atomic's answer. */
#define IP       14
#define IP_ID    (IP + 4)
#define IP_SUM   (IP + 10)
#define PSN      (IP + 20 + 8 + 9)
#define AETH     (IP + 20 + 8 + 12)
#define ORIGINAL (AETH + 4)
#define ICRC     (ORIGINAL + 8)

static void store16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static void store32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

/* The answer before, with what is new in this one. */
static void put_shaped(struct pl_responder *r, struct pl_responder_qp *qp,
	const struct pl_rdma_answer *answer, struct pl_frames *out)
{
	const uint64_t original = __builtin_bswap64(answer->value);
	uint8_t *const p = qp->atomic_ack;
	const uint16_t id = r->ip_id++;
	uint32_t icrc;

	/* RFC 1624, equation 3. */
	store16(p + IP_SUM, pl_checksum_fold((uint32_t)(uint16_t)~pl_be16(p + IP_SUM) +
					     (uint16_t)~pl_be16(p + IP_ID) + id));
	store16(p + IP_ID, id);
	store32(p + PSN - 1, answer->psn & PL_ROCE_PSN_MASK); /* no acknowledgement asked for */
	store32(p + AETH, (uint32_t)answer->syndrome << 24 | (answer->msn & PL_ROCE_PSN_MASK));
	memcpy(p + ORIGINAL, &original, sizeof(original));
	icrc = pl_roce_icrc_ip4(p + IP, ICRC - IP);
	memcpy(p + ICRC, &icrc, sizeof(icrc));
	pl_frames_copy(out, p, sizeof(qp->atomic_ack));
	pl_count(&r->counters.atomic_acks, 1);
}

/* The frame that was put last is the shape of those to come. */
static void shape(struct pl_responder_qp *qp, const struct pl_frames *out)
{
	const struct pl_packet *last = &out->batch.pkts[out->batch.n - 1];

	if (!qp->plain || last->len != sizeof(qp->atomic_ack))
		return;
	memcpy(qp->atomic_ack, last->data, sizeof(qp->atomic_ack));
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

/* The answers of one queue pair; false when there is no more room. */
static bool answer_qp(struct pl_responder *r, struct pl_responder_qp *qp, struct pl_frames *out)
{
	while (qp->answers_n > 0) {
		struct pl_rdma_answer *answer = &qp->answers[qp->answers_first];

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
		qp->answers_first = ring_place(qp, 1);
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
		r->due_first = qp->next_due;
		qp->due = false;
	}
	return true;
}
