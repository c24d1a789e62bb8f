/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events out of record batches. One detector per worker; it shares nothing, reads no clock and allocates
 * nothing after pl_detect_new. The rules themselves are in bpf/detect_core.h, over integers, so that the
 * kernel's detector can be the same code.
 *
 *   path_change   once; a flow's complete path has another path_id than its last one. Paths that are
 *                 partial, intermediate, of dropped packets or of copies conclude nothing, nor do modes
 *                 that report node by node.
 *   queue_depth   begin when the depth of (node, port, queue) is above the threshold (for begin_hold_ns),
 *                 end when it was at or below the lower bound for end_hold_ns, or nothing was heard of it
 *                 for idle_ns. value: at begin the depth that crossed, at end the largest one.
 *   hop_latency   likewise, over the hop latency in ns.
 *   packet_drop   once; value is the number of drop reports of (node, reason) since the last such event.
 *   report_loss   once per exporter and interval; value is the number of reports lost since the last one.
 *
 * Every kind is limited per key: at most `burst` events at once and one per interval after. What the limit
 * held back is counted; a begin that was held back has no end.
 *
 * Time: now_ns is monotonic and drives the rules; ts_ns (since the Unix epoch) only stamps events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "decode/decode.h"
#include "record/record.h"

/* Where events go. The owner sets cap and the array once; flush, when given, must empty it. Without
 * flush, or when flush leaves it full, further events are dropped and counted (events_dropped). */
struct pl_event_batch {
	struct pl_event *events;
	uint32_t n, cap;
	void (*flush)(struct pl_event_batch *batch, void *arg);
	void *flush_arg;
};

int pl_event_batch_init(struct pl_event_batch *batch, uint32_t cap); /* -ENOMEM */
void pl_event_batch_done(struct pl_event_batch *batch);

/* A level that is watched. */
struct pl_detect_level {
	bool on;
	uint64_t threshold;     /* begins above it */
	uint64_t low;           /* ends at or below it; 0: seven eighths of the threshold */
	uint64_t begin_hold_ns; /* how long above before it begins; 0: at once */
	uint64_t end_hold_ns;   /* how long below before it ends; 0: 10 ms */
};

struct pl_detect_options {
	bool path_change, report_loss, packet_drop;
	struct pl_detect_level queue_depth, hop_latency;
	uint32_t max_flows;         /* 0: 131072; rounded up to a power of two of eights */
	uint32_t max_queues;        /* 0: 4096; (node, port, queue) above a threshold at a time */
	uint32_t max_drops;         /* 0: 1024; (node, reason) */
	uint32_t max_exporters;     /* 0: 4096 */
	uint64_t flow_idle_ns;      /* 0: 60 s; a flow not seen for longer begins anew */
	uint64_t idle_ns;           /* 0: 5 s; a raised level not heard of ends */
	uint64_t loss_interval_ns;  /* 0: 1 s */
	uint64_t limit_interval_ns; /* 0: 1 s, per key */
	uint32_t limit_burst;       /* 0: 5, per key */
};

struct pl_detect_counters {
	struct pl_counter events[PL_EVENT_KIND_MAX];
	struct pl_counter limited[PL_EVENT_KIND_MAX]; /* held back by the limit per key */
	struct pl_counter events_dropped;             /* no room in the caller's batch */
	struct pl_counter flows_new,
		flows_evicted;         /* evicted while still fresh: the table is too small */
	struct pl_counter flows_aged;  /* came back after flow_idle_ns, or were replaced idle */
	struct pl_counter queues_full; /* crossings not followed, no cell free */
	struct pl_counter drops_full;  /* drop reports whose (node, reason) found no cell */
	struct pl_counter exporters_full;
};

struct pl_detect;

/* The event kinds that are on; all, with a depth threshold of 100 and a latency threshold of 1 ms, is what
 * pl_detect_defaults gives. */
void pl_detect_defaults(struct pl_detect_options *ret);

/* -ENOMEM, -EINVAL: low above threshold, a table above 2^26, burst above 10^6, interval above 1 h. */
int pl_detect_new(struct pl_detect **ret, const struct pl_detect_options *options);
void pl_detect_free(struct pl_detect *det);
uint64_t pl_detect_memory(const struct pl_detect_options *options);

void pl_detect_batch(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns,
	struct pl_event_batch *out);

/* One exporter's sequence state; call for each of pl_decode_exporter's, about once a second. */
void pl_detect_exporter(struct pl_detect *det, const struct pl_exporter *exporter, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out);
/* pl_detect_exporter for all of a decoder's; on the decoding thread. */
void pl_detect_exporters(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out);

/* Ends what is over without a further report, tells of drops held back, frees idle cells. About every
 * 100 ms to 1 s. */
void pl_detect_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

const struct pl_detect_counters *pl_detect_counters(const struct pl_detect *det);

/* Flows known (approximately: aged ones count until they are replaced) and levels raised now. */
uint32_t pl_detect_flows(const struct pl_detect *det);
uint32_t pl_detect_raised(const struct pl_detect *det);
