/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a requester, for requester.c (what there is), request.c (sending) and acknowledge.c
 * (answers). */
#pragma once

#include <assert.h>

#include "rdma/index.h"
#include "rdma/pace.h"
#include "rdma/requester.h"

struct pl_requester_message {
	struct pl_rdma_work work; /* data points into the queue pair's memory */
	uint32_t psn, packets;
	bool sent;     /* its first packet was out once */
	bool answered; /* atomic, READ: `original` or the bytes are there */
	uint64_t original;
};

struct pl_requester_conn {
	struct pl_requester_qp c;
	bool used, failed;

	/* A ring: `first` is the oldest that is not complete, `cursor` of them were sent whole. */
	struct pl_requester_message *messages;
	uint8_t *memory;
	uint32_t first, n, cursor;

	uint32_t unacked;   /* oldest number without an answer */
	uint32_t next;      /* number of the next packet to send, new or again */
	uint32_t high;      /* behind the highest that was ever sent */
	uint32_t tail;      /* number of the next message that is posted */
	uint32_t since_ask; /* packets since one asked for an acknowledgement */
	uint32_t asked;     /* atomics and READs: sent and not answered */
	/* the one of them that was sent again because its answer must have been lost */
	uint32_t missed;
	bool ask; /* the next packet asks, whatever else: it is sent again */

	uint32_t allowed; /* packets on their way: the window, less after losses */
	uint32_t gained;  /* acknowledged since `allowed` last grew */
	/* while `unacked` is before it, what is lost belongs to a loss that was counted */
	uint32_t recover;
	struct pl_pace pace;

	uint64_t deadline_ns; /* 0: no timer runs */
	uint64_t wait_ns;     /* not ready: nothing is sent before; 0: none */
	uint8_t retries, rnr_retries;

	/* How long answers take (RFC 6298, of new packets only), for timeouts. */
	uint64_t timed_ns; /* when packet `timed` left; 0: none is timed */
	uint32_t timed;
	uint64_t rtt_ns, rtt_spread_ns; /* 0: not known */
};

struct pl_requester {
	struct pl_requester_options options;
	struct pl_rdma_index index;
	struct pl_requester_conn *conns;
	struct pl_rdma_completed *completions; /* a ring */
	uint32_t completions_n, completions_first, promised;
	uint32_t turn; /* whose turn it is to send */
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

/* Atomics and READs: nothing but an answer of their own completes them. */
static inline bool pl_requester_asks(const struct pl_requester_message *m)
{
	return pl_rdma_work_is_atomic(&m->work) || m->work.kind == PL_RDMA_WORK_READ;
}

/* requester.c: the oldest message is done. */
void pl_requester_finish(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result);
/* The oldest message ended so, the others are flushed, the queue pair is in error. */
void pl_requester_fail(
	struct pl_requester *q, struct pl_requester_conn *conn, enum pl_rdma_result result);

/* request.c: an answer that is not there after so long was lost: as long as answers usually take,
 * with room for how much that varies; at least what was asked for, at most ten times that. */
uint64_t pl_requester_timeout_ns(const struct pl_requester_conn *conn);

/* request.c: something was lost: fewer packets are on their way from now on. */
void pl_requester_narrow(struct pl_requester_conn *conn);
/* request.c: n packets were acknowledged. */
void pl_requester_widen(struct pl_requester_conn *conn, uint32_t n);

/* request.c: the next packet is number psn, which is outstanding. */
void pl_requester_rewind(struct pl_requester_conn *conn, uint32_t psn);
