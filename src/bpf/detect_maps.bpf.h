/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the detector has in memory: its maps, the work of a report, and whose turn it is to step a queue's tables. */
#pragma once

#include "bpf/filter.bpf.h"

#define PL_CORE_TRAIL 32 /* as many hops as are settled: every one is looked at for loops */

#include "bpf/detect_kernel.h"
#include "bpf/report_quiet.h"

_Static_assert(PL_CORE_TRAIL == PL_CORE_HOPS_MAX, "the trail holds every hop");

/* --- maps ------------------------------------------------------------------------------------------- */

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

/* PL_QUIET_MEMOS of each queue; sized before loading, too. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PL_QUIET_MEMOS);
	__type(key, uint32_t);
	__type(value, struct pl_quiet_memo);
} pl_memos SEC(".maps");

struct work {
	struct pl_kernel_counters counters;
	struct pl_core_scratch scratch;
	struct pl_core_own own;
	struct pl_core_trail trail;
	struct pl_quiet_keys keys;
	struct pl_quiet_marks marks;
	/* Of a report that the straight way read: struct pl_quiet from seq on, and how far into the frame its newest block is. */
	uint64_t form[PL_QUIET_FORM_WORDS];
	uint32_t stack_at, frame_bytes;
	struct pl_quiet_blocks blocks;
	uint64_t learn; /* the report's flow is to learn its path's print */
	uint32_t queue;
	uint32_t turn;    /* 1: the queue's tables are ours to step */
	uint64_t packets; /* for the sample */
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

/* --- turns ------------------------------------------------------------------------------------------ */

/* Some microseconds. More branches than 8192 in a row are too many for the verifier. */
#define TURN_LOOKS 1024

static __always_inline struct pl_core_turn *turn_of(const struct work *w)
{
	return &pl_turns[w->queue & (PL_KERNEL_QUEUES - 1)];
}

/* Somebody else steps the queue's tables: a few reports of user space, or, in generic mode, another processor. */
__attribute__((noinline)) int pl_detect_turn_wait(struct work *w)
{
	struct pl_core_turn *turn;

	if (w == NULL)
		return 0;
	turn = turn_of(w);
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TURN_LOOKS; i++) {
		uint32_t holder = *(volatile uint32_t *)&turn->holder;

		if (holder == PL_TURN_BEHIND)
			return 0;
		if (holder == PL_TURN_FREE &&
			pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE)
			return 1;
	}
	return pl_core_turn_swap(turn, PL_TURN_USER, PL_TURN_BEHIND) == PL_TURN_FREE &&
	       pl_core_turn_swap(turn, PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE;
}

static __always_inline int turn_take(struct work *w)
{
	return pl_core_turn_swap(turn_of(w), PL_TURN_FREE, PL_TURN_PROGRAM) == PL_TURN_FREE ||
	       pl_detect_turn_wait(w);
}

/* All that was stored before is seen by whoever takes the next turn. */
static __always_inline void turn_give(const struct work *w)
{
#ifdef PL_STORES_IN_ORDER
	__asm__ volatile("" ::: "memory");
	*(volatile uint32_t *)&turn_of(w)->holder = PL_TURN_FREE;
#else
	(void)pl_core_turn_swap(turn_of(w), PL_TURN_PROGRAM, PL_TURN_FREE);
#endif
}
