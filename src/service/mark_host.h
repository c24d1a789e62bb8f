/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that marks, meters, or clears marks (hostmark/hostmark.h), as a service: the program in the
 * kernel does the work, this reads block k at (k + 1.5) periods and hands its records on.
 */
#pragma once

#include "hostmark/hostmark.h"
#include "hostmark/probe.h"
#include "runtime/runtime.h"
#include "tapout/tap_out.h"

#define PL_MARK_HOST_TO_MAX      8
#define PL_MARK_HOST_IDLE_BLOCKS 10u /* without packets, then a flow is forgotten */

struct pl_mark_host_options {
	struct pl_hostmark_options kernel; /* its rights are set at opening; rules: those below */
	struct pl_tap_rules rules;
	const char *rules_file;  /* more of them; NULL: none */
	uint32_t point;          /* the measurement point's number */
	uint64_t clock_error_ns; /* UINT64_MAX: what the kernel says of its clock */
	/* A marker looks for so long whether somebody uses its bits, and marks only if nobody does;
	 * 0: it marks at once. */
	uint64_t check_ns;
	const char *probe;     /* a marker sends packets there (hostmark/probe.h); NULL: none */
	uint32_t probes;       /* of them in each block */
	const char *const *to; /* outputs (tap_out.h) */
	size_t n_to;
	/* Gets the records too; NULL: nobody. `turned` behind those of a turn. */
	void (*records)(void *arg, const struct pl_mark128 *records, uint32_t n);
	void (*turned)(void *arg);
	bool (*full)(void *arg); /* no more are wanted */
	void *arg;
};

/* What is known of the clock of blocks. */
struct pl_mark_clock {
	uint64_t error_ns;   /* UINT64_MAX: not known */
	uint16_t tai_offset; /* s */
	bool synced;
};

#define PL_MARK_HOST_BATCH 64u

struct pl_mark_host {
	const struct pl_mark_host_options *o;
	bool began;
	/* Its own. */
	char uri[64];
	struct pl_tap_rules rules;
	struct pl_hostmark *kernel;
	struct pl_udp_address probed;
	struct pl_probe *probe; /* NULL: none */
	struct pl_tap_out *outs[PL_MARK_HOST_TO_MAX];
	unsigned int n_outs;
	uint64_t outs_due_ns; /* when their next turn must be */
	struct pl_mark_clock clock;
	/* Blocks up to these have seen the clock set; packets without room; bits in use; the
	 * interface without its program. */
	uint64_t stepped, no_room, in_use, torn;
	uint64_t unsure;   /* and the program without a clock told its block too late */
	uint64_t armed_ns; /* when a marker that looks will mark; 0: it does, or it is none */
	struct pl_mark_point point; /* of the block that is read */
	struct pl_mark128 batch[PL_MARK_HOST_BATCH];
	uint32_t n_batch;
	struct pl_mark_counts shown;
#define PL_STAT PL_STAT_MEMBER
#include "service/mark_host_stats.def"
#undef PL_STAT
};

extern const struct pl_service_ops pl_mark_host_ops;

/* Whether outputs got all records. */
bool pl_mark_host_complete(const struct pl_mark_host *h);
void pl_mark_host_close(struct pl_mark_host *h);

/* What it tells of itself (mark_host_account.c). */
void pl_mark_host_put_page(void *h, struct pl_exposition *page);
void pl_mark_host_describe(struct pl_exposition *page);
void pl_mark_host_put_json(void *h, struct pl_json *json);
void pl_mark_host_put_text(void *h, struct pl_buf *text);
