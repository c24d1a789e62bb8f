/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server of the parameter exchange over TCP: the side that has the stores (rdma/exchange.h has the
 * messages). A peer connects, sends a message with the store's name and its own queue pair, and
 * gets the answer with ours; it may ask for several stores. When the connection ends, whichever
 * peer ended it, its queue pairs end, and the owner is notified. A peer that closes its sending
 * half gets its answers first, then the connection ends, because a closed half looks like a closed
 * connection. The connection of a peer that sends something else than a message ends likewise: it
 * is counted, and nothing behind it is answered.
 *
 * No function here waits. The connection of a peer that sends nothing, sends half a message, or
 * does not read its answers is closed after a time; the number of peers is bounded. One thread uses
 * a server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/diag.h"
#include "base/stats.h"
#include "netio/tcp.h"
#include "rdma/exchange.h"

struct pl_exchange_server;

#define PL_EXCHANGE_ASKS_MAX 16 /* requests of one connection */

struct pl_exchange_server_options {
	const char *listen;  /* as pl_tcp_listen */
	uint32_t max_peers;  /* 0: 64 */
	uint32_t max_each;   /* largest number of peers of one address; 0: max_peers */
	uint64_t timeout_ns; /* for the first message, and for each that has begun; 0: 10 s */
	/* Returns true when this address may connect. NULL: every address. */
	bool (*allowed)(void *arg, const struct pl_addr *peer);
	/* A peer requests a queue pair. Returns 0 with the answer in *ret_ours and an id for
	 * `ended` in *ret_id, or the reason of refusal (enum pl_exchange_refusal), which is sent to
	 * the peer; it may ask again. */
	int (*ask)(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
		struct pl_exchange *ret_ours, uint64_t *ret_id);
	/* The connection that requested this id has ended. */
	void (*ended)(void *arg, uint64_t id);
	void *arg;
};

/* Returns -EINVAL, -ENOMEM, or an error of the system, with diag. */
int pl_exchange_server_open(struct pl_exchange_server **ret,
	const struct pl_exchange_server_options *options, struct pl_diag *diag);
/* Ends all connections. NULL is fine. */
void pl_exchange_server_close(struct pl_exchange_server *s);

int pl_exchange_server_fd(const struct pl_exchange_server *s);              /* readable: step */
const char *pl_exchange_server_address(const struct pl_exchange_server *s); /* "10.0.0.1:7471" */

/* Does what can be done now; call it when the descriptor is readable, and about once a second. */
void pl_exchange_server_step(struct pl_exchange_server *s, uint64_t now_ns);

/* Ends the connection of this id, without `ended` for it: the owner gave up the id. */
void pl_exchange_server_drop(struct pl_exchange_server *s, uint64_t id);

/* During `ask`: returns true when the connection that asks has this id already. */
bool pl_exchange_server_asks(const struct pl_exchange_server *s, uint64_t id);

struct pl_exchange_server_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "remote/exchange_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_exchange_server_stats_list;

const struct pl_exchange_server_counters *pl_exchange_server_counters(
	const struct pl_exchange_server *s);
