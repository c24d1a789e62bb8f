/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings the collectors of an uplink up and keeps them so. For each collector, over TCP
 * (remote/exchange_client.h) or by RDMA-CM (remote/caller.h):
 *
 *   1. lists: a reliable queue pair for each append store, by which the heads of its lists are
 *   read. They come by the way
 *      that writes take, behind everything that was sent to this collector before
 *   2. a queue pair for every store, of the service that it needs; the connections stay
 *
 * When one of these connections ends, or a queue pair of the collector goes to error, the collector
 * is down, and it is tried again, at first after retry_min_ns, each time after twice as long up to
 * retry_max_ns. What a store is the first collector says; one that has another store of that name
 * does not come up. Nothing here waits. One thread.
 */
#pragma once

#include "base/stats.h"
#include "nic/nic.h"
#include "remote/uplink.h"

struct pl_dialer;

struct pl_dialer_options {
	struct pl_nic *nic;         /* borrowed, as the uplink */
	struct pl_uplink *uplink;   /* of as many collectors and stores */
	const char *const *servers; /* "host:port", numeric; of each collector. Borrowed */
	const char *const *stores;  /* names, likewise */
	unsigned int collectors, n_stores;
	bool reliable; /* every queue pair is RC */
	/* RDMA-CM, whose port a server's is then. Needs `reliable`: nothing else would tell of an
	 * end */
	bool by_cm;
	uint8_t tos;                         /* of all frames: DSCP and ECN */
	uint64_t retry_min_ns, retry_max_ns; /* 0: 100 ms, 5 s */
	uint64_t timeout_ns;                 /* of one try; 0: 5 s */
};

/* -EINVAL with diag (a server that is no address, a name that is too long), -ENOMEM. */
int pl_dialer_new(
	struct pl_dialer **ret, const struct pl_dialer_options *options, struct pl_diag *diag);
void pl_dialer_free(struct pl_dialer *d); /* NULL is fine; ends the connections */

/* Readable when a step has something to do. */
int pl_dialer_fd(const struct pl_dialer *d);

/* RDMA-CM's packets: what came in, behind pl_uplink_batch, and what is to be sent, as
 * pl_connector_send. Over TCP there is nothing to do. */
void pl_dialer_batch(struct pl_dialer *d, const struct pl_batch *in, uint64_t now_ns);
bool pl_dialer_send(struct pl_dialer *d, uint64_t now_ns, struct pl_frames *out);
/* Ends all connections; a step would make them anew. True: nobody is to be told of it any more, as
 * far as is known. */
void pl_dialer_hang_up(struct pl_dialer *d, uint64_t now_ns);
bool pl_dialer_idle(const struct pl_dialer *d);

/* Does what can be done now; returns when it wants to be called at the latest. Afterwards
 * pl_uplink_is_up says who is up: whoever comes up has its heads read just before. */
uint64_t pl_dialer_step(struct pl_dialer *d, uint64_t now_ns);

/* What a store is; NULL until a collector said so. */
const struct pl_store_params *pl_dialer_store(const struct pl_dialer *d, unsigned int store);

/* Entries in a list of an append store, as read before the collector came up last. */
uint64_t pl_dialer_head(
	const struct pl_dialer *d, unsigned int collector, unsigned int store, uint32_t list);

/* Why a collector is not up, or went down last; "" when nothing was the matter yet. */
const char *pl_dialer_why(const struct pl_dialer *d, unsigned int collector);

struct pl_dialer_counters {
#define PL_STAT PL_STAT_MEMBER
#include "remote/dialer_stats.def"
#undef PL_STAT
};

const struct pl_dialer_counters *pl_dialer_counters(
	const struct pl_dialer *d, unsigned int collector);
