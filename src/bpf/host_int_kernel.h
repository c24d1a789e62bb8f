/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data that a host's INT source and sink in the kernel (bpf/host_int.bpf.c) and user space
 * (hostint/kernel.c) exchange. */
#pragma once

#include <stdint.h>

#include "core/host_int.h"
#include "core/sequence.h"
#include "core/tap_rules.h" /* rules are those of the tap, and take turns */

/* Control block, set before a program is attached. */
struct pl_host_control {
	uint32_t raw;     /* frames begin with IP: a tunnel */
	uint32_t dscp;    /* DSCP that announces INT, in the template too */
	uint32_t mtu;     /* source: largest IP packet with INT, in bytes; 0: the interface's MTU */
	uint32_t wake_ns; /* sink: each processor wakes user space at most once in so long */
	/* sink: every n-th packet of a flow is reported. 0: the first one; then one whose latency
	 * differs from that of the last report by more than change_ns, whose INT has another
	 * length, or that comes after refresh_ns. */
	uint32_t every;
	uint32_t drop_malformed, drop_outside; /* sink: 1: drop such packets, 0: pass them on */
	uint32_t reserved;
	uint64_t change_ns, refresh_ns;
};

/* Key of a flow. No padding: the kernel compares bytes. */
struct pl_host_key {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t proto;
};

/* State of a flow at a sink. */
struct pl_host_flow {
	struct pl_sequence seq;
	uint64_t told_ns, told_latency_ns;
	uint64_t told_bytes;
};

/* Counts of a processor. */
struct pl_host_source_counts {
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/host_source_counts.def"
#undef PL_STAT
};
struct pl_host_sink_counts {
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/host_sink_counts.def"
#undef PL_STAT
};

#define PL_HOST_EVENT_HEAD (PL_HOST_HEAD + PL_HOST_INT_MAX)

/* A packet to be reported: its bytes as it came, from the first to the last of INT. */
struct pl_host_event {
	uint64_t ts_ns;  /* arrival, CLOCK_TAI */
	uint16_t bytes;  /* bytes in head */
	uint16_t int_at; /* offset of INT in head */
	uint32_t lost;   /* packets for which the ring had no room before, modulo 2^32 */
	uint8_t head[PL_HOST_EVENT_HEAD];
};
#define PL_HOST_EVENT_FIXED 16u
