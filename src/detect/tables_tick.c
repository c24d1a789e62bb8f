/* SPDX-License-Identifier: BSD-2-Clause */
/* Ages the tables of detection: ends and reports events that are due, frees idle entries. */
#include "detect/tables.h"

#include "core/detect_steps.h"

/* --- ends ------------------------------------------------------------------------------------- */

/* Frees an entry's way. Within a turn, so that nobody else uses it. */
static void let_go(struct pl_core_env *env, uint64_t *way, unsigned int table)
{
	env->counters.aged[table]++;
	*way = 0;
}

/* Ends a quantity's levels, when its key was not seen for `idle` or the low has lasted. The band of
 * an ended level is emptied: it was that of a raised one. */
static void quantity_wait(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *at, struct pl_core_quantity *q, struct pl_core_band *band,
	unsigned int id, bool idle)
{
	const struct pl_core_quantity_rule *rule = &env->rules.q[id];
	struct pl_core_telling t = { .kind = (uint8_t)id, .phase = PL_PHASE_END };

	if (q->level.state == PL_CORE_IDLE && q->odd.state == PL_CORE_IDLE)
		return;
	if (idle) {
		pl_core_quantity_end(env, r, at, q, id);
		band->span = 0;
		return;
	}
	if (pl_core_level_wait(&q->level, &rule->level, r->now_ns) == PL_CORE_END)
		pl_core_level_changed(env, r, at, q, &t);
	t.anomaly = 1;
	if (pl_core_level_wait(&q->odd, &rule->odd, r->now_ns) == PL_CORE_END)
		pl_core_level_changed(env, r, at, q, &t);
}

static void place_wait(
	struct pl_core_env *env, const struct pl_core_report *r, void *entry, bool idle)
{
	struct pl_core_place *p = entry;
	struct pl_core_hop at;

	pl_core_hop_at(&at, &p->key);
	quantity_wait(env, r, &at, &p->q[0], &p->band[0], PL_CORE_Q_HOP_LATENCY, idle);
	quantity_wait(env, r, &at, &p->q[1], &p->band[1], PL_CORE_Q_QUEUE_DEPTH, idle);
}

static void gauge_wait(
	struct pl_core_env *env, const struct pl_core_report *r, void *entry, bool idle)
{
	struct pl_core_gauge *g = entry;
	struct pl_core_hop at;

	pl_core_hop_at(&at, &g->key);
	quantity_wait(env, r, &at, &g->q, &g->band,
		g->key.has & PL_CORE_HAS_BUFFER ? PL_CORE_Q_BUFFER_DEPTH : PL_CORE_Q_TX_UTIL, idle);
}

static void link_wait(
	struct pl_core_env *env, const struct pl_core_report *r, void *entry, bool idle)
{
	struct pl_core_link *l = entry;
	struct pl_core_hop at;

	pl_core_hop_on(&at, &l->key);
	quantity_wait(env, r, &at, &l->q, &l->band, PL_CORE_Q_LINK_LATENCY, idle);
}

static void delay_wait(
	struct pl_core_env *env, const struct pl_core_report *r, void *entry, bool idle)
{
	struct pl_core_delay *d = entry;
	struct pl_core_hop at;

	pl_core_hop_of_path(&at, 0);
	quantity_wait(env, r, &at, &d->q, &d->band, PL_CORE_Q_FLOW_LATENCY, idle);
}

typedef void wait_fn(struct pl_core_env *, const struct pl_core_report *, void *, bool);

/* Returns true when the set has no entry, read without taking its turn: then there is nothing to
 * tick, and a turn for each empty set would keep the kernel program waiting. A key that comes
 * meanwhile is new. */
static bool set_is_empty(const uint64_t *way)
{
	uint64_t any = 0;

	for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
		any |= __atomic_load_n(&way[w], __ATOMIC_RELAXED);
	return any == 0;
}

/* Ticks the levels of one set, and removes entries that were not seen for forget_ns. */
static void levels_set_tick(struct pl_core_env *env, const struct pl_core_report *r,
	unsigned int table, uint32_t set, wait_fn *wait, bool raised, uint64_t forget_ns)
{
	uint32_t now = pl_core_coarse(r->now_ns), idle = pl_core_coarse(env->rules.idle_ns);
	uint64_t *way = pl_tables_ways(&env->tables, table, set);

	if (set_is_empty(way))
		return;
	pl_tables_turn(env);
	for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
		bool old_age;

		if (!pl_way_live(way[w]))
			continue;
		old_age = pl_core_age(now, way[w]) > pl_core_coarse(forget_ns);
		if (raised || old_age)
			wait(env, r, pl_tables_entry(&env->tables, table, set, w),
				old_age || pl_core_age(now, way[w]) > idle);
		if (old_age)
			let_go(env, &way[w], table);
	}
	pl_tables_turn_end(env);
}

static void levels_tick(struct pl_core_env *env, const struct pl_core_report *r, unsigned int table,
	wait_fn *wait, bool raised)
{
	for (uint32_t set = 0; set < env->tables.sets[table]; set++)
		levels_set_tick(env, r, table, set, wait, raised, env->rules.forget_ns);
}

static void drops_tick(struct pl_core_env *env, const struct pl_core_report *r)
{
	uint32_t now = pl_core_coarse(r->now_ns), idle = pl_core_coarse(env->rules.idle_ns);

	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_drop]; set++) {
		struct pl_core_drop_set *s = &env->tables.drop[set];

		if (set_is_empty(s->way))
			continue;
		pl_tables_turn(env);
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			struct pl_core_drop *d = &s->e[w];

			if (!pl_way_live(s->way[w]))
				continue;
			if (d->reports != d->told)
				pl_core_drop_tell(env, r, NULL, d, 0);
			if (d->reports == d->told && d->due_ns <= r->now_ns &&
				pl_core_age(now, s->way[w]) > idle)
				let_go(env, &s->way[w], PL_CORE_T_drop);
		}
		pl_tables_turn_end(env);
	}
}

/* --- microbursts ------------------------------------------------------------------------------ */

static struct pl_event *burst_event(
	struct pl_core_env *env, const struct pl_core_place_key *key, uint64_t ts_ns)
{
	struct pl_event *e = pl_core_event(env, PL_EVENT_MICROBURST, PL_PHASE_ONCE, ts_ns);

	if (e == NULL)
		return NULL;
	e->node = key->node;
	e->present |= PL_EVENT_HAS_node | PL_EVENT_HAS_value;
	if (key->has & PL_CORE_HAS_PORT) {
		e->port = key->port;
		e->present |= PL_EVENT_HAS_port;
	}
	if (key->has & PL_CORE_HAS_QUEUE) {
		e->queue = key->queue;
		e->present |= PL_EVENT_HAS_queue;
	}
	return e;
}

static uint64_t part_of(const struct pl_core_burst_flow *f, enum pl_burst_role role)
{
	return role == PL_ROLE_CULPRIT ? f->packets : f->delay_ns;
}

/* Reports the flows with the largest parts in a role, the largest first. */
static void burst_flows(struct pl_core_env *env, const struct pl_core_burst *b,
	const struct pl_core_burst_flow *list, enum pl_burst_role role)
{
	bool told[PL_CORE_BURST_FLOWS] = { false };

	for (unsigned int rank = 1; rank <= env->rules.burst_flows; rank++) {
		unsigned int best = PL_CORE_BURST_FLOWS;
		struct pl_event *e;

		for (unsigned int i = 0; i < PL_CORE_BURST_FLOWS; i++) {
			if (list[i].known && !told[i] &&
				(best == PL_CORE_BURST_FLOWS ||
					part_of(&list[i], role) > part_of(&list[best], role)))
				best = i;
		}
		if (best == PL_CORE_BURST_FLOWS)
			return;
		told[best] = true;
		e = burst_event(env, &b->key, b->ended_ts_ns);
		if (e == NULL)
			continue;
		pl_core_cite_flow(e, &list[best].key);
		e->value = part_of(&list[best], role);
		pl_event_set_role(e, (uint8_t)role);
		pl_event_set_rank(e, (uint8_t)rank);
		pl_env_tell(env, e);
	}
}

static void burst_tell(struct pl_core_env *env, const struct pl_core_burst *b)
{
	struct pl_event *e = burst_event(env, &b->key, b->ended_ts_ns);

	if (e != NULL) {
		e->value = pl_core_in_bytes(b->max, b->unit_bytes);
		if (b->unit_bytes != 0)
			pl_core_in_bytes_told(e);
		pl_event_set_duration_ns(e, pl_core_elapsed(b->ended_ns, b->since_ns));
		pl_event_set_packets(e, b->packets);
		pl_env_tell(env, e);
	}
	burst_flows(env, b, b->top, PL_ROLE_CULPRIT);
	burst_flows(env, b, b->delayed, PL_ROLE_VICTIM);
}

static void bursts_tick(struct pl_core_env *env, const struct pl_core_report *r)
{
	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_burst]; set++) {
		struct pl_core_burst_set *s = &env->tables.burst[set];

		if (set_is_empty(s->way))
			continue;
		pl_tables_turn(env);
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			struct pl_core_burst *b = &s->e[w];

			if (!pl_way_live(s->way[w]))
				continue;
			if (b->ended_ns != 0)
				burst_tell(env, b);
			/* A burst that goes on for too long is no microburst. */
			if (b->ended_ns != 0 ||
				pl_core_elapsed(r->now_ns, b->since_ns) > env->rules.burst_max_ns)
				let_go(env, &s->way[w], PL_CORE_T_burst);
		}
		pl_tables_turn_end(env);
	}
}

/* --- flows ------------------------------------------------------------------------------------ */

static void keepalive(
	struct pl_core_env *env, struct pl_core_flow *f, uint64_t now_ns, uint64_t ts_ns)
{
	struct pl_event *e;

	if (!pl_core_watches(&env->rules, PL_EVENT_KEEPALIVE) ||
		pl_core_elapsed(now_ns, f->told_ns) < env->rules.keepalive_ns)
		return;
	f->told_ns = now_ns;
	e = pl_core_event(env, PL_EVENT_KEEPALIVE, PL_PHASE_ONCE, ts_ns);
	if (e == NULL)
		return;
	pl_core_cite_flow(e, &f->key);
	if (f->path_id != 0) {
		e->path_id = f->path_id;
		e->present |= PL_EVENT_HAS_path_id;
	}
	e->value = f->packets;
	e->present |= PL_EVENT_HAS_value;
	if (f->bytes != 0)
		pl_event_set_bytes(e, f->bytes);
	pl_event_set_duration_ns(e, pl_core_elapsed(f->last_ns, f->first_ns));
	pl_env_tell(env, e);
}

static void flow_set_tick(struct pl_core_env *env, uint32_t set, uint64_t now_ns, uint64_t ts_ns)
{
	struct pl_core_flow_set *s = &env->tables.flow[set];
	uint32_t now = pl_core_coarse(now_ns);
	bool keep = pl_core_watches(&env->rules, PL_EVENT_KEEPALIVE) != 0;

	if (set_is_empty(s->way))
		return;
	pl_tables_turn(env);
	for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
		if (!pl_way_live(s->way[w]))
			continue;
		if (pl_core_age(now, s->way[w]) > pl_core_coarse(env->rules.flow_idle_ns)) {
			let_go(env, &s->way[w], PL_CORE_T_flow);
			pl_core_flow_over(env, &s->e[w], ts_ns);
		} else if (keep) {
			keepalive(env, &s->e[w], now_ns, ts_ns);
		}
	}
	pl_tables_turn_end(env);
}

/* Tables of flows are large, so each tick scans a part, and a second covers the table. Returns the
 * part that is due now. */
static uint32_t sweep_part(const struct pl_core_env *env, struct pl_sweep_of *sweep,
	unsigned int table, uint64_t now_ns)
{
	const uint64_t second = 1000000000;
	uint64_t past = pl_core_elapsed(now_ns, sweep->swept_ns);
	uint64_t n =
		past >= second ? env->tables.sets[table] : past * env->tables.sets[table] / second;

	/* The clock may have gone back. */
	if (sweep->swept_ns > now_ns || n > 0)
		sweep->swept_ns = now_ns;
	return (uint32_t)n;
}

static void flows_tick(
	struct pl_core_env *env, struct pl_sweep_of *sweep, uint64_t now_ns, uint64_t ts_ns)
{
	for (uint32_t n = sweep_part(env, sweep, PL_CORE_T_flow, now_ns); n > 0; n--) {
		flow_set_tick(env, sweep->set, now_ns, ts_ns);
		sweep->set = (sweep->set + 1) & (env->tables.sets[PL_CORE_T_flow] - 1);
	}
}

static void delays_tick(struct pl_core_env *env, struct pl_sweep_of *sweep,
	const struct pl_core_report *r, bool raised)
{
	for (uint32_t n = sweep_part(env, sweep, PL_CORE_T_delay, r->now_ns); n > 0; n--) {
		levels_set_tick(env, r, PL_CORE_T_delay, sweep->set, delay_wait, raised,
			env->rules.flow_idle_ns);
		sweep->set = (sweep->set + 1) & (env->tables.sets[PL_CORE_T_delay] - 1);
	}
}

/* --- exporters -------------------------------------------------------------------------------- */

struct pl_exporter pl_exporter_of(const struct pl_core_exporter *x)
{
	struct pl_exporter e = {
		.addr = x->key.addr,
		.node = x->key.node,
		.hw_id = (uint8_t)x->key.hw_id,
		.report_version = x->report_version,
		.first_ts_ns = x->first_ts_ns,
		.last_ts_ns = x->last_ts_ns,
	};

	pl_exporter_count(&e, &x->seq);
	return e;
}

static bool loss_tell(struct pl_core_env *env, const struct pl_core_loss *loss,
	const struct pl_exporter *x, enum pl_event_phase phase, uint64_t ts_ns)
{
	struct pl_event *e = pl_core_event(env, PL_EVENT_REPORT_LOSS, phase, ts_ns);

	if (e == NULL)
		return false;
	e->exporter = x->addr;
	e->node = x->node;
	e->hw_id = x->hw_id;
	e->seq = x->last_seq;
	e->value = loss->lost - loss->before;
	e->present = PL_EVENT_HAS_exporter | PL_EVENT_HAS_node | PL_EVENT_HAS_hw_id |
		     PL_EVENT_HAS_seq | PL_EVENT_HAS_value;
	if (phase == PL_PHASE_END)
		pl_event_set_duration_ns(e, pl_core_elapsed(loss->grown_ns, loss->begun_ns));
	pl_env_tell(env, e);
	return true;
}

/* True when reports were lost since the last check. A gap opened since then may only be out of
 * order, and waits for the next check. */
static bool loss_grows(struct pl_core_loss *loss, const struct pl_exporter *x)
{
	const uint32_t mask = x->report_version == 2 ? 0x3fffff : UINT32_MAX;
	const uint32_t young =
		pl_sequence_gaps(x->seen, x->span, (x->last_seq - loss->highest) & mask);
	const uint64_t lost = x->lost > young ? x->lost - young : 0;
	bool grown;

	if (x->reports < loss->reports) /* a new decoder counts from the beginning */
		loss->lost = loss->before = 0;
	grown = lost > loss->lost;
	if (loss->before > lost)
		loss->before = lost;
	loss->lost = lost;
	loss->reports = x->reports;
	loss->highest = x->last_seq;
	return grown;
}

void pl_loss_pass(struct pl_core_loss *loss, const struct pl_exporter *x)
{
	loss->lost = loss->before = x->lost;
	loss->reports = x->reports;
	loss->highest = x->last_seq;
}

void pl_loss_tell(struct pl_core_env *env, struct pl_core_loss *loss, const struct pl_exporter *x,
	uint64_t now_ns, uint64_t ts_ns)
{
	const bool watched = pl_core_watches(&env->rules, PL_EVENT_REPORT_LOSS) != 0;
	const bool grown = loss_grows(loss, x);

	if (!loss->open) {
		if (!watched)
			pl_loss_pass(loss, x);
		/* Without room the next check reports it. */
		if (loss->lost == loss->before || !loss_tell(env, loss, x, PL_PHASE_BEGIN, ts_ns))
			return;
		loss->open = 1;
		loss->begun_ns = loss->grown_ns = now_ns;
		return;
	}
	if (grown)
		loss->grown_ns = now_ns;
	if (watched && pl_core_elapsed(now_ns, loss->grown_ns) < env->rules.loss_hold_ns)
		return;
	if (!loss_tell(env, loss, x, PL_PHASE_END, ts_ns))
		return;
	loss->open = 0;
	loss->before = loss->lost;
}

void pl_tables_exporters_tick(struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns)
{
	uint32_t now = pl_core_coarse(now_ns), forget = pl_core_coarse(env->rules.forget_ns);

	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_exporter]; set++) {
		struct pl_core_exporter_set *s = &env->tables.exporter[set];

		if (set_is_empty(s->way))
			continue;
		pl_tables_turn(env);
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			struct pl_core_exporter *x = &s->e[w];
			struct pl_exporter of;

			if (!pl_way_live(s->way[w]))
				continue;
			/* An unfollowed exporter only ends the events it has begun. Its
			 * losses are not told later either, when it is followed. */
			of = pl_exporter_of(x);
			if (x->followed || x->loss.open)
				pl_loss_tell(env, &x->loss, &of, now_ns, ts_ns);
			else
				pl_loss_pass(&x->loss, &of);
			if (pl_core_age(now, s->way[w]) <= forget)
				continue;
			pl_core_account_add(&env->counters.accounts, x);
			let_go(env, &s->way[w], PL_CORE_T_exporter);
		}
		pl_tables_turn_end(env);
	}
}

/* Paths that nothing takes any more. */
static void routes_tick(struct pl_core_env *env, uint64_t now_ns)
{
	uint32_t now = pl_core_coarse(now_ns), forget = pl_core_coarse(env->rules.forget_ns);

	for (uint32_t set = 0; set < env->tables.sets[PL_CORE_T_route]; set++) {
		uint64_t *way = env->tables.route[set].way;

		if (set_is_empty(way))
			continue;
		pl_tables_turn(env);
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++) {
			if (pl_way_live(way[w]) && pl_core_age(now, way[w]) > forget)
				let_go(env, &way[w], PL_CORE_T_route);
		}
		pl_tables_turn_end(env);
	}
}

void pl_tables_tick(struct pl_core_env *env, struct pl_sweep *sweep, bool raised, uint64_t now_ns,
	uint64_t ts_ns)
{
	struct pl_core_report r = { .now_ns = now_ns, .ts_ns = ts_ns };

	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++)
		raised |= env->rules.q[i].level.begin_hold_ns > 0 ||
			  env->rules.q[i].odd.begin_hold_ns > 0;
	levels_tick(env, &r, PL_CORE_T_place, place_wait, raised);
	levels_tick(env, &r, PL_CORE_T_gauge, gauge_wait, raised);
	levels_tick(env, &r, PL_CORE_T_link, link_wait, raised);
	drops_tick(env, &r);
	bursts_tick(env, &r);
	pl_tables_exporters_tick(env, now_ns, ts_ns);
	routes_tick(env, now_ns);
	flows_tick(env, &sweep->flows, now_ns, ts_ns);
	delays_tick(env, &sweep->delays, &r, raised);
}
