/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager: two programs agree on queue pairs, packet numbers and limits over queue
 * pair 1, as librdmacm does (RDMA-CM, TCP port space; InfiniBand architecture 1.x chapter 12, annex
 * A11). Both sides; it takes packets and a time, has frames to send, and owns no socket and no
 * clock.
 *
 *   active    connect ─REQ──────────▶ request event ─ accept ─ REP ─▶ connected event ─RTU─▶
 *             connected event   passive
 *   either    disconnect ─DREQ─▶ closed event ─DREP─▶ closed event
 *
 * REQ, REP and DREQ are sent again until they are answered or the tries are used up; whatever comes
 * twice is answered from what is known. A peer that asks again, in another transaction, by the
 * communication id or queue pair of a connection that stands may have begun anew, or its address
 * was forged: a request proves nothing. The request is therefore answered as any other, and the old
 * connection ends as stale when the new one is confirmed, which only the peer itself can do (the
 * architecture, 12.9.8.3, ends it at the request; docs/protocols/roce.md). A lost RTU is made good
 * by the first data (pl_connector_heard). Messages count only from the address that the connection
 * is with. One event waits for each connection, the newest: a connection that was made and closed
 * before anybody asked is told as closed. A REP is sent four times at most, each after twice the
 * time (and no more often than the REQ allows): whoever asked may have forged the address. An RTU
 * that comes when the connection was given up is answered by a REJ, by which its sender learns that
 * there is none.
 *
 * A peer that vanishes sends no DREQ. The passive side can find that out (silent_ns): a peer that
 * was silent for half of that time is sent its REP again, which whoever is connected answers by an
 * RTU (12.9, as after a lost RTU), `tries` times in the other half; whoever is silent all the same
 * is given up, and told so by a DREQ, should it live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/stats.h"
#include "rdma/frames.h"
#include "wire/cm.h"

struct pl_connector;

struct pl_connector_options {
	const struct pl_addr
		*own;   /* this side's addresses, copied: packets to others are not for it */
	uint32_t n_own; /* at least one */
	uint8_t smac[6];
	uint16_t mtu; /* passive: the largest path MTU that is taken; 0: 4096 */
	/* 0: 64; those that are being made count, those that were closed a moment ago give way */
	uint32_t max_connections;
	/* Peers that may ask. NULL: every one. What others send is counted (denied) and changes
	 * nothing; their requests are rejected, a few in a second. */
	bool (*allowed)(void *arg, const struct pl_addr *peer);
	void *arg;
	/* messages of one source that are answered in a second without being part of a connection,
	 * of an IPv6 /64 four times as many; 0: 50 */
	uint32_t requests_each;
	uint64_t seed;                /* of the places of sources, which may share one; 0: drawn */
	uint32_t requests_per_second; /* new requests of all allowed sources together; 0: 400 */
	uint64_t resend_ns;           /* 0: 500 ms */
	uint64_t silent_ns; /* passive: peers that are silent for so long are given up; 0: never */
	uint8_t tries;      /* 0: 8 */
};

/* -EINVAL, -ENOMEM. */
int pl_connector_new(struct pl_connector **ret, const struct pl_connector_options *options);
void pl_connector_free(struct pl_connector *c);

/* This side's addresses from now on, copied; there may be none. -ENOMEM: they stay what they
 * were. */
int pl_connector_own(struct pl_connector *c, const struct pl_addr *own, uint32_t n);
/* Passive: the largest path MTU that is taken from now on, 256 to 4096. */
void pl_connector_mtu(struct pl_connector *c, uint16_t mtu);

#define PL_CONNECTION_PRIVATE_MAX 196

/* What one side says of itself. */
struct pl_connection_terms {
	uint32_t qpn, psn;            /* psn: the number with which the other side begins */
	uint8_t service;              /* PL_ROCE_RC, PL_ROCE_UC; the active side's word */
	uint16_t mtu;                 /* 256 to 4096; the active side's word */
	uint8_t resources;            /* READs and atomics that it takes at a time */
	uint8_t depth;                /* and that it will ask for */
	uint8_t retries, rnr_retries; /* 0 to 7 */
	uint8_t ack_timeout;          /* code: 4.096 us * 2^code; the active side's word */
	const void
		*private; /* the consumer's bytes; events point into the connection, until the next call */
	/* active: at most 56; passive: at most 196; in events with the zeros behind them */
	uint32_t private_len;
};

/* Whether requests to this TCP port of RDMA-CM are taken. -ENOSPC: more than 16 ports. */
int pl_connector_listen(struct pl_connector *c, uint16_t port);

/* Asks the peer at path->dst. The connection's number goes to *ret_id. -EINVAL, -ENOSPC. */
int pl_connector_connect(struct pl_connector *c, const struct pl_roce_path *path, uint16_t port,
	const struct pl_connection_terms *terms, uint64_t now_ns, uint32_t *ret_id);
/* Answers a request event. -ENOENT; -EINVAL (not asked, or too much private data). */
int pl_connector_accept(struct pl_connector *c, uint32_t id,
	const struct pl_connection_terms *terms, uint64_t now_ns);
int pl_connector_reject(struct pl_connector *c, uint32_t id, uint16_t reason, uint64_t now_ns);
/* Of one that asked and did not confirm: without a word it is as if it never had been, and no event
 * tells of it. -ENOENT; -EINVAL (it is connected). */
int pl_connector_forget(struct pl_connector *c, uint32_t id);
/* Of one that is connected. -ENOENT, -EINVAL. */
int pl_connector_disconnect(struct pl_connector *c, uint32_t id, uint64_t now_ns);
/* Data came from the peer: as good as its RTU, and a sign of life. -ENOENT. */
int pl_connector_heard(struct pl_connector *c, uint32_t id, uint64_t now_ns);

/* Takes a packet to queue pair 1. */
void pl_connector_receive(struct pl_connector *c, const struct pl_roce *packet, uint64_t now_ns);
/* Puts what is to be sent at this time; false: there was no more room. */
bool pl_connector_send(struct pl_connector *c, uint64_t now_ns, struct pl_frames *out);
/* When pl_connector_send next has something to do by itself; UINT64_MAX: never. */
uint64_t pl_connector_next_ns(const struct pl_connector *c);

enum pl_connection_event_kind {
	PL_CONNECTION_REQUEST = 1, /* somebody asks: `terms`, `port`; accept or reject */
	PL_CONNECTION_CONNECTED,   /* active: `terms` are the answer */
	PL_CONNECTION_REJECTED,    /* `reason`, and `largest_mtu` where that is it */
	PL_CONNECTION_TIMEOUT,     /* no answer */
	PL_CONNECTION_CLOSED,
	PL_CONNECTION_SILENT, /* the peer was given up; as good as closed */
};

struct pl_connection_event {
	uint32_t id;
	uint8_t kind; /* enum pl_connection_event_kind */
	uint16_t reason, port;
	uint16_t largest_mtu;             /* 0: the other side does not say */
	struct pl_roce_path path;         /* from this side to the peer */
	struct pl_connection_terms terms; /* the peer's */
};

/* False: nothing happened. */
bool pl_connector_event(struct pl_connector *c, struct pl_connection_event *ret);

struct pl_connector_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "rdma/cm_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_connector_stats_list;

const struct pl_connector_counters *pl_connector_counters(const struct pl_connector *c);
