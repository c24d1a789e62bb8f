/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of an output port: classes with limits, marking and shaping, served by strict priority
 * and by deficit round robin (Shreedhar and Varghese 1995). Engine without a clock: times are
 * arguments, in ns, and never go back. Lengths are bytes of the frame from its Ethernet header on;
 * rates in bits per second include `overhead_bytes` too. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "dataplane/packet.h"

#define PL_DP_CLASSES_MAX    8
#define PL_DP_WEIGHT_MAX     10000
#define PL_DP_RATE_MAX       UINT64_C(1000000000000) /* 1 Tb/s */
#define PL_DP_BURST_MAX      1000000000
#define PL_DP_NEVER          UINT64_MAX
/* Default window of which tx_util is the mean, ns. */
#define PL_DP_UTIL_WINDOW_NS 1000000

struct pl_dp_class_cfg {
	uint32_t limit_bytes;   /* most held; 0: no limit */
	uint32_t limit_packets; /* most held; 0: no limit */
	/* 0: strict priority, before all classes with weights, the highest number first. Else the
	 * weight: the class's share of the rate that strict classes leave. */
	uint32_t weight;
	uint64_t rate_bps;    /* shaped to this rate; 0: not shaped */
	uint32_t burst_bytes; /* bytes the shaper sends at once after a pause; 0: one packet */
	/* An ECN-capable packet that finds at least this number of bytes in its queue is marked CE
	 * (RFC 3168 5); 0: none is. */
	uint32_t ecn_bytes;
};

struct pl_dp_port_cfg {
	uint64_t rate_bps;       /* 0: a packet takes no time */
	uint32_t overhead_bytes; /* added to each packet: 24 for preamble, FCS and gap */
	uint32_t limit_bytes;    /* most held in all classes; 0: no limit */
	uint32_t util_window_ns; /* 0: PL_DP_UTIL_WINDOW_NS */
	uint32_t n_classes;      /* 1 to PL_DP_CLASSES_MAX */
	struct pl_dp_class_cfg classes[PL_DP_CLASSES_MAX];
};

/* Counters; at every time in = out + dropped_* + flushed + held, in packets and in bytes. */
struct pl_dp_queue_account {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/queue_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_queue_stats;

struct pl_dp_port;

/* Creates a port, empty and idle. -EINVAL with diag for an impossible configuration, -ENOMEM. */
int pl_dp_port_new(struct pl_dp_port **ret, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
/* Frees the port and the packets that it holds. */
void pl_dp_port_free(struct pl_dp_port *p);

/* Changes rates, limits and weights. Packets held stay; the one being sent goes on at the old rate.
 * -EINVAL with diag, and nothing changed; the number of classes cannot change. */
int pl_dp_port_set(struct pl_dp_port *p, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
const struct pl_dp_port_cfg *pl_dp_port_get(const struct pl_dp_port *p);

/*
 * Appends a packet to the queue pkt->queue (0, and counted, if there is no such class), and sets
 * depth_bytes, depth_packets and queued_ns; may set CE in the IP header at headers.l3. True: the
 * port owns it. False: it stays the caller's, with depths and drop set, and is counted as dropped.
 */
bool pl_dp_port_enqueue(struct pl_dp_port *p, struct pl_dp_packet *pkt, uint64_t now_ns);

/* Returns the earliest time at which dequeue returns a packet; PL_DP_NEVER when the port is
 * empty. */
uint64_t pl_dp_port_next(const struct pl_dp_port *p);

/* Returns the packet whose turn it is, which becomes the caller's, with out_ns (its last bit, at
 * the port's rate) and tx_util set; NULL before pl_dp_port_next. */
struct pl_dp_packet *pl_dp_port_dequeue(struct pl_dp_port *p, uint64_t now_ns);

/* Corrects the length of the last dequeued packet by `bytes` (telemetry was added, tags removed):
 * adds the time that the difference takes to the port's and the shaper's accounts, or subtracts it.
 * Returns when the packet's last bit leaves. */
uint64_t pl_dp_port_grew(struct pl_dp_port *p, int32_t bytes);

/* Removes all packets from the queues, after the port went down. Returns them as a list by `next`,
 * with drop set to PL_DP_DROP_PORT. */
struct pl_dp_packet *pl_dp_port_flush(struct pl_dp_port *p);

/* The caller's clock was set forward by this much: adds it to the times of the port and of its
 * packets (also to their arrival at the node), so that no packet's waiting time includes the
 * step. */
void pl_dp_port_clock_set(struct pl_dp_port *p, uint64_t step_ns);

/* Returns the number of packets in all queues. */
uint32_t pl_dp_port_held(const struct pl_dp_port *p);
const struct pl_dp_queue_account *pl_dp_port_account(
	const struct pl_dp_port *p, unsigned int queue);
