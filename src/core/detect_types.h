/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Input of the steps of detection: one report, and its hops one by one, source first. User space
 * fills it from records (detect/events.c); the kernel program, and the same code in user space
 * (core/report_core.h), fill it from the packet. All three report the same events.
 *
 * Order of calls per report (core/detect_steps.h):
 *
 *   pl_core_exporter_step(env, report)       once per datagram, its sequence number: where no
 *                                            decoder counts. When it says PL_CORE_UNPROVEN,
 *                                            pl_core_report_unproven follows, and nothing else
 *   pl_core_report_begin(env, report)        each report of it
 *   pl_core_hop_step(env, report, hop)       for each hop, source first: queues, ports, links,
 *                                            nodes, loops
 *   pl_core_route_step(env, report, latency) the path's aggregates, where they are kept: they have
 *                                            its nodes
 *   pl_core_report_end(env, report, last)    the drop, if it is one, and the flow: start, path
 *                                            change
 *   pl_core_delay_step(env, report, latency) the flow's path latency, where that is watched
 *
 * and pl_detect_tick for what happens because time passes. Nothing here reads a clock; now_ns is
 * monotonic and drives the rules, ts_ns (since the Unix epoch) only stamps events.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "record/record.h"

/* Key of a flow. No padding: keys are compared as 64-bit words. */
struct pl_flow_key {
	struct pl_addr src, dst;
	uint16_t sport, dport;
	uint16_t vlan;
	uint8_t proto;
	uint8_t has; /* PL_FLOW_KEY_HAS_* */
	uint32_t vni;
	uint32_t zero;
};
#define PL_FLOW_KEY_HAS_PORTS 1
#define PL_FLOW_KEY_HAS_VLAN  2
#define PL_FLOW_KEY_HAS_VNI   4

struct pl_core_report {
	uint64_t now_ns, ts_ns;
	struct pl_flow_key flow; /* valid when present has PL_PATH_HAS_src */
	struct pl_addr exporter;
	uint64_t node;      /* reporting node */
	uint64_t report_id; /* 0: the report was settled in the kernel and has no record to which an
			     * event could refer */
	uint64_t path_id;   /* complete before pl_core_report_end */
	uint32_t present;   /* PL_PATH_HAS_* */
	uint32_t seq;
	uint16_t flags; /* PL_FLAG_* */
	uint8_t mode;   /* enum pl_mode */
	uint8_t hw_id, report_version, drop_reason;
	uint8_t hop_count;
	uint8_t zero;
	uint32_t packet_bytes; /* bytes of the reported packet, from its IP header; 0 = not known */
	uint32_t drops;        /* dropped packets that the report stands for, less one */
};

/* Members from `node` to `present` are laid out as in struct pl_hop: user space copies them at
 * once. */
struct pl_core_hop {
	uint64_t node;
	uint32_t ingress_port, egress_port;
	uint32_t hop_latency_ns, queue_depth, tx_util, buffer_depth;
	uint16_t queue;
	uint8_t buffer;
	uint8_t index;    /* 0 = source side */
	uint32_t present; /* PL_HOP_HAS_* of these fields */
	/* latency from the previous node to this one; decoded ones are below 2^32 */
	uint32_t link_latency_ns;
	/* PL_HOP_HAS_node, PL_HOP_HAS_egress_port; 0: no link */
	uint32_t before_present;
	uint64_t before_node; /* node of the hop before, valid when its bit is in before_present */
	uint32_t before_port; /* egress port of the hop before, valid when its bit is in
			       * before_present */
	uint8_t clock;        /* enum pl_clock_quality, valid when its bit is in `present` */
	uint8_t zero[3];
};

/* A sequence space of reports, and a number in it. */
struct pl_core_numbered {
	struct pl_addr exporter;
	uint64_t node;
	uint32_t seq;
	uint8_t hw_id, report_version;
	uint8_t zero[2];
};

_Static_assert(sizeof(struct pl_flow_key) == 48, "no padding: keys are compared as words");
_Static_assert(sizeof(struct pl_core_report) == 128, "two cache lines");
_Static_assert(sizeof(struct pl_core_hop) == 64, "one cache line");
_Static_assert(offsetof(struct pl_core_hop, present) - offsetof(struct pl_core_hop, node) ==
		       offsetof(struct pl_hop, present) - offsetof(struct pl_hop, node),
	"the first part is that of the record");
_Static_assert(offsetof(struct pl_core_hop, queue) - offsetof(struct pl_core_hop, node) ==
		       offsetof(struct pl_hop, queue) - offsetof(struct pl_hop, node),
	"the first part is that of the record");
