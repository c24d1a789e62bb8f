/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the packets that a node reports: at a sink those of changed flows, at any node those that
 * met a deep queue. Both are bounded: a flow without a place in the table is reported as a new one,
 * packets that a quota holds back are counted.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

#define PL_DP_FILTER_HOPS 16 /* hops whose latencies are kept; the path has all hops */

struct pl_dp_flow_change_config {
	uint32_t flows;       /* places in the table, a power of two; 0: 4096 */
	uint32_t latency;     /* report a change of a hop's latency, in the stack's units; 0: no */
	bool path;            /* report a change of nodes or ports */
	uint64_t interval_ns; /* report after so long without one; 0: no */
	uint64_t seed;        /* of the hash */
};

struct pl_dp_flow_change;

/* Creates a filter. -EINVAL: flows is no power of two; -ENOMEM. */
int pl_dp_flow_change_new(
	struct pl_dp_flow_change **ret, const struct pl_dp_flow_change_config *config);
void pl_dp_flow_change_free(struct pl_dp_flow_change *c);
/* Returns true when the packet must be reported: its flow is new, or changed since its last report
 * as configured. Without any condition every packet is reported. */
bool pl_dp_flow_change(struct pl_dp_flow_change *c, const struct pl_dp_packet *pkt,
	const struct pl_dp_int_found *found, uint64_t now_ns);

#define PL_DP_WATCH_CLASSES 8

struct pl_dp_queue_watch_config {
	uint32_t threshold_bytes;
	uint32_t reset_bytes; /* a breach ends below this; 0: half the threshold */
	uint32_t quota;       /* most reports of a queue in an interval; 0: no limit */
	uint64_t interval_ns; /* 0: 1 s */
};

struct pl_dp_queue_watch {
	struct pl_dp_queue_watch_config config;
	uint64_t held; /* packets that the quota held back */
	struct pl_dp_queue_state {
		uint64_t since_ns;
		uint32_t sent;
		bool breached;
	} * queues;
	uint32_t n_ports;
};

/* Initializes the watch; port numbers are below n_ports. -ENOMEM. */
int pl_dp_queue_watch_init(struct pl_dp_queue_watch *w,
	const struct pl_dp_queue_watch_config *config, uint32_t n_ports);
void pl_dp_queue_watch_done(struct pl_dp_queue_watch *w);
/* Returns true when the packet must be reported with Q. */
bool pl_dp_queue_watch(
	struct pl_dp_queue_watch *w, const struct pl_dp_packet *pkt, uint64_t now_ns);
