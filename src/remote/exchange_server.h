/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters over TCP, the side that has the stores (rdma/exchange.h has the messages). A peer
 * connects, sends a message with the store's name and its own queue pair, and gets the answer with
 * ours; it may ask for several stores. When the connection ends, whoever ended it, so do its queue
 * pairs: the owner is told. A peer that closes its sending half has its answers first, then the
 * connection ends: that it did not close both cannot be seen. So does one that sends what is no
 * message: it is counted, and nothing behind it is answered.
 *
 * Nothing here waits. A peer that sends nothing, half a message, or does not read what it gets is
 * closed after a time; the number of peers is bounded. One thread.
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

#define PL_EXCHANGE_ASKS_MAX 16 /* of one connection */

struct pl_exchange_server_options {
	const char *listen;  /* as pl_tcp_listen */
	uint32_t max_peers;  /* 0: 64 */
	uint32_t max_each;   /* of them, of one address; 0: all */
	uint64_t timeout_ns; /* for the first message, and for each that has begun; 0: 10 s */
	/* Whether this address may connect at all. NULL: every one. */
	bool (*allowed)(void *arg, const struct pl_addr *peer);
	/* A peer asks. 0: *ret_ours is the answer, and *ret_id what `ended` will name. Else why not
	 * (enum pl_exchange_refusal): it is told, and may ask again. */
	int (*ask)(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
		struct pl_exchange *ret_ours, uint64_t *ret_id);
	/* The connection by which it was asked for is no more. */
	void (*ended)(void *arg, uint64_t id);
	void *arg;
};

/* -EINVAL, -ENOMEM, or what the system says, with diag. */
int pl_exchange_server_open(struct pl_exchange_server **ret,
	const struct pl_exchange_server_options *options, struct pl_diag *diag);
/* Ends all connections. NULL is fine. */
void pl_exchange_server_close(struct pl_exchange_server *s);

int pl_exchange_server_fd(const struct pl_exchange_server *s);              /* readable: step */
const char *pl_exchange_server_address(const struct pl_exchange_server *s); /* "10.0.0.1:7471" */

/* Does what can be done now; to be called when the descriptor is readable, and once in a second or
 * so. */
void pl_exchange_server_step(struct pl_exchange_server *s, uint64_t now_ns);

/* The owner has no more use for what it gave this id to: its connection is ended, without `ended`
 * for it. */
void pl_exchange_server_drop(struct pl_exchange_server *s, uint64_t id);

/* During `ask`: whether the connection that asks has this id already. */
bool pl_exchange_server_asks(const struct pl_exchange_server *s, uint64_t id);

struct pl_exchange_server_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "remote/exchange_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_exchange_server_stats_list;

const struct pl_exchange_server_counters *pl_exchange_server_counters(
	const struct pl_exchange_server *s);
