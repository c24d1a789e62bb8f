/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of an output port: classes with limits, marking and shaping, served by strict priority
 * and by deficit round robin (Shreedhar and Varghese 1995). Engine without a clock: times are
 * given, in ns, and never go back. Lengths are bytes of the frame from its Ethernet header on;
 * rates are bits per second of them and of `overhead_bytes`. One thread.
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
/* The time that tx_util is the mean of, unless the configuration has another. */
#define PL_DP_UTIL_WINDOW_NS 1000000

struct pl_dp_class_cfg {
	uint32_t limit_bytes;   /* held at most; 0: no limit */
	uint32_t limit_packets; /* held at most; 0: no limit */
	/* 0: strict priority, before all classes with weights, the highest number first. Else the
	 * share of what strict classes leave, in proportion to the others' weights. */
	uint32_t weight;
	uint64_t rate_bps;    /* shaped to this rate; 0: not shaped */
	uint32_t burst_bytes; /* of the shaper: sent at once after a pause; 0: one packet */
	/* A packet that finds this many bytes in its queue is marked CE (RFC 3168 5), if it is
	 * ECN-capable; 0: never. */
	uint32_t ecn_bytes;
};

struct pl_dp_port_cfg {
	uint64_t rate_bps;       /* 0: a packet takes no time */
	uint32_t overhead_bytes; /* of each packet on the wire: 24 for preamble, FCS and gap */
	uint32_t limit_bytes;    /* all classes together; 0: no limit */
	uint32_t util_window_ns; /* 0: PL_DP_UTIL_WINDOW_NS */
	uint32_t n_classes;      /* 1 to PL_DP_CLASSES_MAX */
	struct pl_dp_class_cfg classes[PL_DP_CLASSES_MAX];
};

/* At every time in = out + dropped_* + flushed + held, in packets and in bytes. */
struct pl_dp_queue_books {
#define PL_STAT PL_STAT_MEMBER
#include "dataplane/queue_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_dp_queue_stats;

struct pl_dp_port;

/* -EINVAL with diag for what the configuration cannot mean, -ENOMEM. The port is empty and idle. */
int pl_dp_port_new(struct pl_dp_port **ret, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
/* Frees the packets that it holds. */
void pl_dp_port_free(struct pl_dp_port *p);

/* Changes rates, limits, weights at a time. What is held stays, what is being sent goes on at the
 * old rate. -EINVAL with diag, and nothing changed; the number of classes stays as it is. */
int pl_dp_port_set(struct pl_dp_port *p, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag);
const struct pl_dp_port_cfg *pl_dp_port_get(const struct pl_dp_port *p);

/*
 * Puts a packet at the end of the queue pkt->queue (a class that does not exist: 0, counted), with
 * depth_bytes, depth_packets and queued_ns set; CE may be set in its IP header where headers.l3
 * says. True: the port has it. False: it is still the caller's, its depths and drop are set, it is
 * booked as dropped.
 */
bool pl_dp_port_enqueue(struct pl_dp_port *p, struct pl_dp_packet *pkt, uint64_t now_ns);

/* The earliest time at which dequeue has a packet; PL_DP_NEVER when it holds none. */
uint64_t pl_dp_port_next(const struct pl_dp_port *p);

/* The packet whose turn it is, the caller's then, with out_ns (its last bit, at the port's rate) and
 * tx_util set; NULL before pl_dp_port_next. */
struct pl_dp_packet *pl_dp_port_dequeue(struct pl_dp_port *p, uint64_t now_ns);

/* The packet dequeued last has another length now (telemetry that grew, tags taken off): the time
 * that the difference takes is added to the port's and the shaper's accounts, or taken off.
 * Returns when its last bit leaves. */
uint64_t pl_dp_port_grew(struct pl_dp_port *p, int32_t bytes);

/* Takes all that is held out of the queues, as a list by `next`, with drop set to PL_DP_DROP_PORT:
 * the port went down. */
struct pl_dp_packet *pl_dp_port_flush(struct pl_dp_port *p);

/* Packets in all of its queues. */
uint32_t pl_dp_port_held(const struct pl_dp_port *p);
const struct pl_dp_queue_books *pl_dp_port_books(const struct pl_dp_port *p, unsigned int queue);
/* What it sent of its rate in the window that ended last before now, in 1/65536; 0 without a rate. */
uint32_t pl_dp_port_util(struct pl_dp_port *p, uint64_t now_ns);
