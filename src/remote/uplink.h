/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator's path to remote memory: operations (dta/op.h) become RDMA work for the queue pair
 * of their store and collector. The uplink owns no socket and no clock. Writes whose loss a reader
 * detects by a check value use unreliable connections (UC): a lost frame costs its contents. Writes
 * whose loss would stay undetected (additions, sketches and their completion words, entries without
 * seal) use reliable connections (RC); pl_uplink_service tells which. Writes are cut into packets
 * here, since an UC message of several is lost with any of them; an immediate goes with the last.
 *
 * Packets that cannot be sent yet wait in order, up to `queue` of each store. When the queue is
 * full, `wait` is called; when it makes no room, the operation is dropped and counted. Nothing is
 * sent again on another connection: when a connection has ended, it is unknown which of its
 * unacknowledged operations were done.
 *
 *   pl_uplink_offer(u, c, s, …) and pl_uplink_answer(u, c, s, …) for each store, then
 *   pl_uplink_up(u, c)
 *   pl_uplink_ops(u, ops, n);
 *   pl_uplink_send(u, now, &frames);  pl_uplink_batch(u, batch, now);
 *   pl_uplink_broken(u, c): pl_uplink_down(u, c), and anew
 *
 * Accounts of a collector: given = posted + full + down + outside; posted = done + lost + waiting.
 * `done` counts operations that the collector acknowledged (RC), or that were written to frames
 * (UC).
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "dta/op.h"
#include "memory/store.h"
#include "rdma/exchange.h"
#include "rdma/requester.h"

struct pl_uplink;

struct pl_uplink_options {
	unsigned int collectors, n_stores; /* 1 to PL_COLLECTORS_MAX, PL_DTA_STORES_MAX */
	uint32_t queue;  /* packets of each store that wait or have no acknowledgement; 0: 4096 */
	uint32_t window; /* RC: packets without acknowledgement; 0: 128 */
	uint64_t timeout_ns; /* RC; 0: 20 ms */
	uint8_t retries; /* RC: tries without progress before the connection is given up; 0: 250 */
	/* Called when there is no room for an operation: sends and takes answers. Returns true
	 * while operations of this collector get done: the operation is tried again. May be
	 * NULL. */
	bool (*wait)(void *arg, unsigned int collector);
	void *arg;
};

/* Returns -EINVAL, -ENOMEM. */
int pl_uplink_new(struct pl_uplink **ret, const struct pl_uplink_options *options);
void pl_uplink_free(struct pl_uplink *u); /* NULL is fine */

/* Service that a store's writes need at least: PL_ROCE_UC or PL_ROCE_RC. */
uint8_t pl_uplink_service(const struct pl_store_params *params);

/*
 * Begins a queue pair for one store of one collector; an older one is replaced. `path` is the path
 * of frames to the collector, `mtu` the largest payload of a packet (256 to 4096). *ret is our half
 * for the collector, with an empty name. Returns -EINVAL, -ENOMEM, -EIO (no random numbers).
 */
int pl_uplink_offer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	uint8_t service, const struct pl_roce_path *path, uint16_t mtu, struct pl_exchange *ret);

/* Takes the collector's half of the queue pair. `bytes` is the size that the store must have;
 * `adds` is true when additions are wanted. Returns -EPROTO with diag when the half does not match
 * the offer, or does not let this side write. */
int pl_uplink_answer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	const struct pl_exchange *theirs, uint64_t bytes, bool adds, struct pl_diag *diag);

/* Starts sending operations to a collector, all of whose stores have their answers. Returns false
 * when an answer is missing. */
bool pl_uplink_up(struct pl_uplink *u, unsigned int collector);
bool pl_uplink_is_up(const struct pl_uplink *u, unsigned int collector);
/* Returns true when a queue pair of the collector went to error: no answer for too long, or a
 * refusal. */
bool pl_uplink_broken(const struct pl_uplink *u, unsigned int collector);
/* Ends the queue pairs of a collector; waiting operations are lost. */
void pl_uplink_down(struct pl_uplink *u, unsigned int collector);

/*
 * Reads 8 bytes of a store of a collector that is not up yet, by its reliable queue pair, into
 * *into (little-endian; memory of the caller, until pl_uplink_reads returns 0 or pl_uplink_down).
 * Returns -EAGAIN when there is no room just now; other errors as pl_requester_post.
 */
int pl_uplink_read(struct pl_uplink *u, unsigned int collector, unsigned int store, uint64_t offset,
	uint64_t *into);
/* Number of these READs that are under way. */
uint32_t pl_uplink_reads(const struct pl_uplink *u, unsigned int collector);

/* For struct pl_op_sink.ops, with the struct pl_uplink as its arg. */
void pl_uplink_ops(void *uplink, const struct pl_op *ops, size_t n);

/* As pl_requester_send, pl_requester_batch and pl_requester_next_ns. */
bool pl_uplink_send(struct pl_uplink *u, uint64_t now_ns, struct pl_frames *out);
void pl_uplink_batch(struct pl_uplink *u, const struct pl_batch *in, uint64_t now_ns);
uint64_t pl_uplink_next_ns(const struct pl_uplink *u);

/* Length of the collector's longest queue, in packets; up to `queue` of the options. */
uint32_t pl_uplink_queued(const struct pl_uplink *u, unsigned int collector);

struct pl_uplink_counters {
#define PL_STAT PL_STAT_MEMBER
#include "remote/uplink_stats.def"
#undef PL_STAT
	/* queue pairs that ended, by the result that ended them; [OK] stays 0 */
	uint64_t failures[PL_RDMA_RESULT_FLUSHED + 1];
};
extern const struct pl_stats pl_uplink_stats_list;

/* Counters of one collector, as of the last call. */
const struct pl_uplink_counters *pl_uplink_counters(
	const struct pl_uplink *u, unsigned int collector);
/* Counters of all queue pairs. */
const struct pl_requester_counters *pl_uplink_packets(const struct pl_uplink *u);

/* posted - done - lost. */
uint64_t pl_uplink_waiting(const struct pl_uplink *u, unsigned int collector);
/* Number of queue pairs that congestion slows down at present. */
uint32_t pl_uplink_slowed(const struct pl_uplink *u);
