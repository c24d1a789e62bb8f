/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator's way to memory far away: operations (dta/op.h) become RDMA work for the queue
 * pair of their store and collector. It owns no socket and no clock. What plain writes need not be
 * told about goes by unreliable connections (UC): a frame that is lost costs what was in it, and
 * the entry says so by its check value. Where a lost write would be taken for what it is not
 * (additions, sketches and their completion words, entries without seal) the connection is reliable
 * (RC); pl_uplink_service says which. Writes are cut into packets here, since an UC message of
 * several is lost with any of them; an immediate goes with the last.
 *
 * What cannot be sent yet waits, in order, up to `queue` packets of each store. Behind that `wait`
 * is asked for room; where it gives none the operation is dropped and counted. Nothing is sent
 * again on another connection: after one ended it is not known what of the rest was done.
 *
 *   pl_uplink_offer(u, c, s, …) and pl_uplink_answer(u, c, s, …) for each store, then
 *   pl_uplink_up(u, c)
 *   pl_uplink_ops(u, ops, n);
 *   pl_uplink_send(u, now, &frames);  pl_uplink_batch(u, batch, now);
 *   pl_uplink_broken(u, c): pl_uplink_down(u, c), and anew
 *
 * Accounts of a collector: given = posted + full + down + outside; posted = done + lost + waiting.
 * Done is, on RC, acknowledged by the collector; on UC handed over as frames.
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
	uint32_t queue;  /* packets waiting or without acknowledgement, of each store; 0: 4096 */
	uint32_t window; /* RC: packets without acknowledgement; 0: 128 */
	uint64_t timeout_ns; /* RC; 0: 20 ms */
	uint8_t retries; /* RC: without any progress, before the connection is given up; 0: 250 */
	/* Called for an operation that has no room: to send and to take answers. True while
	 * operations of this collector get done: then it is tried again. May be NULL. */
	bool (*wait)(void *arg, unsigned int collector);
	void *arg;
};

/* -EINVAL, -ENOMEM. */
int pl_uplink_new(struct pl_uplink **ret, const struct pl_uplink_options *options);
void pl_uplink_free(struct pl_uplink *u); /* NULL is fine */

/* PL_ROCE_UC or PL_ROCE_RC: what a store's writes need at least. */
uint8_t pl_uplink_service(const struct pl_store_params *params);

/*
 * Begins a queue pair for one store of one collector, in place of the one that there was. `path` is
 * how frames travel there, `mtu` the largest payload of a packet (256 to 4096). *ret is our half,
 * to be told to the collector; its name is left empty. -EINVAL, -ENOMEM, -EIO (no random numbers).
 */
int pl_uplink_offer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	uint8_t service, const struct pl_roce_path *path, uint16_t mtu, struct pl_exchange *ret);

/* The collector's half of it. `bytes` is how large the store has to be, `adds` whether additions
 * are wanted. -EPROTO with diag: it is not what was offered, or does not let this side write. */
int pl_uplink_answer(struct pl_uplink *u, unsigned int collector, unsigned int store,
	const struct pl_exchange *theirs, uint64_t bytes, bool adds, struct pl_diag *diag);

/* All its stores have their answers: operations go there from now on. False: one is missing. */
bool pl_uplink_up(struct pl_uplink *u, unsigned int collector);
bool pl_uplink_is_up(const struct pl_uplink *u, unsigned int collector);
/* A queue pair of it went to error: no answer for too long, or a refusal. */
bool pl_uplink_broken(const struct pl_uplink *u, unsigned int collector);
/* Ends its queue pairs; what waited is lost. */
void pl_uplink_down(struct pl_uplink *u, unsigned int collector);

/*
 * Before it is up: reads 8 bytes of a store, by a reliable queue pair of it, into *into
 * (little-endian, of the caller's, until pl_uplink_reads says that nothing is under way or
 * pl_uplink_down). -EAGAIN: no room just now; others as pl_requester_post.
 */
int pl_uplink_read(struct pl_uplink *u, unsigned int collector, unsigned int store, uint64_t offset,
	uint64_t *into);
/* How many of these are under way. */
uint32_t pl_uplink_reads(const struct pl_uplink *u, unsigned int collector);

/* For struct pl_op_sink.ops, with the struct pl_uplink as its arg. */
void pl_uplink_ops(void *uplink, const struct pl_op *ops, size_t n);

/* As pl_requester_send, _batch and _next_ns. */
bool pl_uplink_send(struct pl_uplink *u, uint64_t now_ns, struct pl_frames *out);
void pl_uplink_batch(struct pl_uplink *u, const struct pl_batch *in, uint64_t now_ns);
uint64_t pl_uplink_next_ns(const struct pl_uplink *u);

/* The fullest of its queues, in packets; up to the options' `queue`. */
uint32_t pl_uplink_queued(const struct pl_uplink *u, unsigned int collector);

struct pl_uplink_counters {
#define PL_STAT PL_STAT_MEMBER
#include "remote/uplink_stats.def"
#undef PL_STAT
	/* queue pairs that ended, by the result that ended them; [OK] stays 0 */
	uint64_t failures[PL_RDMA_RESULT_FLUSHED + 1];
};
extern const struct pl_stats pl_uplink_stats_list;

/* Of one collector, as of the last call. */
const struct pl_uplink_counters *pl_uplink_counters(
	const struct pl_uplink *u, unsigned int collector);
/* Of all queue pairs. */
const struct pl_requester_counters *pl_uplink_packets(const struct pl_uplink *u);

/* posted - done - lost. */
uint64_t pl_uplink_waiting(const struct pl_uplink *u, unsigned int collector);
/* Queue pairs that congestion slows down just now. */
uint32_t pl_uplink_slowed(const struct pl_uplink *u);
