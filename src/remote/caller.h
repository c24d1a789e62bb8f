/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters by RDMA-CM (rdma/cm.h), the side that wants to write into a store: what
 * remote/exchange_client.h is over TCP. A call asks a collector's port for a reliable queue pair;
 * private data of the request is the store's name, in 24 bytes with zeros behind, and the
 * access that is asked for (PL_RDMA_*; 0, or no such byte: all); that of the reply the message of
 * rdma/exchange.h. The connection stays: when the collector disconnects, so ends its queue pair. A
 * collector that ends without a word says nothing here; that writes are not acknowledged any more
 * does.
 *
 *   pl_call_open(&call, caller, "10.0.0.2:7471", &path, 7471, &ours, now, &diag);
 *   while ((r = pl_call_step(call, &theirs, &largest_mtu, &diag)) == 0)
 *       ... pl_caller_send(caller, now, &frames) ... pl_caller_batch(caller, batch, now) ...
 *   1: there it is; call it again now and then: below zero when the connection is no more
 *
 * Nothing here waits. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic.h"
#include "rdma/cm.h"
#include "rdma/exchange.h"

struct pl_caller;
struct pl_call;

/* The NIC is borrowed. At most so many calls at a time, besides those that are just being ended.
 * -ENOMEM; or as pl_nic_addresses, with diag. */
int pl_caller_new(
	struct pl_caller **ret, struct pl_nic *nic, uint32_t max_calls, struct pl_diag *diag);
void pl_caller_free(struct pl_caller *c); /* NULL is fine; all calls are closed by then */

/* What came in. Packets to other queue pairs than 1 are parsed, and that is all. */
void pl_caller_batch(struct pl_caller *c, const struct pl_batch *in, uint64_t now_ns);
/* As pl_connector_send and _next_ns. When nothing is to be sent any more, every call that was
 * closed is known to be. */
bool pl_caller_send(struct pl_caller *c, uint64_t now_ns, struct pl_frames *out);
uint64_t pl_caller_next_ns(const struct pl_caller *c);

/* `server` is for messages; `path` to its address and `port` are where it is. `ours` has the
 * store's name and this side's queue pair, RC. -EINVAL, -ENOMEM, -ENOSPC, with diag. */
int pl_call_open(struct pl_call **ret, struct pl_caller *c, const char *server,
	const struct pl_roce_path *path, uint16_t port, const struct pl_exchange *ours,
	uint64_t now_ns, struct pl_diag *diag);
void pl_call_close(struct pl_call *call, uint64_t now_ns); /* NULL is fine */

/* 1: agreed, *ret is the other side; 0: not yet; -EACCES: rejected; -EMSGSIZE: rejected for the
 * path MTU, *ret_largest (may be 0) is what it takes; -ETIMEDOUT; -EBADMSG: its answer is none of
 * ours; -ECONNRESET: it was ended. All with diag, and for good. */
int pl_call_step(
	struct pl_call *call, struct pl_exchange *ret, uint16_t *ret_largest, struct pl_diag *diag);
