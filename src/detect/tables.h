/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of detection (core/detect_state.h) as user space holds them: on the heap, or mapped
 * from the kernel program's arrays; and what happens to them because time passes. Internal to
 * detect/.
 */
#pragma once

#include "base/cells.h"
#include "base/shares.h"
#define PL_ENV_FAST
#include "core/env.h"
#include "core/path_known.h"
#include "core/report_fast.h"
#include "detect/events.h"
#include "detect/turn.h"

struct pl_tables {
#define TABLE(name, help) struct pl_core_##name##_set *name;
	PL_CORE_TABLES(TABLE)
#undef TABLE
	uint32_t sets[PL_CORE_T_MAX]; /* a power of two each */
	bool borrowed;                /* somebody else's memory */
};

/* Those of somebody else, by their masks. */
void pl_tables_borrow(
	struct pl_tables *t, void *const sets[PL_CORE_T_MAX], const uint32_t mask[PL_CORE_T_MAX]);

/* Sets for so many entries: a power of two. */
uint32_t pl_tables_sets(uint32_t entries);
const struct pl_tables *pl_detect_tables(const struct pl_detect *det);

/* Heap tables of at least so many entries each; zeroed. -ENOMEM */
int pl_tables_init(struct pl_tables *t, const uint32_t entries[PL_CORE_T_MAX]);
void pl_tables_done(struct pl_tables *t);
uint64_t pl_tables_memory(const uint32_t entries[PL_CORE_T_MAX]);

/* The way words of set i, in whichever table. */
uint64_t *pl_tables_ways(const struct pl_tables *t, unsigned int table, uint32_t set);
/* The entry in way w of it. */
void *pl_tables_entry(const struct pl_tables *t, unsigned int table, uint32_t set, unsigned int w);

static inline bool pl_way_live(uint64_t way)
{
	return (uint32_t)(way >> 32) != 0 && (uint32_t)(way >> 32) != PL_CORE_TAG_BUSY;
}

/* The environment of the steps of detection; see core/detect_steps.h. */
struct pl_core_env {
	struct pl_tables tables;
	struct pl_core_rules rules;
	struct pl_core_counters counters;
	struct pl_event_batch *out;
	struct pl_core_trail trail;
	/* The hops of the report at hand: of its record, or as read from its packet; without
	 * either, its path has no nodes. */
	const struct pl_hop *records;
	const struct pl_core_hop *hops;
	struct pl_core_known known;
	struct pl_fast_marks marks;
	struct pl_fast_memo *memos; /* of whoever takes the fast path (tests/bpf/frames.c) */
	/* Of tables that the kernel program steps too; NULL: nobody else has them. */
	struct pl_core_turn *turn;
	/* Brings what the program told into out. */
	void (*hear)(struct pl_core_env *env);
	void *hear_arg;
};

/*
 * The tables are this side's until pl_tables_turn_end: before anything in them is stepped or made.
 * Events that the program told till then are in `out` already, so events of one key leave in the
 * order in which they were told.
 */
static inline void pl_tables_turn(struct pl_core_env *env)
{
	struct pl_event_batch *out = env->out;

	if (env->turn == NULL)
		return;
	/* Room for what this turn tells: outputs are not to be fed while the program waits. */
	if (out->n > out->cap / 2 && out->flush != NULL)
		out->flush(out, out->flush_arg);
	pl_core_turn_take(env->turn);
	env->hear(env);
}

/* For what tells nothing; out may be anything. */
static inline void pl_tables_silent_turn(struct pl_core_env *env)
{
	if (env->turn != NULL)
		pl_core_turn_take(env->turn);
}

static inline void pl_tables_turn_end(struct pl_core_env *env)
{
	if (env->turn != NULL)
		pl_core_turn_give(env->turn);
}

#define TABLE(name, help)                                                                          \
	static inline struct pl_core_##name##_set *pl_env_##name##_set(                            \
		struct pl_core_env *env, uint32_t i)                                               \
	{                                                                                          \
		return &env->tables.name[i];                                                       \
	}
PL_CORE_TABLES(TABLE)
#undef TABLE

static inline const struct pl_core_rules *pl_env_rules(const struct pl_core_env *env)
{
	return &env->rules;
}

static inline struct pl_core_counters *pl_env_counters(struct pl_core_env *env)
{
	return &env->counters;
}

static inline struct pl_core_trail *pl_env_trail(struct pl_core_env *env)
{
	return &env->trail;
}

static inline const struct pl_core_known *pl_env_known(
	struct pl_core_env *env, const struct pl_core_report *r)
{
	struct pl_core_known *k = &env->known;

	*k = (struct pl_core_known){ 0 };
	for (uint32_t i = 0; env->records != NULL && i < r->hop_count; i++) {
		const struct pl_hop *h = &env->records[i];

		pl_core_know(k, i, h->node, h->ingress_port, h->egress_port, h->present);
	}
	for (uint32_t i = 0; env->hops != NULL && i < r->hop_count; i++) {
		const struct pl_core_hop *h = &env->hops[i];

		pl_core_know(k, i, h->node, h->ingress_port, h->egress_port, h->present);
	}
	return k;
}

static inline struct pl_fast_marks *pl_env_marks(struct pl_core_env *env)
{
	return &env->marks;
}

static inline struct pl_fast_memo *pl_env_memo(struct pl_core_env *env, uint32_t i)
{
	return &env->memos[i];
}

static inline struct pl_event *pl_env_event(struct pl_core_env *env)
{
	struct pl_event_batch *out = env->out;

	if (__builtin_expect(out->n == out->cap, 0)) {
		if (out->flush != NULL)
			out->flush(out, out->flush_arg);
		if (out->n == out->cap)
			return NULL;
	}
	return &out->events[out->n];
}

static inline void pl_env_tell(struct pl_core_env *env, struct pl_event *e)
{
	(void)e; /* it stands where the batch goes on */
	env->out->n++;
}

/* Those of a detector. */
struct pl_core_env *pl_detect_env(struct pl_detect *det);
struct pl_sweep *pl_detect_sweep(struct pl_detect *det);

/* Nodes heard of, for node_silent; they follow from the places. */
struct pl_node_watch {
	struct pl_cells cells;   /* struct watched_node */
	struct pl_shares shares; /* whose nodes: sources as the tables have them */
	uint32_t hand;
	uint64_t seed;
	uint64_t looked_ns;
};

int pl_node_watch_init(struct pl_node_watch *w, uint32_t max); /* -ENOMEM */
uint64_t pl_node_watch_memory(uint32_t max);
void pl_node_watch_done(struct pl_node_watch *w);

/* Where the sweeps of the tables of flows go on. */
struct pl_sweep {
	struct pl_sweep_of {
		uint32_t set;
		uint64_t swept_ns;
	} flows, delays;
};

/*
 * Time passes: what is over ends, what waits is told, what is idle goes. raised: some level may be
 * raised, on whichever side (counters.raised differs from counters.ended in their sum). About every
 * 100 ms; the flows are swept in a second.
 */
void pl_tables_tick(struct pl_core_env *env, struct pl_sweep *sweep, bool raised, uint64_t now_ns,
	uint64_t ts_ns);

/* When the nodes of these tables were heard of last; then, after all tables that a node's reports
 * may come by, who is silent. What is told and counted is env's. */
void pl_nodes_hear(struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns);
void pl_nodes_tell(
	struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns, uint64_t ts_ns);

/* New rules hold: every key's next value is looked at by them; what is raised by a rule that is off
 * now ends. */
void pl_tables_unband(struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns);

/* An exporter whose numbers the packet path counts, as decoders show theirs. */
struct pl_exporter pl_exporter_of(const struct pl_core_exporter *x);

/* Tells when an exporter begins to lose reports, and when nothing more was lost for
 * rules.loss_hold_ns. */
void pl_loss_tell(struct pl_core_env *env, struct pl_core_loss *loss, const struct pl_exporter *x,
	uint64_t now_ns, uint64_t ts_ns);
