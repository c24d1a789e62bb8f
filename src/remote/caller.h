/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Client of RDMA-CM (rdma/cm.h): the peer that wants to write into a store, as
 * remote/exchange_client.h does over TCP. A call requests a reliable queue pair at a collector's
 * port; the request's private data are the store's name, in 24 bytes with zeros behind, and the
 * requested access (PL_RDMA_*; 0, or no such byte: all); the reply's private data are the message
 * of rdma/exchange.h. The connection stays: when the collector disconnects, its queue pair ends. A
 * collector that ends without a DREQ is not noticed here, only by writes without acknowledgement.
 *
 *   pl_call_open(&call, caller, "10.0.0.2:7471", &path, 7471, &ours, now, &diag);
 *   while ((r = pl_call_step(call, &theirs, &largest_mtu, &diag)) == 0)
 *       ... pl_caller_send(caller, now, &frames) ... pl_caller_batch(caller, batch, now) ...
 *   1: agreed; call it again now and then: below zero when the connection has ended
 *
 * No function here waits. One thread uses a caller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic.h"
#include "rdma/cm.h"
#include "rdma/exchange.h"

struct pl_caller;
struct pl_call;

/* The NIC is borrowed. At most max_calls calls at a time, besides those that are being ended.
 * Returns -ENOMEM, or an error as pl_nic_addresses, with diag. */
int pl_caller_new(
	struct pl_caller **ret, struct pl_nic *nic, uint32_t max_calls, struct pl_diag *diag);
void pl_caller_free(struct pl_caller *c); /* NULL is fine; all calls are closed by then */

/* Takes the packets of a batch. Packets to other queue pairs than 1 are parsed and left alone. */
void pl_caller_batch(struct pl_caller *c, const struct pl_batch *in, uint64_t now_ns);
/* As pl_connector_send and pl_connector_next_ns. When nothing is left to send, the peers of all
 * closed calls know of the end, or the tries are used up. */
bool pl_caller_send(struct pl_caller *c, uint64_t now_ns, struct pl_frames *out);
uint64_t pl_caller_next_ns(const struct pl_caller *c);

/* `server` is the text for messages; `path` leads to its address, and `port` is its port. `ours`
 * has the store's name and the RC queue pair of this side. Returns -EINVAL, -ENOMEM, -ENOSPC, with
 * diag. */
int pl_call_open(struct pl_call **ret, struct pl_caller *c, const char *server,
	const struct pl_roce_path *path, uint16_t port, const struct pl_exchange *ours,
	uint64_t now_ns, struct pl_diag *diag);
void pl_call_close(struct pl_call *call, uint64_t now_ns); /* NULL is fine */

/* Returns 1 when agreed, with the peer in *ret; 0 while not yet; -EACCES when rejected; -EMSGSIZE
 * when rejected for the path MTU, the largest that the peer accepts in *ret_largest (0: not known);
 * -ETIMEDOUT; -EBADMSG when the answer is not a message of rdma/exchange.h; -ECONNRESET when the
 * connection was ended. Errors have diag and are final. */
int pl_call_step(
	struct pl_call *call, struct pl_exchange *ret, uint16_t *ret_largest, struct pl_diag *diag);
