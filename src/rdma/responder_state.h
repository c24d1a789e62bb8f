/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a responder, for responder.c (regions, queue pairs), fast.c and receive.c
 * (requests), answers.c. */
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

/* A waiting answer. An ACK covers everything before it. */
struct pl_rdma_answer {
	enum { PL_RDMA_SAY_AETH, PL_RDMA_SAY_ATOMIC, PL_RDMA_SAY_READ } kind : 8;
	uint8_t syndrome;
	bool begun; /* READ: the first response was sent */
	uint32_t psn, msn;
	uint64_t value; /* ATOMIC: the value before; READ: address of the rest */
	uint32_t rkey, left;
};

/* A READ or atomic that was executed, for repeats of it. */
struct pl_rdma_memory {
	bool used, read;
	uint32_t psn, packets;
	uint64_t value; /* atomic: the value before; READ: its address */
	uint32_t rkey, length;
};

/* Bytes of an atomic's answer without a tag on IPv4: Ethernet, IP, UDP, BTH, AETH, the value
 * before, ICRC. */
#define PL_RDMA_ATOMIC_ACK (14 + 20 + 8 + 12 + 4 + 8 + 4)

#define PL_RDMA_LATE       512 /* records by which a switch's record may be late */

struct pl_responder_qp {
	/* The members that a WRITE reads come first. */
	struct pl_rdma_qp c; /* as configured */
	uint32_t psn, msn;
	uint64_t packets, refused; /* packets to this queue pair; of them, not executed */
	enum pl_rdma_state state;
	/* Ethernet without tag, IPv4, no rule beyond addresses: the fast path may serve it */
	bool plain;
	uint64_t addrs; /* plain: source and destination as in a request's IPv4 header */
	bool learn;     /* answers go to the source of the first accepted request */
	bool told;      /* a NAK for this gap was sent */
	bool due;       /* is in the queue of queue pairs with answers */
	bool notify;    /* a congestion notification is due before the answers */
	uint32_t next_due;

	/* The message that is half received. */
	enum { PL_RDMA_NONE, PL_RDMA_IN_WRITE, PL_RDMA_IN_SEND } in : 8;
	uint64_t at; /* WRITE: the next address; SEND: bytes so far */
	uint32_t rkey, left, length;

	struct pl_rdma_receive *receives; /* a ring of c.receives */
	uint32_t posted, first;

	struct pl_rdma_answer *answers; /* a ring of answer_room */
	uint32_t answers_n, answers_first, answer_room;
	/* plain: an atomic's answer, from which others differ in the last words only, and its ICRC
	 * without these */
	uint8_t atomic_ack[PL_RDMA_ATOMIC_ACK];
	uint32_t atomic_icrc;
	bool shaped; /* atomic_ack and its ICRC are valid */

	struct pl_rdma_memory *memory; /* a ring of c.depth */
	uint32_t remembered;           /* index of the next entry in `memory` */
	bool used;

	/* With c.rc_opcodes: a bit for each of the last PL_RDMA_LATE numbers, whether it came. */
	uint64_t came[PL_RDMA_LATE / 64];

	/* Time and `packets` at the last congestion notification. */
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
	uint32_t completions_promised; /* completions that posted receives will need */
	uint32_t errors_waiting;       /* PL_RDMA_DONE_ERROR among the completions */

	uint64_t own_mac; /* six bytes; 0: any */
	uint64_t now_ns;  /* 0: unknown */
	struct pl_guard guard;

	uint16_t ip_id;
	struct pl_responder_counters counters;
};

static inline struct pl_responder_qp *pl_responder_qp_of(const struct pl_responder *r, uint32_t qpn)
{
	uint32_t place = pl_rdma_index_find(&r->qp_index, qpn);

	return place == PL_RDMA_INDEX_NONE ? NULL : &r->qps[place];
}

/* Returns true when a frame of at least 14 bytes is for this side. */
static inline bool pl_responder_is_meant(const struct pl_responder *r, const uint8_t *frame)
{
	return r->own_mac == 0 || pl_be64(frame) >> 16 == r->own_mac;
}

/* Finds the region of a key. NULL: none. */
static inline const struct pl_rdma_region *pl_responder_region_of(
	const struct pl_responder *r, uint32_t rkey)
{
	const uint32_t place =
		rkey == 0 ? PL_RDMA_INDEX_NONE : pl_rdma_index_find(&r->region_index, rkey);

	return place == PL_RDMA_INDEX_NONE ? NULL : &r->regions[place];
}

/*
 * Place of [va, va + bytes) of the region (which may be NULL); NULL, with *ret_cause, when the
 * queue pair may not reach it with this access.
 */
static inline uint8_t *pl_responder_within(const struct pl_rdma_region *region,
	const struct pl_responder_qp *qp, uint64_t va, uint64_t bytes, uint8_t access,
	enum pl_rdma_cause *ret_cause)
{
	/* No sum here can overflow: the beginning is checked, then the length behind it. */
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

/* As pl_responder_within, with the region found by its key. */
static inline uint8_t *pl_responder_reach(const struct pl_responder *r,
	const struct pl_responder_qp *qp, uint32_t rkey, uint64_t va, uint64_t bytes,
	uint8_t access, enum pl_rdma_cause *ret_cause)
{
	return pl_responder_within(
		pl_responder_region_of(r, rkey), qp, va, bytes, access, ret_cause);
}

/* Returns true for a number so far from the expected one that no window explains it: a guess. */
static inline bool pl_responder_is_far(const struct pl_responder_qp *qp, uint32_t psn)
{
	const int32_t ahead = pl_psn_diff(psn, qp->psn);

	return ahead > 65536 || ahead < -65536;
}

/* responder.c: adds a completion, for which there is room. */
void pl_responder_complete(struct pl_responder *r, const struct pl_rdma_completion *done);
/* Sets the queue pair to error and adds completions about it. */
void pl_responder_fail(
	struct pl_responder *r, struct pl_responder_qp *qp, enum pl_rdma_cause cause);

/* receive.c: handles one packet on the slow path. The caller counts the result. */
enum pl_rdma_cause pl_responder_receive(struct pl_responder *r, const struct pl_packet *pkt);

/* Remembers a READ or atomic for repeats of it. */
static inline void pl_responder_remember(
	struct pl_responder_qp *qp, const struct pl_rdma_memory *memory)
{
	assert(qp->remembered < qp->c.depth);
	qp->memory[qp->remembered] = *memory;
	qp->remembered = qp->remembered + 1 < qp->c.depth ? qp->remembered + 1 : 0;
}

/* answers.c: adds a waiting answer. Returns false when the ring is full. An ACK is merged with an
 * ACK that waits last. */
bool pl_responder_say(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer);
/* Returns true when the ring has room for n more. */
static inline bool pl_responder_may_say(const struct pl_responder_qp *qp, uint32_t n)
{
	return qp->answer_room - qp->answers_n >= n;
}

/* Place of the i-th waiting answer, or of the next one; i is below answer_room. */
static inline struct pl_rdma_answer *pl_responder_answer(
	const struct pl_responder_qp *qp, uint32_t i)
{
	const uint32_t at = qp->answers_first + i;

	assert(i < qp->answer_room && qp->answers_first < qp->answer_room);

	return &qp->answers[at < qp->answer_room ? at : at - qp->answer_room];
}

/* answers.c: adds the queue pair to those with answers. */
void pl_responder_due(struct pl_responder *r, struct pl_responder_qp *qp);

/* Adds a waiting answer as it is; there is room. */
static inline void pl_responder_queue(
	struct pl_responder *r, struct pl_responder_qp *qp, const struct pl_rdma_answer *answer)
{
	assert(qp->answers_n < qp->answer_room);
	*pl_responder_answer(qp, qp->answers_n) = *answer;
	qp->answers_n++;
	if (!qp->due)
		pl_responder_due(r, qp);
}

/* Remembers and answers an atomic that was executed, with numbers advanced; there is room. */
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
