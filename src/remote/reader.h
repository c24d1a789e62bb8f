/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader: reads stores of collectors over RoCE, by READs of a reliable queue pair that may do
 * nothing else (it asks for PL_RDMA_READ alone). Store and queue pair are agreed over TCP
 * (remote/exchange_client.h) or by RDMA-CM (remote/caller.h), as for the uplink, which writes.
 * Unlike the uplink the reader waits: a function returns when its work is done, or has failed. A
 * collector is connected at its first use.
 *
 *   pl_reader_new(&r, &options, &diag); pl_reader_connect(r, i, &diag); pl_reader_store(r,
 *   i)->store ... parameters of the store pl_reader_source(r, i, &source); for memory/query.h
 *   pl_reader_unchanged(r, i, &diag); 1: all of that was of one epoch
 *
 * One thread.
 */
#pragma once

#include "memory/query.h"
#include "nic/nic.h"
#include "rdma/exchange.h"

struct pl_reader;

struct pl_reader_options {
	struct pl_nic *nic;         /* borrowed */
	const char *const *servers; /* "host:port", numeric; of each collector. Borrowed */
	unsigned int n_servers;
	const char *store;   /* name of the store, the same at each collector. Borrowed */
	bool by_cm;          /* by RDMA-CM, with the server's port */
	uint8_t tos;         /* of all frames: DSCP and ECN */
	uint64_t timeout_ns; /* to connect, and of READs without any answer; 0: 5 s */
};

/* Returns -EINVAL with diag (a server that is no address, a name that is too long), -ENOMEM. */
int pl_reader_new(
	struct pl_reader **ret, const struct pl_reader_options *options, struct pl_diag *diag);
/* Ends the connections and tells the collectors. NULL is fine. */
void pl_reader_free(struct pl_reader *r);

/*
 * Connects to a collector, unless it is connected. Returns -EACCES when this host may not read;
 * -ENOENT when the collector has no such store; -EPROTO or -EBADMSG when it is not a collector of
 * pathline; -ETIMEDOUT, -ECONNREFUSED, -ECONNRESET, -EHOSTUNREACH and other errors of the system
 * when it cannot be reached. All with diag.
 */
int pl_reader_connect(struct pl_reader *r, unsigned int i, struct pl_diag *diag);

/* Answer of a collector that is connected. */
const struct pl_exchange *pl_reader_store(const struct pl_reader *r, unsigned int i);

/* Store of a connected collector as a source for queries. Its errors are -ECONNRESET (the collector
 * ended the connection), -ETIMEDOUT (no answer), -EACCES (a READ was refused), -ERANGE (a run
 * beyond the store's end), -EIO. After an error the collector is not connected any more. */
void pl_reader_source(struct pl_reader *r, unsigned int i, struct pl_store_source *ret);

/*
 * Asks a connected collector whether its store still has the region and the epoch of the time of
 * connecting. Returns 1 when everything that was read is of that epoch; 0 with diag when another
 * epoch has begun, or the region is another one. Negative errno as pl_reader_connect.
 */
int pl_reader_unchanged(struct pl_reader *r, unsigned int i, struct pl_diag *diag);
