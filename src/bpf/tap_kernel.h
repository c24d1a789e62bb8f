/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data that the kernel's tap (bpf/tap.bpf.c) and user space (tap/kernel.c) exchange. */
#pragma once

#include <stdint.h>

#include "core/tap_counts.h"
#include "core/tap_rules.h"

/* Control block, set before the program is attached. */
struct pl_tap_control {
	uint32_t link;         /* enum pl_tap_link */
	uint32_t record_bytes; /* 64 or 96 */
	uint32_t wake_ns;      /* each processor wakes user space at most once in so long */
	uint64_t vxlan_ports;  /* a word of them (wire/tunnel_ports.h) */
};

/* Counts of a processor, in packets on the wire. packets is the sum of all of them but those behind
 * counted. */
struct pl_tap_kernel_counts {
	uint64_t records, not_ip, broken, skipped, not_sampled, ring_full;
	uint64_t counted;     /* counted by key (core/tap_counts.h), without a record */
	uint64_t bad_options; /* malformed TCP options */
	uint64_t stamped;     /* packets with times of the NIC, records or not */
	uint64_t count_full;  /* packets with a record, as no further key had room */
	uint64_t count_busy;  /* likewise, because the kernel could not insert the key at that
			      * moment */
	uint64_t joined;      /* frames that stand for several packets, and count as one */
	uint64_t entries; /* entries of the ring: records, and rows of them (core/tap_joined.h) */
};

/* Packets that each rule of a set matched first, and behind them those that none matched; the
 * counts go on when the set's turn comes again. */
struct pl_tap_rule_hits {
	uint64_t of[PL_TAP_RULE_SETS][PL_TAP_RULES_MAX + 1];
};

/* Counts of a processor, at the beginning of its working memory. */
struct pl_tap_kernel_book {
	struct pl_tap_kernel_counts counts;
	struct pl_tap_rule_hits hits;
};
