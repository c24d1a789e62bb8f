/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_steps.h: flows and drops of reports; the report as a whole. */
#pragma once

#include "core/detect_steps.h"
#include "core/path_known.h"

/* --- drops ------------------------------------------------------------------------------------ */

/* Reports the drops that wait, if the limit allows it. cite: a report is the cause, not time. */
PL_CORE_COLD void pl_core_drop_tell(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *last, struct pl_core_drop *d, unsigned int cite)
{
	uint64_t reports = d->reports;
	struct pl_event *e;

	if (!pl_core_limit(env, &d->due_ns, PL_EVENT_PACKET_DROP, r->now_ns))
		return;
	e = pl_core_event(env, PL_EVENT_PACKET_DROP, PL_PHASE_ONCE, r->ts_ns);
	if (e == NULL)
		return;
	if (cite)
		pl_core_cite(e, r);
	if (d->key.reason & 1 << 16) {
		e->node = d->key.node;
		e->present |= PL_EVENT_HAS_node;
	}
	if (d->key.reason & 1 << 8) {
		e->drop_reason = (uint8_t)d->key.reason;
		e->present |= PL_EVENT_HAS_drop_reason;
	}
	if (last != NULL && (last->present & PL_HOP_HAS_egress_port)) {
		e->port = last->egress_port;
		e->present |= PL_EVENT_HAS_port;
	}
	if (last != NULL && (last->present & PL_HOP_HAS_queue)) {
		e->queue = last->queue;
		e->present |= PL_EVENT_HAS_queue;
	}
	e->value = reports - d->told;
	e->present |= PL_EVENT_HAS_value;
	d->told = reports;
	pl_env_tell(env, e);
}

/* Steps a drop report. last: its last hop, NULL when it has none. */
PL_CORE_COLD void pl_core_drop_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *last)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_core_drop_key key = { 0, 0 };
	struct pl_core_drop_set *set;
	uint64_t hash;
	uint32_t way;
	uint64_t old = 0;

	if (r->present & PL_PATH_HAS_node) {
		key.node = r->node;
		key.reason |= 1 << 16;
	} else if (last != NULL && (last->present & PL_HOP_HAS_node)) {
		key.node = last->node;
		key.reason |= 1 << 16;
	}
	if (r->present & PL_PATH_HAS_drop_reason)
		key.reason |= 1u << 8 | r->drop_reason;
	hash = pl_core_hash(rules->secret, &key, 2);
	set = pl_env_drop_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_drop]));
	if (set == NULL)
		return;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &key, 2, hash);
	if (way >= PL_CORE_WAYS) {
		way = pl_core_take(
			env, r, set->way, set->owner, PL_CORE_T_drop, hash, rules->forget_ns, &old);
		if (way >= PL_CORE_WAYS)
			return;
		/* Drops of the previous entry that wait are reported now or never. */
		if ((uint32_t)(old >> 32) != 0 && set->e[way].reports != set->e[way].told)
			pl_core_drop_tell(env, r, NULL, &set->e[way], 0);
		pl_core_clear(&set->e[way], sizeof(set->e[way]));
		pl_core_copy(&set->e[way].key, &key, 2);
		pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	}
	pl_core_heard(&set->way[way], r->now_ns);
	set->e[way].reports += 1 + (uint64_t)r->drops;
	pl_core_drop_tell(env, r, last, &set->e[way], 1);
}

/* --- flows ------------------------------------------------------------------------------------ */

/* True when the stack covers the whole path from source to sink: only then does it give the flow's
 * path. A congestion report of an untracked flow may come from the middle of the path (Telemetry
 * Report 2.0, 3.2: Q without F). */
PL_CORE_INLINE int pl_core_path_whole(const struct pl_core_report *r)
{
	const unsigned int partial =
		PL_FLAG_PARTIAL | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE | PL_FLAG_COPY;
	const unsigned int tracked = PL_FLAG_CONGESTED | PL_FLAG_TRACKED;

	return (r->flags & partial) == 0 && (r->flags & tracked) != PL_FLAG_CONGESTED &&
	       (r->mode == PL_MODE_MD || r->mode == PL_MODE_IOAM_TRACE) &&
	       (r->present & PL_PATH_HAS_path_id);
}

/* Reports the end of a flow, because of time or because another flow needed its place: the event
 * cites no report. */
PL_CORE_COLD void pl_core_flow_over(
	struct pl_core_env *env, const struct pl_core_flow *flow, uint64_t ts_ns)
{
	struct pl_event *e;

	if (!pl_core_watches(pl_env_rules(env), PL_EVENT_FLOW_END))
		return;
	e = pl_core_event(env, PL_EVENT_FLOW_END, PL_PHASE_ONCE, ts_ns);
	if (e == NULL)
		return;
	pl_core_cite_flow(e, &flow->key);
	if (flow->path_id != 0) {
		e->path_id = flow->path_id;
		e->present |= PL_EVENT_HAS_path_id;
	}
	e->value = flow->packets;
	e->present |= PL_EVENT_HAS_value;
	if (flow->bytes != 0) /* no size is known otherwise */
		pl_event_set_bytes(e, flow->bytes);
	pl_event_set_duration_ns(e, pl_core_elapsed(flow->last_ns, flow->first_ns));
	pl_env_tell(env, e);
}

PL_CORE_COLD void pl_core_flow_begin(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_flow *flow)
{
	struct pl_event *e;

	flow->path_id = 0;
	flow->print = 0;
	flow->packets = flow->bytes = 0;
	flow->first_ns = flow->last_ns = flow->told_ns = r->now_ns;
	if (!pl_core_watches(pl_env_rules(env), PL_EVENT_FLOW_START))
		return;
	e = pl_core_event(env, PL_EVENT_FLOW_START, PL_PHASE_ONCE, r->ts_ns);
	if (e == NULL)
		return;
	pl_core_cite(e, r);
	flow->started = 1;
	pl_env_tell(env, e);
}

PL_CORE_COLD uint32_t pl_core_flow_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_flow_set *set, uint64_t hash)
{
	uint64_t idle_ns = pl_env_rules(env)->flow_idle_ns, old = 0;
	uint32_t way =
		pl_core_take(env, r, set->way, set->owner, PL_CORE_T_flow, hash, idle_ns, &old);

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	if ((uint32_t)(old >> 32) != 0 &&
		pl_core_age(pl_core_coarse(r->now_ns), old) > pl_core_coarse(idle_ns))
		pl_core_flow_over(env, &set->e[way], r->ts_ns);
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, &r->flow, 6);
	pl_core_flow_begin(env, r, &set->e[way]);
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

/* Ends a flow that was silent for too long, and begins a new one with its key. */
PL_CORE_COLD void pl_core_flow_again(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_flow *flow)
{
	struct pl_core_counters *counters = pl_env_counters(env);

	counters->aged[PL_CORE_T_flow]++;
	counters->made[PL_CORE_T_flow]++;
	pl_core_flow_over(env, flow, r->ts_ns);
	pl_core_flow_begin(env, r, flow);
}

/* Handles a path that is new for the flow: its first one, another one than before, or the same one
 * by a report that lacks other ports. Of the latter the flow keeps the one with most ports. */
PL_CORE_COLD void pl_core_flow_path(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_flow *flow)
{
	const struct pl_core_known *now = pl_env_known(env, r);
	const struct pl_core_known then = { flow->ports, flow->nodes, r->hop_count };
	uint64_t before = flow->path_id;
	struct pl_event *e;

	if (before != 0 && pl_core_known_agree(&then, now)) {
		if (!pl_core_known_more(&then, now))
			return;
		before = 0;
	}
	flow->path_id = r->path_id;
	flow->ports = now->ports;
	flow->nodes = now->nodes;
	flow->print = 0;
	if (before == 0 || !pl_core_watches(pl_env_rules(env), PL_EVENT_PATH_CHANGE) ||
		!pl_core_limit(env, &flow->path_due_ns, PL_EVENT_PATH_CHANGE, r->now_ns))
		return;
	e = pl_core_event(env, PL_EVENT_PATH_CHANGE, PL_PHASE_ONCE, r->ts_ns);
	if (e == NULL)
		return;
	pl_core_cite(e, r);
	e->old_path_id = before;
	e->present |= PL_EVENT_HAS_old_path_id;
	if (r->present & PL_PATH_HAS_node) {
		e->node = r->node;
		e->present |= PL_EVENT_HAS_node;
	}
	pl_env_tell(env, e);
}

PL_CORE_INLINE uint64_t pl_core_flow_hash(
	const struct pl_core_rules *rules, const struct pl_flow_key *key)
{
	return pl_core_hash(rules->secret, key, 6);
}

/* True when the report counts in the flow table. */
PL_CORE_INLINE int pl_core_flow_counts(const struct pl_core_report *r)
{
	return (r->present & PL_PATH_HAS_src) && !(r->flags & PL_FLAG_COPY);
}

/* Steps the flow of a report for which pl_core_flow_counts is true; hash from pl_core_flow_hash. */
PL_CORE_INLINE void pl_core_flow_step(
	struct pl_core_env *env, const struct pl_core_report *r, uint64_t hash)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_core_flow_set *set =
		pl_env_flow_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_flow]));
	struct pl_core_flow *flow;
	uint32_t way;

	if (set == NULL)
		return;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &r->flow, 6, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_flow_make(env, r, set, hash);
		if (way >= PL_CORE_WAYS)
			return;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	flow = &set->e[way];
	if (__builtin_expect(pl_core_elapsed(r->now_ns, flow->last_ns) > rules->flow_idle_ns, 0))
		pl_core_flow_again(env, r, flow);
	flow->last_ns = r->now_ns;
	flow->packets++;
	flow->bytes += r->packet_bytes;
	if (pl_core_path_whole(r) && __builtin_expect(flow->path_id != r->path_id, 0))
		pl_core_flow_path(env, r, flow);
}

/* --- path latency of flows -------------------------------------------------------------------- */

/* Makes a hop that stands for the whole path. */
PL_CORE_INLINE void pl_core_hop_of_path(struct pl_core_hop *h, uint64_t latency_ns)
{
	pl_core_clear(h, sizeof(*h));
	/* 4.29 s stands for any longer time: it is above any threshold. */
	h->hop_latency_ns = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX;
}

PL_CORE_COLD uint32_t pl_core_delay_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_delay_set *set, const struct pl_core_hop *path, uint64_t hash)
{
	uint64_t old = 0;
	uint32_t way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_delay, hash,
		pl_env_rules(env)->flow_idle_ns, &old);

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	/* The place was another flow's: its events end. */
	if ((uint32_t)(old >> 32) != 0)
		pl_core_quantity_end(env, r, path, &set->e[way].q, PL_CORE_Q_FLOW_LATENCY);
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, &r->flow, 6);
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

PL_CORE_COLD void pl_core_delay_look(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *path, struct pl_core_delay *delay)
{
	pl_core_band_set(&delay->band,
		pl_core_quantity_step(env, r, path, &delay->q, PL_CORE_Q_FLOW_LATENCY));
}

PL_CORE_INLINE int pl_core_delay_counts(
	const struct pl_core_rules *rules, const struct pl_core_report *r)
{
	return (rules->watch & 1u << PL_CORE_Q_FLOW_LATENCY) && (r->present & PL_PATH_HAS_src) &&
	       (r->present & PL_PATH_HAS_latency_ns) && pl_core_path_whole(r);
}

/* Steps a flow's path latency after the hops, for a report for which pl_core_delay_counts is true.
 * latency_ns: sum of the hops' latencies; path: room for a hop. */
PL_CORE_INLINE void pl_core_delay_step(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_hop *path, uint64_t latency_ns)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_quantity_rule *rule = &rules->q[PL_CORE_Q_FLOW_LATENCY];
	uint64_t hash = pl_core_flow_hash(rules, &r->flow);
	struct pl_core_delay_set *set =
		pl_env_delay_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_delay]));
	struct pl_core_delay *delay;
	uint32_t way;

	if (set == NULL)
		return;
	pl_core_hop_of_path(path, latency_ns);
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &r->flow, 6, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_delay_make(env, r, set, path, hash);
		if (way >= PL_CORE_WAYS)
			return;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	delay = &set->e[way];
	if (__builtin_expect(
		    pl_core_stirs(&delay->band, &delay->q, rule, path->hop_latency_ns, r->now_ns),
		    0))
		pl_core_delay_look(env, r, path, delay);
	if (rule->learn)
		pl_core_sum(&delay->q, path->hop_latency_ns);
}

/* --- paths, for the pages --------------------------------------------------------------------- */

PL_CORE_COLD uint32_t pl_core_route_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_route_set *set, const uint64_t *key, uint64_t hash)
{
	uint64_t old = 0;
	uint32_t way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_route, hash,
		pl_env_rules(env)->forget_ns, &old);

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].path_id, key, 2);
	set->e[way].hop_count = r->hop_count;
	for (uint32_t i = 0; i < PL_CORE_ROUTE_NODES && i < r->hop_count; i++)
		set->e[way].node[i] = pl_env_trail(env)->node[i];
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

PL_CORE_INLINE void pl_core_route_add(
	struct pl_core_route *route, uint64_t latency_ns, int has_latency)
{
	uint32_t latency;

	route->packets++;
	if (!has_latency)
		return;
	route->latency_n++;
	route->latency_sum += latency_ns;
	/* The histogram's last bucket takes latencies beyond 32 bits (4.3 s); latency_sum has them
	 * in full. */
	latency = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX;
	if (latency > route->latency_max)
		route->latency_max = latency;
	pl_core_hist_add(&route->hist, latency);
}

/* Steps the route after the hops. latency_ns: sum of the hops' latencies, if the report has
 * latencies (PL_PATH_HAS_latency_ns). */
PL_CORE_INLINE void pl_core_route_step(
	struct pl_core_env *env, const struct pl_core_report *r, uint64_t latency_ns)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	uint64_t key[2] = { r->path_id, 0 };
	struct pl_core_route_set *set;
	uint32_t way;
	uint64_t hash;

	if (!(rules->flags & PL_CORE_KEEP_AGGREGATES) || !(r->present & PL_PATH_HAS_path_id) ||
		(r->flags &
			(PL_FLAG_COPY | PL_FLAG_PARTIAL | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE)))
		return;
	hash = pl_core_hash(rules->secret, key, 2);
	set = pl_env_route_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_route]));
	if (set == NULL)
		return;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), key, 2, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_route_make(env, r, set, key, hash);
		if (way >= PL_CORE_WAYS)
			return;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	pl_core_route_add(&set->e[way], latency_ns, (r->present & PL_PATH_HAS_latency_ns) != 0);
}

/* --- a report --------------------------------------------------------------------------------- */

PL_CORE_INLINE void pl_core_report_begin(struct pl_core_env *env, const struct pl_core_report *r)
{
	struct pl_core_trail *trail = pl_env_trail(env);
	struct pl_core_counters *counters = pl_env_counters(env);

	counters->reports++;
	counters->hops += r->hop_count;
	trail->seen = 0;
	trail->told = 0;
}

/* Ends a report. last: its last hop, for drops; NULL when it has none. */
PL_CORE_INLINE void pl_core_report_end(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *last)
{
	const struct pl_core_rules *rules = pl_env_rules(env);

	if (__builtin_expect((r->flags & PL_FLAG_DROPPED) != 0, 0) &&
		pl_core_watches(rules, PL_EVENT_PACKET_DROP))
		pl_core_drop_step(env, r, last);
	if (pl_core_flow_counts(r))
		pl_core_flow_step(env, r, pl_core_flow_hash(rules, &r->flow));
}
