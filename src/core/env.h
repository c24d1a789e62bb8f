/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Environment that the steps of detection need: access to the state, and a place for events. There
 * are two: that of the kernel program (bpf/detect.bpf.c), over maps, and that of user space
 * (detect/tables.h), over the same memory or the heap. Each defines struct pl_core_env, with its
 * own members, and the functions declared here, in the file that includes the steps
 * (core/detect_steps.h) and the fast path (core/detect_fast.h); a compiler reports a missing one.
 */
#pragma once

#include "core/detect_state.h"

struct pl_core_env;
struct pl_core_known;
struct pl_fast_marks;
struct pl_fast_memo;

/* Returns the rules, the same during one report. Never NULL. */
static inline const struct pl_core_rules *pl_env_rules(const struct pl_core_env *env);

/* Return the counters of this side, and the nodes that the present report has passed. Never
 * NULL. */
static inline struct pl_core_counters *pl_env_counters(struct pl_core_env *env);
static inline struct pl_core_trail *pl_env_trail(struct pl_core_env *env);

/* Returns the known parts of the present report's path, which has r->hop_count hops: pl_core_know
 * of each. Never NULL. */
static inline const struct pl_core_known *pl_env_known(
	struct pl_core_env *env, const struct pl_core_report *r);

/* Return set i of each table (pl_env_place_set and so on), i below the table's size in the rules;
 * or NULL. */
#define PL_ENV_TABLE(name, help)                                                                   \
	static inline struct pl_core_##name##_set *pl_env_##name##_set(                            \
		struct pl_core_env *env, uint32_t i);
PL_CORE_TABLES(PL_ENV_TABLE)
#undef PL_ENV_TABLE

/* pl_env_event gives room for an event, or NULL when there is none; pl_env_tell reports that event
 * before more room is asked for. */
static inline struct pl_event *pl_env_event(struct pl_core_env *env);
static inline void pl_env_tell(struct pl_core_env *env, struct pl_event *e);

/* The fast path needs more functions; an environment that runs it defines PL_ENV_FAST first. */
#ifdef PL_ENV_FAST
/* Return the fast path's marks of the present report (never NULL), and memo i of PL_FAST_MEMOS (or
 * NULL). */
static inline struct pl_fast_marks *pl_env_marks(struct pl_core_env *env);
static inline struct pl_fast_memo *pl_env_memo(struct pl_core_env *env, uint32_t i);
#endif

/* Searches of the fast path are part of it (pl_fast_seek_place and its like) unless an environment
 * defines PL_FAST_SEEK_CALLS and the macros pl_env_seek_place, _port, _link, _exporter, _route,
 * pl_env_expect and pl_env_expect_links: the kernel's verifier checks a call only once. */
