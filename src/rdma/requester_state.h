/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a requester, for requester.c (queue pairs, work), request.c (sending) and
 * acknowledge.c (answers). */
#pragma once

#include <assert.h>

#include "rdma/index.h"
#include "rdma/pace.h"
#include "rdma/requester.h"

struct pl_requester_message {
	struct pl_rdma_work work; /* data points into memory of the queue pair */
	uint32_t psn, packets;
	bool sent;     /* its first packet was sent at least once */
	bool answered; /* atomic, READ: `original` or the bytes have come */
	uint64_t original;
};

struct pl_requester_conn {
	struct pl_requester_qp c;
	bool used, failed;

	/* A ring: `first` is the oldest incomplete message, `cursor` of them were sent whole. */
	struct pl_requester_message *messages;
	uint8_t *memory;
	uint32_t first, n, cursor;

	uint32_t unacked;   /* oldest number without an answer */
	uint32_t next;      /* number of the next packet to send, new or again */
	uint32_t high;      /* number after the highest that was ever sent */
	uint32_t tail;      /* packet number of the next message posted */
	uint32_t since_ask; /* packets since the last one that asked for an acknowledgement */
	uint32_t asked;     /* atomics and READs: sent and not answered */
	/* number of the one that was sent again because its answer must have been lost */
	uint32_t missed;
	bool ask; /* the next packet requests an acknowledgement in any case, because it is sent
		   * again */

	uint32_t allowed; /* packets that may be under way: the window, fewer after losses */
	uint32_t gained;  /* packets acknowledged since `allowed` last grew */
	/* while `unacked` is before this number, a loss belongs to one that was counted */
	uint32_t recover;
	struct pl_pace pace;

	uint64_t deadline_ns; /* 0: no timer runs */
	uint64_t wait_ns;     /* not ready: end of the wait; 0: none */
	uint8_t retries, rnr_retries;

	/* Time that answers take (RFC 6298, of new packets only), for timeouts. */
	uint64_t timed_ns; /* time at which packet `timed` left; 0: none is timed */
	uint32_t timed;
	uint64_t rtt_ns, rtt_spread_ns; /* 0: unknown */
};

struct pl_requester {
	struct pl_requester_options options;
	struct pl_rdma_index index;
	struct pl_requester_conn *conns;
	struct pl_rdma_completed *completions; /* a ring */
	uint32_t completions_n, completions_first, promised;
	uint32_t turn; /* index of the next queue pair that may send */
	uint16_t ip_id;
	struct pl_requester_counters counters;
};

static inline struct pl_requester_message *pl_requester_message(
	const struct pl_requester_conn *conn, uint32_t i)
{
	const uint32_t place = conn->first + i;

	assert(i < conn->n && conn->first < conn->c.messages);

	return &conn->messages[place < conn->c.messages ? place : place - conn->c.messages];
}

static inline bool pl_rdma_work_is_atomic(const struct pl_rdma_work *w)
{
	return w->kind == PL_RDMA_WORK_ADD || w->kind == PL_RDMA_WORK_SWAP;
}

/* Returns true for atomics and READs: only their own answer completes them. */
static inline bool pl_requester_asks(const struct pl_requester_message *m)
{
	return pl_rdma_work_is_atomic(&m->work) || m->work.kind == PL_RDMA_WORK_READ;
}

/* requester.c: completes the oldest message. */
void pl_requester_finish(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result);
/* Ends the oldest message with this result, flushes the others, and sets the queue pair to
 * error. */
void pl_requester_fail(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result);

/* request.c: time after which an answer counts as lost: as long as answers usually take, plus their
 * variation; at least the configured timeout, at most ten times that. */
uint64_t pl_requester_timeout_ns(const struct pl_requester_conn *conn);

/* request.c: reduces the number of packets that may be under way, after a loss. */
void pl_requester_narrow(struct pl_requester_conn *conn);
/* request.c: notes that n packets were acknowledged. */
void pl_requester_widen(struct pl_requester_conn *conn, uint32_t n);

/* request.c: makes the outstanding packet number psn the next one to send. */
void pl_requester_rewind(struct pl_requester_conn *conn, uint32_t psn);
