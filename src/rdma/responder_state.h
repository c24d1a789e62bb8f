/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a responder, for responder.c (what there is), fast.c and receive.c (requests),
 * answers.c. */
#pragma once

#include <assert.h>

#include "rdma/guard.h"
#include "rdma/index.h"
#include "rdma/responder.h"

static_assert(PL_RDMA_GUESSES == PL_GUARD_KINDS, "the guard counts by kind");

struct pl_rdma_receive {
	uint64_t id;
	uint8_t *buffer;
	uint32_t bytes;
};

/* An answer that waits. An ACK covers everything before it. */
struct pl_rdma_answer {
	enum { PL_RDMA_SAY_AETH, PL_RDMA_SAY_ATOMIC, PL_RDMA_SAY_READ } kind : 8;
	uint8_t syndrome;
	bool begun; /* READ: the first response is out */
	uint32_t psn, msn;
	uint64_t value; /* ATOMIC: the original; READ: the address of what is left */
	uint32_t rkey, left;
};

/* A READ or atomic that was executed, should it come again. */
struct pl_rdma_memory {
	bool used, read;
	uint32_t psn, packets;
	uint64_t value; /* atomic: the original; READ: its address */
	uint32_t rkey, length;
};

/* Bytes of an atomic's answer without a tag on IPv4: Ethernet, IP, UDP, BTH, AETH, the original,
 * ICRC. */
#define PL_RDMA_ATOMIC_ACK (14 + 20 + 8 + 12 + 4 + 8 + 4)

struct pl_responder_qp {
	/* What a WRITE looks at stands in front. */
	struct pl_rdma_qp c; /* as configured */
	uint32_t psn, msn;
	uint64_t packets, refused; /* that named it; of them, not executed */
	enum pl_rdma_state state;
	/* Ethernet without tag, IPv4, no rule beyond addresses: the fast path may serve it */
	bool plain;
	uint64_t addrs; /* plain: source and destination as they stand in a request's IPv4 header */
	bool learn;     /* answers go to where the first accepted request came from */
	bool told;      /* NAK for this gap is out */
	bool due;       /* is in the queue of those with answers */
	bool notify;    /* a congestion notification waits in front of them */
	uint32_t next_due;

	/* The message that is half there. */
	enum { PL_RDMA_NONE, PL_RDMA_IN_WRITE, PL_RDMA_IN_SEND } in : 8;
	uint64_t at; /* WRITE: the next address; SEND: bytes so far */
	uint32_t rkey, left, length;

	struct pl_rdma_receive *receives; /* a ring of c.receives */
	uint32_t posted, first;

	struct pl_rdma_answer *answers; /* a ring of answer_room */
	uint32_t answers_n, answers_first, answer_room;
	/* plain: an atomic's answer, whose like differs in the last words only, and its ICRC
	 * without these */
	uint8_t atomic_ack[PL_RDMA_ATOMIC_ACK];
	uint32_t atomic_icrc;
	bool shaped; /* they are there */

	struct pl_rdma_memory *memory; /* a ring of c.depth */
	uint32_t remembered;           /* where the next one goes */
	bool used;

	/* When the last notification was put in line: the time and `packets`. */
	uint64_t notified_ns, notified_packets;
};

struct pl_responder {
	struct pl_responder_options options;
	struct pl_rdma_index qp_index, region_index;
	struct pl_responder_qp *qps;
	struct pl_rdma_region *regions; /* base NULL: free */

	uint32_t due_first, due_last; /* queue pairs with answers; PL_RDMA_INDEX_NONE: none */

	struct pl_rdma_completion *completions; /* a ring */
	uint32_t completions_n, completions_first;
	uint32_t completions_promised; /* to posted receives */
	uint32_t errors_waiting;       /* PL_RDMA_DONE_ERROR among the completions */

	uint64_t own_mac; /* its six bytes; 0: any */
	uint64_t now_ns;  /* 0: not told */
	struct pl_guard guard;

	uint16_t ip_id;
	struct pl_responder_counters counters;
};

static inline struct pl_responder_qp *pl_responder_qp_of(const struct pl_responder *r, uint32_t qpn)
{
	uint32_t place = pl_rdma_index_find(&r->qp_index, qpn);

	return place == PL_RDMA_INDEX_NONE ? NULL : &r->qps[place];
}

/* Whether a frame of at least 14 bytes is for this side. */
static inline bool pl_responder_is_meant(const struct pl_responder *r, const uint8_t *frame)
{
	return r->own_mac == 0 || pl_be64(frame) >> 16 == r->own_mac;
}

/* NULL: there is none with that key. */
static inline const struct pl_rdma_region *pl_responder_region_of(
	const struct pl_responder *r, uint32_t rkey)
{
	const uint32_t place =
		rkey == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&r->region_index, rkey);

	return place == PL_RDMA_INDEX_NONE ? NULL : &r->regions[place];
}

/*
 * Where [va, va + bytes) of the region (which may be NULL) lies; NULL and *ret_cause when the queue
 * pair may not reach it with this access.
 */
static inline uint8_t *pl_responder_within(const struct pl_rdma_region *region,
	const struct pl_responder_qp *qp, uint64_t va, uint64_t bytes, uint8_t access,
	enum pl_rdma_cause *ret_cause)
{
	/* Without sums that could wrap: the beginning, then what is behind it. */
	if (region == NULL)
		*ret_cause = PL_RDMA_C_KEY;
	else if (region->domain != qp->c.domain)
		*ret_cause = PL_RDMA_C_DOMAIN;
	else if ((region->access & access) != access)
		*ret_cause = PL_RDMA_C_REGION_ACCESS;
	else if (va < region->va || va - region->va > region->bytes ||
		 bytes > region->bytes - (va - region->va))
		*ret_cause = PL_RDMA_C_BOUNDS;
	else
		return (uint8_t *)region->base + (va - region->va);
	return NULL;
}

/* The same by the region's key. */
static inline uint8_t *pl_responder_reach(const struct pl_responder *r,
	const struct pl_responder_qp *qp, uint32_t rkey, uint64_t va, uint64_t bytes,
	uint8_t access, enum pl_rdma_cause *ret_cause)
{
	return pl_responder_within(
		pl_responder_region_of(r, rkey), qp, va, bytes, access, ret_cause);
}

/* So far from the expected number that no window explains it: a guess. */
static inline bool pl_responder_is_far(const struct pl_responder_qp *qp, uint32_t psn)
{
	const int32_t ahead = pl_psn_diff(psn, qp->psn);

	return ahead > 65536 || ahead < -65536;
}

/* responder.c: a completion; there is room, it was promised. */
void pl_responder_complete(struct pl_responder *r, const struct pl_rdma_completion *done);
/* The queue pair goes to error: completions say so. */
void pl_responder_fail(
	struct pl_responder *r, struct pl_responder_qp *qp, enum pl_rdma_cause cause);

/* receive.c: one packet, the general way. What it returns is not counted yet. */
enum pl_rdma_cause pl_responder_receive(struct pl_responder *r, const struct pl_packet *pkt);

/* Should it come again. */
static inline void pl_responder_remember(
	struct pl_responder_qp *qp, const struct pl_rdma_memory *memory)
{
	assert(qp->remembered < qp->c.depth);
	qp->memory[qp->remembered] = *memory;
	qp->remembered = qp->remembered + 1 < qp->c.depth ? qp->remembered + 1 : 0;
}

/* answers.c: has an answer wait. False when the ring is full. An ACK joins the ACK that waits
 * last. */
bool pl_responder_say(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer);
/* The ring has room for n more. */
static inline bool pl_responder_may_say(const struct pl_responder_qp *qp, uint32_t n)
{
	return qp->answer_room - qp->answers_n >= n;
}

/* Where the i-th answer that waits stands, or will; i is below answer_room. */
static inline struct pl_rdma_answer *pl_responder_answer(
	const struct pl_responder_qp *qp, uint32_t i)
{
	const uint32_t at = qp->answers_first + i;

	assert(i < qp->answer_room && qp->answers_first < qp->answer_room);

	return &qp->answers[at < qp->answer_room ? at : at - qp->answer_room];
}

/* answers.c: the queue pair takes its place among those with answers. */
void pl_responder_due(struct pl_responder *r, struct pl_responder_qp *qp);

/* Has an answer wait as it is. There is room. */
static inline void pl_responder_queue(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer)
{
	assert(qp->answers_n < qp->answer_room);
	*pl_responder_answer(qp, qp->answers_n) = *answer;
	qp->answers_n++;
	if (!qp->due)
		pl_responder_due(r, qp);
}

/* An atomic was executed, numbers are advanced: it is remembered and answered. There is room. */
static inline void pl_responder_atomic_done(
	struct pl_responder *r, struct pl_responder_qp *qp, uint32_t psn, uint64_t original)
{
	pl_responder_remember(
		qp, &(struct pl_rdma_memory){
			    .used = true, .psn = psn, .packets = 1, .value = original });
	pl_responder_queue(r, qp,
		&(struct pl_rdma_answer){ .kind = PL_RDMA_SAY_ATOMIC,
			.syndrome = PL_ROCE_ACK_UNLIMITED,
			.psn = psn,
			.msn = qp->msn,
			.value = original });
}
