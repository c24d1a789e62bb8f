/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_steps.h: values of queues, ports, buffers and links in hops. */
#pragma once

#include "core/detect_steps.h"

/* --- places ----------------------------------------------------------------------------------- */

/* Ends the events of a place that is not seen any more. */
PL_CORE_COLD void pl_core_place_end(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_place *place)
{
	struct pl_core_hop at;

	if (place->q[0].level.state == PL_CORE_IDLE && place->q[0].odd.state == PL_CORE_IDLE &&
		place->q[1].level.state == PL_CORE_IDLE && place->q[1].odd.state == PL_CORE_IDLE)
		return;
	pl_core_hop_at(&at, &place->key);
	pl_core_quantity_end(env, r, &at, &place->q[0], PL_CORE_Q_HOP_LATENCY);
	pl_core_quantity_end(env, r, &at, &place->q[1], PL_CORE_Q_QUEUE_DEPTH);
}

PL_CORE_COLD uint32_t pl_core_place_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_place_set *set, const struct pl_core_place_key *key, uint64_t hash)
{
	uint64_t old = 0;
	uint32_t way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_place, hash,
		pl_env_rules(env)->forget_ns, &old);
	struct pl_core_place *place;

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	place = &set->e[way];
	if ((uint32_t)(old >> 32) != 0)
		pl_core_place_end(env, r, place);
	pl_core_clear(place, sizeof(*place));
	pl_core_copy(&place->key, key, 2);
	place->q[1].unit_bytes = (uint32_t)pl_core_unit_of(&pl_env_rules(env)->units, key->node);
	place->told_ns = r->now_ns;
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

PL_CORE_COLD void pl_core_place_look(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_place *place, unsigned int id)
{
	if (id == PL_CORE_Q_HOP_LATENCY) {
		pl_core_band_set(&place->band[0],
			pl_core_quantity_step(env, r, h, &place->q[0], PL_CORE_Q_HOP_LATENCY));
	} else {
		uint64_t band =
			pl_core_quantity_step(env, r, h, &place->q[1], PL_CORE_Q_QUEUE_DEPTH);

		if (pl_env_rules(env)->burst_threshold != PL_CORE_NO_THRESHOLD)
			pl_core_burst_step(env, r, h, place);
		pl_core_band_set(&place->band[1], place->burst_since_ns != 0 ? 0 : band);
	}
}

PL_CORE_INLINE struct pl_core_place *pl_core_place(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_core_place_set *set;
	struct pl_core_place_key key;
	uint64_t hash;
	uint32_t way;

	pl_core_place_key(&key, h);
	hash = pl_core_hash(rules->secret, &key, 2);
	set = pl_env_place_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_place]));
	if (set == NULL)
		return NULL;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &key, 2, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_place_make(env, r, set, &key, hash);
		if (way >= PL_CORE_WAYS)
			return NULL;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	return &set->e[way];
}

PL_CORE_INLINE void pl_core_place_step(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, uint32_t watched)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const int keep = (rules->flags & PL_CORE_KEEP_AGGREGATES) != 0;
	struct pl_core_place *place = pl_core_place(env, r, h);

	if (place == NULL)
		return;
	if (keep && !(r->flags & PL_FLAG_COPY))
		place->packets++;
	if (watched & 1u << PL_CORE_Q_HOP_LATENCY) {
		const struct pl_core_quantity_rule *rule = &rules->q[PL_CORE_Q_HOP_LATENCY];

		if (__builtin_expect(pl_core_stirs(&place->band[0], &place->q[0], rule,
					     h->hop_latency_ns, r->now_ns),
			    0))
			pl_core_place_look(env, r, h, place, PL_CORE_Q_HOP_LATENCY);
		if (keep || rule->learn)
			pl_core_sum(&place->q[0], h->hop_latency_ns);
		if (keep && !(r->flags & PL_FLAG_COPY)) {
			pl_core_hist_add(&place->hist[0], h->hop_latency_ns);
			pl_core_jitter_step(&place->jitter, h->hop_latency_ns);
		}
	}
	if (watched & 1u << PL_CORE_Q_QUEUE_DEPTH) {
		const struct pl_core_quantity_rule *rule = &rules->q[PL_CORE_Q_QUEUE_DEPTH];

		if (__builtin_expect(pl_core_stirs(&place->band[1], &place->q[1], rule,
					     h->queue_depth, r->now_ns),
			    0))
			pl_core_place_look(env, r, h, place, PL_CORE_Q_QUEUE_DEPTH);
		if (keep || rule->learn)
			pl_core_sum(&place->q[1], h->queue_depth);
		if (keep && !(r->flags & PL_FLAG_COPY))
			pl_core_hist_add(&place->hist[1], h->queue_depth);
	}
}

/* --- gauges: a port's utilization, a buffer's occupancy --------------------------------------- */

PL_CORE_COLD void pl_core_gauge_end(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_gauge *gauge)
{
	struct pl_core_hop at;

	if (gauge->q.level.state == PL_CORE_IDLE && gauge->q.odd.state == PL_CORE_IDLE)
		return;
	pl_core_hop_at(&at, &gauge->key);
	pl_core_quantity_end(env, r, &at, &gauge->q,
		gauge->key.has & PL_CORE_HAS_BUFFER ? PL_CORE_Q_BUFFER_DEPTH : PL_CORE_Q_TX_UTIL);
}

PL_CORE_COLD uint32_t pl_core_gauge_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_gauge_set *set, const struct pl_core_place_key *key, uint64_t hash)
{
	uint64_t old = 0;
	uint32_t way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_gauge, hash,
		pl_env_rules(env)->forget_ns, &old);

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	if ((uint32_t)(old >> 32) != 0)
		pl_core_gauge_end(env, r, &set->e[way]);
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, key, 2);
	if (set->e[way].key.has & PL_CORE_HAS_BUFFER)
		set->e[way].q.unit_bytes =
			pl_core_unit_of(&pl_env_rules(env)->units, set->e[way].key.node) >> 32;
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

PL_CORE_COLD void pl_core_gauge_look(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_gauge *gauge, unsigned int id)
{
	pl_core_band_set(&gauge->band, pl_core_quantity_step(env, r, h, &gauge->q, id));
}

/* Steps a gauge. id: PL_CORE_Q_TX_UTIL or PL_CORE_Q_BUFFER_DEPTH, a constant. */
PL_CORE_INLINE void pl_core_gauge_step(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, const unsigned int id)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_quantity_rule *rule = &rules->q[id];
	uint32_t value = pl_core_hop_value(h, id), way;
	uint64_t hash;
	struct pl_core_gauge_set *set;
	struct pl_core_gauge *gauge;
	struct pl_core_place_key key;

	if (id == PL_CORE_Q_TX_UTIL)
		pl_core_port_key(&key, h);
	else
		pl_core_buffer_key(&key, h);
	hash = pl_core_hash(rules->secret, &key, 2);
	set = pl_env_gauge_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_gauge]));
	if (set == NULL)
		return;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &key, 2, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_gauge_make(env, r, set, &key, hash);
		if (way >= PL_CORE_WAYS)
			return;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	gauge = &set->e[way];
	if (__builtin_expect(pl_core_stirs(&gauge->band, &gauge->q, rule, value, r->now_ns), 0))
		pl_core_gauge_look(env, r, h, gauge, id);
	if ((rules->flags & PL_CORE_KEEP_AGGREGATES) || rule->learn) {
		pl_core_sum(&gauge->q, value);
		gauge->packets += (r->flags & PL_FLAG_COPY) == 0;
	}
}

/* --- links ------------------------------------------------------------------------------------ */

PL_CORE_COLD void pl_core_link_end(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_link *link)
{
	struct pl_core_hop at;

	if (link->q.level.state == PL_CORE_IDLE && link->q.odd.state == PL_CORE_IDLE)
		return;
	pl_core_hop_on(&at, &link->key);
	pl_core_quantity_end(env, r, &at, &link->q, PL_CORE_Q_LINK_LATENCY);
}

PL_CORE_COLD uint32_t pl_core_link_make(struct pl_core_env *env, const struct pl_core_report *r,
	struct pl_core_link_set *set, const struct pl_core_link_key *key, uint64_t hash)
{
	uint64_t old = 0;
	uint32_t way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_link, hash,
		pl_env_rules(env)->forget_ns, &old);

	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	if ((uint32_t)(old >> 32) != 0)
		pl_core_link_end(env, r, &set->e[way]);
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, key, 4);
	pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	return way;
}

PL_CORE_COLD void pl_core_link_look(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_link *link)
{
	pl_core_band_set(
		&link->band, pl_core_quantity_step(env, r, h, &link->q, PL_CORE_Q_LINK_LATENCY));
}

PL_CORE_INLINE void pl_core_link_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_quantity_rule *rule = &rules->q[PL_CORE_Q_LINK_LATENCY];
	const int keep = (rules->flags & PL_CORE_KEEP_AGGREGATES) != 0;
	struct pl_core_link_set *set;
	struct pl_core_link_key key;
	struct pl_core_link *link;
	uint64_t hash;
	uint32_t way;

	pl_core_link_key(&key, h);
	hash = pl_core_hash(rules->secret, &key, 4);
	set = pl_env_link_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_link]));
	if (set == NULL)
		return;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &key, 4, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_link_make(env, r, set, &key, hash);
		if (way >= PL_CORE_WAYS)
			return;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	link = &set->e[way];
	if (keep && !(r->flags & PL_FLAG_COPY)) {
		link->packets++;
		if (h->present & PL_HOP_HAS_clock)
			link->clock[h->clock & (PL_CLOCK_MAX - 1)]++;
	}
	if (!(h->present & PL_HOP_HAS_link_latency_ns))
		return;
	if (__builtin_expect(
		    pl_core_stirs(&link->band, &link->q, rule, h->link_latency_ns, r->now_ns), 0))
		pl_core_link_look(env, r, h, link);
	if (keep || rule->learn)
		pl_core_sum(&link->q, h->link_latency_ns);
	if (keep && !(r->flags & PL_FLAG_COPY)) {
		pl_core_hist_add(&link->hist, h->link_latency_ns);
		pl_core_jitter_step(&link->jitter, h->link_latency_ns);
	}
}

_Static_assert(PL_CLOCK_MAX == 4, "a clock's worth is masked");

/* --- loops ------------------------------------------------------------------------------------ */

/* Compares the node with each previous one, and reports a loop. */
PL_CORE_COLD void pl_core_loop_look(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_trail *trail)
{
	uint64_t met = 0; /* first visit, as the largest complement of an index */
	struct pl_core_place *place;
	struct pl_event *e;
	uint32_t at;

	for (uint32_t i = 0; i < PL_CORE_TRAIL; i++) {
		if (i >= h->index)
			break;
		met = pl_core_max(
			met, (PL_CORE_TRAIL - i) & -pl_core_zero_bit(trail->node[i] ^ h->node));
	}
	if (met == 0 || trail->told)
		return;
	at = PL_CORE_TRAIL - (uint32_t)met;
	trail->told = 1;
	place = pl_core_place(env, r, h);
	if (place == NULL || !pl_core_limit(env, &place->loop_due_ns, PL_EVENT_LOOP, r->now_ns))
		return;
	e = pl_core_event(env, PL_EVENT_LOOP, PL_PHASE_ONCE, r->ts_ns);
	if (e == NULL)
		return;
	pl_core_cite(e, r);
	pl_core_locate(e, h, PL_CORE_Q_TX_UTIL);
	e->value = h->index - at; /* hops from the first time to this one */
	e->present |= PL_EVENT_HAS_value;
	pl_env_tell(env, e);
}

PL_CORE_INLINE void pl_core_loop_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	struct pl_core_trail *trail = pl_env_trail(env);
	uint64_t bit = UINT64_C(1) << ((h->node * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
	uint32_t i = h->index;

	if (__builtin_expect((trail->seen & bit) != 0, 0))
		pl_core_loop_look(env, r, h, trail);
	trail->seen |= bit;
	if (i < PL_CORE_TRAIL)
		trail->node[i] = h->node;
}

/* --- a hop ------------------------------------------------------------------------------------ */

/* Puts the node of a hop onto the trail; the first of a hop's steps. */
PL_CORE_INLINE void pl_core_trail_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const int has_node = (h->present & PL_HOP_HAS_node) != 0;
	uint32_t i = h->index;

	if (has_node && pl_core_watches(rules, PL_EVENT_LOOP))
		pl_core_loop_step(env, r, h);
	else if (i < PL_CORE_TRAIL && (!has_node || (rules->flags & PL_CORE_KEEP_AGGREGATES)))
		/* The route needs the node. A hop without one must not keep that of an earlier
		 * report; no node has this id. */
		pl_env_trail(env)->node[i] = has_node ? h->node : UINT64_MAX;
}

/* Steps the watched values of a hop. */
PL_CORE_INLINE void pl_core_values_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	uint32_t watched, has = h->present;

	if (!(has & PL_HOP_HAS_node))
		return;
	watched = rules->watch &
		  ((has & PL_HOP_HAS_hop_latency_ns ? 1u << PL_CORE_Q_HOP_LATENCY : 0) |
			  (has & PL_HOP_HAS_queue_depth ? 1u << PL_CORE_Q_QUEUE_DEPTH : 0) |
			  (has & PL_HOP_HAS_tx_util ? 1u << PL_CORE_Q_TX_UTIL : 0) |
			  (has & PL_HOP_HAS_buffer_depth ? 1u << PL_CORE_Q_BUFFER_DEPTH : 0));
	if ((watched & (1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH)) ||
		(rules->flags & PL_CORE_KEEP_PLACES))
		pl_core_place_step(env, r, h, watched);
	if (watched & 1u << PL_CORE_Q_TX_UTIL)
		pl_core_gauge_step(env, r, h, PL_CORE_Q_TX_UTIL);
	if (watched & 1u << PL_CORE_Q_BUFFER_DEPTH)
		pl_core_gauge_step(env, r, h, PL_CORE_Q_BUFFER_DEPTH);
	if ((rules->watch & 1u << PL_CORE_Q_LINK_LATENCY) && (h->before_present & PL_HOP_HAS_node))
		pl_core_link_step(env, r, h);
}

/* Steps one hop of a report, source first. */
PL_CORE_INLINE void pl_core_hop_step(
	struct pl_core_env *env, const struct pl_core_report *r, const struct pl_core_hop *h)
{
	pl_core_trail_step(env, r, h);
	pl_core_values_step(env, r, h);
}
