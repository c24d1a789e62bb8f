/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a connection manager, for cm.c (connections: what is asked of them, and their
 * times) and cm_mad.c (messages: what they say, and what those that come do to a connection). */
#pragma once

#include "rdma/cm.h"
#include "rdma/index.h"

#define PL_CM_PORTS_MAX 16
#define PL_CM_NOTES_MAX 32 /* answers that belong to no connection */
#define PL_CM_SOURCES   1024
#define PL_CM_DENIALS                                                                              \
	10 /* requests of sources that are not allowed which are answered in a second */

enum pl_connection_state {
	CM_FREE,
	CM_REQ_SENT,
	CM_REQ_SEEN,
	CM_REP_SENT,
	CM_UP,
	CM_DREQ_SENT,
	CM_DONE
};

struct pl_connection {
	enum pl_connection_state state;
	bool active;
	uint32_t id, remote_id;
	uint64_t transaction;
	uint16_t port, reason, largest_mtu;
	struct pl_roce_path path;
	struct pl_connection_terms own, peer;
	uint8_t private[PL_CONNECTION_PRIVATE_MAX]; /* the peer's */
	uint8_t event;                              /* enum pl_connection_event_kind; 0: none */

	uint8_t mad[PL_CM_BYTES]; /* what was sent last */
	bool once;                /* it is to be sent now, once */
	/* it is sent again then; UP, passive: to see who is there; DONE: forgotten then */
	uint64_t at_ns;
	uint64_t wait_ns; /* for the next time */
	uint8_t tries;
	bool again;         /* it was sent before */
	bool rejected;      /* what it says is a REJ */
	uint8_t cm_retries; /* passive: how often the peer wants its answer repeated */
	uint8_t asked;      /* UP, passive: so often in vain */
};

/* Something that no connection says. */
struct pl_cm_note {
	struct pl_roce_path path;
	uint8_t mad[PL_CM_BYTES];
};

struct pl_connector {
	struct pl_connector_options options;
	struct pl_addr *own; /* options.n_own */
	struct pl_rdma_index index;
	struct pl_connection *connections;
	uint16_t ports[PL_CM_PORTS_MAX];
	uint32_t ports_n;
	struct pl_cm_note notes[PL_CM_NOTES_MAX];
	uint32_t notes_n;
	/* Of the present second: */
	uint64_t second_ns;         /* when it began */
	uint32_t requests, denials; /* new requests taken; rejected ones of sources not allowed */
	uint16_t by_source[PL_CM_SOURCES]; /* messages answered, by a hash of the source */
	uint64_t seed;                     /* of that hash */
	uint32_t psn;
	struct pl_connector_counters counters;
};

/* cm.c */

/* NULL: there is none of this number. */
struct pl_connection *pl_connection_find(struct pl_connector *c, uint32_t id);
/* A new one with a number of its own; NULL: no room. */
struct pl_connection *pl_connection_add(struct pl_connector *c, uint64_t now_ns);
/* Those that were closed go when their time is over and their event was fetched. */
void pl_connection_forget_old(struct pl_connector *c, uint64_t now_ns);
/* It is over: `event` (enum pl_connection_event_kind; 0: none) says how. */
void pl_connection_finish(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns);
/* The peer confirmed it: older ones of the same peer that have one of its numbers are stale, and
 * end. */
void pl_connection_confirm(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns);
/* The peer is given up, and told so. */
void pl_connection_give_up(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns);

/* cm_mad.c: what a connection says from now on. */

void pl_connection_say_req(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns);
void pl_connection_say_rep(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns);
void pl_connection_say_rej(
	struct pl_connector *c, struct pl_connection *conn, uint16_t reason, uint64_t now_ns);
void pl_connection_say_dreq(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns);
/* A frame with a message. */
void pl_connector_put(struct pl_connector *c, const struct pl_roce_path *path, const uint8_t *mad,
	struct pl_frames *out);
