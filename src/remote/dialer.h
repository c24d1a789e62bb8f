/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects the collectors of an uplink and keeps them connected. For each collector, over TCP
 * (remote/exchange_client.h) or by RDMA-CM (remote/caller.h):
 *
 *   1. lists: a reliable queue pair for each append store, by which the heads of its lists are
 *      read. READs take the path of writes, behind everything that was sent to this collector
 *      before
 *   2. a queue pair for every store, of the service that it needs; the connections stay
 *
 * When one of these connections ends, or a queue pair of the collector goes to error, the collector
 * is down, and it is tried again, at first after retry_min_ns, each time after twice as long up to
 * retry_max_ns. The first collector defines the parameters of a store; a collector with other
 * parameters for that name stays down. Nothing here waits. One thread.
 */
#pragma once

#include "base/stats.h"
#include "nic/nic.h"
#include "remote/uplink.h"

struct pl_dialer;

struct pl_dialer_options {
	struct pl_nic *nic;         /* borrowed, the uplink too */
	struct pl_uplink *uplink;   /* with as many collectors and stores */
	const char *const *servers; /* "host:port", numeric; of each collector. Borrowed */
	const char *const *stores;  /* names, borrowed */
	unsigned int collectors, n_stores;
	bool reliable; /* all queue pairs are RC */
	/* by RDMA-CM, with the server's port. Needs `reliable`: nothing else would notice the end
	 * of a collector */
	bool by_cm;
	uint8_t tos;                         /* of all frames: DSCP and ECN */
	uint64_t retry_min_ns, retry_max_ns; /* 0: 100 ms, 5 s */
	uint64_t timeout_ns;                 /* of one try to connect; 0: 5 s */
};

/* Returns -EINVAL with diag (a server that is no address, a name that is too long), -ENOMEM. */
int pl_dialer_new(
	struct pl_dialer **ret, const struct pl_dialer_options *options, struct pl_diag *diag);
void pl_dialer_free(struct pl_dialer *d); /* NULL is fine; ends the connections */

/* Descriptor that is readable when pl_dialer_step has something to do. */
int pl_dialer_fd(const struct pl_dialer *d);

/* Packets of RDMA-CM: takes a batch, after pl_uplink_batch, and adds frames to send, as
 * pl_connector_send. Both do nothing over TCP. */
void pl_dialer_batch(struct pl_dialer *d, const struct pl_batch *in, uint64_t now_ns);
bool pl_dialer_send(struct pl_dialer *d, uint64_t now_ns, struct pl_frames *out);
/* Ends all connections; pl_dialer_step would connect again. Returns true when all peers have been
 * told, as far as known. */
void pl_dialer_hang_up(struct pl_dialer *d, uint64_t now_ns);
bool pl_dialer_idle(const struct pl_dialer *d);

/* Does what can be done now; returns the time of the next call at the latest. Afterwards
 * pl_uplink_is_up shows which collectors are up; the heads of a collector are read just before it
 * comes up. */
uint64_t pl_dialer_step(struct pl_dialer *d, uint64_t now_ns);

/* Parameters of a store; NULL until a collector has sent them. */
const struct pl_store_params *pl_dialer_store(const struct pl_dialer *d, unsigned int store);

/* Entries in a list of an append store, as read before the collector came up last. */
uint64_t pl_dialer_head(
	const struct pl_dialer *d, unsigned int collector, unsigned int store, uint32_t list);

/* Reason why a collector is not up, or went down last; "" when there was none yet. */
const char *pl_dialer_why(const struct pl_dialer *d, unsigned int collector);

struct pl_dialer_counters {
#define PL_STAT PL_STAT_MEMBER
#include "remote/dialer_stats.def"
#undef PL_STAT
};

const struct pl_dialer_counters *pl_dialer_counters(
	const struct pl_dialer *d, unsigned int collector);
