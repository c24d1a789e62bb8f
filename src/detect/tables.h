/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of detection (core/detect_state.h) in user space, on the heap or mapped from the kernel
 * program's arrays; and the changes that time makes to them. Internal to detect/. */
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
	uint32_t sets[PL_CORE_T_MAX]; /* number of sets of each, a power of two */
	bool borrowed;                /* the memory is not ours */
};

/* Uses existing tables, with the sizes of their masks. */
void pl_tables_borrow(
	struct pl_tables *t, void *const sets[PL_CORE_T_MAX], const uint32_t mask[PL_CORE_T_MAX]);

/* Returns the number of sets for this number of entries, a power of two. */
uint32_t pl_tables_sets(uint32_t entries);
const struct pl_tables *pl_detect_tables(const struct pl_detect *det);

/* Allocates tables of at least this number of entries each, zeroed. Returns 0 or -ENOMEM. */
int pl_tables_init(struct pl_tables *t, const uint32_t entries[PL_CORE_T_MAX]);
void pl_tables_done(struct pl_tables *t);
uint64_t pl_tables_memory(const uint32_t entries[PL_CORE_T_MAX]);

/* Way words of set i of a table. */
uint64_t *pl_tables_ways(const struct pl_tables *t, unsigned int table, uint32_t set);
/* Entry in way w of the set. */
void *pl_tables_entry(const struct pl_tables *t, unsigned int table, uint32_t set, unsigned int w);

static inline bool pl_way_live(uint64_t way)
{
	return (uint32_t)(way >> 32) != 0 && (uint32_t)(way >> 32) != PL_CORE_TAG_BUSY;
}

/* Environment of the steps of detection; see core/detect_steps.h. */
struct pl_core_env {
	struct pl_tables tables;
	struct pl_core_rules rules;
	struct pl_core_counters counters;
	struct pl_event_batch *out;
	struct pl_core_trail trail;
	/* Hops of the present report: of its record, or as read from its packet; without either,
	 * its path has no nodes. */
	const struct pl_hop *records;
	const struct pl_core_hop *hops;
	struct pl_core_known known;
	struct pl_fast_marks marks;
	struct pl_fast_memo *memos; /* for users of the fast path (tests/bpf/frames.c) */
	/* Turn of tables that the kernel program also updates; NULL: it does not. */
	struct pl_core_turn *turn;
	/* Moves the program's events into out. */
	void (*hear)(struct pl_core_env *env);
	void *hear_arg;
};

/* Takes the turn: until pl_tables_turn_end the program does not touch the tables. Called before
 * anything in them is stepped or made. Events that the program made until then are in `out`
 * already, so events of one key leave in their order. */
static inline void pl_tables_turn(struct pl_core_env *env)
{
	struct pl_event_batch *out = env->out;

	if (env->turn == NULL)
		return;
	/* Makes room for the events of this turn: no output may be fed while the program waits. */
	if (out->n > out->cap / 2 && out->flush != NULL)
		out->flush(out, out->flush_arg);
	pl_core_turn_take(env->turn);
	env->hear(env);
}

/* Takes the turn for changes without events; out may be anything. */
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
	(void)e; /* the event lies at the end of the batch already */
	env->out->n++;
}

/* Environment and sweep of a detector. */
struct pl_core_env *pl_detect_env(struct pl_detect *det);
struct pl_sweep *pl_detect_sweep(struct pl_detect *det);

/* Nodes seen, for node_silent; they follow from the places. */
struct pl_node_watch {
	struct pl_cells cells;   /* struct watched_node */
	struct pl_shares shares; /* sources of the nodes, as the tables have them */
	uint32_t hand;
	uint64_t seed;
	uint64_t looked_ns;
};

int pl_node_watch_init(struct pl_node_watch *w, uint32_t max); /* returns 0 or -ENOMEM */
uint64_t pl_node_watch_memory(uint32_t max);
void pl_node_watch_done(struct pl_node_watch *w);

/* Positions at which the sweeps of the tables of flows go on. */
struct pl_sweep {
	struct pl_sweep_of {
		uint32_t set;
		uint64_t swept_ns;
	} flows, delays;
};

/* Ticks the tables: ends events that are over, reports those that wait, removes idle entries.
 * raised: some level may be raised, by the program or here (the sums of counters.raised and
 * counters.ended differ). About every 100 ms; a sweep of the flows takes a second. */
void pl_tables_tick(struct pl_core_env *env, struct pl_sweep *sweep, bool raised, uint64_t now_ns,
	uint64_t ts_ns);

/* The part of it that reports losses of tables whose packet path counts sequence numbers. */
void pl_tables_exporters_tick(struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns);

/* pl_nodes_hear notes when the nodes of these tables were last seen; pl_nodes_tell, called after
 * all tables by which a node's reports may come, reports the silent ones. Events and counts are
 * env's. */
void pl_nodes_hear(struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns);
void pl_nodes_tell(
	struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns, uint64_t ts_ns);

/* Applies new rules: they judge every key's next value; levels raised by a rule that is off now
 * end. */
void pl_tables_unband(struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns);

/* State of an exporter whose numbers the packet path counts, in the form of decoders. */
struct pl_exporter pl_exporter_of(const struct pl_core_exporter *x);

/* Makes an event when an exporter begins to lose reports, and when nothing more was lost for
 * rules.loss_hold_ns. */
void pl_loss_tell(struct pl_core_env *env, struct pl_core_loss *loss, const struct pl_exporter *x,
	uint64_t now_ns, uint64_t ts_ns);
/* Passes over the losses until now: they are told neither now nor later. No loss is open. */
void pl_loss_pass(struct pl_core_loss *loss, const struct pl_exporter *x);
