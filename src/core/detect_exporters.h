/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Part of detect_steps.h: the exporters of reports, their lost reports, and the reports that count.
 *
 * Any host can send a report with a forged sender. With PL_CORE_PROVE a report changes no other
 * table until its exporter is *proven* (core/sequence.h): it is only counted, as unproven. A proven
 * exporter is *followed*: its losses are events. Of the eight ways of a set at most
 * PL_CORE_FOLLOWED are followed, so that there is always room for unproven exporters, which
 * displace only each other. When more are proven, the new exporter replaces one of the source that
 * has most ways of the set, if that is more than its own source would then have; else its reports
 * count, and are also counted as untracked. Without PL_CORE_PROVE every exporter is followed from
 * its first report on, as long as there is room.
 */
#pragma once

#include "core/detect_steps.h"

#define PL_CORE_FOLLOWED (PL_CORE_WAYS - 2)

/* Returns the ways whose exporters are followed, as bits. */
PL_CORE_INLINE uint32_t pl_core_followed(const struct pl_core_exporter_set *set)
{
	uint32_t ways = 0;

	PL_CORE_UNROLL
	for (uint32_t i = 0; i < PL_CORE_WAYS; i++)
		ways |= (uint32_t)((pl_core_zero_bit(set->way[i] >> 32) ^ 1) & set->e[i].followed)
			<< i;
	return ways;
}

/* Returns the way of a set for a new exporter, or PL_CORE_NOWHERE: a free one, or one that is not
 * followed; if all are followed, one of a source with more ways. */
PL_CORE_ONCE int pl_core_exporter_room(
	const struct pl_core_exporter_set *set, uint64_t hash, uint64_t whose, uint32_t now)
{
	uint32_t way, others;

	if (set == NULL)
		return PL_CORE_NOWHERE;
	way = pl_core_victim(set->way, hash, now);
	if (way < PL_CORE_WAYS && (uint32_t)(set->way[way] >> 32) == 0)
		return (int)way;
	others = ~pl_core_followed(set) & PL_CORE_ALL_WAYS;
	return pl_core_rival((const struct pl_core_ways *)(const void *)set, whose,
		others != 0 ? PL_CORE_RIVALS(others, 0, hash, now)
			    : PL_CORE_RIVALS(PL_CORE_ALL_WAYS, 1, hash, now));
}

/* Adds an exporter's account to sums, if the exporter is proven. */
PL_CORE_INLINE void pl_core_account_add(
	struct pl_core_accounts *to, const struct pl_core_exporter *x)
{
	if (!x->followed && !x->seq.proven)
		return;
	to->skipped += x->seq.skipped;
	to->recovered += x->seq.recovered;
	to->reordered += x->seq.reordered;
	to->duplicates += x->seq.duplicates;
	to->restarts += x->seq.restarts;
}

/* Makes an entry for an exporter; returns its way, or PL_CORE_NOWHERE. */
PL_CORE_COLD uint32_t pl_core_exporter_make(struct pl_core_env *env,
	struct pl_core_exporter_set *set, const struct pl_core_exporter_key *key, uint64_t hash,
	const struct pl_core_report *r)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t whose = pl_core_source(&key->addr);
	const uint32_t now = pl_core_coarse(r->now_ns);
	struct pl_core_counters *counters = pl_env_counters(env);
	uint64_t old = 0;
	uint32_t way = (uint32_t)pl_core_exporter_room(set, hash, whose, now);

	way = pl_core_take_way(env, set->way, set->owner, whose, way, PL_CORE_T_exporter, now,
		rules->forget_ns, &old);
	if (way >= PL_CORE_WAYS)
		return PL_CORE_NOWHERE;
	if ((uint32_t)(old >> 32) != 0) {
		counters->displaced += set->e[way].followed;
		pl_core_account_add(&counters->accounts, &set->e[way]);
		/* The entry that would report the end of its loss is gone. */
		counters->events_dropped += set->e[way].loss.open;
	}
	pl_core_clear(&set->e[way], sizeof(set->e[way]));
	pl_core_copy(&set->e[way].key, key, 4);
	set->e[way].first_ts_ns = r->ts_ns;
	set->e[way].followed = (rules->flags & PL_CORE_PROVE) == 0;
	pl_core_publish(&set->way[way], hash, now);
	return way;
}

PL_CORE_COLD void pl_core_sequence_unusual(
	struct pl_core_env *env, struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	pl_sequence_step(s, seq & mask, mask, pl_env_rules(env)->sequence_gap_max);
}

/* Returns the account of a report's exporter, made when new; NULL when there is no room. Of r it
 * reads exporter, node (not of v0.5, which names and numbers a device by its address only), hw_id,
 * report_version, now_ns, ts_ns. */
PL_CORE_INLINE struct pl_core_exporter *pl_core_exporter_of(
	struct pl_core_env *env, const struct pl_core_report *r)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_core_exporter_key key;
	struct pl_core_exporter_set *set;
	struct pl_core_exporter *x;
	uint64_t hash;
	uint32_t way;

	pl_core_copy(&key.addr, &r->exporter, 2);
	key.node = r->report_version == 0 ? 0 : r->node;
	key.hw_id = r->hw_id;
	hash = pl_core_hash(rules->secret, &key, 4);
	set = pl_env_exporter_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_exporter]));
	if (set == NULL)
		return NULL;
	way = pl_core_find(set->way, set->e, sizeof(set->e[0]), &key, 4, hash);
	if (__builtin_expect(way >= PL_CORE_WAYS, 0)) {
		way = pl_core_exporter_make(env, set, &key, hash, r);
		if (way >= PL_CORE_WAYS)
			return NULL;
	}
	pl_core_heard(&set->way[way], r->now_ns);
	x = &set->e[way];
	x->last_ts_ns = r->ts_ns;
	x->report_version = r->report_version;
	return x;
}

/* Follows a proven exporter, in any way of its set; if too many are followed there, it replaces one
 * of them. Returns 0 when none can be replaced. */
PL_CORE_COLD int pl_core_exporter_follow(
	struct pl_core_env *env, struct pl_core_exporter *x, uint64_t now_ns)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t hash = pl_core_hash(rules->secret, &x->key, 4);
	struct pl_core_exporter_set *set =
		pl_env_exporter_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_exporter]));
	uint32_t followed, most;

	if (set == NULL)
		return 0;
	followed = pl_core_followed(set);
	if (__builtin_popcount(followed) >= PL_CORE_FOLLOWED) {
		most = (uint32_t)pl_core_rival((const struct pl_core_ways *)(const void *)set,
			pl_core_source(&x->key.addr),
			PL_CORE_RIVALS(followed, 1, hash, pl_core_coarse(now_ns)));
		if (most >= PL_CORE_WAYS)
			return 0;
		/* The exporter stays until another needs its way; the tick ends its open events. */
		set->e[most].followed = 0;
		set->e[most].seq.steady = false;
		pl_env_counters(env)->displaced++;
	}
	x->followed = 1;
	return 1;
}

/* Handles a report of an exporter that is not followed: follows the exporter if it is proven. True
 * when the report counts. */
PL_CORE_COLD int pl_core_exporter_prove(
	struct pl_core_env *env, struct pl_core_exporter *x, uint64_t now_ns)
{
	if ((pl_env_rules(env)->flags & PL_CORE_PROVE) && !x->seq.proven)
		return 0;
	if (!pl_core_exporter_follow(env, x, now_ns)) {
		/* Makes every number of this exporter come here, until there is room. */
		x->seq.steady = false;
		pl_env_counters(env)->untracked++;
	}
	return 1;
}

/* True when a report counts although its number was not counted here. x: its exporter, NULL when
 * there was no room. */
PL_CORE_INLINE int pl_core_admits(struct pl_core_env *env, const struct pl_core_exporter *x)
{
	return (pl_env_rules(env)->flags & PL_CORE_PROVE) == 0 ||
	       (x != NULL && (x->followed || x->seq.proven));
}

/* True when a report counts after its number was counted here. */
PL_CORE_INLINE int pl_core_counted(
	struct pl_core_env *env, struct pl_core_exporter *x, uint64_t now_ns)
{
	return __builtin_expect(x->followed, 1) || pl_core_exporter_prove(env, x, now_ns);
}

PL_CORE_INLINE uint32_t pl_core_number_mask(const struct pl_core_report *r)
{
	return r->report_version == 2 ? 0x3fffff : UINT32_MAX;
}

/* Bits that pl_core_exporter_step returns. */
#define PL_CORE_NUMBER_LEFT 1 /* user space is to count the number */
#define PL_CORE_UNPROVEN    2 /* call pl_core_report_unproven instead of the rest */

/* Counts the sequence number of one datagram in its exporter's account: once per datagram, whatever
 * its reports, and only if no decoder does. Of r it reads the members that pl_core_exporter_of
 * reads, and seq. The tick reports losses (detect/tables_tick.c). */
PL_CORE_INLINE uint32_t pl_core_exporter_step(
	struct pl_core_env *env, const struct pl_core_report *r)
{
	const uint32_t mask = pl_core_number_mask(r);
	struct pl_core_exporter *x = pl_core_exporter_of(env, r);

	if (x == NULL) {
		const int admitted = pl_core_admits(env, NULL);

		pl_env_counters(env)->untracked += (uint32_t)admitted;
		return admitted ? 0 : PL_CORE_UNPROVEN;
	}
	if (__builtin_expect(x->above, 0))
		return PL_CORE_NUMBER_LEFT | (pl_core_admits(env, x) ? 0 : PL_CORE_UNPROVEN);
	if (__builtin_expect(!pl_sequence_next(&x->seq, r->seq, mask), 0))
		pl_core_sequence_unusual(env, &x->seq, r->seq, mask);
	return pl_core_counted(env, x, r->now_ns) ? 0 : PL_CORE_UNPROVEN;
}

/* Counts a report of an exporter that is not proven; nothing else is done with the report. */
PL_CORE_INLINE void pl_core_report_unproven(struct pl_core_env *env, const struct pl_core_report *r)
{
	struct pl_core_counters *counters = pl_env_counters(env);

	counters->reports++;
	counters->hops += r->hop_count;
	counters->unproven++;
}
