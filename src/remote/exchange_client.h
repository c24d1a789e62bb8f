/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Client of the parameter exchange over TCP (rdma/exchange.h, remote/exchange_server.h): the side
 * that wants to write into a store sends the store's name and its queue pair, and gets the peer's
 * queue pair with key, address and parameters. The connection stays: when it ends, the peer's queue
 * pair has ended. Nothing here waits. One thread.
 *
 *   pl_exchange_client_open(&c, "10.0.0.2:7471", &ours, now, timeout, &diag); while ((r =
 *   pl_exchange_client_step(c, now, &theirs, &diag)) == 0) ... poll pl_exchange_client_fd(c) ... 1:
 *   agreed; call it again now and then: below zero when the connection has ended
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "rdma/exchange.h"

struct pl_exchange_client;

/* `server` is "host:port", numeric. `ours` has the store's name and this side's queue pair; the
 * connection is bound to the address in `ours` where this host has it, which proves the address
 * (remote/collector.h). Returns -EINVAL, -ENOMEM, or an immediate error of the system, with
 * diag. */
int pl_exchange_client_open(struct pl_exchange_client **ret, const char *server,
	const struct pl_exchange *ours, uint64_t now_ns, uint64_t timeout_ns, struct pl_diag *diag);
void pl_exchange_client_close(struct pl_exchange_client *c); /* NULL is fine */

/* Descriptor that is readable when a step has something to do. */
int pl_exchange_client_fd(const struct pl_exchange_client *c);

/* Returns 1 when agreed, with the peer in *ret; 0 while not yet; -ETIMEDOUT; -EACCES when refused,
 * the reason in ret->refusal; -EBADMSG and -EPROTO when the answer is not a message of
 * rdma/exchange.h; -ECONNRESET when the connection was ended; other errors of the system. Errors
 * have diag and are final. */
int pl_exchange_client_step(struct pl_exchange_client *c, uint64_t now_ns, struct pl_exchange *ret,
	struct pl_diag *diag);
