/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder does in software what an RDMA NIC does with requests. It takes frames, executes
 * their requests in memory regions, and gives answers to send; it owns no socket and no clock.
 * InfiniBand architecture 1.x chapters 9.7 (reliable), 9.8 (unreliable); docs/protocols/roce.md has
 * the rules and where soft-RoCE differs.
 *
 *   regions       memory that peers may read, write and add to: key, protection domain, access,
 *                 bounds
 *   queue pairs   reliable (RC) and unreliable (UC) connections from one peer each; unreliable
 *                 datagrams (UD, SEND only)
 *   receives      buffers for SENDs, and slips that an immediate uses up; each comes back as a
 *                 completion
 *
 * Everything about a request is checked before its first byte is written. A request from another
 * address than the peer's, of another service, or with a wrong ICRC never changes state. Errors are
 * answered as the architecture says and counted by cause (rdma/causes.def).
 *
 *   pl_responder_batch(r, in, causes);               executes
 *   while (!pl_responder_answers(r, &frames))        READ responses may be many
 *           send frames, clear
 *   n = pl_responder_completions(r, done, max);
 *
 * Requests that a switch marked (both ECN bits) are answered with congestion notifications besides,
 * at most one of a queue pair in 50 us (pl_responder_now), or in 64 packets when no time is known.
 *
 * An answer waits with its queue pair until there is room for it. Only the newest of a queue pair's
 * waiting acknowledgements is kept. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/diag.h"
#include "base/stats.h"
#include "rdma/frames.h"

struct pl_responder;

/* Access to a region, and operations that a queue pair allows its peer. */
#define PL_RDMA_READ   0x01
#define PL_RDMA_WRITE  0x02
#define PL_RDMA_ATOMIC 0x04

enum pl_rdma_cause {
#define PL_RDMA_CAUSE(id, name, nak, help) PL_RDMA_C_##id,
#include "rdma/causes.def"
#undef PL_RDMA_CAUSE
	PL_RDMA_CAUSE_MAX,
};

const char *pl_rdma_cause_name(enum pl_rdma_cause cause);
const char *pl_rdma_cause_help(enum pl_rdma_cause cause);
/* AETH syndrome that a reliable connection gets for this cause, without a timer code; 0: no NAK. */
uint8_t pl_rdma_cause_nak(enum pl_rdma_cause cause);

/* Limits of all allocations. */
struct pl_responder_options {
	uint32_t max_qps;     /* 1 to 2^20; 0: 64 */
	uint32_t max_regions; /* 1 to 2^20; 0: 64 */
	/* receives posted and completions not yet fetched, all queue pairs; 0: 4096 */
	uint32_t max_completions;
	/* seed of the hash over sources that guess, which may share a place; 0: drawn */
	uint64_t seed;
};

/* Returns -ENOMEM, -EINVAL. */
int pl_responder_new(struct pl_responder **ret, const struct pl_responder_options *options);
void pl_responder_free(struct pl_responder *r);

struct pl_rdma_region {
	void *base;      /* the caller's memory; stays until the region is removed */
	uint64_t bytes;  /* at least 1 */
	uint64_t va;     /* address that peers use for base */
	uint32_t key;    /* 0: drawn from the kernel's generator, 32 bits */
	uint32_t domain; /* queue pairs reach regions of their own domain only */
	uint8_t access;  /* PL_RDMA_* */
};

/* Registers memory; the key goes to *ret_key. Returns -EINVAL (no bytes, end beyond 2^64, atomics
 * with va and base not alike modulo 8), -EEXIST (the key is in use), -ENOSPC. */
int pl_responder_region_add(
	struct pl_responder *r, const struct pl_rdma_region *region, uint32_t *ret_key);
/* Moves the key to other memory of the same length, whose address has the same last three bits:
 * later requests access that memory. Returns -ENOENT, -EINVAL. */
int pl_responder_region_move(struct pl_responder *r, uint32_t key, void *base);
/* Removes a region; afterwards nothing refers to its memory: messages under way and waiting READ
 * responses meet an access error. Returns -ENOENT. */
int pl_responder_region_remove(struct pl_responder *r, uint32_t key);

enum pl_rdma_state { PL_RDMA_INIT, PL_RDMA_READY, PL_RDMA_ERROR };

#define PL_RDMA_DEPTH_MAX   128
#define PL_RDMA_RECEIVE_MAX 65536

struct pl_rdma_qp {
	uint32_t qpn;      /* 0: drawn from the kernel's generator, 24 bits; never 1 */
	uint8_t service;   /* enum pl_roce_service */
	uint8_t access;    /* PL_RDMA_* */
	uint8_t state;     /* PL_RDMA_INIT: drops everything; PL_RDMA_READY */
	uint8_t rnr_timer; /* code 0 to 31, sent when no receive is posted */
	/* READs and atomics remembered, and largest number that wait for their answers */
	uint8_t depth;
	uint16_t mtu; /* 256, 512, 1024, 2048, 4096 */
	uint16_t pkey;
	uint32_t domain;
	uint32_t psn;      /* first expected packet number */
	uint32_t peer_qpn; /* queue pair of the peer, for answers */
	uint32_t qkey;     /* UD */
	uint32_t receives; /* largest number of posted receives, at most PL_RDMA_RECEIVE_MAX */
	/* Path of answers: src is this side, dst the peer; requests must take the reverse path.
	 * dmac all zero: the source of the first accepted request. UD: dst unspecified is any
	 * peer. */
	struct pl_roce_path path;
	/* Rules beyond addresses; requests that break them are dropped. */
	bool any_vlan; /* false: requests have the tag of `path`; VLAN 0 and no tag are the same */
	/* requests have the source path.dmac; when that is zero, the source of the first request
	 * executed */
	bool check_mac;
	uint8_t min_ttl; /* 255: the peer is on this link */
	/* UC: writes and sends have the opcodes of RC, from a peer that neither takes
	 * acknowledgements nor repeats, such as a switch */
	bool rc_opcodes;
	uint32_t max_jump; /* UC: largest distance of a number from the expected one; 0: any */
};

/* Adds a queue pair; its number goes to *ret_qpn. Returns -EINVAL, -EEXIST, -ENOSPC, -ENOMEM. */
int pl_responder_qp_add(struct pl_responder *r, const struct pl_rdma_qp *qp, uint32_t *ret_qpn);
/* Removes a queue pair; its receives are forgotten without completions. Returns -ENOENT. */
int pl_responder_qp_remove(struct pl_responder *r, uint32_t qpn);
/* Sets a queue pair from any state to READY, expecting `psn`; messages half received and waiting
 * answers are forgotten, posted receives stay. Returns -ENOENT; -ENOSPC while too many completions
 * wait. */
int pl_responder_qp_ready(struct pl_responder *r, uint32_t qpn, uint32_t psn);

struct pl_rdma_qp_status {
	enum pl_rdma_state state;
	uint32_t psn, msn; /* expected; messages completed, modulo 2^24 */
	uint32_t receives; /* posted */
	/* packets to this queue pair since it was added; of them, not executed */
	uint64_t packets, refused;
	/* with rc_opcodes: address behind the last bytes placed, but for late records; 0: none
	 * were */
	uint64_t at;
};

int pl_responder_qp_status(
	const struct pl_responder *r, uint32_t qpn, struct pl_rdma_qp_status *ret);

/* Posts a receive: `bytes` of the caller's memory at buffer (NULL with 0) until its completion.
 * Returns -ENOENT, -ENOSPC. */
int pl_responder_post(
	struct pl_responder *r, uint32_t qpn, uint64_t id, void *buffer, uint32_t bytes);

enum pl_rdma_completion_kind {
	/* a SEND is in the buffer; UD: behind 40 bytes of GRH, or whose end is the IPv4 header */
	PL_RDMA_DONE_SEND,
	PL_RDMA_DONE_WRITE,   /* a WRITE with immediate came; the receive's buffer was not used */
	PL_RDMA_DONE_FLUSHED, /* the receive is given back because the queue pair went to error */
	PL_RDMA_DONE_ERROR,   /* the queue pair went to error by `cause`; without a receive */
};

struct pl_rdma_completion {
	uint64_t id; /* of the receive */
	uint32_t qpn;
	uint32_t bytes; /* of the message */
	uint32_t imm;
	uint32_t src_qpn; /* UD */
	uint8_t kind;     /* enum pl_rdma_completion_kind */
	uint8_t cause;    /* enum pl_rdma_cause */
	bool have_imm, solicited;
};

/* Fetches up to max completions in their order; returns their number. */
uint32_t pl_responder_completions(
	struct pl_responder *r, struct pl_rdma_completion *ret, uint32_t max);

/* Drops Ethernet frames to other MAC addresses than this one from now on. NULL, as in the
 * beginning: drops none. */
void pl_responder_own_mac(struct pl_responder *r, const uint8_t mac[6]);

/* Executes the requests of a batch in their order. ret_causes[i] is the result of packet i (enum
 * pl_rdma_cause; OK: executed); NULL: not wanted. Nothing is kept of the batch. */
void pl_responder_batch(struct pl_responder *r, const struct pl_batch *in, uint8_t *ret_causes);

/*
 * Sets the time, of any clock that never steps, before a batch; with a time, guesses are counted by
 * source address. A guess is a queue pair that does not exist or is another peer's, a key that does
 * not exist or is of another domain, or a number more than 65536 from the expected one. A source
 * with 100 guesses in a second is a suspect, an alarm is counted, and its far duplicates
 * are no longer answered; everything else goes on, because addresses can be forged. Without a time
 * (0) guesses are not counted.
 */
void pl_responder_now(struct pl_responder *r, uint64_t now_ns);

enum pl_rdma_guess {
	PL_RDMA_GUESS_QP,     /* no such queue pair */
	PL_RDMA_GUESS_PEER,   /* another peer's */
	PL_RDMA_GUESS_KEY,    /* no such key, or one of another domain */
	PL_RDMA_GUESS_NUMBER, /* far from the expected packet number */
	PL_RDMA_GUESSES,
};

struct pl_rdma_suspect {
	struct pl_addr addr;
	uint64_t guesses;                /* guesses since the source is in the table */
	uint64_t kinds[PL_RDMA_GUESSES]; /* guesses by kind */
	bool now;                        /* guessed in the last ten seconds */
};

#define PL_RDMA_SUSPECTS_MAX 256

/* Fetches up to max remembered suspects; returns their number. */
uint32_t pl_responder_suspects(
	const struct pl_responder *r, struct pl_rdma_suspect *ret, uint32_t max);
/* Fetches a suspect whose alarm was not fetched yet. Returns false when there is none. Only worth a
 * call when `alarms` has grown. */
bool pl_responder_alarm(struct pl_responder *r, struct pl_rdma_suspect *ret);

/* Adds answers. Returns true when all are added, false when there is no more room. */
bool pl_responder_answers(struct pl_responder *r, struct pl_frames *out);

struct pl_responder_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "rdma/responder_stats.def"
#undef PL_STAT
	struct pl_counter causes[PL_RDMA_CAUSE_MAX]; /* packets by cause */
};
extern const struct pl_stats pl_responder_stats_list;

const struct pl_responder_counters *pl_responder_counters(const struct pl_responder *r);
