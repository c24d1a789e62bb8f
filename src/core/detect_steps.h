/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of detection, over one report and its hops (detect_types.h has the order of calls), in
 * the environment of core/env.h.
 *
 * The common path has no call, no atomic and no division: a value within its key's band (struct
 * pl_core_band) causes no event. All else is out of line. Nothing here depends on the order of
 * memory between two reports; see detect_state.h for the other writers.
 */
#pragma once

#include "core/detect_bands.h"
#include "core/detect_table.h"
#include "core/detect_units.h"
#include "core/env.h"

PL_CORE_INLINE uint32_t pl_core_watches(const struct pl_core_rules *rules, unsigned int kind)
{
	return rules->on & 1u << kind;
}

PL_CORE_INLINE int pl_core_limit(
	struct pl_core_env *env, uint64_t *due_ns, unsigned int kind, uint64_t now_ns)
{
	if (pl_core_limit_pass(due_ns, &pl_env_rules(env)->limit[kind], now_ns))
		return 1;
	pl_env_counters(env)->limited[kind]++;
	return 0;
}

/* --- telling ---------------------------------------------------------------------------------- */

/* Gets room for an event and begins the event. Returns NULL, and counts the event as dropped, when
 * there is none. */
PL_CORE_INLINE struct pl_event *pl_core_event(
	struct pl_core_env *env, unsigned int kind, unsigned int phase, uint64_t ts_ns)
{
	struct pl_core_counters *counters = pl_env_counters(env);
	struct pl_event *e = pl_env_event(env);

	if (e == NULL) {
		counters->events_dropped++;
		return NULL;
	}
	counters->events[kind]++;
	pl_core_clear(e, sizeof(*e));
	e->ts_ns = ts_ns;
	e->event = (uint8_t)kind;
	e->phase = (uint8_t)phase;
	e->record_version = PL_RECORD_VERSION;
	return e;
}

PL_CORE_INLINE void pl_core_cite_flow(struct pl_event *e, const struct pl_flow_key *flow)
{
	pl_core_copy(&e->src, &flow->src, 4);
	e->proto = flow->proto;
	e->present |= PL_EVENT_HAS_src;
	if (flow->has & PL_FLOW_KEY_HAS_PORTS) {
		e->sport = flow->sport;
		e->dport = flow->dport;
		e->present |= PL_EVENT_HAS_sport;
	}
}

/* Cites the report in the event: its id, flow, path, exporter and number. */
PL_CORE_INLINE void pl_core_cite(struct pl_event *e, const struct pl_core_report *r)
{
	if (r->report_id != 0) {
		e->report_id = r->report_id;
		e->present |= PL_EVENT_HAS_report_id;
	}
	if (r->present & PL_PATH_HAS_src)
		pl_core_cite_flow(e, &r->flow);
	if (r->present & PL_PATH_HAS_path_id) {
		e->path_id = r->path_id;
		e->present |= PL_EVENT_HAS_path_id;
	}
	if (r->present & PL_PATH_HAS_exporter) {
		e->exporter = r->exporter;
		e->present |= PL_EVENT_HAS_exporter;
	}
	if (r->present & PL_PATH_HAS_seq) {
		e->seq = r->seq;
		e->present |= PL_EVENT_HAS_seq;
	}
	if (r->present & PL_PATH_HAS_hw_id) {
		e->hw_id = r->hw_id;
		e->present |= PL_EVENT_HAS_hw_id;
	}
}

/* Notes in the event that its values are in bytes, which replaces the hardware id. */
PL_CORE_INLINE void pl_core_in_bytes_told(struct pl_event *e)
{
	pl_event_set_unit(e, PL_UNIT_BYTES);
	e->present &= ~(uint32_t)PL_EVENT_HAS_hw_id;
}

/* Values of a quantity's event. */
struct pl_core_telling {
	uint64_t value;
	/* begin: threshold, in bytes if the unit is known; end: duration; once: the last reported
	 * value */
	uint64_t bound;
	const struct pl_core_quantity *q; /* quantity of the event */
	uint8_t kind, phase;
	uint8_t anomaly;
	uint8_t cite; /* 1: a report is the cause, not time; 2: likewise, and no value was reported
		       * before */
	uint32_t zero;
};

/* Sets the event's place from the hop: the fields that are part of the quantity's key. */
PL_CORE_INLINE void pl_core_locate(struct pl_event *e, const struct pl_core_hop *h, unsigned int id)
{
	if (id == PL_CORE_Q_FLOW_LATENCY)
		return; /* a flow has no other place */
	e->node = h->node;
	e->present |= PL_EVENT_HAS_node;
	if (id == PL_CORE_Q_LINK_LATENCY) {
		if (h->present & PL_HOP_HAS_ingress_port)
			pl_event_set_ingress_port(e, h->ingress_port);
		pl_event_set_peer_node(e, h->before_node);
		if (h->before_present & PL_HOP_HAS_egress_port) {
			pl_event_set_peer_port(e, h->before_port);
			e->present &= ~(uint32_t)PL_EVENT_HAS_seq;
		}
		return;
	}
	if (id == PL_CORE_Q_BUFFER_DEPTH) {
		if (h->present & PL_HOP_HAS_buffer)
			pl_event_set_buffer(e, h->buffer);
		return;
	}
	if (h->present & PL_HOP_HAS_egress_port) {
		e->port = h->egress_port;
		e->present |= PL_EVENT_HAS_port;
	}
	if (id != PL_CORE_Q_TX_UTIL && (h->present & PL_HOP_HAS_queue)) {
		e->queue = h->queue;
		e->present |= PL_EVENT_HAS_queue;
	}
}

PL_CORE_INLINE unsigned int pl_core_quantity_kind(unsigned int id)
{
	switch (id) {
	case PL_CORE_Q_HOP_LATENCY:
		return PL_EVENT_HOP_LATENCY;
	case PL_CORE_Q_QUEUE_DEPTH:
		return PL_EVENT_QUEUE_DEPTH;
	case PL_CORE_Q_TX_UTIL:
		return PL_EVENT_TX_UTIL;
	case PL_CORE_Q_BUFFER_DEPTH:
		return PL_EVENT_BUFFER_DEPTH;
	case PL_CORE_Q_FLOW_LATENCY:
		return PL_EVENT_FLOW_LATENCY;
	default:
		return PL_EVENT_LINK_LATENCY;
	}
}

/* Returns the flow of a path latency's quantity. */
PL_CORE_INLINE const struct pl_flow_key *pl_core_flow_of(const struct pl_core_quantity *q)
{
	const char *entry = (const char *)q - offsetof(struct pl_core_delay, q);

	return &((const struct pl_core_delay *)(const void *)entry)->key;
}

PL_CORE_COLD void pl_core_tell_quantity(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, unsigned int id, const struct pl_core_telling *t)
{
	unsigned int kind = t->anomaly ? PL_EVENT_ANOMALY : pl_core_quantity_kind(id);
	struct pl_event *e = pl_core_event(env, kind, t->phase, r->ts_ns);

	if (e == NULL)
		return;
	if (t->cite)
		pl_core_cite(e, r);
	else if (id == PL_CORE_Q_FLOW_LATENCY)
		pl_core_cite_flow(e, pl_core_flow_of(t->q));
	pl_core_locate(e, h, id);
	e->value = pl_core_in_bytes(t->value, t->q->unit_bytes);
	e->present |= PL_EVENT_HAS_value;
	if (t->q->unit_bytes != 0)
		pl_core_in_bytes_told(e);
	if (t->phase == PL_PHASE_BEGIN) {
		e->threshold = t->bound;
		e->present |= PL_EVENT_HAS_threshold;
	} else if (t->phase == PL_PHASE_END) {
		pl_event_set_duration_ns(e, t->bound);
	} else if (t->cite != 2) {
		pl_event_set_old_value(e, pl_core_in_bytes(t->bound, t->q->unit_bytes));
	}
	if (t->anomaly) {
		pl_event_set_quantity(e, (uint8_t)pl_core_quantity_kind(id));
		pl_event_set_mean(e, pl_core_in_bytes(t->q->mean, t->q->unit_bytes));
		pl_event_set_deviation(e, pl_core_in_bytes(t->q->dev, t->q->unit_bytes));
		e->present &= ~(uint32_t)PL_EVENT_HAS_exporter;
	}
	pl_env_tell(env, e);
}

/* --- quantities ------------------------------------------------------------------------------- */

PL_CORE_INLINE uint32_t pl_core_hop_value(const struct pl_core_hop *h, unsigned int id)
{
	switch (id) {
	case PL_CORE_Q_HOP_LATENCY:
	case PL_CORE_Q_FLOW_LATENCY: /* of a hop that stands for the path */
		return h->hop_latency_ns;
	case PL_CORE_Q_QUEUE_DEPTH:
		return h->queue_depth;
	case PL_CORE_Q_TX_UTIL:
		return h->tx_util;
	case PL_CORE_Q_BUFFER_DEPTH:
		return h->buffer_depth;
	default:
		return h->link_latency_ns;
	}
}

/* Moves an average by 2^-shift of the difference. */
PL_CORE_INLINE uint64_t pl_core_approach(uint64_t old, uint64_t now, uint32_t shift)
{
	return now > old ? old + ((now - old) >> shift) : old - ((old - now) >> shift);
}

/* Ends the baseline's window if it is over: its values move the baseline. */
PL_CORE_INLINE void pl_core_learn(
	struct pl_core_quantity *q, const struct pl_core_rules *rules, uint64_t now_ns)
{
	uint64_t n = q->n - q->n_mark;

	if (q->window_end_ns != 0 && now_ns < q->window_end_ns &&
		q->window_end_ns - now_ns <= rules->learn_window_ns)
		return;
	if (q->window_end_ns != 0 && n > 0) {
		uint64_t mean = ((q->sum - q->sum_mark) << 8) / n;
		uint64_t dev = ((q->dev_sum - q->dev_mark) << 8) / n;
		uint32_t shift = rules->learn_shift & 31;

		q->mean_256 = q->windows == 0 ? mean : pl_core_approach(q->mean_256, mean, shift);
		/* The first window had no mean to measure deviations from. */
		if (q->windows == 1)
			q->dev_256 = dev;
		else if (q->windows > 1)
			q->dev_256 = pl_core_approach(q->dev_256, dev, shift);
		q->mean = (uint32_t)(q->mean_256 >> 8);
		q->dev = (uint32_t)(q->dev_256 >> 8);
		if (q->windows < UINT32_MAX)
			q->windows++;
	}
	q->n_mark = q->n;
	q->sum_mark = q->sum;
	q->dev_mark = q->dev_sum;
	q->window_end_ns = now_ns + rules->learn_window_ns;
}

/* True when the value changed enough, by any of the rules, since the last reported one. */
PL_CORE_INLINE int pl_core_moved(
	const struct pl_core_quantity *q, const struct pl_core_quantity_rule *rule, uint32_t value)
{
	uint64_t by = pl_core_distance(value, q->told);
	uint32_t shift = rule->step_shift & 31;

	return (rule->step != 0 && by > pl_core_in_units(rule->step, q->unit_bytes)) ||
	       (rule->step_relative != 0 && by > ((uint64_t)q->told * rule->step_relative >> 16)) ||
	       (shift != 0 && pl_core_in_bytes(value, q->unit_bytes) >> shift !=
				      pl_core_in_bytes(q->told, q->unit_bytes) >> shift);
}

PL_CORE_COLD void pl_core_step_value(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_quantity *q, unsigned int id)
{
	const struct pl_core_quantity_rule *rule = &pl_env_rules(env)->q[id];
	uint32_t value = pl_core_hop_value(h, id);
	struct pl_core_telling t = { .value = value, .q = q, .phase = PL_PHASE_ONCE, .cite = 1 };

	if (!q->told_known) {
		q->told_known = 1;
		q->told = value;
		if (!rule->step_first)
			return;
		t.cite = 2; /* no value was reported before */
	} else if (!pl_core_moved(q, rule, value)) {
		return;
	}
	if (!pl_core_limit(env, &q->step_due_ns, pl_core_quantity_kind(id), r->now_ns))
		return;
	t.bound = q->told;
	q->told = value;
	pl_core_tell_quantity(env, r, h, id, &t);
}

/* Handles the begin or end of a level: of the values, or of their distance from the mean. */
PL_CORE_COLD void pl_core_level_changed(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_quantity *q, struct pl_core_telling *t)
{
	struct pl_core_counters *counters = pl_env_counters(env);
	struct pl_core_level *s = t->anomaly ? &q->odd : &q->level;
	uint64_t *due = t->anomaly ? &q->odd_due_ns : &q->level_due_ns;
	unsigned int id = t->kind; /* kind of the quantity */

	t->q = q;
	if (t->phase == PL_PHASE_BEGIN) {
		counters->raised++;
		s->silent = !pl_core_limit(env, due,
			t->anomaly ? PL_EVENT_ANOMALY : pl_core_quantity_kind(id), r->now_ns);
	} else {
		counters->ended++;
		t->value = s->max;
		t->bound = pl_core_level_lasted(s, r->now_ns);
	}
	if (!s->silent)
		pl_core_tell_quantity(env, r, h, id, t);
}

/* Runs the detection steps of a value outside its band: levels, anomaly, steps. Returns the new
 * band. */
PL_CORE_COLD uint64_t pl_core_quantity_step(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_quantity *q, unsigned int id)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_quantity_rule *rule = &rules->q[id];
	uint32_t value = pl_core_hop_value(h, id);
	struct pl_core_telling t = { .value = value, .kind = (uint8_t)id, .cite = 1 };
	struct pl_core_level_rule bounds;
	uint32_t change;
	int learned;

	if (rule->learn)
		pl_core_learn(q, rules, r->now_ns);
	learned = q->windows >= rules->learn_windows;
	pl_core_level_bounds(q, rule, learned, &bounds);
	change = pl_core_level_step(&q->level, &bounds, value, r->now_ns);
	if (change != PL_CORE_NONE) {
		t.phase = change == PL_CORE_BEGIN ? PL_PHASE_BEGIN : PL_PHASE_END;
		t.bound = pl_core_bound_told(q, rule, bounds.threshold);
		pl_core_level_changed(env, r, h, q, &t);
	}
	if (rule->odd_times != 0 && learned) {
		pl_core_odd_bounds(q, rule, &bounds);
		change = pl_core_level_step(
			&q->odd, &bounds, pl_core_distance(value, q->mean), r->now_ns);
		if (change != PL_CORE_NONE) {
			t.anomaly = 1;
			t.phase = change == PL_CORE_BEGIN ? PL_PHASE_BEGIN : PL_PHASE_END;
			t.value = value;
			t.bound = value > q->mean              ? q->mean + bounds.threshold
				  : q->mean > bounds.threshold ? q->mean - bounds.threshold
							       : 0;
			t.bound = pl_core_in_bytes(t.bound, q->unit_bytes);
			pl_core_level_changed(env, r, h, q, &t);
		}
	}
	if (rule->step != 0 || rule->step_relative != 0 || rule->step_shift != 0 ||
		rule->step_first != 0)
		pl_core_step_value(env, r, h, q, id);
	return pl_core_band_of(q, rules, rule, id, value);
}

/* Ends the raised levels of a quantity that is not seen any more. h is its place. */
PL_CORE_COLD void pl_core_quantity_end(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_quantity *q, unsigned int id)
{
	struct pl_core_telling t = { .kind = (uint8_t)id, .phase = PL_PHASE_END };

	if (pl_core_level_drop(&q->level) == PL_CORE_END)
		pl_core_level_changed(env, r, h, q, &t);
	t.anomaly = 1;
	if (pl_core_level_drop(&q->odd) == PL_CORE_END)
		pl_core_level_changed(env, r, h, q, &t);
}

/* True when a value may change the state or cause an event. */
PL_CORE_INLINE int pl_core_stirs(const struct pl_core_band *band, const struct pl_core_quantity *q,
	const struct pl_core_quantity_rule *rule, uint32_t value, uint64_t now_ns)
{
	return value - band->lo >= band->span || (rule->learn && now_ns >= q->window_end_ns);
}

PL_CORE_INLINE void pl_core_sum(struct pl_core_quantity *q, uint32_t value)
{
	q->n++;
	q->sum += value;
	q->dev_sum += pl_core_distance(value, q->mean);
	q->last = value;
	if (value > q->max)
		q->max = value;
}

/* Returns the index of a value in a histogram of powers of two: bucket i holds values above
 * 2^(i-1), up to 2^i. */
PL_CORE_INLINE uint32_t pl_core_bucket(uint32_t v)
{
	uint32_t i = 1;

	if (v <= 1)
		return 0;
	v--;
#ifdef __bpf__
	for (uint32_t step = 16; step > 0; step /= 2) {
		if (v >> step != 0) {
			v >>= step;
			i += step;
		}
	}
	return i;
#else
	return i + 31 - (uint32_t)__builtin_clz(v);
#endif
}

PL_CORE_INLINE void pl_core_hist_add(struct pl_core_hist *hist, uint32_t value)
{
	uint32_t i = pl_core_bucket(value);

	if (i < PL_CORE_HIST)
		hist->count[i]++;
	hist->sum += value;
}

/* Takes way i of a set for a new key of an owner, and counts it. Readers do not see the entry until
 * it is published. Returns i, or PL_CORE_NOWHERE when the way cannot be taken. */
PL_CORE_INLINE uint32_t pl_core_take_way(struct pl_core_env *env, uint64_t *way, uint64_t *owner,
	uint64_t whose, uint32_t i, unsigned int table, uint32_t now, uint64_t idle_ns,
	uint64_t *ret_old)
{
	struct pl_core_counters *counters = pl_env_counters(env);
	uint64_t old = i < PL_CORE_WAYS ? way[i] : 0;

	if (i >= PL_CORE_WAYS || (uint32_t)(old >> 32) == PL_CORE_TAG_BUSY ||
		!pl_core_claim(&way[i], old, now)) {
		counters->full[table]++;
		return PL_CORE_NOWHERE;
	}
	if ((uint32_t)(old >> 32) != 0) {
		if (pl_core_age(now, old) > pl_core_coarse(idle_ns))
			counters->aged[table]++;
		else
			counters->evicted[table]++;
	}
	counters->made[table]++;
	owner[i] = whose;
	*ret_old = old;
	return i;
}

/* Takes a way of a set for a new key of report r, and counts it. Readers do not see the entry until
 * it is published. It replaces an idle entry, or else one of the owner of most ways. In the table
 * of bursts it replaces the entry last seen longest ago: a burst belongs to a queue, whose own
 * table is shared among owners, and the kernel's stack has no room for that search where bursts
 * begin. */
PL_CORE_INLINE uint32_t pl_core_take(struct pl_core_env *env, const struct pl_core_report *r,
	uint64_t *way, uint64_t *owner, unsigned int table, uint64_t hash, uint64_t idle_ns,
	uint64_t *ret_old)
{
	const uint64_t whose = pl_core_source(&r->exporter);
	const uint32_t now = pl_core_coarse(r->now_ns);
	uint32_t i;

	if (table == PL_CORE_T_burst)
		i = pl_core_victim(way, hash, now);
	else
		i = (uint32_t)pl_core_room((const struct pl_core_ways *)(const void *)way, hash,
			whose, PL_CORE_TIMES(now, pl_core_coarse(idle_ns)));
	return pl_core_take_way(env, way, owner, whose, i, table, now, idle_ns, ret_old);
}

#include "core/detect_keys.h"

#include "core/detect_bursts.h"

#include "core/detect_places.h"

#include "core/detect_exporters.h"

#include "core/detect_flows.h"
