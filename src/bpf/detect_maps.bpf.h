/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory of the detector: its maps, the working memory for a report, and the turns for a queue's
 * tables. */
#pragma once

#include "bpf/filter.bpf.h"

#define PL_CORE_TRAIL 32 /* as many hops as are settled: each is compared to find loops */

#include "bpf/detect_kernel.h"
#include "core/path_known.h"
#include "core/report_fast.h"

_Static_assert(PL_CORE_TRAIL == PL_CORE_HOPS_MAX, "the trail holds every hop");

/* --- maps ------------------------------------------------------------------------------------- */

/* One entry per set and queue; sizes are set before loading. */
#define TABLE(name, help)                                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1);                                                            \
		__type(key, uint32_t);                                                             \
		__type(value, struct pl_core_##name##_set);                                        \
	} pl_table_##name SEC(".maps");
PL_CORE_TABLES(TABLE)
#undef TABLE

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} pl_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} pl_frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct pl_kernel_prefix);
	__type(value, struct pl_core_profile);
} pl_profiles SEC(".maps");

/* PL_FAST_MEMOS of each queue; the size is set before loading, too. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PL_FAST_MEMOS);
	__type(key, uint32_t);
	__type(value, struct pl_fast_memo);
} pl_memos SEC(".maps");

#define PROFILES_SEEN 16 /* a power of two */

/* Part of an exporter's profile that the fast path uses. Profiles do not change while the program
 * runs. */
struct profile_seen {
	uint64_t addr[2];
	uint64_t layout_key;
	uint64_t usual; /* 0: its reports take the slow path, or nothing was seen yet */
};

struct work {
	struct pl_kernel_counters counters;
	struct pl_core_scratch scratch;
	struct pl_core_own own;
	struct pl_core_trail trail;
	struct pl_core_known known; /* path of the present report, once it was computed */
	struct pl_fast_keys keys;
	struct pl_fast_to to; /* not on the stack, which is too small */
	struct pl_fast_marks marks;
	/* Form of a report whose headers the fast path read: struct pl_fast from seq on, and the
	 * offset of its newest block in the frame. */
	uint64_t form[PL_FAST_FORM_WORDS];
	uint32_t stack_at, frame_bytes;
	uint32_t cursor_at, cursor_left;
	uint64_t slow; /* enum pl_slow: reason for the slow path */
	uint32_t queue;
	uint32_t turn;                           /* 1: this program may update the queue's tables */
	struct profile_seen seen[PROFILES_SEEN]; /* profiles of the exporters seen last */
	uint64_t packets;                        /* packets so far, to sample them */
	uint32_t unproven; /* PL_CORE_UNPROVEN: the present report's exporter is not proven */
	uint32_t sender;   /* sender of the present report, once pl_detect_sender has set it */
	/* Flags for the ring of events: 1, which no kernel accepts, when the sender has used its
	 * share. Then the steps of a report find no room, without a branch for it. */
	uint64_t events_flags;
	uint64_t events_put; /* events of this processor that are counted to senders */
	uint64_t events_dropped, events_at; /* values before the steps of the present report */
	struct {
		struct pl_kernel_frame frame;
		struct pl_core_numbered of;
	} number;
	struct pl_kernel_frame frame;
	uint8_t bytes[PL_KERNEL_FRAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} pl_work SEC(".maps");

struct pl_kernel_control pl_control;
struct pl_core_rules pl_rules[2];
struct pl_core_layouts pl_layouts;
struct pl_core_turn pl_turns[PL_KERNEL_QUEUES];
struct pl_kernel_sender pl_senders[PL_KERNEL_SENDERS];

/* --- turns ------------------------------------------------------------------------------------ */

/* Some ten microseconds in all: longer than a turn of user space that is not interrupted. */
#define TURN_GLANCES 64
#define TURN_LOOKS   256

static __always_inline struct pl_core_turn *turn_of(const struct work *w)
{
	return &pl_turns[w->queue & (PL_KERNEL_QUEUES - 1)];
}

static __always_inline uint32_t turn_holder(const struct work *w)
{
	return *(volatile uint32_t *)&turn_of(w)->holder;
}

/* Looks a few times in a row, as many as the verifier follows in one loop. Returns 1 when the
 * holder is one of the set, 1 << each. */
__attribute__((noinline)) int pl_detect_turn_look(struct work *w, uint32_t set)
{
	if (w == NULL)
		return 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TURN_GLANCES; i++) {
		if (set >> (turn_holder(w) & 31) & 1)
			return 1;
	}
	return 0;
}

/* Waits while another one steps the queue's tables: user space for a few reports or, in generic
 * mode, another processor. */
__attribute__((noinline)) int pl_detect_turn_wait(struct work *w)
{
	const int crowded = bpf_ringbuf_query(&pl_frames, BPF_RB_AVAIL_DATA) >
			    bpf_ringbuf_query(&pl_frames, BPF_RB_RING_SIZE) / 2;
	const uint32_t free = 1u << PL_TURN_FREE | 1u << PL_TURN_BEHIND,
		       until = crowded ? free : free | 1u << PL_TURN_CATCHING;
	uint32_t looks = TURN_LOOKS;
	struct pl_core_turn *turn;

	if (w == NULL)
		return 0;
	turn = turn_of(w);
	/* A thread that this program interrupted does not go on while the program waits. */
	if (turn_holder(w) != PL_TURN_PROGRAM &&
		*(volatile uint32_t *)&turn->processor == bpf_get_smp_processor_id())
		looks = 1;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TURN_LOOKS && i < looks; i++) {
		(void)pl_core_turn_swap(turn, PL_TURN_USER, PL_TURN_WAITED);
		if (!pl_detect_turn_look(w, until))
			continue;
		if (pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE)
			return 1;
		if (crowded &&
			pl_core_turn_swap(turn, PL_TURN_BEHIND, PL_TURN_PROGRAM) == PL_TURN_BEHIND)
			return 1;
		if (!crowded && turn_holder(w) >= PL_TURN_CATCHING)
			return 0;
	}
	(void)pl_core_turn_swap(turn, PL_TURN_USER, PL_TURN_WAITED);
	(void)pl_core_turn_swap(turn, PL_TURN_WAITED, PL_TURN_CATCHING);
	return pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE;
}

static __always_inline int turn_take(struct work *w)
{
	return pl_core_turn_swap(turn_of(w), PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE ||
	       pl_detect_turn_wait(w);
}

/* Gives the turn back: the holder of the next turn sees all stores made before. */
static __always_inline void turn_give(const struct work *w)
{
#ifdef PL_STORES_IN_ORDER
	__asm__ volatile("" ::: "memory");
	*(volatile uint32_t *)&turn_of(w)->holder = PL_TURN_FREE;
#else
	(void)pl_core_turn_swap(turn_of(w), PL_TURN_PROGRAM, PL_TURN_FREE);
#endif
}
