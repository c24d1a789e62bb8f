/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies new rules to the tables of detection: levels raised by a rule that is off now end. */
#include "detect/tables.h"

#include "core/detect_steps.h"

static void unband(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *at, struct pl_core_quantity *q, struct pl_core_band *band,
	unsigned int id)
{
	const struct pl_core_quantity_rule *rule = &env->rules.q[id];
	struct pl_core_telling t = { .kind = (uint8_t)id, .phase = PL_PHASE_END };

	band->span = 0;
	if (rule->level.threshold == PL_CORE_NO_THRESHOLD && rule->relative == 0 &&
		pl_core_level_drop(&q->level) == PL_CORE_END)
		pl_core_level_changed(env, r, at, q, &t);
	t.anomaly = 1;
	if (rule->odd_times == 0 && pl_core_level_drop(&q->odd) == PL_CORE_END)
		pl_core_level_changed(env, r, at, q, &t);
}

static void place_unband(struct pl_core_env *env, const struct pl_core_report *r, void *entry)
{
	struct pl_core_place *p = entry;
	struct pl_core_hop at;

	p->q[1].unit_bytes = (uint32_t)pl_core_unit_of(&env->rules.units, p->key.node);
	pl_core_hop_at(&at, &p->key);
	unband(env, r, &at, &p->q[0], &p->band[0], PL_CORE_Q_HOP_LATENCY);
	unband(env, r, &at, &p->q[1], &p->band[1], PL_CORE_Q_QUEUE_DEPTH);
}

static void gauge_unband(struct pl_core_env *env, const struct pl_core_report *r, void *entry)
{
	struct pl_core_gauge *g = entry;
	struct pl_core_hop at;

	if (g->key.has & PL_CORE_HAS_BUFFER)
		g->q.unit_bytes = pl_core_unit_of(&env->rules.units, g->key.node) >> 32;
	pl_core_hop_at(&at, &g->key);
	unband(env, r, &at, &g->q, &g->band,
		g->key.has & PL_CORE_HAS_BUFFER ? PL_CORE_Q_BUFFER_DEPTH : PL_CORE_Q_TX_UTIL);
}

static void link_unband(struct pl_core_env *env, const struct pl_core_report *r, void *entry)
{
	struct pl_core_link *l = entry;
	struct pl_core_hop at;

	pl_core_hop_on(&at, &l->key);
	unband(env, r, &at, &l->q, &l->band, PL_CORE_Q_LINK_LATENCY);
}

static void delay_unband(struct pl_core_env *env, const struct pl_core_report *r, void *entry)
{
	struct pl_core_delay *d = entry;
	struct pl_core_hop at;

	pl_core_hop_of_path(&at, 0);
	unband(env, r, &at, &d->q, &d->band, PL_CORE_Q_FLOW_LATENCY);
}

static void table_unband(struct pl_core_env *env, const struct pl_core_report *r,
	unsigned int table, void (*fn)(struct pl_core_env *, const struct pl_core_report *, void *))
{
	for (uint32_t set = 0; set < env->tables.sets[table]; set++) {
		const uint64_t *way = pl_tables_ways(&env->tables, table, set);

		pl_tables_turn(env);
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			if (pl_way_live(way[w]))
				fn(env, r, pl_tables_entry(&env->tables, table, set, w));
		}
		pl_tables_turn_end(env);
	}
}

void pl_tables_unband(struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns)
{
	const struct pl_core_report r = { .now_ns = now_ns, .ts_ns = ts_ns };

	table_unband(env, &r, PL_CORE_T_place, place_unband);
	table_unband(env, &r, PL_CORE_T_gauge, gauge_unband);
	table_unband(env, &r, PL_CORE_T_link, link_unband);
	table_unband(env, &r, PL_CORE_T_delay, delay_unband);
}
