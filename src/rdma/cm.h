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
 * REQ, REP and DREQ are sent again until they are answered or the tries are used up; a message that
 * comes twice gets the same answer. A request in another transaction with the communication id or
 * queue pair of an established connection may be from a peer that has restarted, or from a forged
 * address. Such a request is answered like any other, and the old connection ends as stale when the
 * new one is confirmed, which only the peer itself can do (the architecture, 12.9.8.3, ends it at
 * the request; docs/protocols/roce.md). The first data replace a lost RTU (pl_connector_heard).
 * Messages count only from the address that the connection is with. Each connection keeps its
 * newest event only: a connection that was made and closed before pl_connector_event was called is
 * reported as closed. A REP is sent four times at most, each after twice the time (and no more
 * often than the REQ allows), because the address of the request may be forged. An RTU for a
 * connection that was given up is answered by a REJ, so that its sender learns of the end.
 *
 * A peer that vanishes sends no DREQ. The passive side can detect this (silent_ns): a peer that was
 * silent for half of that time gets its REP again, which a connected peer answers by an RTU (12.9,
 * as after a lost RTU), `tries` times in the other half; a peer that stays silent is given up, and
 * gets a DREQ in case it lives.
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
		*own;   /* this side's addresses, copied; packets to other addresses are ignored */
	uint32_t n_own; /* at least one */
	uint8_t smac[6];
	uint16_t mtu; /* passive: the largest path MTU that is accepted; 0: 4096 */
	/* 0: 64; connections being made count, recently closed ones may be replaced */
	uint32_t max_connections;
	/* Returns true for peers that may ask. NULL: every peer. Messages of other peers are
	 * counted (denied) and change nothing; their requests are rejected, a few in a second. */
	bool (*allowed)(void *arg, const struct pl_addr *peer);
	void *arg;
	/* messages of one source that are answered in a second without being part of a connection;
	 * four times as many of an IPv6 /64; 0: 50 */
	uint32_t requests_each;
	/* seed of the hash over sources, which may share a place; 0: drawn */
	uint64_t seed;
	uint32_t requests_per_second; /* new requests of all allowed sources together; 0: 400 */
	uint64_t resend_ns;           /* 0: 500 ms */
	uint64_t silent_ns; /* passive: silence after which a peer is given up; 0: never */
	uint8_t tries;      /* 0: 8 */
};

/* Returns -EINVAL, -ENOMEM. */
int pl_connector_new(struct pl_connector **ret, const struct pl_connector_options *options);
void pl_connector_free(struct pl_connector *c);

/* Sets this side's addresses, copied; n may be 0. Returns -ENOMEM: the addresses stay as they
 * were. */
int pl_connector_own(struct pl_connector *c, const struct pl_addr *own, uint32_t n);
/* Passive: sets the largest path MTU that is accepted, 256 to 4096. */
void pl_connector_mtu(struct pl_connector *c, uint16_t mtu);

#define PL_CONNECTION_PRIVATE_MAX 196

/* Terms of one side of a connection. */
struct pl_connection_terms {
	uint32_t qpn, psn;            /* psn: first packet number that the peer sends */
	uint8_t service;              /* PL_ROCE_RC, PL_ROCE_UC; set by the active side */
	uint16_t mtu;                 /* 256 to 4096; set by the active side */
	uint8_t resources;            /* READs and atomics that this side takes at a time */
	uint8_t depth;                /* READs and atomics that this side sends at a time */
	uint8_t retries, rnr_retries; /* 0 to 7 */
	uint8_t ack_timeout;          /* code: 4.096 us * 2^code; set by the active side */
	const void
		*private; /* private data; events point into the connection, until the next call */
	/* active: at most 56; passive: at most 196; in events with the zeros behind them */
	uint32_t private_len;
};

/* Begins to take requests to this TCP port of RDMA-CM. Returns -ENOSPC for more than 16 ports. */
int pl_connector_listen(struct pl_connector *c, uint16_t port);

/* Sends a request to the peer at path->dst. The connection's number goes to *ret_id. Returns
 * -EINVAL, -ENOSPC. */
int pl_connector_connect(struct pl_connector *c, const struct pl_roce_path *path, uint16_t port,
	const struct pl_connection_terms *terms, uint64_t now_ns, uint32_t *ret_id);
/* Answers a request event. Returns -ENOENT; -EINVAL when there is no request to answer, or for too
 * much private data. */
int pl_connector_accept(struct pl_connector *c, uint32_t id,
	const struct pl_connection_terms *terms, uint64_t now_ns);
int pl_connector_reject(struct pl_connector *c, uint32_t id, uint16_t reason, uint64_t now_ns);
/* Forgets a connection of the passive side that is not confirmed, without a message or an event.
 * Returns -ENOENT; -EINVAL when it is connected. */
int pl_connector_forget(struct pl_connector *c, uint32_t id);
/* Ends a connection that is connected. Returns -ENOENT, -EINVAL. */
int pl_connector_disconnect(struct pl_connector *c, uint32_t id, uint64_t now_ns);
/* Takes data from the peer as its RTU, and as a sign of life. Returns -ENOENT. */
int pl_connector_heard(struct pl_connector *c, uint32_t id, uint64_t now_ns);

/* Takes a packet to queue pair 1. */
void pl_connector_receive(struct pl_connector *c, const struct pl_roce *packet, uint64_t now_ns);
/* Adds frames that are due at this time. Returns false when there was no more room. */
bool pl_connector_send(struct pl_connector *c, uint64_t now_ns, struct pl_frames *out);
/* Time at which pl_connector_send next has something to do without a message; UINT64_MAX: never. */
uint64_t pl_connector_next_ns(const struct pl_connector *c);

enum pl_connection_event_kind {
	PL_CONNECTION_REQUEST = 1, /* a peer requests a connection: `terms`, `port`; accept or
				    * reject it */
	PL_CONNECTION_CONNECTED,   /* active: `terms` are the peer's answer */
	PL_CONNECTION_REJECTED,    /* `reason`, and `largest_mtu` when the MTU is the reason */
	PL_CONNECTION_TIMEOUT,     /* no answer */
	PL_CONNECTION_CLOSED,
	PL_CONNECTION_SILENT, /* the silent peer was given up; treat as closed */
};

struct pl_connection_event {
	uint32_t id;
	uint8_t kind; /* enum pl_connection_event_kind */
	uint16_t reason, port;
	uint16_t largest_mtu;             /* 0: the peer did not tell */
	struct pl_roce_path path;         /* from this side to the peer */
	struct pl_connection_terms terms; /* the peer's */
};

/* Fetches the next event. Returns false when there is none. */
bool pl_connector_event(struct pl_connector *c, struct pl_connection_event *ret);

struct pl_connector_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "rdma/cm_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_connector_stats_list;

const struct pl_connector_counters *pl_connector_counters(const struct pl_connector *c);
