/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data that the program of dropped packets (bpf/drops.bpf.c) and user space (tap/drops.c)
 * exchange. */
#pragma once

#include <stdint.h>

#include "bpf/tap_kernel.h"
#include "record/packet.h"

#define PL_DROPS_AT_BYTES 128

/* Entry of the ring: the record without number, reason and place; then the place as the kernel
 * writes addresses of its code, "tcp_v4_rcv+0x1a2/0xf10" or "ip_vs_in+0x1/0x20 [ip_vs]". */
struct pl_drops_event {
	struct pl_drop168 record;
	char at[PL_DROPS_AT_BYTES];
};

/* Control block, set before the program is attached. */
struct pl_drops_control {
	uint32_t netns;        /* inode number of the network namespace whose drops are reported */
	uint32_t consumed;     /* the kernel's number of SKB_CONSUMED, which is no drop; 0: none */
	uint32_t has_rx_sock;  /* the tracepoint also gives the socket that was to receive it */
	uint32_t wake_ns;      /* each processor wakes user space at most once in so long */
	uint64_t cost_ns;      /* time that must pass per record, which limits records per second */
	uint64_t interface[2]; /* name of the interface, filled with zeros; all zeros: any */
};

/* Slots of the counters of drops, by the kernel's number of the reason: subsystem S has slots of
 * its own. Of the PL_DROPS_REASONS slots the last is for numbers without one. */
#define PL_DROPS_CORE       512u
#define PL_DROPS_SUBSYSTEMS 3u /* mac80211 (in 6.4 two of them), openvswitch */
#define PL_DROPS_EACH       128u
#define PL_DROPS_REASONS    (PL_DROPS_CORE + PL_DROPS_SUBSYSTEMS * PL_DROPS_EACH + 1)

/* Slot of a reason. */
static inline __attribute__((always_inline)) uint32_t pl_drops_slot(uint32_t reason)
{
	const uint32_t subsystem = reason >> 16, number = reason & 0xffff;

	if (subsystem == 0 && number < PL_DROPS_CORE)
		return number;
	if (subsystem >= 1 && subsystem <= PL_DROPS_SUBSYSTEMS && number < PL_DROPS_EACH)
		return PL_DROPS_CORE + (subsystem - 1) * PL_DROPS_EACH + number;
	return PL_DROPS_REASONS - 1;
}

/* Counts of a processor. packets is the sum of all. */
struct pl_drops_counts {
	uint64_t records, skipped, not_sampled, rate_limited, ring_full;
	uint64_t other_namespace, other_interface;
	uint64_t not_network; /* buffers of UNIX, netlink and similar sockets, or of none */
};

/* Counts of a processor, at the beginning of its working memory. */
struct pl_drops_book {
	struct pl_drops_counts counts;
	struct pl_tap_rule_hits hits;
};
