/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packets a node reports: a sink those in which a flow changed, any node those that met a deep
 * queue. Both are bounded: what a table of flows has no place for is reported like a new flow, what a
 * quota holds back is counted.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

#define PL_DP_FILTER_HOPS 16 /* of which latencies are kept; the path is that of all hops */

struct pl_dp_flow_change_config {
	uint32_t flows;   /* places, a power of two; 0: 4096 */
	uint32_t latency; /* a hop's latency moved by so much, in the stack's units; 0: not asked */
	bool path;        /* other nodes or ports than before */
	uint64_t interval_ns; /* nothing was reported for so long; 0: not asked */
	uint64_t seed;        /* of the hash */
};

struct pl_dp_flow_change;

/* -EINVAL: flows is no power of two; -ENOMEM. */
int pl_dp_flow_change_new(
	struct pl_dp_flow_change **ret, const struct pl_dp_flow_change_config *config);
void pl_dp_flow_change_free(struct pl_dp_flow_change *c);
/* True: report the packet, whose flow is new or changed as asked for. What was reported last is what
 * later packets are held against. With nothing asked for every packet is reported. */
bool pl_dp_flow_change(struct pl_dp_flow_change *c, const struct pl_dp_packet *pkt,
	const struct pl_dp_int_found *found, uint64_t now_ns);
/* Packets held back, and flows that took the place of another. */
uint64_t pl_dp_flow_change_held(const struct pl_dp_flow_change *c);
uint64_t pl_dp_flow_change_evicted(const struct pl_dp_flow_change *c);

#define PL_DP_WATCH_CLASSES 8

struct pl_dp_queue_watch_config {
	uint32_t threshold_bytes;
	uint32_t reset_bytes; /* the breach ends below; 0: half the threshold */
	uint32_t quota;       /* reports in an interval, of a queue; 0: no limit */
	uint64_t interval_ns; /* 0: 1 s */
};

struct pl_dp_queue_watch {
	struct pl_dp_queue_watch_config config;
	uint64_t breaches, held; /* begun; packets that the quota held back */
	struct pl_dp_queue_state {
		uint64_t since_ns;
		uint32_t sent;
		bool breached;
	} * queues;
	uint32_t n_ports;
};

/* Ports are numbered below n_ports. -ENOMEM. */
int pl_dp_queue_watch_init(struct pl_dp_queue_watch *w,
	const struct pl_dp_queue_watch_config *config, uint32_t n_ports);
void pl_dp_queue_watch_done(struct pl_dp_queue_watch *w);
/* True: report the packet with Q. */
bool pl_dp_queue_watch(
	struct pl_dp_queue_watch *w, const struct pl_dp_packet *pkt, uint64_t now_ns);
