/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: the side that writes into somebody else's memory, in software. It takes work,
 * answers and a time, and has frames to send; it owns no socket and no clock. InfiniBand
 * architecture 1.x, 9.7.
 *
 * Unreliable connections (UC) send and forget: a lost frame costs what was in it and nothing else.
 * Reliable ones (RC) keep what they sent until it is acknowledged, go back to what was lost (NAK,
 * timeout), wait when the peer says that it is not ready, and take the answer of an atomic or a
 * READ to be the one thing that completes it. A READ may see what was written after it, should its
 * answer be lost and the peer read again. After a loss fewer packets are on their way, after a
 * congestion notification fewer are sent in a second (rdma/pace.h), both for a while. Answers count
 * only from the peer's address, and only for numbers that are outstanding: what soft-RoCE lets a
 * forged NAK do, it cannot do here.
 *
 *   pl_requester_post(q, qpn, &work);            as often as there is work
 *   pl_requester_send(q, now, &frames);          what may be sent now; repeats; times out
 *   pl_requester_batch(q, batch, causes, now);   what came back
 *   pl_requester_completions(q, done, max);
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/stats.h"
#include "rdma/frames.h"

struct pl_requester;

struct pl_requester_options {
	uint32_t max_qps; /* 1 to 65536; 0: 64 */
	/* work posted and completions not yet fetched, all queue pairs; 0: 65536 */
	uint32_t max_completions;
};

/* -EINVAL, -ENOMEM. */
int pl_requester_new(struct pl_requester **ret, const struct pl_requester_options *options);
void pl_requester_free(struct pl_requester *q);

#define PL_RDMA_FOR_EVER    7 /* as number of RNR retries */
#define PL_RDMA_WINDOW_MAX  (1u << 16)
#define PL_RDMA_MESSAGE_MAX (1u << 24)

struct pl_requester_qp {
	/* where answers come; 0: one is drawn from the kernel's generator; 1 is never one */
	uint32_t qpn;
	uint8_t service; /* PL_ROCE_RC, PL_ROCE_UC */
	uint16_t mtu;    /* 256 to 4096, a power of two */
	uint16_t pkey;
	uint32_t psn; /* the first to send */
	uint32_t peer_qpn;
	struct pl_roce_path path; /* of requests: src is this side */
	uint32_t messages;        /* room for work, at least 1 */
	uint32_t message_bytes;   /* of the largest message */
	uint32_t window;          /* RC: packets on their way, 2 to PL_RDMA_WINDOW_MAX */
	/* RC: atomics and READs on their way, at most what the peer remembers; 0: none are taken */
	uint32_t atomics;
	/* RC: without an answer for so long everything is sent again; longer, up to ten times,
	 * where answers usually take longer */
	uint64_t timeout_ns;
	uint8_t retries; /* RC: timeouts and sequence NAKs without progress before it gives up */
	uint8_t rnr_retries; /* RC: likewise "not ready"; PL_RDMA_FOR_EVER */
};

/* -EINVAL, -EEXIST, -ENOSPC, -ENOMEM. */
int pl_requester_qp_add(
	struct pl_requester *q, const struct pl_requester_qp *qp, uint32_t *ret_qpn);
/* Its work is forgotten without completions. -ENOENT. */
int pl_requester_qp_remove(struct pl_requester *q, uint32_t qpn);
/* After an error, with a peer made anew: sends again from `psn` to `peer_qpn`. -ENOENT. */
int pl_requester_qp_ready(struct pl_requester *q, uint32_t qpn, uint32_t psn, uint32_t peer_qpn);

struct pl_requester_status {
	bool failed;
	uint32_t psn, unacked; /* next new number; oldest without an answer */
	uint32_t posted;       /* messages not complete */
	uint32_t window;       /* packets that may be on their way now */
	double rate;           /* packets per second that congestion leaves; 0: no limit */
};

int pl_requester_qp_status(
	const struct pl_requester *q, uint32_t qpn, struct pl_requester_status *ret);

struct pl_rdma_work {
	enum {
		PL_RDMA_WORK_WRITE,
		PL_RDMA_WORK_SEND,
		PL_RDMA_WORK_ADD,
		PL_RDMA_WORK_SWAP,
		PL_RDMA_WORK_READ
	} kind : 8;
	bool have_imm, solicited; /* WRITE and SEND */
	bool quiet;               /* no completion when it goes well */
	uint32_t imm;
	uint64_t id;
	uint64_t va; /* all but SEND */
	uint32_t rkey;
	uint32_t bytes;
	const void *data; /* WRITE and SEND: copied */
	void *into; /* READ of at most one packet: `bytes` of the caller's until it completes */
	uint64_t swap_add, compare;
};

/* -EAGAIN: no room, send and take answers first. -ENOENT; -EMSGSIZE; -EINVAL (an atomic or a READ
 * where none are taken); -ENOTCONN (the queue pair is in error). */
int pl_requester_post(struct pl_requester *q, uint32_t qpn, const struct pl_rdma_work *work);

/* Puts what may be sent at this time while there is room. True: nothing more can be sent now. */
bool pl_requester_send(struct pl_requester *q, uint64_t now_ns, struct pl_frames *out);

/* When pl_requester_send next has something to do without an answer coming: a timeout or the end of
 * a wait; UINT64_MAX: never. */
uint64_t pl_requester_next_ns(const struct pl_requester *q);

/* Takes answers. causes: as pl_responder_batch left them, only answers and congestion notifications
 * are looked at; NULL: every packet is. */
void pl_requester_batch(
	struct pl_requester *q, const struct pl_batch *in, const uint8_t *causes, uint64_t now_ns);

enum pl_rdma_result {
	PL_RDMA_RESULT_OK,
	PL_RDMA_RESULT_INVALID,   /* NAK 0x61 */
	PL_RDMA_RESULT_ACCESS,    /* NAK 0x62 */
	PL_RDMA_RESULT_OPERATION, /* NAK 0x63 */
	PL_RDMA_RESULT_RETRIES,   /* no answer, or never the one hoped for */
	PL_RDMA_RESULT_RNR,       /* the peer never had a receive */
	PL_RDMA_RESULT_FLUSHED,   /* behind one of these */
};

struct pl_rdma_completed {
	uint64_t id;
	uint32_t qpn;
	uint8_t result;    /* enum pl_rdma_result */
	uint64_t original; /* atomics: what was there before */
};

uint32_t pl_requester_completions(
	struct pl_requester *q, struct pl_rdma_completed *ret, uint32_t max);

struct pl_requester_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "rdma/requester_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_requester_stats_list;

const struct pl_requester_counters *pl_requester_counters(const struct pl_requester *q);
