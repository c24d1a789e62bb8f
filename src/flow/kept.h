/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State of a flow cache that stays when its process ends: a header, then buckets, flows and their
 * packets at other places (table.h, entry.h), each as one array. It lies in the memory of the
 * process, or in a file that is mapped (state.h).
 *
 * A killed process has made its stores in the order of its instructions, so a fence for the
 * compiler is enough to keep them in order. Every change of a flow is a step of one of these kinds;
 * the journal is written before its first store and its kind is set to 0 behind its last. A process
 * that finds a kind in the journal repairs the flow (mend.c). This is done for a kill at each kind
 * of step:
 *
 *   COUNT      a packet is added to a flow: the numbers go back to what they were; the packet was not seen
 *   ELSEWHERE  a packet at a place that does not count: likewise, of what is known elsewhere
 *   NEW        a flow begins in a free slot; its tag is set last: the slot is free; the packet was not seen
 *   TAKE       packets of another place are added: flow and what is known elsewhere go back; they wait again
 *   GIVE       a record of a flow that goes on, then its next one begins. No record was made: nothing
 *              is to be done. One was: the next record begins (once more, which changes nothing)
 *   END        the last record, then the tag is cleared. No record was made: what is known elsewhere goes
 *              back, the flow goes on. One was: the slot is free
 *
 * A record is made when n_records says so, which is stored behind its bytes. A step makes one at
 * most. Records are given to the sink between steps. Before the sink sees them, they are removed
 * from the cache: `next` is set to the totals after the hand-over, n_records becomes 0, `given`
 * becomes `next`. So a record is given to the sink at most once, and a record that was given and
 * not written is missing in the numbers of records (flow_seq).
 *
 * Times and TCP numbers of a flow may include half of the interrupted packet: each time, count and
 * bit of `known` is valid on its own, and `state` is restored, so no value of an earlier flow is
 * read.
 */
#pragma once

#include <stdatomic.h>
#include <string.h>

#include "flow/state.h"
#include "flow/table.h"

/* Version 1: a flow of ICMP was one direction, and no handshake was PL_HANDSHAKE_SEEN. */
#define PL_FLOW_STATE_MAGIC   "plflows"
#define PL_FLOW_STATE_VERSION 2u
#define PL_FLOW_STATE_MAKING  UINT32_MAX /* version of a file that is still being made */
#define PL_FLOW_OUTAGES       64u

/* Fence between stores whose order must hold when the process is killed. */
#define PL_FLOW_FENCE()       atomic_signal_fence(memory_order_seq_cst)

enum pl_flow_step {
	PL_FLOW_STEP_NONE,
	PL_FLOW_STEP_COUNT,
	PL_FLOW_STEP_ELSEWHERE,
	PL_FLOW_STEP_NEW,
	PL_FLOW_STEP_TAKE,
	PL_FLOW_STEP_GIVE,
	PL_FLOW_STEP_END,
	PL_FLOW_STEPS
};

struct pl_flow_journal {
	uint32_t kind, slot; /* enum pl_flow_step */
	/* State before the step. */
	uint32_t n_records, records, packets[2];
	uint64_t bytes[2], last_ts;
	uint8_t state, places, flags[2];
	uint32_t zero;
	uint64_t ts;                /* for GIVE: begin of the next record */
	struct pl_flow_other other; /* for ELSEWHERE, TAKE, END, if `state` has PL_FLOW_ELSEWHERE */
	struct pl_flow_entry entry; /* for TAKE */
};

/* Records that were handed to the sink, and the packets in them. */
struct pl_flow_given {
	uint64_t records, packets;
};

/* A time during which no tap ran, on the packets' time scale. */
struct pl_flow_outage {
	uint64_t from, to;
};

/* State of a cache, in native byte order: the file stays on its machine. */
struct pl_flow_kept {
	/* The offsets of these members are the same in all versions. */
	char magic[8];
	uint32_t version, live; /* flows in the table */
	uint64_t held;          /* packets in the table and in records that were not handed out */

	/* These members are written once. */
	uint32_t check; /* CRC-32 of these, and of magic and version */
	uint32_t n_buckets;
	uint8_t boot[16]; /* boot id of the kernel */
	uint64_t seed[4];

	_Alignas(64) uint64_t clock_ns;
	uint32_t n_records, n_outages;
	struct pl_flow_given given, next;
	uint64_t newest_ns,
		newest_boot_ns; /* newest time of a packet; CLOCK_BOOTTIME when it came */
	_Alignas(64) struct pl_flow_journal journal;
	uint32_t clocks, n_points; /* clocks: bits of the caller */
	struct pl_flow_point points[PL_FLOW_POINTS];
	struct pl_flow_outage outages[PL_FLOW_OUTAGES]; /* the oldest first */
	struct pl_flow288 records[PL_FLOW_RECORDS];     /* waiting records, the first of number
							 * given.records */
};

/* A state file that is mapped. */
struct pl_flow_state {
	char *path;
	int fd;
	struct pl_map_guard guard;
	struct pl_flow_kept *kept;
	uint64_t seen_lost; /* guard.lost_pages at the last check */
	uint8_t boot[16];   /* boot id of the kernel */
	uint32_t n_points;
	struct pl_flow_point points[PL_FLOW_POINTS]; /* points that the tap has now */
	struct pl_flow_found found;
	bool was_there;
};

/* Size of a state with n_buckets, and offsets of its parts. */
struct pl_flow_layout {
	size_t buckets, flows, others, bytes;
};

static inline struct pl_flow_layout pl_flow_layout(uint32_t n_buckets)
{
	const size_t page = 4096, slots = (size_t)n_buckets * PL_FLOW_WAYS;
	struct pl_flow_layout l = { .buckets = (sizeof(struct pl_flow_kept) + page - 1) / page *
					       page };

	l.flows = l.buckets + n_buckets * sizeof(struct pl_flow_bucket);
	l.others = l.flows + slots * sizeof(struct pl_flow_entry);
	l.bytes = l.others + slots * sizeof(struct pl_flow_other);
	return l;
}

uint32_t pl_flow_kept_check(const struct pl_flow_kept *kept);
/* Makes an empty state for n_buckets with this seed in the file, in place of what it held. Returns
 * 0, or a negative errno with diag. */
int pl_flow_state_make(struct pl_flow_state *state, uint32_t n_buckets, const uint64_t seed[4],
	struct pl_diag *diag);

/* Sum of the times between `first` and `last` during which no tap ran. */
static inline uint64_t pl_flow_unseen(const struct pl_flow_kept *k, uint64_t first, uint64_t last)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < k->n_outages; i++) {
		const struct pl_flow_outage *o = &k->outages[i];
		const uint64_t from = o->from > first ? o->from : first,
			       to = o->to < last ? o->to : last;

		sum += to > from ? to - from : 0;
	}
	return sum;
}
