/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters over TCP, the side that wants to write into a store (rdma/exchange.h,
 * remote/exchange_server.h): says which store and which queue pair of ours, and is told the other
 * one with key, address and geometry. The connection stays: when it ends, so has the queue pair
 * over there. Nothing here waits. One thread.
 *
 *   pl_exchange_client_open(&c, "10.0.0.2:7471", &ours, now, timeout, &diag);
 *   while ((r = pl_exchange_client_step(c, now, &theirs, &diag)) == 0) ... poll
 *   pl_exchange_client_fd(c) ...
 *   1: there it is; call it again now and then: below zero when the connection is no more
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "rdma/exchange.h"

struct pl_exchange_client;

/* `server` is "host:port", numeric. `ours` has the store's name and this side's queue pair; the
 * connection is made by its address, which proves that it is ours (remote/collector.h), where this
 * host has that address. -EINVAL, -ENOMEM, or what the system says at once, with diag. */
int pl_exchange_client_open(struct pl_exchange_client **ret, const char *server,
	const struct pl_exchange *ours, uint64_t now_ns, uint64_t timeout_ns, struct pl_diag *diag);
void pl_exchange_client_close(struct pl_exchange_client *c); /* NULL is fine */

/* Readable when a step has something to do. */
int pl_exchange_client_fd(const struct pl_exchange_client *c);

/* 1: agreed, *ret is the other side; 0: not yet; -ETIMEDOUT; -EACCES: refused, ret->refusal says
 * why; -EBADMSG and -EPROTO: what came is no answer of ours; -ECONNRESET: it was ended; others of
 * the system. All with diag, and for good. */
int pl_exchange_client_step(struct pl_exchange_client *c, uint64_t now_ns, struct pl_exchange *ret,
	struct pl_diag *diag);
