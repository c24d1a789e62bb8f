/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_fast.h: finding the place of a key's entry, by search or from memory. */
#pragma once

#include "base/prefetch.h"
#include "core/detect_steps.h"
#include "core/report_fast.h"

/* Loads a word of rules or marks again each time it is tested. If the verifier knew that a word has
 * the same bits as before, it would follow each combination of them through all hops. */
#ifdef __bpf__
#define PL_FAST_FRESH(word) (*(const volatile uint32_t *)&(word))
#define PL_FAST_BYTE(byte)  (*(const volatile uint8_t *)&(byte))
#else
#define PL_FAST_FRESH(word) (word)
#define PL_FAST_BYTE(byte)  (byte)
#endif

/* Prefetches a line. The kernel's machine has no such instruction, but does not wait for a load
 * whose value is not used. */
#ifdef __bpf__
#define PL_FAST_FETCH(p) ((void)*(const volatile uint64_t *)(p))
#else
#define PL_FAST_FETCH(p) pl_prefetch(p)
#endif

/* Checks that a position is in the frame, which the verifier needs for each one that is not a
 * constant. */
#ifdef __bpf__
#define PL_FAST_IN_FRAME(p, n, end)                                                                \
	do {                                                                                       \
		if ((p) + (n) > (end))                                                             \
			return PL_SLOW_INT;                                                        \
	} while (0)
#else
#define PL_FAST_IN_FRAME(p, n, end) ((void)(p), (void)(n), (void)(end))
#endif

PL_CORE_INLINE uint32_t pl_fast_node(uint64_t stack)
{
	return (uint32_t)(stack >> 32);
}

/* Returns node and ports of the block at p: node << 32 | ports. The shape is a constant, here and
 * below. */
PL_CORE_INLINE uint64_t pl_fast_stack(
	const uint8_t *p, const struct pl_core_layout *l, const uint32_t shape)
{
	return shape == PL_CORE_SHAPE_NODE ? (uint64_t)pl_frame_be32(p) << 32
					   : pl_frame_be64(p) & l->stack_mask;
}

/* Number of bytes that pl_fast_stack reads. */
#define PL_FAST_STACK_BYTES(shape) ((shape) == PL_CORE_SHAPE_NODE ? 4 : 8)

PL_CORE_INLINE int pl_fast_stack_whole(uint64_t stack)
{
	return (uint32_t)(stack >> 32) != UINT32_MAX && (uint32_t)stack != UINT32_MAX;
}

/* Searches for a key that is not at its most likely place. A global function in the kernel program,
 * so that the verifier checks it once and not for each hop. */
struct pl_fast_ways {
	uint64_t way[PL_CORE_WAYS];
};
#ifdef __bpf__
__attribute__((noinline)) int pl_fast_search(const struct pl_fast_ways *ways, uint32_t tag)
{
	return ways == NULL ? PL_CORE_NOWHERE : (int)pl_core_search(ways->way, tag);
}
#else
#define pl_fast_search(ways, tag) pl_core_search((ways)->way, tag)
#endif

/* Returns the way to which a key's hash leads; the caller compares the key itself. It checks the
 * home way, then the opposite way, where pl_core_victim puts a key whose home is taken if it can,
 * then all ways. */
PL_CORE_INLINE uint32_t pl_fast_way(const uint64_t *way, uint64_t hash)
{
	uint32_t at = pl_core_home(hash), tag = pl_core_tag(hash);

	if (__builtin_expect((uint32_t)(way[at] >> 32) == tag, 1))
		return at;
	at ^= PL_CORE_WAYS - 1;
	return (uint32_t)(way[at] >> 32) == tag
		       ? at
		       : (uint32_t)pl_fast_search((const struct pl_fast_ways *)way, tag);
}

/* Returns the same as pl_core_hash of a struct pl_core_place_key, from its halves: `where` is the
 * queue and the flags of the key. */
PL_CORE_INLINE uint64_t pl_fast_place_hash(
	const struct pl_core_rules *rules, uint32_t node, uint32_t port, uint32_t where)
{
	const uint64_t *secret = rules->secret, *turned = rules->prepared.turned;

	return secret[0] + (node + secret[1]) * turned[1] +
	       (port + secret[2]) * (where + turned[2]);
}

/* Marks hop i when the value may cause an event. */
PL_CORE_INLINE void pl_fast_mark(struct pl_fast_marks *m, const struct pl_core_band *band,
	const struct pl_core_quantity *q, const struct pl_core_quantity_rule *rule, uint32_t value,
	uint32_t i)
{
	if (__builtin_expect(pl_core_stirs(band, q, rule, value, m->now_ns), 0))
		m->changed |= 1u << (i & PL_FAST_HOPS);
}

/* --- where a key stands ----------------------------------------------------------------------- */

#define PL_FAST_NOWHERE UINT32_MAX

/* Returns the second word of the key of a queue or port (struct pl_core_place_key). */
PL_CORE_INLINE uint64_t pl_fast_place_word(uint32_t port, uint32_t where)
{
	return port | (uint64_t)where << 32;
}

PL_CORE_INLINE uint32_t pl_fast_seek_place(struct pl_core_env *env, uint32_t node, uint64_t word)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t key[2] = { node, word };
	const uint64_t hash =
		pl_fast_place_hash(rules, node, (uint32_t)word, (uint32_t)(word >> 32));
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_place]);
	const struct pl_core_place_set *set = pl_env_place_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	way = pl_fast_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 2) ? at << 3 | way
									    : PL_FAST_NOWHERE;
}

PL_CORE_INLINE uint32_t pl_fast_seek_port(struct pl_core_env *env, uint32_t node, uint64_t word)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t key[2] = { node, word };
	const uint64_t hash =
		pl_fast_place_hash(rules, node, (uint32_t)word, (uint32_t)(word >> 32));
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_gauge]);
	const struct pl_core_gauge_set *set = pl_env_gauge_set(env, at);
	uint32_t way;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	way = pl_fast_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 2) ? at << 3 | way
									    : PL_FAST_NOWHERE;
}

/* Returns the third word of a struct pl_core_link_key; stack and before as in struct
 * pl_fast_memo_hop. */
PL_CORE_INLINE uint64_t pl_fast_link_ports(uint64_t stack, uint64_t before)
{
	return (uint32_t)stack >> 16 | (before & 0xffff) << 32;
}

/* Returns the fourth word, the flags. ports: the layout has ports. */
PL_CORE_INLINE uint64_t pl_fast_link_has(uint32_t ports)
{
	return ports ? PL_CORE_HAS_PORT | PL_CORE_HAS_BEFORE : 0;
}

PL_CORE_INLINE void pl_fast_link_key(
	uint64_t key[4], uint64_t stack, uint64_t before, uint32_t ports)
{
	key[0] = stack >> 32;
	key[1] = before >> 32;
	key[2] = pl_fast_link_ports(stack, before); /* 0 without ports */
	key[3] = pl_fast_link_has(ports);
}

PL_CORE_INLINE uint64_t pl_fast_link_hash(
	const struct pl_core_rules *rules, uint64_t stack, uint64_t before, uint32_t ports)
{
	uint64_t key[4];

	pl_fast_link_key(key, stack, before, ports);
	return pl_core_hash(rules->secret, key, 4);
}

PL_CORE_INLINE uint32_t pl_fast_seek_link(
	struct pl_core_env *env, uint64_t stack, uint64_t before, uint32_t ports)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	const uint64_t hash = pl_fast_link_hash(rules, stack, before, ports);
	const uint32_t at = pl_core_set_of(hash, rules->mask[PL_CORE_T_link]);
	const struct pl_core_link_set *set = pl_env_link_set(env, at);
	uint64_t key[4];
	uint32_t way;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	pl_fast_link_key(key, stack, before, ports);
	way = pl_fast_way(set->way, hash);
	return way < PL_CORE_WAYS && pl_core_same(&set->e[way].key, key, 4) ? at << 3 | way
									    : PL_FAST_NOWHERE;
}

#ifndef PL_FAST_SEEK_CALLS
#define pl_env_seek_place    pl_fast_seek_place
#define pl_env_seek_port     pl_fast_seek_port
#define pl_env_seek_link     pl_fast_seek_link
#define pl_env_seek_exporter pl_fast_seek_exporter
#define pl_env_seek_route    pl_fast_seek_route
#define pl_env_expect        pl_fast_expect
#define pl_env_expect_links  pl_fast_expect_links
#endif

/* Limits a remembered position to its table. */
PL_CORE_INLINE uint32_t pl_fast_guess(uint32_t at, uint32_t mask)
{
	return at & (mask << 3 | (PL_CORE_WAYS - 1));
}

/* True when a way holds a complete key: its tag is odd, while tags of free ways and of ways being
 * filled are even. */
PL_CORE_INLINE int pl_fast_live(uint64_t way)
{
	return (way >> 32 & 1) != 0;
}

PL_CORE_INLINE int pl_fast_stands(uint64_t way, const void *key, uint64_t node, uint64_t word)
{
	const pl_core_word *k = key;

	return __builtin_expect(pl_fast_live(way) && k[0] == node && k[1] == word, 1);
}
