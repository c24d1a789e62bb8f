/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that marks, meters, or clears marks (hostmark/hostmark.h), as a service: the program in
 * the kernel does the work, this reads block k at (k + 1.5) periods and sends its records.
 */
#pragma once

#include "hostmark/hostmark.h"
#include "hostmark/probe.h"
#include "runtime/runtime.h"
#include "tapout/tap_out.h"

#define PL_MARK_HOST_TO_MAX      8
#define PL_MARK_HOST_IDLE_BLOCKS 10u /* blocks without packets after which a flow is forgotten */

struct pl_mark_host_options {
	struct pl_hostmark_options kernel; /* its rights and rules are set at opening */
	struct pl_tap_rules rules;
	const char *rules_file;  /* file of more rules; NULL: none */
	uint32_t point;          /* the measurement point's number */
	uint64_t clock_error_ns; /* UINT64_MAX: use the kernel's estimate */
	/* Time for which a marker checks whether packets already use its bits; it marks only if
	 * none does. 0: it marks at once. */
	uint64_t check_ns;
	const char *probe;     /* destination of a marker's probes (hostmark/probe.h); NULL: none */
	uint32_t probes;       /* number of probes in each block */
	const char *const *to; /* outputs (tap_out.h) */
	size_t n_to;
	/* Gets the records as well; NULL: unused. `turned` is called at the end of each turn. */
	void (*records)(void *arg, const struct pl_mark128 *records, uint32_t n);
	void (*turned)(void *arg);
	bool (*full)(void *arg); /* returns true when no more records are wanted */
	void *arg;
};

/* State of the clock that defines blocks. */
struct pl_mark_clock {
	uint64_t error_ns;   /* UINT64_MAX: unknown */
	uint16_t tai_offset; /* s */
	bool synced;
};

#define PL_MARK_HOST_BATCH 64u

struct pl_mark_host {
	const struct pl_mark_host_options *o;
	bool began;
	/* The service's own members. */
	char uri[64];
	struct pl_tap_rules rules;
	struct pl_hostmark *kernel;
	struct pl_sockaddr probed;
	struct pl_probe *probe; /* NULL: none */
	struct pl_tap_out *outs[PL_MARK_HOST_TO_MAX];
	unsigned int n_outs;
	uint64_t outs_due_ns; /* time of the outputs' next turn */
	struct pl_mark_clock clock;
	uint64_t unsure; /* last block affected by one changed too late (no clock in the program) */
	uint64_t armed_ns;          /* when a marker that checks will mark; 0: it does not check */
	struct pl_mark_point point; /* of the block that is being read */
	struct pl_mark128 batch[PL_MARK_HOST_BATCH];
	uint32_t n_batch;
	struct pl_mark_counts shown;
#define PL_STAT PL_STAT_MEMBER
#include "service/mark_host_stats.def"
#undef PL_STAT
};

extern const struct pl_service_ops pl_mark_host_ops;

/* Returns whether outputs took all records. */
bool pl_mark_host_complete(const struct pl_mark_host *h);
void pl_mark_host_close(struct pl_mark_host *h);

/* Accounts of the service (mark_host_account.c). */
void pl_mark_host_put(void *h, const struct pl_account *a);
void pl_mark_host_put_text(void *h, struct pl_buf *text);
