/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester writes into remote memory, in software. It takes work, answers and a time, and
 * gives frames to send; it owns no socket and no clock. InfiniBand architecture 1.x, 9.7.
 *
 * Unreliable connections (UC) never send again: a lost frame loses its contents.
 * Reliable ones (RC) keep what they sent until it is acknowledged, go back to what was lost (NAK,
 * timeout), wait when the peer says that it is not ready, and complete an atomic or a READ only by
 * its own answer. A READ may return bytes that were written after it, when its answer was lost and
 * the peer read again. After a loss fewer packets are under way, after a congestion notification
 * fewer are sent in a second (rdma/pace.h), both for a while. Answers count only from the peer's
 * address, and only for outstanding numbers: a forged NAK, which soft-RoCE accepts, has no effect.
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

/* Returns -EINVAL, -ENOMEM. */
int pl_requester_new(struct pl_requester **ret, const struct pl_requester_options *options);
void pl_requester_free(struct pl_requester *q);

#define PL_RDMA_FOR_EVER    7 /* as number of RNR retries */
#define PL_RDMA_WINDOW_MAX  (1u << 16)
#define PL_RDMA_MESSAGE_MAX (1u << 24)

struct pl_requester_qp {
	/* queue pair for answers; 0: drawn from the kernel's generator, never 1 */
	uint32_t qpn;
	uint8_t service; /* PL_ROCE_RC, PL_ROCE_UC */
	uint16_t mtu;    /* 256 to 4096, a power of two */
	uint16_t pkey;
	uint32_t psn; /* first packet number */
	uint32_t peer_qpn;
	struct pl_roce_path path; /* path of requests: src is this side */
	uint32_t messages;        /* number of messages that may wait or be under way, at least 1 */
	uint32_t message_bytes;   /* of the largest message */
	uint32_t window;          /* RC: packets under way, 2 to PL_RDMA_WINDOW_MAX */
	/* RC: atomics and READs under way, at most as many as the peer remembers; 0: none are
	 * accepted */
	uint32_t atomics;
	/* RC: time without an answer after which everything is sent again; up to ten times as long
	 * when answers usually take longer */
	uint64_t timeout_ns;
	uint8_t retries; /* RC: timeouts and sequence NAKs without progress before it gives up */
	uint8_t rnr_retries; /* RC: likewise for "not ready"; PL_RDMA_FOR_EVER */
};

/* Returns -EINVAL, -EEXIST, -ENOSPC, -ENOMEM. */
int pl_requester_qp_add(
	struct pl_requester *q, const struct pl_requester_qp *qp, uint32_t *ret_qpn);
/* Removes a queue pair; its work is forgotten without completions. Returns -ENOENT. */
int pl_requester_qp_remove(struct pl_requester *q, uint32_t qpn);
/* Makes a queue pair ready after an error, for a peer made anew: it sends from `psn` on to
 * `peer_qpn`. Returns -ENOENT. */
int pl_requester_qp_ready(struct pl_requester *q, uint32_t qpn, uint32_t psn, uint32_t peer_qpn);

struct pl_requester_status {
	bool failed;
	uint32_t psn, unacked; /* next new number; oldest without an answer */
	uint32_t posted;       /* messages not complete */
	uint32_t window;       /* packets that may be under way now */
	double rate;           /* packets per second after congestion; 0: no limit */
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
	bool quiet;               /* no completion on success */
	uint32_t imm;
	uint64_t id;
	uint64_t va; /* address at the peer; not of SEND */
	uint32_t rkey;
	uint32_t bytes;
	const void *data; /* WRITE and SEND: copied */
	/* READ of at most one packet: `bytes` bytes of the caller's memory until it completes */
	void *into;
	uint64_t swap_add, compare;
};

/* Posts work. Returns -EAGAIN when there is no room: send and take answers first; -ENOENT;
 * -EMSGSIZE; -EINVAL for an atomic or a READ where none are accepted; -ENOTCONN when the queue pair
 * is in error. */
int pl_requester_post(struct pl_requester *q, uint32_t qpn, const struct pl_rdma_work *work);

/* Adds frames that may be sent at this time, while there is room. Returns true when nothing more
 * can be sent now. */
bool pl_requester_send(struct pl_requester *q, uint64_t now_ns, struct pl_frames *out);

/* Time at which pl_requester_send next has something to do without an answer: a timeout or the end
 * of a wait; UINT64_MAX: never. */
uint64_t pl_requester_next_ns(const struct pl_requester *q);

/* Takes answers. causes: from pl_responder_batch, only answers and congestion notifications are
 * read; NULL: every packet is. */
void pl_requester_batch(
	struct pl_requester *q, const struct pl_batch *in, const uint8_t *causes, uint64_t now_ns);

enum pl_rdma_result {
	PL_RDMA_RESULT_OK,
	PL_RDMA_RESULT_INVALID,   /* NAK 0x61 */
	PL_RDMA_RESULT_ACCESS,    /* NAK 0x62 */
	PL_RDMA_RESULT_OPERATION, /* NAK 0x63 */
	PL_RDMA_RESULT_RETRIES,   /* no answer, or NAKs until the tries were used up */
	PL_RDMA_RESULT_RNR,       /* the peer had no receive until the tries were used up */
	PL_RDMA_RESULT_FLUSHED,   /* posted behind a message that failed */
};

struct pl_rdma_completed {
	uint64_t id;
	uint32_t qpn;
	uint8_t result;    /* enum pl_rdma_result */
	uint64_t original; /* atomics: the value before */
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
