/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a host's INT source and sink in the kernel (bpf/host_int.bpf.c) and user space
 * (hostint/kernel.c) say to each other. */
#pragma once

#include <stdint.h>

#include "core/host_int.h"
#include "core/sequence.h"
#include "core/tap_rules.h"

/* Sets of rules that take turns, as the tap's (bpf/tap_kernel.h). */
#define PL_HOST_RULE_SETS 4u /* a power of two */

struct pl_host_rule_set {
	uint32_t n;
	uint32_t reserved;
	struct pl_tap_rule rules[PL_TAP_RULES_MAX];
	uint64_t matched[PL_TAP_RULES_MAX]; /* of rules that sample */
};

/* Set before a program is attached. */
struct pl_host_control {
	uint32_t raw;     /* frames begin with IP: a tunnel */
	uint32_t dscp;    /* that announces INT; the template's too */
	uint32_t mtu;     /* source: most bytes of an IP packet with INT; 0: the interface's */
	uint32_t wake_ns; /* sink: user space is woken at most once in so long, by each processor */
	/* sink: of each flow every so many packets are reported. 0: the first one, and then one whose
	 * latency differs by more than change_ns from that of the last report, whose INT has another
	 * length, or after refresh_ns. */
	uint32_t every;
	uint32_t drop_malformed, drop_outside; /* sink: 1: they are dropped, 0: passed on */
	uint32_t reserved;
	uint64_t change_ns, refresh_ns;
};

/* A flow. No padding: the kernel compares bytes. */
struct pl_host_key {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t proto;
};

/* What a sink keeps of a flow. */
struct pl_host_flow {
	struct pl_sequence seq;
	uint64_t told_ns, told_latency_ns;
	uint64_t told_bytes;
};

/* Per processor. */
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

/* A packet to be reported: as it came, from its first byte to the last of INT. */
struct pl_host_event {
	uint64_t ts_ns;  /* when it came, CLOCK_TAI */
	uint16_t bytes;  /* of head */
	uint16_t int_at; /* where in head INT begins */
	uint32_t lost;   /* for so many the ring had no room before, modulo 2^32 */
	uint8_t head[PL_HOST_EVENT_HEAD];
};
#define PL_HOST_EVENT_FIXED 16u
