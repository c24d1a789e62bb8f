/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that the detector in the kernel (detect.bpf.c) and its loader (detect/kernel.c) share: the
 * control block, which user space maps, counters, and the frames that are escalated through a
 * ring. */
#pragma once

#include "core/detect_state.h"
#include "core/report_core.h"
#include "core/turn.h"

#define PL_KERNEL_QUEUES  64 /* most queues with state: a power of two */

/*
 * Shares of the rings of frames and of events. Sources (pl_core_source) are hashed to senders. The
 * last eighth of a ring is for senders with a 64th of it at most; any other may have four times as
 * much waiting as is free before that. So one sender alone fills seven tenths of the ring, several
 * that flood come to share it evenly, and a sender that has little waiting finds room.
 */
#define PL_KERNEL_SENDERS 4096 /* a power of two */

/* Bytes of a sender in a ring, with the ring's own header. Of frames: those that the program put in
 * and those that user space took out. An event may not name its exporter, but user space always
 * takes all waiting events out: so events_bytes counts those put in since the round events_round
 * began, and user space begins a round before it takes any out (pl_kernel_control). Bytes of an
 * older round are all taken out. */
struct pl_kernel_sender {
	uint64_t put, taken;
	uint32_t events_round, events_bytes;
};

/* Room that size bytes take in a ring. */
static inline uint64_t pl_kernel_ring_room(uint64_t size)
{
	return (size + 8 + 7) & ~UINT64_C(7);
}

/* Handling of reports besides detection. User space changes it at run time. */
struct pl_kernel_control {
	uint64_t now_ns, ts_ns;  /* present time, kept by user space (pl_kernel_time) */
	uint64_t vxlan_ports;    /* set of ports (wire/tunnel_ports.h), as in decode */
	uint32_t max_latency_ns; /* plausibility limit, as in decode */
	uint32_t active;         /* index of the rules that hold */
	/* 1: escalated frames go to the socket of their queue; 0: into the ring */
	uint32_t to_sockets;
	uint32_t copy_all;    /* settled reports go to the sockets too (detect: both) */
	uint32_t sample;      /* 1 in this number of settled reports is copied into the ring; 0:
			       * none */
	uint32_t match;       /* 1: settled reports that match are copied too; 0 matches all */
	uint32_t match_flags; /* PL_FLAG_*: any of them */
	uint32_t match_node_set;
	uint64_t match_node;       /* node on the path, or reporting */
	struct pl_addr match_addr; /* source or destination of the flow; zero: all */
	/* profile of exporters that are in no prefix of the map of profiles */
	struct pl_core_profile profile;
	uint32_t profiles;     /* 1: the map of profiles has entries */
	uint32_t queues;       /* queues with state; reports of other queues are escalated */
	uint32_t general;      /* 1: every report takes the slow path, for tests and comparison */
	uint32_t frames_bytes; /* size of the ring of frames */
	uint32_t events_bytes; /* size of the ring of events */
	uint32_t events_round; /* counts up whenever user space begins to take events out */
};

/* Key of the map of profiles, a longest-prefix trie. */
struct pl_kernel_prefix {
	uint32_t bits;
	struct pl_addr addr;
};

/* A frame in the ring. */
struct pl_kernel_frame {
	uint64_t ts_ns;
	uint32_t len, wire_len;
	uint16_t queue;
	uint16_t sender;
	uint16_t cause;  /* enum pl_escalation; NONE: settled, a copy to be stored */
	uint16_t number; /* enum pl_kernel_number */
	/* len bytes follow; with len 0 a struct pl_core_numbered follows, the number of a settled
	 * report */
};

/* Result for a report's sequence number. */
enum pl_kernel_number {
	PL_NUMBER_UNREAD, /* the program does not know this value */
	PL_NUMBER_COUNTED,
	PL_NUMBER_LEFT, /* left to user space, which counts all numbers of this exporter */
	PL_NUMBER_LATE, /* read, but not counted: the program could not write the account then */
};

#define PL_KERNEL_FRAME_MAX 4096 /* an XDP frame is a page at most */

/* One per processor. */
struct pl_kernel_counters {
	struct pl_core_counters core;
#define PL_STAT(kind, member, ...) uint64_t member;
#include "bpf/kernel_counters.def"
#undef PL_STAT
	uint64_t escalated[PL_ESCALATION_MAX];
	uint64_t notes[64]; /* of settled reports, by enum pl_note */
	/* Packets that took the slow path, by enum pl_slow: with `fast` they are all packets. */
	uint64_t slow[PL_SLOW_MAX];
};
