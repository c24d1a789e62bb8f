/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_quiet.h: the hops, their keys and values. */
#pragma once

#include "base/prefetch.h"
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

/* Asks for a line that is needed soon. The kernel's machine has no such word, but does not wait for a load whose value
 * nobody uses. */
#ifdef __bpf__
#define PL_QUIET_FETCH(p) ((void)*(const volatile uint64_t *)(p))
#else
#define PL_QUIET_FETCH(p) pl_prefetch(p)
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

PL_CORE_INLINE uint32_t pl_quiet_node(uint64_t stack)
{
	return (uint32_t)(stack >> 32);
}

/* Node and ports of the block at p: node << 32 | ports. full and time_bits are constants, here and below. */
PL_CORE_INLINE uint64_t pl_quiet_stack(const uint8_t *p, const int full)
{
	return full ? pl_frame_be64(p) : (uint64_t)pl_frame_be32(p) << 32;
}

PL_CORE_INLINE int pl_quiet_stack_whole(uint64_t stack, const int full)
{
	return (uint32_t)(stack >> 32) != UINT32_MAX && (!full || (uint32_t)stack != UINT32_MAX);
}

PL_CORE_INLINE uint64_t pl_quiet_in(const uint8_t *p, const unsigned int time_bits)
{
	return time_bits == 64 ? pl_frame_be64(p + 16) : pl_frame_be32(p + 16);
}

PL_CORE_INLINE uint64_t pl_quiet_eg(const uint8_t *p, const unsigned int time_bits)
{
	return time_bits == 64 ? pl_frame_be64(p + 24) : pl_frame_be32(p + 20);
}

/* Whether the values of the block at p are there. */
PL_CORE_INLINE int pl_quiet_whole(const uint8_t *p, const unsigned int time_bits)
{
	const uint64_t values = PL_FRAME_LOAD(uint64_t, p + 8);
	const uint64_t none = time_bits == 64 ? UINT64_MAX : UINT32_MAX;

	return (uint32_t)(values >> 32) != UINT32_MAX && (uint32_t)values != UINT32_MAX &&
	       pl_quiet_in(p, time_bits) != none && pl_quiet_eg(p, time_bits) != none;
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

/* Marks hop i when the value may have something to tell. */
PL_CORE_INLINE void pl_quiet_mark(struct pl_quiet_marks *m, const struct pl_core_band *band,
	const struct pl_core_quantity *q, const struct pl_core_quantity_rule *rule, uint32_t value,
	uint32_t i)
{
	if (__builtin_expect(pl_core_stirs(band, q, rule, value, m->now_ns), 0))
		m->stirred |= 1u << (i & PL_QUIET_HOPS);
}

/* --- where a key stands ---------------------------------------------------------------------------------- */

#define PL_QUIET_NOWHERE UINT32_MAX

/* What follows the node in the key of a queue or port: struct pl_core_place_key. */
PL_CORE_INLINE uint64_t pl_quiet_place_word(uint32_t port, uint32_t where)
{
	return port | (uint64_t)where << 32;
}

PL_CORE_INLINE uint32_t pl_quiet_seek_place(struct pl_core_env *env, uint32_t node, uint64_t word)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t key[2] = { node, word };
	const uint64_t hash =
		pl_quiet_place_hash(rules, node, (uint32_t)word, (uint32_t)(word >> 32));
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_place]);
	const struct pl_core_place_set *set = pl_env_place_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_QUIET_NOWHERE;
	way = pl_quiet_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 2) ? at << 3 | way
									    : PL_QUIET_NOWHERE;
}

PL_CORE_INLINE uint32_t pl_quiet_seek_port(struct pl_core_env *env, uint32_t node, uint64_t word)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t key[2] = { node, word };
	const uint64_t hash =
		pl_quiet_place_hash(rules, node, (uint32_t)word, (uint32_t)(word >> 32));
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_gauge]);
	const struct pl_core_gauge_set *set = pl_env_gauge_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_QUIET_NOWHERE;
	way = pl_quiet_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 2) ? at << 3 | way
									    : PL_QUIET_NOWHERE;
}

/* The last two words of struct pl_core_link_key; stack and before as in struct pl_quiet_hop. */
PL_CORE_INLINE uint64_t pl_quiet_link_ports(uint64_t stack, uint64_t before)
{
	return (uint32_t)stack >> 16 | (before & 0xffff) << 32;
}

PL_CORE_INLINE uint64_t pl_quiet_link_has(uint32_t full)
{
	return full ? PL_CORE_HAS_PORT | PL_CORE_HAS_BEFORE : 0;
}

PL_CORE_INLINE void pl_quiet_link_key(
	uint64_t key[4], uint64_t stack, uint64_t before, uint32_t full)
{
	key[0] = stack >> 32;
	key[1] = before >> 32;
	key[2] = full ? pl_quiet_link_ports(stack, before) : 0;
	key[3] = pl_quiet_link_has(full);
}

PL_CORE_INLINE uint64_t pl_quiet_link_hash(
	const struct pl_core_rules *rules, uint64_t stack, uint64_t before, uint32_t full)
{
	uint64_t key[4];

	pl_quiet_link_key(key, stack, before, full);
	return pl_core_hash(rules->secret, key, 4);
}

PL_CORE_INLINE uint32_t pl_quiet_seek_link(
	struct pl_core_env *env, uint64_t stack, uint64_t before, uint32_t full)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t hash = pl_quiet_link_hash(rules, stack, before, full);
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_link]);
	const struct pl_core_link_set *set = pl_env_link_set(env, at);
	uint64_t key[4];
	uint32_t way;

	if (set == NULL)
		return PL_QUIET_NOWHERE;
	pl_quiet_link_key(key, stack, before, full);
	way = pl_quiet_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 4) ? at << 3 | way
									    : PL_QUIET_NOWHERE;
}

#ifndef PL_QUIET_SEEK_CALLS
#define pl_env_seek_place    pl_quiet_seek_place
#define pl_env_seek_port     pl_quiet_seek_port
#define pl_env_seek_link     pl_quiet_seek_link
#define pl_env_seek_exporter pl_quiet_seek_exporter
#define pl_env_seek_route    pl_quiet_seek_route
#define pl_env_expect        pl_quiet_expect
#define pl_env_expect_links  pl_quiet_expect_links
#endif

/* A remembered position, within its table whatever is remembered. */
PL_CORE_INLINE uint32_t pl_quiet_guess(uint32_t at, uint32_t mask)
{
	return at & (mask << 3 | (PL_CORE_WAYS - 1));
}

/* Whether a way holds a key that may be found: tags are odd, and what is free or resting has none. */
PL_CORE_INLINE int pl_quiet_live(uint64_t way)
{
	return (way >> 32 & 1) != 0;
}

PL_CORE_INLINE int pl_quiet_stands(uint64_t way, const void *key, uint64_t node, uint64_t word)
{
	const pl_core_word *k = key;

	return __builtin_expect(pl_quiet_live(way) && k[0] == node && k[1] == word, 1);
}

/* --- one hop ----------------------------------------------------------------------------------------------- */

/* The place of hop i. 0: it is not known. */
PL_CORE_INLINE int pl_quiet_place(struct pl_core_env *env, uint64_t stack, uint64_t values,
	struct pl_quiet_memo_hop *memo, uint32_t i, const int full)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint32_t node = pl_quiet_node(stack), latency = (uint32_t)(values >> 32),
		       depth = (uint32_t)values & 0xffffff;
	const uint64_t word = full ? pl_quiet_place_word(stack & 0xffff,
					     (uint32_t)values >> 24 |
						     (PL_CORE_HAS_PORT | PL_CORE_HAS_QUEUE) << 16)
				   : 0;
	uint32_t at = pl_quiet_guess(memo->place, rules->mask[PL_CORE_T_place]), watch;
	struct pl_core_place_set *set = pl_env_place_set(env, at >> 3);
	const struct pl_core_place *place;

	if (set == NULL)
		return 0;
	if (!pl_quiet_stands(set->way[at & (PL_CORE_WAYS - 1)],
		    &set->e[at & (PL_CORE_WAYS - 1)].key, node, word)) {
		at = (uint32_t)pl_env_seek_place(env, node, word);
		if (at == PL_QUIET_NOWHERE)
			return 0;
		memo->place = at;
		set = pl_env_place_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	place = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	watch = full ? PL_QUIET_FRESH(rules->watch) : 0;
	if (watch & 1u << PL_CORE_Q_HOP_LATENCY)
		pl_quiet_mark(m, &place->band[0], &place->q[0], &rules->q[PL_CORE_Q_HOP_LATENCY],
			latency, i);
	if (watch & 1u << PL_CORE_Q_QUEUE_DEPTH)
		pl_quiet_mark(m, &place->band[1], &place->q[1], &rules->q[PL_CORE_Q_QUEUE_DEPTH],
			depth, i);
	if (PL_QUIET_FRESH(m->keep)) {
		m->place[i & PL_QUIET_HOPS] = at;
		m->latency[i & PL_QUIET_HOPS] = latency;
		m->depth[i & PL_QUIET_HOPS] = depth;
	}
	return 1;
}

PL_CORE_INLINE int pl_quiet_port(struct pl_core_env *env, uint64_t stack, uint32_t util,
	struct pl_quiet_memo_hop *memo, uint32_t i)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint64_t word = pl_quiet_place_word(stack & 0xffff, PL_CORE_HAS_PORT << 16);
	const uint32_t node = pl_quiet_node(stack);
	uint32_t at = pl_quiet_guess(memo->port, rules->mask[PL_CORE_T_gauge]);
	struct pl_core_gauge_set *set = pl_env_gauge_set(env, at >> 3);
	const struct pl_core_gauge *gauge;

	if (set == NULL)
		return 0;
	if (!pl_quiet_stands(set->way[at & (PL_CORE_WAYS - 1)],
		    &set->e[at & (PL_CORE_WAYS - 1)].key, node, word)) {
		at = (uint32_t)pl_env_seek_port(env, node, word);
		if (at == PL_QUIET_NOWHERE)
			return 0;
		memo->port = at;
		set = pl_env_gauge_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	gauge = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	pl_quiet_mark(m, &gauge->band, &gauge->q, &rules->q[PL_CORE_Q_TX_UTIL], util, i);
	if (PL_QUIET_FRESH(m->keep)) {
		m->port[i & PL_QUIET_HOPS] = at;
		m->util[i & PL_QUIET_HOPS] = util;
	}
	return 1;
}

/* The link from the hop before; transit: its latency, where there are times. */
PL_CORE_INLINE int pl_quiet_link(struct pl_core_env *env, uint64_t stack, uint64_t before,
	struct pl_quiet_memo_hop *memo, uint32_t transit, uint32_t i, const int full)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_quiet_marks *m = pl_env_marks(env);
	const uint64_t ports = full ? pl_quiet_link_ports(stack, before) : 0;
	uint32_t at = pl_quiet_guess(memo->link, rules->mask[PL_CORE_T_link]);
	struct pl_core_link_set *set = pl_env_link_set(env, at >> 3);
	const struct pl_core_link *link;
	const pl_core_word *key;

	if (set == NULL)
		return 0;
	key = (const pl_core_word *)&set->e[at & (PL_CORE_WAYS - 1)].key;
	if (!pl_quiet_stands(set->way[at & (PL_CORE_WAYS - 1)], key, pl_quiet_node(stack),
		    pl_quiet_node(before)) ||
		key[2] != ports || key[3] != pl_quiet_link_has(full)) {
		at = (uint32_t)pl_env_seek_link(env, stack, before, full);
		if (at == PL_QUIET_NOWHERE)
			return 0;
		memo->link = at;
		set = pl_env_link_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	link = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	if (full)
		pl_quiet_mark(
			m, &link->band, &link->q, &rules->q[PL_CORE_Q_LINK_LATENCY], transit, i);
	if (PL_QUIET_FRESH(m->keep)) {
		m->link[i & PL_QUIET_HOPS] = at;
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

/*
 * Then all hops, source first, once for each thing that is asked of them: little is in hand at a time, which is what the
 * kernel's machine with its ten registers can do well. Within a table keys are heard of in the order of the hops.
 */
#ifdef __bpf__
#define PL_QUIET_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define PL_QUIET_ROLLED
#endif

/* How many hops there are; not to be known from one loop to the next, or the verifier follows each number on its own. */
#define PL_QUIET_COUNT(m) PL_QUIET_FRESH((m)->hops)

/* A block, by its distance from the newest one. To the verifier it must be said that it is within the stack. */
PL_CORE_INLINE const uint8_t *pl_quiet_block(const struct pl_quiet *q, uint32_t at)
{
	return q->stack + (at & (PL_CORE_STACK_BYTES - 4));
}

/* Where a key stands by its hash, most likely, as a memo has it. */
PL_CORE_INLINE uint32_t pl_quiet_home(uint64_t hash, uint32_t mask)
{
	return pl_core_set_of(hash, mask) << 3 | pl_core_home(hash);
}

/*
 * Guesses for the keys of a path just noted, and their lines asked for: those of all hops are on the way at once. First
 * queues, or nodes alone, and ports; then links.
 */
PL_CORE_INLINE void pl_quiet_expect(
	struct pl_core_env *env, struct pl_quiet_memo *memo, const uint32_t full)
{
	const uint32_t n = PL_QUIET_COUNT(pl_env_marks(env));
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_place_set *set;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		struct pl_quiet_memo_hop *hop = &memo->hop[i];
		const uint32_t node = pl_quiet_node(hop->stack),
			       port = full ? hop->stack & 0xffff : 0,
			       has = full ? (PL_CORE_HAS_PORT | PL_CORE_HAS_QUEUE) << 16 : 0;

		hop->place = pl_quiet_home(pl_quiet_place_hash(rules, node, port, hop->queue | has),
			rules->mask[PL_CORE_T_place]);
		set = pl_env_place_set(env, hop->place >> 3);
		if (set == NULL)
			return;
		PL_QUIET_FETCH(set->way);
		PL_QUIET_FETCH(&set->e[hop->place & (PL_CORE_WAYS - 1)]);
		hop->port = pl_quiet_home(
			pl_quiet_place_hash(rules, node, port, PL_CORE_HAS_PORT << 16),
			rules->mask[PL_CORE_T_gauge]);
	}
}

PL_CORE_INLINE void pl_quiet_expect_links(
	struct pl_core_env *env, struct pl_quiet_memo *memo, const uint32_t full)
{
	const uint32_t n = PL_QUIET_COUNT(pl_env_marks(env));
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_link_set *set;

	PL_QUIET_ROLLED
	for (uint32_t i = 1; i < PL_QUIET_HOPS && i < n; i++) {
		struct pl_quiet_memo_hop *hop = &memo->hop[i];

		hop->link = pl_quiet_home(
			pl_quiet_link_hash(rules, hop->stack, memo->hop[i - 1].stack, full),
			rules->mask[PL_CORE_T_link]);
		set = pl_env_link_set(env, hop->link >> 3);
		if (set == NULL)
			return;
		PL_QUIET_FETCH(set->way);
		PL_QUIET_FETCH(&set->e[hop->link & (PL_CORE_WAYS - 1)]);
	}
}

/* The memo becomes that of this stack, if it turns out to be that of the flow's path. 0: a value is missing. */
PL_CORE_INLINE int pl_quiet_note(struct pl_core_env *env, const struct pl_quiet_marks *m,
	struct pl_quiet *q, struct pl_quiet_memo *memo, const int full)
{
	const uint32_t block = full ? q->block : 4, n = PL_QUIET_COUNT(m);
	const struct pl_core_rules *rules = pl_env_rules(env);
	uint32_t at = n * block;

	memo->hops = q->hops;
	memo->full = (uint32_t)full;
	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= block);
		uint64_t stack;

		PL_QUIET_IN_FRAME(p, full ? 16 : 4, q->end);
		stack = pl_quiet_stack(p, full);
		if (!pl_quiet_stack_whole(stack, full))
			return 0;
		q->print += pl_quiet_print_hop(rules, i, pl_quiet_node(stack), (uint32_t)stack);
		memo->hop[i].stack = stack;
		memo->hop[i].queue = full ? p[12] : 0;
	}
	pl_env_expect(env, memo, (uint32_t)full);
	if (rules->watch & 1u << PL_CORE_Q_LINK_LATENCY)
		pl_env_expect_links(env, memo, (uint32_t)full);
	return 1;
}

/* Whether the stack is the memo's, of nodes alone. */
PL_CORE_INLINE int pl_quiet_again(
	const struct pl_quiet_marks *m, const struct pl_quiet *q, const struct pl_quiet_memo *memo)
{
	const uint32_t n = PL_QUIET_COUNT(m);
	uint32_t at = n * 4;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= 4);

		PL_QUIET_IN_FRAME(p, 4, q->end);
		if (pl_quiet_stack(p, 0) != memo->hop[i].stack)
			return 0;
	}
	return 1;
}

/* Whether no block lacks the 32-bit value so far from its beginning. */
PL_CORE_INLINE int pl_quiet_present(
	const struct pl_quiet_marks *m, const struct pl_quiet *q, uint32_t offset)
{
	const uint32_t n = PL_QUIET_COUNT(m);
	uint32_t at = n * q->block;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= q->block) + offset;

		PL_QUIET_IN_FRAME(p, 4, q->end);
		if (PL_FRAME_LOAD(uint32_t, p) == UINT32_MAX)
			return 0;
	}
	return 1;
}

/* Where a block has its utilization, behind level-2 ports. */
PL_CORE_INLINE uint32_t pl_quiet_util_at(const struct pl_quiet *q, const unsigned int time_bits)
{
	return 16 + time_bits / 4 + (q->ports2 & 12);
}

/*
 * SETTLED: the stack is the memo's, no value is missing and no clock is off, which would be worth a note. LEARN: it is
 * another one.
 */
PL_CORE_INLINE uint32_t pl_quiet_plain(const struct pl_quiet_marks *m, const struct pl_quiet *q,
	const struct pl_quiet_memo *memo, const unsigned int time_bits)
{
	const uint32_t base = 16 + time_bits / 4, n = PL_QUIET_COUNT(m);
	uint32_t at = n * q->block, transit;
	uint64_t eg = 0;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= q->block);

		PL_QUIET_IN_FRAME(p, base, q->end);
		if (pl_quiet_stack(p, 1) != memo->hop[i].stack)
			return PL_QUIET_LEARN;
		if (!pl_quiet_whole(p, time_bits) ||
			(i > 0 && !pl_quiet_transit(&transit, pl_quiet_in(p, time_bits), eg,
					  m->max_latency_ns, time_bits)))
			return PL_QUIET_GENERAL;
		eg = pl_quiet_eg(p, time_bits);
	}
	/* Level-2 ports are not looked at, but missing ones are worth a note; their first word tells. */
	if (q->ports2 != 0 && !pl_quiet_present(m, q, base))
		return PL_QUIET_GENERAL;
	if ((q->has & 1u << PL_CORE_Q_TX_UTIL) &&
		!pl_quiet_present(m, q, pl_quiet_util_at(q, time_bits)))
		return PL_QUIET_GENERAL;
	return PL_QUIET_SETTLED;
}

PL_CORE_INLINE int pl_quiet_places(struct pl_core_env *env, const struct pl_quiet *q,
	struct pl_quiet_memo *memo, const int full)
{
	const uint32_t block = full ? q->block : 4, n = PL_QUIET_COUNT(pl_env_marks(env));
	uint32_t at = n * block;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= block);

		PL_QUIET_IN_FRAME(p, full ? 16 : 4, q->end);
		if (!pl_quiet_place(env, pl_quiet_stack(p, full), full ? pl_frame_be64(p + 8) : 0,
			    &memo->hop[i], i, full))
			return 0;
	}
	return 1;
}

PL_CORE_INLINE int pl_quiet_ports(struct pl_core_env *env, const struct pl_quiet *q,
	struct pl_quiet_memo *memo, const unsigned int time_bits)
{
	const uint32_t n = PL_QUIET_COUNT(pl_env_marks(env));
	uint32_t at = n * q->block;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= q->block);
		const uint8_t *util = p + pl_quiet_util_at(q, time_bits);

		PL_QUIET_IN_FRAME(p, 8, q->end);
		PL_QUIET_IN_FRAME(util, 4, q->end);
		if (!pl_quiet_port(
			    env, pl_quiet_stack(p, 1), pl_frame_be32(util), &memo->hop[i], i))
			return 0;
	}
	return 1;
}

PL_CORE_INLINE int pl_quiet_links(struct pl_core_env *env, const struct pl_quiet *q,
	struct pl_quiet_memo *memo, const int full, const unsigned int time_bits)
{
	const uint32_t block = full ? q->block : 4, n = PL_QUIET_COUNT(pl_env_marks(env));
	uint32_t at = n * block, transit = 0;
	uint64_t before = 0, eg = 0, stack;

	PL_QUIET_ROLLED
	for (uint32_t i = 0; i < PL_QUIET_HOPS && i < n; i++) {
		const uint8_t *p = pl_quiet_block(q, at -= block);

		PL_QUIET_IN_FRAME(p, full ? 16 + time_bits / 4 : 4, q->end);
		stack = pl_quiet_stack(p, full);
		if (full)
			transit = (uint32_t)(pl_quiet_in(p, time_bits) - eg);
		if (i > 0 && !pl_quiet_link(env, stack, before, &memo->hop[i], transit, i, full))
			return 0;
		before = stack;
		eg = full ? pl_quiet_eg(p, time_bits) : 0;
	}
	return 1;
}

/* A value of enum pl_quiet_verdict; SETTLED: quiet as far as its hops go, but for those marked as stirred. */
PL_CORE_INLINE uint32_t pl_quiet_hops(struct pl_core_env *env, struct pl_quiet *q,
	struct pl_quiet_memo *memo, const int full, const unsigned int time_bits)
{
	const uint32_t places = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH;
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_quiet_marks *m = pl_env_marks(env);

	if (!q->known) {
		if (!pl_quiet_note(env, m, q, memo, full))
			return PL_QUIET_GENERAL;
	} else if (memo->hops != q->hops || memo->full != (uint32_t)full ||
		   (!full && !pl_quiet_again(m, q, memo))) {
		return PL_QUIET_LEARN;
	}
	if (full) {
		const uint32_t verdict = pl_quiet_plain(m, q, memo, time_bits);

		if (verdict != PL_QUIET_SETTLED)
			return verdict;
	}
	if (((full && (rules->watch & places)) || (rules->flags & PL_CORE_KEEP_PLACES)) &&
		!pl_quiet_places(env, q, memo, full))
		return PL_QUIET_GENERAL;
	if (full && (rules->watch & q->has & 1u << PL_CORE_Q_TX_UTIL) &&
		!pl_quiet_ports(env, q, memo, time_bits))
		return PL_QUIET_GENERAL;
	if ((rules->watch & 1u << PL_CORE_Q_LINK_LATENCY) &&
		!pl_quiet_links(env, q, memo, full, time_bits))
		return PL_QUIET_GENERAL;
	return PL_QUIET_SETTLED;
}
