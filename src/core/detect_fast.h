/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast path handles a common report (core/report_fast.h) without anything new: every key is in
 * its table, the exporter's number is the next one or behind a gap, and the flow's path is
 * unchanged. Such a report changes only a few counts, which are updated here; the slow path
 * (core/report_core.h, core/detect_steps.h) does not run. A hop with a value outside its key's band
 * is marked as changed, and only that hop takes pl_core_values_step afterwards. In every other case
 * the fast path returns a cause of enum pl_slow, and the slow path processes the report from the
 * start: the only words stored until then are the times at which keys were last seen, which the
 * slow path stores too, in the same order. So both paths lead to the same state and events; a test
 * compares them.
 *
 * A stack is recognised by its *print*, a hash of its nodes and ports that takes one multiplication
 * for each hop. Each flow stores the print of the stack that gave its path id, once the slow path
 * has found no node twice in it. So an equal print means: the same path id, no loop, and keys that
 * all differ. By the bound of the hash (core/detect_table.h) two stacks have one print with a
 * probability of 2^-33 when they differ in the highest bits of one node's id only, else of at most
 * 2^-63 for ids that differ in the lowest.
 *
 * The keys of an unchanged path are not even hashed: a memo (struct pl_fast_memo), found by the
 * flow's print, holds the stack for comparison, and the positions of its keys. Keys are searched by
 * their hashes only for a path that has no memo, or when another key stands there.
 *
 * The layout (struct pl_core_layout) has the place of each value in a block, for any instruction
 * bitmap. Only blocks of a node id alone have code of their own.
 */
#pragma once

#include "core/detect_fast_hops.h"

/* --- the report as a whole -------------------------------------------------------------------- */

/* True when the words of an address are of IPv4. */
PL_CORE_INLINE int pl_fast_is_v4(const uint64_t *addr)
{
	return addr[0] == 0 && (uint32_t)addr[1] == 0xffff0000;
}

/* Returns the same as pl_core_hash of the exporter's key; for IPv4 most of its words are known.
 * Likewise below, of the flow's key. */
PL_CORE_INLINE uint64_t pl_fast_exporter_hash(
	const struct pl_core_rules *rules, const struct pl_fast_keys *k)
{
	const struct pl_core_prepared *p = &rules->prepared;

	if (__builtin_expect(!pl_fast_is_v4(k->exporter), 0))
		return pl_core_hash(rules->secret, k->exporter, 4);
	return p->exporter_v4 + p->low2 * ((k->exporter[1] >> 32) + p->turned[2]) +
	       (k->exporter[2] + rules->secret[3]) * p->turned[3] +
	       (k->exporter[3] + rules->secret[4]) * p->turned[4];
}

PL_CORE_INLINE uint64_t pl_fast_flow_hash(
	const struct pl_core_rules *rules, const struct pl_fast_keys *k)
{
	const struct pl_core_prepared *p = &rules->prepared;

	if (__builtin_expect(!pl_fast_is_v4(&k->flow[0]) || !pl_fast_is_v4(&k->flow[2]), 0))
		return pl_core_hash(rules->secret, k->flow, 6);
	return p->flow_v4 + p->low2 * ((k->flow[1] >> 32) + p->turned[2]) +
	       p->low4 * ((k->flow[3] >> 32) + p->turned[4]) +
	       ((uint32_t)k->flow[4] + rules->secret[5]) * ((k->flow[4] >> 32) + p->turned[5]);
}

PL_CORE_INLINE uint32_t pl_fast_seek_exporter(
	struct pl_core_env *env, const struct pl_fast_keys *keys)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t hash = pl_fast_exporter_hash(rules, keys);
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_exporter]);
	const struct pl_core_exporter_set *set = pl_env_exporter_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	way = pl_fast_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, keys->exporter, 4)
		       ? at << 3 | way
		       : PL_FAST_NOWHERE;
}

/* Returns the account of the exporter, or NULL when the exporter is not known or not followed, or
 * its number needs the slow path (pl_sequence_calm). */
PL_CORE_INLINE struct pl_core_exporter *pl_fast_exporter(
	struct pl_core_env *env, const struct pl_fast *q, uint64_t **ret_way)
{
	const uint32_t mask = pl_env_rules(env)->mask[PL_CORE_T_exporter];
	struct pl_fast_marks *m = pl_env_marks(env);
	uint32_t *guess =
		&m->exporter[(q->keys->exporter[2] ^ q->keys->exporter[3]) & (PL_FAST_GUESSES - 1)];
	uint32_t at = pl_fast_guess(*guess, mask);
	struct pl_core_exporter_set *set = pl_env_exporter_set(env, at >> 3);
	struct pl_core_exporter *x;

	if (set == NULL)
		return NULL;
	if (!pl_fast_live(set->way[at & (PL_CORE_WAYS - 1)]) ||
		!pl_core_same(&set->e[at & (PL_CORE_WAYS - 1)].key, q->keys->exporter, 4)) {
		at = (uint32_t)pl_env_seek_exporter(env, q->keys);
		if (at == PL_FAST_NOWHERE)
			return NULL;
		*guess = at;
		set = pl_env_exporter_set(env, at >> 3);
		if (set == NULL)
			return NULL;
	}
	*ret_way = &set->way[at & (PL_CORE_WAYS - 1)];
	x = &set->e[at & (PL_CORE_WAYS - 1)];
	/* A steady exporter is proven and followed; one that never counts may not be. */
	return pl_sequence_calm(
		       &x->seq, q->seq, q->seq_mask, pl_env_rules(env)->sequence_gap_max) &&
			       (x->seq.steady || x->followed)
		       ? x
		       : NULL;
}

/* Prefetches the lines of a flow at its home way, before anything else is read. */
PL_CORE_INLINE void pl_fast_expect_flow(struct pl_core_env *env, uint64_t hash)
{
	const uint32_t at = pl_fast_home(hash, pl_env_rules(env)->mask[PL_CORE_T_flow]);
	const struct pl_core_flow_set *set = pl_env_flow_set(env, at >> 3);

	if (set != NULL) {
		PL_FAST_FETCH(set->way);
		PL_FAST_FETCH(&set->e[at & (PL_CORE_WAYS - 1)]);
		PL_FAST_FETCH(&set->e[at & (PL_CORE_WAYS - 1)].print);
	}
}

/* Finds a known flow by its struct pl_flow_key; NULL when it is not in its table. */
PL_CORE_INLINE struct pl_core_flow *pl_fast_flow(
	struct pl_core_env *env, const void *key, uint64_t hash, uint64_t **ret_way)
{
	struct pl_core_flow_set *set =
		pl_env_flow_set(env, pl_core_set_of(hash, pl_env_rules(env)->mask[PL_CORE_T_flow]));
	uint32_t way;

	if (set == NULL)
		return NULL;
	way = pl_fast_way(set->way, hash);
	if (way >= PL_CORE_WAYS || !pl_core_same(&set->e[way].key, key, 6))
		return NULL;
	*ret_way = &set->way[way];
	return &set->e[way];
}

PL_CORE_INLINE uint32_t pl_fast_seek_route(struct pl_core_env *env, uint64_t path_id)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t key[2] = { path_id, 0 };
	const uint64_t hash = pl_core_hash(rules->secret, key, 2);
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_route]);
	const struct pl_core_route_set *set = pl_env_route_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	way = pl_fast_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way], key, 2) ? at << 3 | way
									: PL_FAST_NOWHERE;
}

/* Finds the route of a known path. Returns 0 when it is not in its table any more. */
PL_CORE_INLINE int pl_fast_route(
	struct pl_core_env *env, struct pl_fast_memo *memo, uint64_t path_id)
{
	const uint32_t mask = pl_env_rules(env)->mask[PL_CORE_T_route];
	struct pl_fast_marks *m = pl_env_marks(env);
	uint32_t at = pl_fast_guess(memo->route, mask);
	struct pl_core_route_set *set = pl_env_route_set(env, at >> 3);

	if (set == NULL)
		return 0;
	if (!pl_fast_stands(set->way[at & (PL_CORE_WAYS - 1)], &set->e[at & (PL_CORE_WAYS - 1)],
		    path_id, 0)) {
		at = (uint32_t)pl_env_seek_route(env, path_id);
		if (at == PL_FAST_NOWHERE)
			return 0;
		memo->route = at;
		set = pl_env_route_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	m->route = at;
	return 1;
}

PL_CORE_INLINE uint32_t pl_fast_memo_of(uint64_t print)
{
	return (uint32_t)(pl_core_mixed(print) >> 32) & (PL_FAST_MEMOS - 1);
}

/* Print of a memo's path: 0 while the memo is being written, for every reader. */
#define PL_FAST_MEMO_PRINT(memo) (*(volatile uint64_t *)&(memo)->print)

/* Copies the stacks of the hops into the marks: steps of changed hops read them there, because the
 * memo may be another path's by then. */
PL_CORE_INLINE void pl_fast_stacks(struct pl_fast_marks *m, const struct pl_fast_memo *memo)
{
	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS; i++)
		m->stack[i] = memo->hop[i].stack;
}

/* True when the flow must store its path's print once the slow path has settled the report. */
PL_CORE_INLINE int pl_fast_learns(uint32_t slow)
{
	return slow == PL_SLOW_FLOW || slow == PL_SLOW_PATH;
}

/* Runs the fast detection steps on a parsed report whose blocks have layout l. pl_fast_sums adds to
 * sums, and pl_core_values_step makes events, for the hops marked in the environment. Returns an
 * enum pl_slow. */
PL_CORE_INLINE uint32_t pl_fast_step(struct pl_core_env *env, struct pl_fast *q,
	const struct pl_core_layout *l, uint64_t now_ns, uint64_t ts_ns, uint32_t max_latency_ns)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_fast_marks *m = pl_env_marks(env);
	uint64_t *exporter_way, *flow_way;
	struct pl_core_exporter *x;
	struct pl_core_flow *flow;
	struct pl_fast_memo *memo;
	uint32_t slow;
	uint64_t print;

	m->now_ns = now_ns;
	m->max_latency_ns = max_latency_ns;
	m->keep = rules->prepared.keeps;
	m->has = l->quantities;
	m->hops = q->hops;
	m->changed = 0;
	m->missing = 0;
	x = pl_fast_exporter(env, q, &exporter_way);
	if (x == NULL)
		return PL_SLOW_EXPORTER;
	flow = pl_fast_flow(env, q->keys->flow, q->keys->flow_hash, &flow_way);
	if (flow == NULL || pl_core_elapsed(now_ns, flow->last_ns) > rules->flow_idle_ns)
		return PL_SLOW_FLOW;
	print = flow->print;
	memo = pl_env_memo(env, pl_fast_memo_of(print));
	if (print == 0 || memo == NULL)
		return PL_SLOW_FLOW;
	q->known = PL_FAST_MEMO_PRINT(memo) == print;
	if (q->known && memo->hops != q->hops)
		return PL_SLOW_PATH;
	/* Equal nodes without ports may come in two shapes. */
	q->known = q->known && memo->shape == l->shape;
	if (!q->known)
		PL_FAST_MEMO_PRINT(memo) = 0;
	slow = l->shape == PL_CORE_SHAPE_NODE ? pl_fast_hops(env, q, l, memo, PL_CORE_SHAPE_NODE)
					      : pl_fast_hops(env, q, l, memo, PL_CORE_SHAPE_VALUES);
	if (slow != PL_SLOW_NONE)
		return slow;
	/* The print is read again: in generic mode another processor may have begun to write
	 * another path there. */
	if (q->known ? PL_FAST_MEMO_PRINT(memo) != print : (q->print | 1) != print)
		return PL_SLOW_PATH;
	PL_FAST_MEMO_PRINT(memo) = print;
	if ((rules->flags & PL_CORE_KEEP_AGGREGATES) && !pl_fast_route(env, memo, flow->path_id))
		return PL_SLOW_KEY;
	if (__builtin_expect(m->changed != 0, 0)) {
		m->present = l->present | (l->derived ? PL_HOP_HAS_hop_latency_ns : 0);
		pl_fast_stacks(m, memo);
	}

	/* From here on the report is the fast path's: it will be settled. */
	pl_core_heard(exporter_way, now_ns);
	x->last_ts_ns = ts_ns;
	x->report_version = q->version;
	pl_sequence_again(&x->seq, q->seq, q->seq_mask);
	pl_core_heard(flow_way, now_ns);
	flow->last_ns = now_ns;
	flow->packets++;
	m->path_id = flow->path_id;
	return PL_SLOW_NONE;
}

/* --- hops that changed ------------------------------------------------------------------------ */

/* Makes the settled report, with all that events cite and the steps of a hop read. */
PL_CORE_INLINE void pl_fast_report(struct pl_core_report *r, const struct pl_fast *q,
	const struct pl_fast_marks *m, uint64_t ts_ns)
{
	const struct pl_fast_keys *k = q->keys;

	pl_core_clear(r, sizeof(*r));
	r->now_ns = m->now_ns;
	r->ts_ns = ts_ns;
	pl_core_copy(&r->flow, k->flow, 6);
	pl_core_copy(&r->exporter, k->exporter, 2);
	r->node = k->exporter[2];
	r->path_id = m->path_id;
	r->present = PL_PATH_HAS_exporter | PL_PATH_HAS_report_version | PL_PATH_HAS_hw_id |
		     PL_PATH_HAS_seq | PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_path_id;
	if (q->version != PL_REPORT_V05)
		r->present |= PL_PATH_HAS_node;
	if (r->flow.has & PL_FLOW_KEY_HAS_VLAN)
		r->present |= PL_PATH_HAS_vlan;
	r->seq = q->seq;
	r->flags = PL_FLAG_TRACKED;
	r->mode = PL_MODE_MD;
	r->hw_id = (uint8_t)k->exporter[3];
	r->report_version = q->version;
	r->hop_count = q->hops;
}

/* Makes hop i from the marks. */
PL_CORE_INLINE void pl_fast_hop(
	struct pl_core_hop *h, const struct pl_fast_marks *m, const uint32_t i)
{
	const uint32_t at = i & PL_FAST_HOPS;
	const uint64_t stack = m->stack[at];

	pl_core_clear(h, sizeof(*h));
	h->node = pl_fast_node(stack);
	h->ingress_port = (uint32_t)stack >> 16;
	h->egress_port = stack & 0xffff;
	h->present = m->present;
	h->index = (uint8_t)i;
	if (m->has & 1u << PL_CORE_Q_HOP_LATENCY)
		h->hop_latency_ns = m->latency[at];
	if (m->has & 1u << PL_CORE_Q_QUEUE_DEPTH) {
		h->queue = (uint16_t)m->queue[at];
		h->queue_depth = m->depth[at];
	}
	if (m->has & 1u << PL_CORE_Q_TX_UTIL)
		h->tx_util = m->util[at];
	if (m->has & 1u << PL_CORE_Q_BUFFER_DEPTH) {
		h->buffer = (uint8_t)(m->buffer[at] >> 24);
		h->buffer_depth = m->buffer[at] & 0xffffff;
	}
	if (i == 0)
		return;
	if (m->has & 1u << PL_CORE_Q_LINK_LATENCY) {
		h->link_latency_ns = m->transit[at];
		h->clock = PL_CLOCK_OK;
		h->present |= PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns;
	}
	h->before_node = pl_fast_node(m->stack[(i - 1) & PL_FAST_HOPS]);
	h->before_port = m->stack[(i - 1) & PL_FAST_HOPS] & 0xffff;
	h->before_present = m->present & (PL_HOP_HAS_node | PL_HOP_HAS_egress_port);
}

PL_CORE_INLINE void pl_fast_gauge_sum(struct pl_core_env *env, uint32_t at, uint32_t value)
{
	struct pl_core_gauge_set *set = pl_env_gauge_set(env, at >> 3);
	struct pl_core_gauge *gauge;

	if (set == NULL)
		return;
	gauge = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_sum(&gauge->q, value);
	gauge->packets++;
}

/* Adds the values of hop i of a report on the fast path to sums and histograms, from the marks. Not
 * to be called for a hop that changed, and only if the marks have `keep`. */
PL_CORE_INLINE void pl_fast_sums(struct pl_core_env *env, uint32_t i)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_fast_marks *m = pl_env_marks(env);
	const int keep = (rules->flags & PL_CORE_KEEP_AGGREGATES) != 0;
	const uint32_t watched = rules->watch & m->has;
	const uint32_t places = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH;

	i &= PL_FAST_HOPS;
	if ((watched & places) || (rules->flags & PL_CORE_KEEP_PLACES)) {
		struct pl_core_place_set *set = pl_env_place_set(env, m->place[i] >> 3);
		struct pl_core_place *place;

		if (set == NULL)
			return;
		place = &set->e[m->place[i] & (PL_CORE_WAYS - 1)];
		place->packets += keep;
		if (watched & 1u << PL_CORE_Q_HOP_LATENCY) {
			if (keep || rules->q[PL_CORE_Q_HOP_LATENCY].learn)
				pl_core_sum(&place->q[0], m->latency[i]);
			if (keep) {
				pl_core_hist_add(&place->hist[0], m->latency[i]);
				pl_core_jitter_step(&place->jitter, m->latency[i]);
			}
		}
		if (watched & 1u << PL_CORE_Q_QUEUE_DEPTH) {
			if (keep || rules->q[PL_CORE_Q_QUEUE_DEPTH].learn)
				pl_core_sum(&place->q[1], m->depth[i]);
			if (keep)
				pl_core_hist_add(&place->hist[1], m->depth[i]);
		}
	}
	if ((watched & 1u << PL_CORE_Q_TX_UTIL) && (keep || rules->q[PL_CORE_Q_TX_UTIL].learn))
		pl_fast_gauge_sum(env, m->port[i], m->util[i]);
	if ((watched & 1u << PL_CORE_Q_BUFFER_DEPTH) &&
		(keep || rules->q[PL_CORE_Q_BUFFER_DEPTH].learn))
		pl_fast_gauge_sum(env, m->buffer_at[i], m->buffer[i] & 0xffffff);
	if (i != 0 && (rules->watch & 1u << PL_CORE_Q_LINK_LATENCY)) {
		struct pl_core_link_set *set = pl_env_link_set(env, m->link[i] >> 3);
		struct pl_core_link *link;

		if (set == NULL)
			return;
		link = &set->e[m->link[i] & (PL_CORE_WAYS - 1)];
		link->packets += keep;
		if (!(watched & 1u << PL_CORE_Q_LINK_LATENCY))
			return;
		link->clock[PL_CLOCK_OK] += keep;
		if (keep || rules->q[PL_CORE_Q_LINK_LATENCY].learn)
			pl_core_sum(&link->q, m->transit[i]);
		if (keep) {
			pl_core_hist_add(&link->hist, m->transit[i]);
			pl_core_jitter_step(&link->jitter, m->transit[i]);
		}
	}
}

/* Adds the report to the sums of its path, after the hops. */
PL_CORE_INLINE void pl_fast_route_sums(struct pl_core_env *env, uint32_t hops)
{
	const struct pl_fast_marks *m = pl_env_marks(env);
	struct pl_core_route_set *set;
	uint64_t latency_ns = 0;

	if (!(pl_env_rules(env)->flags & PL_CORE_KEEP_AGGREGATES))
		return;
	set = pl_env_route_set(env, m->route >> 3);
	if (set == NULL)
		return;
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < hops; i++)
		latency_ns += m->latency[i & PL_FAST_HOPS];
	pl_core_route_add(&set->e[m->route & (PL_CORE_WAYS - 1)], latency_ns,
		(m->has & 1u << PL_CORE_Q_HOP_LATENCY) != 0);
}

/* Learns a path after the slow path, if pl_fast_learns is true: the flow takes the print of the
 * path, if no node is in it twice. A path with missing nodes or ports gets no print: it would equal
 * that of another path in which they are 0. */
PL_CORE_INLINE void pl_fast_learn(struct pl_core_env *env, const struct pl_core_scratch *s)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint32_t stack = PL_HOP_HAS_node | PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port;
	const int full = (s->hops[0].present & PL_HOP_HAS_egress_port) != 0;
	uint64_t hash = pl_core_flow_hash(rules, &s->report.flow), same = 0, *way;
	uint64_t print = pl_fast_print(rules, s->n, full);
	struct pl_core_flow *flow = pl_fast_flow(env, &s->report.flow, hash, &way);

	if (flow == NULL || flow->path_id != s->report.path_id || (s->missing & stack) != 0)
		return;
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < s->n; i++) {
		const struct pl_core_hop *h = &s->hops[i];

		print += pl_fast_print_hop(
			rules, i, (uint32_t)h->node, h->ingress_port << 16 | h->egress_port);
		for (uint32_t k = 0; k < i; k++)
			same |= pl_core_zero_bit(h->node ^ s->hops[k].node);
	}
	if (same == 0)
		flow->print = print | 1;
}
