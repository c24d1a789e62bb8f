/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows when each node was last seen, and reports silent nodes. */
#include "detect/tables.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "core/detect_steps.h"

struct watched_node {
	uint64_t key[2];
	uint64_t heard_ns; /* time last seen */
	uint64_t silent_since_ns;
	uint64_t due_ns;
	uint32_t share;
	bool silent, told;
};

int pl_node_watch_init(struct pl_node_watch *w, uint32_t max)
{
	*w = (struct pl_node_watch){ .seed = pl_hash_seed() };
	if (pl_cells_init(&w->cells, max, sizeof(struct watched_node)) < 0)
		return -ENOMEM;
	return pl_shares_init(&w->shares, max);
}

uint64_t pl_node_watch_memory(uint32_t max)
{
	return pl_cells_memory(max, sizeof(struct watched_node)) + pl_shares_memory(max);
}

void pl_node_watch_done(struct pl_node_watch *w)
{
	pl_cells_done(&w->cells);
	pl_shares_done(&w->shares);
}

static void node_forget(struct pl_node_watch *w, uint32_t cell)
{
	pl_shares_give(&w->shares, ((struct watched_node *)pl_cells_at(&w->cells, cell))->share);
	pl_cells_remove(&w->cells, cell);
}

static struct pl_share_entry node_entry(const void *arg, const void *cell)
{
	const struct watched_node *n = cell;

	(void)arg;
	return (struct pl_share_entry){ .share = n->share, .seen_ns = n->heard_ns };
}

/* A node of a source that has less than others takes the place of one of theirs. */
static struct watched_node *node_watch(
	struct pl_node_watch *w, uint64_t hash, const uint64_t key[2], uint64_t owner)
{
	struct pl_addr source = { { 0 } };
	struct watched_node *n;
	uint32_t cell;

	memcpy(source.b, &owner, sizeof(owner));
	if (pl_cells_count(&w->cells) == w->cells.cap) {
		const uint32_t held = pl_shares_held(&w->shares, &source);

		if ((uint64_t)held * pl_cells_count(&w->shares.cells) >= w->cells.cap)
			return NULL;
		cell = pl_shares_choose(
			&w->shares, &w->cells, &w->hand, held, false, node_entry, NULL);
		if (cell == PL_CELL_NONE)
			return NULL;
		node_forget(w, cell);
	}
	n = pl_cells_at(&w->cells, pl_cells_insert(&w->cells, hash, key, 2 * sizeof(key[0])));
	n->share = pl_shares_take(&w->shares, &source);
	return n;
}

static void node_tell(struct pl_core_env *env, const struct watched_node *n,
	enum pl_event_phase phase, uint64_t silence_ns, uint64_t ts_ns)
{
	struct pl_event *e = pl_core_event(env, PL_EVENT_NODE_SILENT, phase, ts_ns);

	if (e == NULL)
		return;
	e->node = n->key[0];
	e->value = silence_ns;
	e->present = PL_EVENT_HAS_node | PL_EVENT_HAS_value;
	if (phase == PL_PHASE_BEGIN) {
		e->threshold = env->rules.node_silent_ns;
		e->present |= PL_EVENT_HAS_threshold;
	} else {
		pl_event_set_duration_ns(e, silence_ns);
	}
	pl_env_tell(env, e);
}

static void node_heard(struct pl_core_env *env, struct pl_node_watch *w, uint64_t node,
	uint64_t owner, uint64_t heard_ns)
{
	const uint64_t key[2] = { node, 0 };
	uint64_t hash = pl_hash_mix(node ^ w->seed, w->seed);
	uint32_t cell = pl_cells_find(&w->cells, hash, key, sizeof(key));
	struct watched_node *n;

	n = cell != PL_CELL_NONE ? pl_cells_at(&w->cells, cell) : node_watch(w, hash, key, owner);
	if (n == NULL) {
		env->counters.nodes_full++;
		return;
	}
	if (heard_ns > n->heard_ns)
		n->heard_ns = heard_ns;
}

void pl_nodes_hear(struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns)
{
	uint32_t now = pl_core_coarse(now_ns);

	if (!pl_core_watches(&env->rules, PL_EVENT_NODE_SILENT))
		return;
	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_place]; set++) {
		struct pl_core_place_set *s = &env->tables.place[set];

		for (unsigned int i = 0; i < PL_CORE_WAYS; i++) {
			const uint64_t way = __atomic_load_n(&s->way[i], __ATOMIC_ACQUIRE);
			const uint64_t node = *(const volatile uint64_t *)&s->e[i].key.node;
			const uint64_t owner = *(const volatile uint64_t *)&s->owner[i];
			uint64_t age;

			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			/* An entry that is being replaced is seen at the next tick. */
			if (!pl_way_live(way) ||
				__atomic_load_n(&s->way[i], __ATOMIC_RELAXED) >> 32 != way >> 32)
				continue;
			age = (uint64_t)pl_core_age(now, way) << 20;
			node_heard(env, w, node, owner, now_ns > age ? now_ns - age : 0);
		}
	}
}

void pl_nodes_tell(
	struct pl_core_env *env, struct pl_node_watch *w, uint64_t now_ns, uint64_t ts_ns)
{
	const bool watched = pl_core_watches(&env->rules, PL_EVENT_NODE_SILENT) != 0;
	struct watched_node *n;
	uint32_t cell = 0;

	/* Events that were begun end also after a change of the rules. */
	while ((n = pl_cells_next(&w->cells, &cell)) != NULL) {
		uint64_t silence = pl_core_elapsed(now_ns, n->heard_ns);

		if (!watched && !n->silent)
			continue;
		if (!n->silent && silence > env->rules.node_silent_ns) {
			n->silent = true;
			n->silent_since_ns = n->heard_ns;
			n->told = pl_core_limit(env, &n->due_ns, PL_EVENT_NODE_SILENT, now_ns) != 0;
			if (n->told)
				node_tell(env, n, PL_PHASE_BEGIN, silence, ts_ns);
		} else if (n->silent && (!watched || silence <= env->rules.node_silent_ns)) {
			const uint64_t until_ns = watched ? n->heard_ns : now_ns;

			n->silent = false;
			if (n->told)
				node_tell(env, n, PL_PHASE_END,
					pl_core_elapsed(until_ns, n->silent_since_ns), ts_ns);
		} else if (n->silent && silence > env->rules.forget_ns &&
			   silence > 2 * env->rules.node_silent_ns) {
			/* The node is removed, and its place is free for others. The event of a
			 * node reported as silent then never ends. */
			node_forget(w, cell - 1);
		}
	}
}
