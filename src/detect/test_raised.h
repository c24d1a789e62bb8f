/* SPDX-License-Identifier: BSD-2-Clause */
/* Levels that are raised in a detector's tables, for tests. */
#pragma once

#include "core/detect_steps.h"
#include "detect/events_state.h"

/* A raised level, or an anomaly that goes on. */
struct raised_level {
	uint8_t kind;            /* enum pl_event_kind */
	uint8_t quantity;        /* enum pl_event_kind of the quantity */
	struct pl_core_hop at;   /* node, ports, queue, before, by its present bits; none: */
	struct pl_flow_key flow; /* the flow, for flow_latency */
	uint64_t begun_ns, max;  /* max: in bytes if `bytes` is set */
	bool bytes;
};

static bool is_raised(const struct pl_core_level *l)
{
	return l->state == PL_CORE_RAISED || l->state == PL_CORE_FALLING;
}

/* The places' levels are numbered first, then the gauges', the links' and the flows': each quantity
 * has two. */
static const struct pl_core_quantity *quantity_at(const struct pl_detect *det, uint64_t number,
	struct pl_core_hop *at, struct pl_flow_key *flow, unsigned int *ret_id)
{
	const struct pl_tables *t = &det->env.tables;
	uint64_t places = (uint64_t)t->sets[PL_CORE_T_place] * PL_CORE_WAYS * 2;
	uint64_t gauges = (uint64_t)t->sets[PL_CORE_T_gauge] * PL_CORE_WAYS;
	uint64_t links = (uint64_t)t->sets[PL_CORE_T_link] * PL_CORE_WAYS;
	uint64_t entry;

	if (number < places) {
		const struct pl_core_place_set *s = &t->place[number / 2 / PL_CORE_WAYS];

		entry = number / 2 % PL_CORE_WAYS;
		*ret_id = number % 2 == 0 ? PL_CORE_Q_HOP_LATENCY : PL_CORE_Q_QUEUE_DEPTH;
		pl_core_hop_at(at, &s->e[entry].key);
		return pl_way_live(s->way[entry]) ? &s->e[entry].q[number % 2] : NULL;
	}
	number -= places;
	if (number < gauges) {
		const struct pl_core_gauge_set *s = &t->gauge[number / PL_CORE_WAYS];

		entry = number % PL_CORE_WAYS;
		*ret_id = s->e[entry].key.has & PL_CORE_HAS_BUFFER ? PL_CORE_Q_BUFFER_DEPTH
								   : PL_CORE_Q_TX_UTIL;
		pl_core_hop_at(at, &s->e[entry].key);
		return pl_way_live(s->way[entry]) ? &s->e[entry].q : NULL;
	}
	number -= gauges;
	entry = number % PL_CORE_WAYS;
	if (number < links) {
		const struct pl_core_link_set *s = &t->link[number / PL_CORE_WAYS];

		*ret_id = PL_CORE_Q_LINK_LATENCY;
		pl_core_hop_on(at, &s->e[entry].key);
		return pl_way_live(s->way[entry]) ? &s->e[entry].q : NULL;
	}
	number -= links;
	*ret_id = PL_CORE_Q_FLOW_LATENCY;
	pl_core_hop_of_path(at, 0);
	*flow = t->delay[number / PL_CORE_WAYS].e[entry].key;
	return pl_way_live(t->delay[number / PL_CORE_WAYS].way[entry])
		       ? &t->delay[number / PL_CORE_WAYS].e[entry].q
		       : NULL;
}

/* Iterates over raised levels: start with *pos = 0; false at the end. */
static bool next_raised(const struct pl_detect *det, uint64_t *pos, struct raised_level *ret)
{
	const struct pl_tables *t = &det->env.tables;
	uint64_t n = ((uint64_t)t->sets[PL_CORE_T_place] * 2 + t->sets[PL_CORE_T_gauge] +
			     t->sets[PL_CORE_T_link] + t->sets[PL_CORE_T_delay]) *
		     PL_CORE_WAYS * 2;

	*ret = (struct raised_level){ 0 };
	while (*pos < n) {
		uint64_t number = (*pos)++;
		bool odd = number % 2 != 0;
		unsigned int id;
		const struct pl_core_quantity *q =
			quantity_at(det, number / 2, &ret->at, &ret->flow, &id);
		const struct pl_core_level *l;

		if (q == NULL)
			continue;
		l = odd ? &q->odd : &q->level;
		if (!is_raised(l))
			continue;
		ret->quantity = (uint8_t)pl_core_quantity_kind(id);
		ret->kind = odd ? PL_EVENT_ANOMALY : ret->quantity;
		ret->begun_ns = l->begun_ns;
		ret->max = pl_core_in_bytes(l->max, q->unit_bytes);
		ret->bytes = q->unit_bytes != 0;
		return true;
	}
	return false;
}
