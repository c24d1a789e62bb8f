/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that a signal wakes: a WRITE with immediate names the place of a new value (dta/op.h:
 * primitive << 28 | list, slot, cell, chunk or epoch), and a thread of the pool reads the value
 * from the store and calls `out` with it. A list and a slot always belong to the same worker, so
 * entries of a list come in their order.
 *
 * Signals go through one bounded queue for each worker. A signal that finds the queue full is
 * counted; for lists nothing is lost, because the next signal reads on from the last entry read. A
 * worker sleeps when its queue is empty, and only a sleeping one costs the signalling thread a
 * system call.
 *
 *   pl_workers_open(&w, &options, &diag);  pl_workers_signal(w, …) from one thread;
 *                                          pl_workers_close(w, &stats);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/hist.h"
#include "memory/region.h"
#include "memory/store.h"

struct pl_workers;

#define PL_SIGNAL_WORKERS_MAX 64

struct pl_worker_store {
	struct pl_store_params params;
	void *base; /* memory of the store; stays until the workers are closed */
	/* region of a key-write store with two halves: a value is read in the epoch in which it was
	 * signalled, as long as that epoch is there. NULL: the store is always at `base`. Stays,
	 * too. */
	const struct pl_region *region;
};

/* A new value. */
struct pl_worker_item {
	uint32_t store, primitive;
	uint64_t index;  /* list, slot, cell, chunk or epoch: the immediate's lower 28 bits */
	uint64_t number; /* append: number of the entry */
	/* append: the entry; key-write: the value; else NULL. Valid during the call */
	const void *bytes;
	uint32_t len;
};

struct pl_workers_options {
	unsigned int n; /* number of workers, 1 to PL_SIGNAL_WORKERS_MAX */
	/* largest number of waiting signals of each worker; 0: 4096 */
	uint32_t queue;
	const struct pl_worker_store *stores; /* copied */
	uint32_t n_stores;
	/* Called from the workers' threads, several at a time. */
	void (*out)(void *arg, const struct pl_worker_item *items, uint32_t n);
	void *arg;
};

/* Returns -EINVAL, -ENOMEM, -EAGAIN, with diag. Lists are read from their present heads on. */
int pl_workers_open(
	struct pl_workers **ret, const struct pl_workers_options *options, struct pl_diag *diag);

/* Called from one thread, the one that begins epochs, before the next epoch begins. ns:
 * pl_clock_mono_ns when the write was executed. */
void pl_workers_signal(struct pl_workers *w, uint32_t store, uint32_t imm, uint64_t ns);

struct pl_workers_stats {
	uint64_t signals; /* = taken + full + strange */
	uint64_t taken;   /* taken by workers */
	uint64_t full;    /* queue full: left to a later signal */
	/* with another primitive than the store's, or a list or slot that does not exist */
	uint64_t strange;
	uint64_t items;            /* values given to `out` */
	uint64_t gone;             /* values whose epoch was emptied before they were read */
	uint64_t overrun;          /* entries overwritten before they were read */
	uint64_t damaged;          /* entries and slots that were not whole */
	uint64_t awoken;           /* signals that found their worker asleep */
	struct pl_hist latency_ns; /* time from write to worker, of signals taken */
};

/* Lets the workers finish the waiting signals, ends them, and returns the account of all signals.
 * NULL is fine. */
void pl_workers_close(struct pl_workers *w, struct pl_workers_stats *ret);
