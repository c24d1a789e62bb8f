/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a connection manager, for cm.c (connections: calls of the owner, and timers) and
 * cm_mad.c (messages: writes them, and applies those that come to a connection). */
#pragma once

#include "rdma/cm.h"
#include "rdma/index.h"

#define PL_CM_PORTS_MAX 16
#define PL_CM_NOTES_MAX 32 /* answers that belong to no connection */
#define PL_CM_SOURCES   1024
#define PL_CM_DENIALS   10 /* rejections of sources that are not allowed, in a second */

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

	uint8_t mad[PL_CM_BYTES]; /* message sent last */
	bool once;                /* the message is to be sent once, now */
	/* time of the next repeat; UP, passive: of the next question to a silent peer; DONE: of
	 * forgetting */
	uint64_t at_ns;
	uint64_t wait_ns; /* interval to the repeat after that */
	uint8_t tries;
	bool again;         /* the message was sent before */
	bool rejected;      /* the message is a REJ */
	uint8_t cm_retries; /* passive: number of repeats of the answer that the peer allows */
	uint8_t asked;      /* UP, passive: number of questions without an answer */
};

/* A message that belongs to no connection. */
struct pl_cm_note {
	struct pl_roce_path path;
	uint8_t mad[PL_CM_BYTES];
};

struct pl_connector {
	struct pl_connector_options options;
	struct pl_addr *own; /* array of options.n_own */
	struct pl_rdma_index index;
	struct pl_connection *connections;
	uint16_t ports[PL_CM_PORTS_MAX];
	uint32_t ports_n;
	struct pl_cm_note notes[PL_CM_NOTES_MAX];
	uint32_t notes_n;
	/* Counts of the present second: */
	uint64_t second_ns;         /* when it began */
	uint32_t requests, denials; /* new requests taken; requests of denied sources rejected */
	uint16_t by_source[PL_CM_SOURCES]; /* messages answered, by a hash of the source */
	uint64_t seed;                     /* of the hash over sources */
	uint32_t psn;
	struct pl_connector_counters counters;
};

/* cm.c */

/* Finds a connection by its number. NULL: none. */
struct pl_connection *pl_connection_find(struct pl_connector *c, uint32_t id);
/* Makes a connection with a new number; NULL: no room. */
struct pl_connection *pl_connection_add(struct pl_connector *c, uint64_t now_ns);
/* Removes closed connections whose time is over and whose event was fetched. */
void pl_connection_forget_old(struct pl_connector *c, uint64_t now_ns);
/* Ends a connection, with `event` for the owner (enum pl_connection_event_kind; 0: none). */
void pl_connection_finish(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns);
/* Gives up a peer, and sends it a DREQ. */
void pl_connection_give_up(
	struct pl_connector *c, struct pl_connection *conn, uint8_t event, uint64_t now_ns);

/* cm_mad.c: set the message that a connection sends from now on. */

void pl_connection_say_req(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns);
void pl_connection_say_rep(struct pl_connector *c, struct pl_connection *conn,
	const struct pl_connection_terms *t, uint64_t now_ns);
void pl_connection_say_rej(
	struct pl_connector *c, struct pl_connection *conn, uint16_t reason, uint64_t now_ns);
void pl_connection_say_dreq(struct pl_connector *c, struct pl_connection *conn, uint64_t now_ns);
/* Adds a frame with a message. */
void pl_connector_put(struct pl_connector *c, const struct pl_roce_path *path, const uint8_t *mad,
	struct pl_frames *out);
