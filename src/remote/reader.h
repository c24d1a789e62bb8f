/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader: reads stores of collectors over RoCE, by READs of a reliable queue pair that may do
 * nothing else (it asks for PL_RDMA_READ alone). Which collector, which store and which queue pair
 * is agreed over TCP (remote/exchange_client.h) or by RDMA-CM (remote/caller.h), as for the uplink,
 * which writes. Unlike that it waits: a function returns when its work is done, or has failed.
 * Collectors are connected when they are first asked for.
 *
 *   pl_reader_new(&r, &options, &diag);
 *   pl_reader_connect(r, i, &diag);
 *   pl_reader_store(r, i)->store ...              what the store is
 *   pl_reader_source(r, i, &source);              for memory/query.h
 *   pl_reader_unchanged(r, i, &diag);             1: all of that was of one epoch
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
	const char *store;   /* its name, the same at each. Borrowed */
	bool by_cm;          /* RDMA-CM, whose port a server's is then */
	uint8_t tos;         /* of all frames: DSCP and ECN */
	uint64_t timeout_ns; /* to connect, and of READs without any answer; 0: 5 s */
};

/* -EINVAL with diag (a server that is no address, a name that is too long), -ENOMEM. */
int pl_reader_new(
	struct pl_reader **ret, const struct pl_reader_options *options, struct pl_diag *diag);
/* Ends the connections, of which collectors are told. NULL is fine. */
void pl_reader_free(struct pl_reader *r);

/*
 * Connects to a collector, unless it is. -EACCES: it does not let this host read; -ENOENT: it has
 * no such store; -EPROTO, -EBADMSG: it is no collector of ours; -ETIMEDOUT, -ECONNREFUSED,
 * -ECONNRESET, -EHOSTUNREACH and others of the system: it cannot be reached. All with diag.
 */
int pl_reader_connect(struct pl_reader *r, unsigned int i, struct pl_diag *diag);

/* What a collector that is connected said. */
const struct pl_exchange *pl_reader_store(const struct pl_reader *r, unsigned int i);

/* Its store as a source for queries, while it is connected; errors of which are -ECONNRESET (the
 * collector ended the connection), -ETIMEDOUT (no answer), -EACCES (it refused a READ), -ERANGE (a
 * run beyond the store's end), -EIO. After one the collector is not connected any more. */
void pl_reader_source(struct pl_reader *r, unsigned int i, struct pl_store_source *ret);

/*
 * Asks a collector that is connected whether its store is still the region and the epoch that it
 * was when it was connected. 1: all that was read is of that epoch; 0 with diag: it has begun
 * another one meanwhile, or is another region. Negative errno as pl_reader_connect.
 */
int pl_reader_unchanged(struct pl_reader *r, unsigned int i, struct pl_diag *diag);
