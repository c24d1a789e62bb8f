/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The straight way: a usual report (bpf/report_quiet.h) of which nothing is to be told. Every value is within its key's
 * quiet band, every key is in its table, the exporter's number is the next one, the flow's path the one it had. Then
 * all that the report changes are a few counts, and they are made here; the general way (bpf/report_core.h,
 * bpf/detect_steps.h) does not run. In every other case the answer is not PL_QUIET_SETTLED and the general way runs
 * from the start, as if nothing had been: the only words stored till then are the times at which keys were heard of,
 * which it stores too, in the same order. So both come to the same state and events; a test runs the one against both.
 *
 * A stack is known again by its *print*, a hash of its nodes and ports that takes one multiplication a hop. The flow
 * has the print of the stack that gave its path id, learned when the general way had found that no node stands in it
 * twice: so an equal print stands for the path id, the loops that need not be looked for, and keys that are all
 * different. By the bound of the hash (bpf/detect_table.h) two stacks have one print with a probability of 2^-33 when
 * they differ in the highest bits of one node's id only, else of at most 2^-63 for ids that differ in the lowest.
 *
 * What the environment has besides that of detect_steps.h, which comes first:
 *
 *   struct pl_quiet_marks *pl_env_marks(env)   of this side; never NULL
 */
#pragma once

#include "bpf/detect_steps.h"
#include "bpf/report_quiet.h"

enum pl_quiet_verdict {
	PL_QUIET_GENERAL, /* for the general way */
	PL_QUIET_LEARN,   /* the same; then pl_quiet_learn */
	PL_QUIET_SETTLED,
};

/*
 * Words of rules and marks that choose what is looked at. The verifier would follow each combination of their bits
 * through all hops, if it knew that a word has the bits that it had before: so they are loaded each time.
 */
#ifdef __bpf__
#define PL_QUIET_FRESH(word) (*(const volatile uint32_t *)&(word))
#else
#define PL_QUIET_FRESH(word) (word)
#endif

/* The stack is in the frame; to the verifier it must be said of each position that is not a constant. */
#ifdef __bpf__
#define PL_QUIET_IN_FRAME(p, n, end)                                                               \
	do {                                                                                       \
		if ((p) + (n) > (end))                                                             \
			return 0;                                                                  \
	} while (0)
#else
#define PL_QUIET_IN_FRAME(p, n, end) ((void)(p), (void)(n), (void)(end))
#endif

PL_CORE_INLINE uint32_t pl_quiet_watches(struct pl_core_env *env, uint32_t quantities)
{
	return PL_QUIET_FRESH(pl_env_rules(env)->watch) & quantities;
}

/* A hop as it is needed for the next one, and for the keys. */
struct pl_quiet_hop {
	uint64_t in, eg;
	uint32_t node, ports, latency, queue, util;
};

/* The values of a block at p, which has its node; 0 when one is missing. full and time_bits are constants. */
PL_CORE_INLINE int pl_quiet_load(struct pl_quiet_hop *h, const struct pl_quiet_marks *m,
	const uint8_t *p, const uint8_t *end, const int full, const unsigned int time_bits)
{
	const unsigned int base = 16 + time_bits / 4;
	uint32_t skip;

	h->node = pl_frame_be32(p);
	if (h->node == UINT32_MAX)
		return 0;
	if (!full)
		return 1;
	h->ports = pl_frame_be32(p + 4);
	h->latency = pl_frame_be32(p + 8);
	h->queue = pl_frame_be32(p + 12);
	h->in = time_bits == 64 ? pl_frame_be64(p + 16) : pl_frame_be32(p + 16);
	h->eg = time_bits == 64 ? pl_frame_be64(p + 24) : pl_frame_be32(p + 20);
	if (h->ports == UINT32_MAX || h->latency == UINT32_MAX || h->queue == UINT32_MAX)
		return 0;
	if (time_bits == 64 ? h->in == UINT64_MAX || h->eg == UINT64_MAX
			    : h->in == UINT32_MAX || h->eg == UINT32_MAX)
		return 0;
	/* Level-2 ports are not looked at, but missing ones are worth a note; their first word tells. */
	skip = PL_QUIET_FRESH(m->ports2);
	if (skip != 0) {
		PL_QUIET_IN_FRAME(p + base, 4, end);
		if (PL_FRAME_LOAD(uint32_t, p + base) == UINT32_MAX)
			return 0;
	}
	if (PL_QUIET_FRESH(m->has) & 1u << PL_CORE_Q_TX_UTIL) {
		const uint8_t *u = p + base + (skip & 8 ? 8 : skip & 4);

		PL_QUIET_IN_FRAME(u, 4, end);
		h->util = pl_frame_be32(u);
		if (h->util == UINT32_MAX)
			return 0;
	}
	return 1;
}

/* A key that is not where most are. Global in the kernel program, so that the verifier looks at it once and not for each
 * hop. */
struct pl_quiet_ways {
	uint64_t way[PL_CORE_WAYS];
};
#ifdef __bpf__
__attribute__((noinline)) int pl_quiet_search(const struct pl_quiet_ways *ways, uint32_t tag)
{
	return ways == NULL ? PL_CORE_NOWHERE : (int)pl_core_search(ways->way, tag);
}
#else
#define pl_quiet_search(ways, tag) pl_core_search((ways)->way, tag)
#endif

/* The way that a key's hash leads to; the key itself is for the caller to compare. As pl_core_find: pl_core_victim puts a
 * key that finds its home taken at the other end, if it can. */
PL_CORE_INLINE uint32_t pl_quiet_way(const uint64_t *way, uint64_t hash)
{
	uint32_t at = pl_core_home(hash), tag = pl_core_tag(hash);

	if (__builtin_expect((uint32_t)(way[at] >> 32) == tag, 1))
		return at;
	at ^= PL_CORE_WAYS - 1;
	return (uint32_t)(way[at] >> 32) == tag
		       ? at
		       : (uint32_t)pl_quiet_search((const struct pl_quiet_ways *)way, tag);
}

/* pl_core_hash of a struct pl_core_place_key, by its halves: where is queue and what the key has. */
PL_CORE_INLINE uint64_t pl_quiet_place_hash(
	const struct pl_core_rules *rules, uint32_t node, uint32_t port, uint32_t where)
{
	const uint64_t *secret = rules->secret, *turned = rules->prepared.turned;

	return secret[0] + (node + secret[1]) * turned[1] +
	       (port + secret[2]) * (where + turned[2]);
}

/* Whether the value is nothing to tell, as pl_core_stirs. */
PL_CORE_INLINE int pl_quiet_calm(const struct pl_core_band *band, const struct pl_core_quantity *q,
	const struct pl_core_quantity_rule *rule, uint32_t value, uint64_t now_ns)
{
	return __builtin_expect(!pl_core_stirs(band, q, rule, value, now_ns), 1);
}

/* The place of hop i. 0: it is not known, or has something to tell. */
PL_CORE_INLINE int pl_quiet_place(
	struct pl_core_env *env, const struct pl_quiet_hop *h, uint32_t i, const int full)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint32_t port = full ? h->ports & 0xffff : 0;
	const uint32_t where =
		full ? h->queue >> 24 | (PL_CORE_HAS_PORT | PL_CORE_HAS_QUEUE) << 16 : 0;
	const uint64_t hash = pl_quiet_place_hash(rules, h->node, port, where);
	struct pl_core_place_set *set;
	const struct pl_core_place *place;
	const pl_core_word *key;
	uint32_t way, at;

	at = pl_core_set_of(hash, rules->mask[PL_CORE_T_place]);
	set = pl_env_place_set(env, at);
	if (set == NULL)
		return 0;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS)
		return 0;
	place = &set->e[way];
	key = (const pl_core_word *)&place->key;
	if (__builtin_expect(key[0] != h->node || key[1] != (port | (uint64_t)where << 32), 0))
		return 0;
	pl_core_heard(&set->way[way], m->now_ns);
	if (full && pl_quiet_watches(env, 1u << PL_CORE_Q_HOP_LATENCY) &&
		!pl_quiet_calm(&place->band[0], &place->q[0], &rules->q[PL_CORE_Q_HOP_LATENCY],
			h->latency, m->now_ns))
		return 0;
	if (full && pl_quiet_watches(env, 1u << PL_CORE_Q_QUEUE_DEPTH) &&
		!pl_quiet_calm(&place->band[1], &place->q[1], &rules->q[PL_CORE_Q_QUEUE_DEPTH],
			h->queue & 0xffffff, m->now_ns))
		return 0;
	if (PL_QUIET_FRESH(m->keep)) {
		m->place[i & PL_QUIET_HOPS] = at << 3 | way;
		m->latency[i & PL_QUIET_HOPS] = h->latency;
		m->depth[i & PL_QUIET_HOPS] = h->queue & 0xffffff;
	}
	return 1;
}

PL_CORE_INLINE int pl_quiet_port(struct pl_core_env *env, const struct pl_quiet_hop *h, uint32_t i)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint32_t port = h->ports & 0xffff, where = PL_CORE_HAS_PORT << 16;
	const uint64_t hash = pl_quiet_place_hash(rules, h->node, port, where);
	struct pl_core_gauge_set *set;
	const pl_core_word *key;
	uint32_t way, at;

	at = pl_core_set_of(hash, rules->mask[PL_CORE_T_gauge]);
	set = pl_env_gauge_set(env, at);
	if (set == NULL)
		return 0;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS)
		return 0;
	key = (const pl_core_word *)&set->e[way].key;
	if (__builtin_expect(key[0] != h->node || key[1] != (port | (uint64_t)where << 32), 0))
		return 0;
	pl_core_heard(&set->way[way], m->now_ns);
	if (!pl_quiet_calm(&set->e[way].band, &set->e[way].q, &rules->q[PL_CORE_Q_TX_UTIL], h->util,
		    m->now_ns))
		return 0;
	if (PL_QUIET_FRESH(m->keep)) {
		m->port[i & PL_QUIET_HOPS] = at << 3 | way;
		m->util[i & PL_QUIET_HOPS] = h->util;
	}
	return 1;
}

/* The link from the hop before; transit: its latency, where there are times. */
PL_CORE_INLINE int pl_quiet_link(struct pl_core_env *env, const struct pl_quiet_hop *h,
	const struct pl_quiet_hop *before, uint32_t transit, uint32_t i, const int full)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	/* struct pl_core_link_key */
	const uint64_t key[4] = { h->node, before->node,
		full ? h->ports >> 16 | (uint64_t)(before->ports & 0xffff) << 32 : 0,
		full ? PL_CORE_HAS_PORT | PL_CORE_HAS_BEFORE : 0 };
	struct pl_core_link_set *set;
	uint32_t way, at;
	uint64_t hash;

	hash = pl_core_hash(rules->secret, key, 4);
	at = pl_core_set_of(hash, rules->mask[PL_CORE_T_link]);
	set = pl_env_link_set(env, at);
	if (set == NULL)
		return 0;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS || !pl_core_same(&set->e[way].key, key, 4))
		return 0;
	pl_core_heard(&set->way[way], m->now_ns);
	if (full && !pl_quiet_calm(&set->e[way].band, &set->e[way].q,
			    &rules->q[PL_CORE_Q_LINK_LATENCY], transit, m->now_ns))
		return 0;
	if (PL_QUIET_FRESH(m->keep)) {
		m->link[i & PL_QUIET_HOPS] = at << 3 | way;
		m->transit[i & PL_QUIET_HOPS] = transit;
	}
	return 1;
}

/* The difference of two times as pl_core_derive has it, when it may be shown; else 0 is returned. */
PL_CORE_INLINE int pl_quiet_transit(uint32_t *ret, uint64_t later, uint64_t earlier,
	uint32_t max_ns, const unsigned int time_bits)
{
	if (time_bits == 32) {
		uint32_t d = (uint32_t)later - (uint32_t)earlier;

		*ret = d;
		return d <= INT32_MAX && d <= max_ns;
	}
	*ret = (uint32_t)(later - earlier);
	return later - earlier <= max_ns;
}

/* What the path's print begins with: how many hops, and whether they have ports. */
PL_CORE_INLINE uint64_t pl_quiet_print(const struct pl_core_rules *rules, uint32_t hops, int full)
{
	return (hops + rules->secret[16]) * ((uint64_t)full + rules->secret[32]);
}

PL_CORE_INLINE uint64_t pl_quiet_print_hop(
	const struct pl_core_rules *rules, uint32_t i, uint32_t node, uint32_t ports)
{
	return (node + rules->secret[17 + i]) * (ports + rules->secret[33 + i]);
}

/* All hops, source first; the last two parameters are constants. 0: not quiet. */
PL_CORE_INLINE int pl_quiet_hops(
	struct pl_core_env *env, struct pl_quiet *q, const int full, const unsigned int time_bits)
{
	const unsigned int least = full ? 16 + time_bits / 4 : 4; /* of a block */
	const uint32_t block = full ? q->block : 4;
	const struct pl_quiet_marks *m = pl_env_marks(env);
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint32_t n = q->hops,
		       places = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH;
	struct pl_quiet_hop h = { 0 }, before;
	uint32_t at = n * block, transit = 0;

#pragma GCC unroll 1
	for (uint32_t i = 0; i < PL_QUIET_HOPS; i++) {
		const uint8_t *p;

		if (i >= n)
			break;
		before = h;
		at -= block;
		p = q->stack + (at & (PL_CORE_STACK_BYTES - 4));
		PL_QUIET_IN_FRAME(p, least, q->end);
		if (!pl_quiet_load(&h, m, p, q->end, full, time_bits))
			return 0;
		q->print += pl_quiet_print_hop(rules, i, h.node, full ? h.ports : 0);
		/* A clock that is off is worth a note. */
		if (full && i > 0 &&
			!pl_quiet_transit(&transit, h.in, before.eg, m->max_latency_ns, time_bits))
			return 0;
		if (((full && pl_quiet_watches(env, places)) ||
			    (PL_QUIET_FRESH(rules->flags) & PL_CORE_KEEP_PLACES)) &&
			!pl_quiet_place(env, &h, i, full))
			return 0;
		if (full &&
			pl_quiet_watches(env, PL_QUIET_FRESH(m->has) & 1u << PL_CORE_Q_TX_UTIL) &&
			!pl_quiet_port(env, &h, i))
			return 0;
		if (pl_quiet_watches(env, 1u << PL_CORE_Q_LINK_LATENCY) && i > 0 &&
			!pl_quiet_link(env, &h, &before, transit, i, full))
			return 0;
	}
	return 1;
}

#ifdef __bpf__ /* each has a stack of its own: together they would need more than there is */
#define PL_QUIET_LOOP static __attribute__((noinline))
#else
#define PL_QUIET_LOOP PL_CORE_INLINE
#endif
#define SHAPE(id, full, time)                                                                      \
	PL_QUIET_LOOP int pl_quiet_hops_##id(struct pl_core_env *env, struct pl_quiet *q)          \
	{                                                                                          \
		return pl_quiet_hops(env, q, full, time);                                          \
	}
PL_CORE_SHAPES(SHAPE)
#undef SHAPE

/* --- the report as a whole ------------------------------------------------------------------------------ */

/* pl_core_hash of the two keys. */
PL_CORE_INLINE uint64_t pl_quiet_exporter_hash(
	const struct pl_core_rules *rules, const struct pl_quiet_keys *k)
{
	const struct pl_core_prepared *p = &rules->prepared;

#ifndef __bpf__ /* only IPv4 comes to the straight way there */
	if (__builtin_expect(k->exporter[0] != 0 || (uint32_t)k->exporter[1] != 0xffff0000, 0))
		return pl_core_hash(rules->secret, k->exporter, 4);
#endif
	return p->exporter_v4 + p->low2 * ((k->exporter[1] >> 32) + p->turned[2]) +
	       (k->exporter[2] + rules->secret[3]) * p->turned[3] +
	       (k->exporter[3] + rules->secret[4]) * p->turned[4];
}

PL_CORE_INLINE uint64_t pl_quiet_flow_hash(
	const struct pl_core_rules *rules, const struct pl_quiet_keys *k)
{
	const struct pl_core_prepared *p = &rules->prepared;

	return p->flow_v4 + p->low2 * ((k->flow[1] >> 32) + p->turned[2]) +
	       p->low4 * ((k->flow[3] >> 32) + p->turned[4]) +
	       ((uint32_t)k->flow[4] + rules->secret[5]) * ((k->flow[4] >> 32) + p->turned[5]);
}

/* The exporter's books, or NULL when the number is not the next one, nor the one that it always has. */
PL_CORE_INLINE struct pl_core_exporter *pl_quiet_exporter(
	struct pl_core_env *env, const struct pl_quiet *q, uint64_t **ret_way)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t hash = pl_quiet_exporter_hash(rules, q->keys);
	struct pl_core_exporter_set *set =
		pl_env_exporter_set(env, pl_core_set_of(hash, rules->mask[PL_CORE_T_exporter]));
	struct pl_core_exporter *x;
	uint32_t way;

	if (set == NULL)
		return NULL;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS || !pl_core_same(&set->e[way].key, q->keys->exporter, 4))
		return NULL;
	*ret_way = &set->way[way];
	x = &set->e[way];
	return pl_sequence_calm(&x->seq, q->seq, q->seq_mask) ? x : NULL;
}

/* A flow that is known, by struct pl_flow_key, or NULL. */
PL_CORE_INLINE struct pl_core_flow *pl_quiet_flow(
	struct pl_core_env *env, const void *key, uint64_t hash, uint64_t **ret_way)
{
	struct pl_core_flow_set *set =
		pl_env_flow_set(env, pl_core_set_of(hash, pl_env_rules(env)->mask[PL_CORE_T_flow]));
	uint32_t way;

	if (set == NULL)
		return NULL;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS || !pl_core_same(&set->e[way].key, key, 6))
		return NULL;
	*ret_way = &set->way[way];
	return &set->e[way];
}

/* The route of the path, which is known. 0: it is not in its table any more. */
PL_QUIET_LOOP int pl_quiet_route(struct pl_core_env *env, uint64_t path_id)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint64_t key[2] = { path_id, 0 };
	uint64_t hash = pl_core_hash(rules->secret, key, 2);
	uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_route]), way;
	struct pl_core_route_set *set = pl_env_route_set(env, at);

	if (set == NULL)
		return 0;
	way = pl_quiet_way(set->way, hash);
	if (way >= PL_CORE_WAYS || !pl_core_same(&set->e[way], key, 2))
		return 0;
	pl_core_heard(&set->way[way], m->now_ns);
	m->route = at << 3 | way;
	return 1;
}

/*
 * The report that was read. Sums are left to pl_quiet_sums, as the environment's marks say. A value of enum pl_quiet_verdict.
 */
PL_CORE_INLINE uint32_t pl_quiet_step(struct pl_core_env *env, struct pl_quiet *q, uint64_t now_ns,
	uint64_t ts_ns, uint32_t max_latency_ns)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	uint64_t *exporter_way, *flow_way;
	struct pl_core_exporter *x;
	struct pl_core_flow *flow;
	int calm = 0;

	m->now_ns = now_ns;
	m->max_latency_ns = max_latency_ns;
	m->keep = rules->prepared.keeps;
	m->has = q->has;
	m->ports2 = q->ports2;
	x = pl_quiet_exporter(env, q, &exporter_way);
	if (x == NULL)
		return PL_QUIET_GENERAL;
	flow = pl_quiet_flow(env, q->keys->flow, q->keys->flow_hash, &flow_way);
	if (flow == NULL || pl_core_elapsed(now_ns, flow->last_ns) > rules->flow_idle_ns)
		return PL_QUIET_LEARN;
	q->print = pl_quiet_print(rules, q->hops, q->shape != PL_CORE_SHAPE_NODE);
	switch (q->shape) {
#define SHAPE(id, full, time)                                                                      \
	case PL_CORE_SHAPE_##id:                                                                   \
		calm = pl_quiet_hops_##id(env, q);                                                 \
		break;
		PL_CORE_SHAPES(SHAPE)
#undef SHAPE
	default:
		break;
	}
	if (!calm)
		return PL_QUIET_GENERAL;
	q->print |= 1;
	if (flow->print != q->print)
		return PL_QUIET_LEARN;
	if ((rules->flags & PL_CORE_KEEP_AGGREGATES) && !pl_quiet_route(env, flow->path_id))
		return PL_QUIET_GENERAL;

	/* From here on it is a quiet one. */
	pl_core_heard(exporter_way, now_ns);
	x->last_ts_ns = ts_ns;
	x->report_version = q->version;
	pl_sequence_again(&x->seq, q->seq);
	pl_core_heard(flow_way, now_ns);
	flow->last_ns = now_ns;
	flow->packets++;
	return PL_QUIET_SETTLED;
}

/* What a quiet report adds to sums and histograms, by the marks. Only where the marks say keep. */
PL_CORE_INLINE void pl_quiet_sums(struct pl_core_env *env, uint32_t i)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_quiet_marks *m = pl_env_marks(env);
	const int keep = (rules->flags & PL_CORE_KEEP_AGGREGATES) != 0;
	const uint32_t watched = rules->watch & m->has;
	const uint32_t places = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH;

	i &= PL_QUIET_HOPS;
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
			if (keep)
				pl_core_hist_add(&place->hist[0], m->latency[i]);
		}
		if (watched & 1u << PL_CORE_Q_QUEUE_DEPTH) {
			if (keep || rules->q[PL_CORE_Q_QUEUE_DEPTH].learn)
				pl_core_sum(&place->q[1], m->depth[i]);
			if (keep)
				pl_core_hist_add(&place->hist[1], m->depth[i]);
		}
	}
	if (watched & 1u << PL_CORE_Q_TX_UTIL) {
		struct pl_core_gauge_set *set = pl_env_gauge_set(env, m->port[i] >> 3);
		struct pl_core_gauge *gauge;

		if (set == NULL)
			return;
		gauge = &set->e[m->port[i] & (PL_CORE_WAYS - 1)];
		if (keep || rules->q[PL_CORE_Q_TX_UTIL].learn) {
			pl_core_sum(&gauge->q, m->util[i]);
			gauge->packets++;
		}
	}
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
		if (keep)
			pl_core_hist_add(&link->hist, m->transit[i]);
	}
}

/* Likewise to its path's, after them; hops of the report. */
PL_CORE_INLINE void pl_quiet_route_sums(struct pl_core_env *env, uint32_t hops)
{
	const struct pl_quiet_marks *m = pl_env_marks(env);
	struct pl_core_route_set *set;
	uint64_t latency_ns = 0;

	if (!(pl_env_rules(env)->flags & PL_CORE_KEEP_AGGREGATES))
		return;
	set = pl_env_route_set(env, m->route >> 3);
	if (set == NULL)
		return;
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < hops; i++)
		latency_ns += m->latency[i & PL_QUIET_HOPS];
	pl_core_route_add(&set->e[m->route & (PL_CORE_WAYS - 1)], latency_ns,
		(m->has & 1u << PL_CORE_Q_HOP_LATENCY) != 0);
}

/*
 * After the general way, for PL_QUIET_LEARN: the flow takes the print of the path, if no node is in it twice. A path with
 * values missing has none: it might be that of another one, in which they are 0.
 */
PL_CORE_INLINE void pl_quiet_learn(struct pl_core_env *env, const struct pl_core_scratch *s)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const int full = (s->hops[0].present & PL_HOP_HAS_egress_port) != 0;
	uint64_t hash = pl_core_flow_hash(rules, &s->report.flow), same = 0, *way;
	uint64_t print = pl_quiet_print(rules, s->n, full);
	struct pl_core_flow *flow = pl_quiet_flow(env, &s->report.flow, hash, &way);

	if (flow == NULL || flow->path_id != s->report.path_id || s->missing != 0)
		return;
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < s->n; i++) {
		const struct pl_core_hop *h = &s->hops[i];

		print += pl_quiet_print_hop(
			rules, i, (uint32_t)h->node, h->ingress_port << 16 | h->egress_port);
		for (uint32_t k = 0; k < i; k++)
			same |= pl_core_zero_bit(h->node ^ s->hops[k].node);
	}
	if (same == 0)
		flow->print = print | 1;
}
