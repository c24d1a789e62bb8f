/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_steps.h: microbursts, and the flows that took part in one. */
#pragma once

#include "core/detect_steps.h"

PL_CORE_INLINE struct pl_core_burst_set *pl_core_burst_set(struct pl_core_env *env,
	const struct pl_core_place_key *key, uint64_t *ret_hash, uint32_t *ret_way)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	uint64_t hash = pl_core_hash(rules->secret, key, 2);
	struct pl_core_burst_set *set =
		pl_env_burst_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_burst]));

	*ret_hash = hash;
	*ret_way = set == NULL ? PL_CORE_NOWHERE
			       : pl_core_find(set->way, set->e, sizeof(set->e[0]), key, 2, hash);
	return set;
}

/* Counts a packet of the flow among the flows with most packets: in the flow's place, a free one,
 * or that of the flow with least packets, whose count it takes over (space saving: never too low,
 * too high by at most that count). */
PL_CORE_INLINE void pl_core_burst_top(struct pl_core_burst *b, const struct pl_core_report *r)
{
	uint64_t best = 0; /* least of the complements */
	uint32_t at;

	for (uint32_t i = 0; i < PL_CORE_BURST_FLOWS; i++) {
		uint64_t mine = pl_core_zero_bit(pl_core_differ(&b->top[i].key, &r->flow, 6)) &
				b->top[i].known;
		uint64_t k = ((b->top[i].packets + 1) & (mine - 1)) << 4 | i;

		best = pl_core_max(best, INT64_MAX - k);
	}
	best = INT64_MAX - best;
	at = (uint32_t)best & (PL_CORE_BURST_FLOWS - 1);
	if (best >> 4 != 0)
		pl_core_copy(&b->top[at].key, &r->flow, 6);
	b->top[at].packets++;
	b->top[at].known = 1;
}

/* Records a packet's delay among the most delayed flows: in the flow's place, a free one, or that
 * of the least delayed flow if this packet was delayed more. */
PL_CORE_INLINE void pl_core_burst_delayed(
	struct pl_core_burst *b, const struct pl_core_report *r, uint32_t delay_ns)
{
	uint64_t best = 0;
	struct pl_core_burst_flow *f;

	for (uint32_t i = 0; i < PL_CORE_BURST_FLOWS; i++) {
		uint64_t known = b->delayed[i].known; /* 0 or 1 */
		uint64_t mine =
			pl_core_zero_bit(pl_core_differ(&b->delayed[i].key, &r->flow, 6)) & known;
		uint64_t delay = (b->delayed[i].delay_ns & -known) + known + 1;
		uint64_t k = (delay & (mine - 1)) << 4 | i;

		best = pl_core_max(best, INT64_MAX - k);
	}
	best = INT64_MAX - best;
	f = &b->delayed[best & (PL_CORE_BURST_FLOWS - 1)];
	if (best >> 4 != 0) {
		if (best >> 4 != 1 && delay_ns <= f->delay_ns)
			return;
		pl_core_copy(&f->key, &r->flow, 6);
		f->packets = 0;
		f->delay_ns = 0;
		f->known = 1;
	}
	f->packets++;
	if (delay_ns > f->delay_ns)
		f->delay_ns = delay_ns;
}

PL_CORE_COLD void pl_core_burst_add(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_place *place)
{
	uint64_t hash;
	uint32_t way;
	struct pl_core_burst_set *set = pl_core_burst_set(env, &place->key, &hash, &way);
	struct pl_core_burst *b;

	if (set == NULL || way >= PL_CORE_WAYS)
		return;
	b = &set->e[way];
	if (b->since_ns != place->burst_since_ns)
		return; /* the previous burst, not reported yet */
	b->packets++;
	b->bytes += r->packet_bytes;
	if (h->queue_depth > b->max)
		b->max = h->queue_depth;
	if (!(r->present & PL_PATH_HAS_src))
		return;
	pl_core_burst_top(b, r);
	if (h->present & PL_HOP_HAS_hop_latency_ns)
		pl_core_burst_delayed(b, r, h->hop_latency_ns);
}

PL_CORE_COLD void pl_core_burst_begin(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_place *place)
{
	uint64_t hash;
	uint32_t way;
	struct pl_core_burst_set *set = pl_core_burst_set(env, &place->key, &hash, &way);
	uint64_t old;

	place->burst_since_ns = r->now_ns > 0 ? r->now_ns : 1;
	if (set == NULL)
		return;
	if (way < PL_CORE_WAYS) {
		if (set->e[way].ended_ns != 0) {
			pl_env_counters(env)->limited[PL_EVENT_MICROBURST]++;
			return;
		}
	} else {
		way = pl_core_take(env, r, set->way, set->owner, PL_CORE_T_burst, hash,
			pl_env_rules(env)->burst_max_ns, &old);
		if (way >= PL_CORE_WAYS)
			return;
		pl_core_publish(&set->way[way], hash, pl_core_coarse(r->now_ns));
	}
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, &place->key, 2);
	set->e[way].since_ns = place->burst_since_ns;
	set->e[way].unit_bytes = place->q[1].unit_bytes;
}

/* Ends a burst when the depth fell to the threshold or below. The tick reports it; a burst that was
 * too long for a microburst, or exceeds the limit of events, is dropped here. */
PL_CORE_COLD void pl_core_burst_end(
	struct pl_core_env *env, const struct pl_core_report *r, struct pl_core_place *place)
{
	uint64_t since_ns = place->burst_since_ns;
	uint64_t hash;
	uint32_t way;
	struct pl_core_burst_set *set = pl_core_burst_set(env, &place->key, &hash, &way);

	place->burst_since_ns = 0;
	if (set == NULL || way >= PL_CORE_WAYS || set->e[way].since_ns != since_ns)
		return;
	if (pl_core_elapsed(r->now_ns, since_ns) > pl_env_rules(env)->burst_max_ns ||
		!pl_core_limit(env, &place->burst_due_ns, PL_EVENT_MICROBURST, r->now_ns)) {
		pl_env_counters(env)->aged[PL_CORE_T_burst]++;
		set->way[way] = 0;
		return;
	}
	set->e[way].ended_ts_ns = r->ts_ns;
	set->e[way].ended_ns = r->now_ns > 0 ? r->now_ns : 1;
}

PL_CORE_COLD void pl_core_burst_step(struct pl_core_env *env, const struct pl_core_report *r,
	const struct pl_core_hop *h, struct pl_core_place *place)
{
	const uint64_t threshold =
		pl_core_in_units(pl_env_rules(env)->burst_threshold, place->q[1].unit_bytes);

	if (h->queue_depth > threshold) {
		if (place->burst_since_ns == 0)
			pl_core_burst_begin(env, r, place);
		if (place->burst_since_ns != 0)
			pl_core_burst_add(env, r, h, place);
	} else if (place->burst_since_ns != 0) {
		pl_core_burst_end(env, r, place);
	}
}
