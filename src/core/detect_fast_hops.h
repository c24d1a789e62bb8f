/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_fast.h: the hops and their values. */
#pragma once

#include "core/detect_fast_keys.h"

/* --- one hop ---------------------------------------------------------------------------------- */

/* Upper half of the second word of a struct pl_core_place_key: queue and PL_CORE_HAS_*. */
PL_CORE_INLINE uint32_t pl_fast_place_where(uint32_t queue, uint32_t has)
{
	return queue | has << 16;
}

/* Second word of a buffer's key, from the value that has the buffer's id. */
PL_CORE_INLINE uint64_t pl_fast_buffer_word(uint32_t value)
{
	return pl_fast_place_word(value >> 24, pl_fast_place_where(1, PL_CORE_HAS_BUFFER));
}

/* Finds the place of hop i, and marks its changed values. Returns 0 when the place is not known. */
PL_CORE_INLINE int pl_fast_place(struct pl_core_env *env, const struct pl_core_layout *l,
	struct pl_fast_memo_hop *memo, uint32_t i, const uint32_t shape)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_fast_marks *m = pl_env_marks(env);
	const uint32_t node = pl_fast_node(memo->stack);
	const uint64_t word =
		shape == PL_CORE_SHAPE_NODE
			? 0
			: pl_fast_place_word(memo->stack & 0xffff,
				  pl_fast_place_where(m->queue[i & PL_FAST_HOPS], l->place_has));
	uint32_t at = pl_fast_guess(memo->place, rules->mask[PL_CORE_T_place]), watch;
	struct pl_core_place_set *set = pl_env_place_set(env, at >> 3);
	const struct pl_core_place *place;

	if (set == NULL)
		return 0;
	if (!pl_fast_stands(set->way[at & (PL_CORE_WAYS - 1)], &set->e[at & (PL_CORE_WAYS - 1)].key,
		    node, word)) {
		at = (uint32_t)pl_env_seek_place(env, node, word);
		if (at == PL_FAST_NOWHERE)
			return 0;
		memo->place = at;
		set = pl_env_place_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	place = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	m->place[i & PL_FAST_HOPS] = at;
	if (shape == PL_CORE_SHAPE_NODE)
		return 1;
	watch = PL_FAST_FRESH(rules->watch) & PL_FAST_FRESH(m->has);
	if (watch & 1u << PL_CORE_Q_HOP_LATENCY)
		pl_fast_mark(m, &place->band[0], &place->q[0], &rules->q[PL_CORE_Q_HOP_LATENCY],
			m->latency[i & PL_FAST_HOPS], i);
	if (watch & 1u << PL_CORE_Q_QUEUE_DEPTH)
		pl_fast_mark(m, &place->band[1], &place->q[1], &rules->q[PL_CORE_Q_QUEUE_DEPTH],
			m->depth[i & PL_FAST_HOPS], i);
	return 1;
}

/* Steps a gauge: a port's utilization or a buffer's depth. word: of its key; guess: of the memo;
 * id: of its quantity. Returns its place, or PL_FAST_NOWHERE. */
PL_CORE_INLINE uint32_t pl_fast_gauge(struct pl_core_env *env, uint32_t node, uint64_t word,
	uint32_t *guess, uint32_t value, uint32_t i, const unsigned int id)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_fast_marks *m = pl_env_marks(env);
	uint32_t at = pl_fast_guess(*guess, rules->mask[PL_CORE_T_gauge]);
	struct pl_core_gauge_set *set = pl_env_gauge_set(env, at >> 3);
	const struct pl_core_gauge *gauge;

	if (set == NULL)
		return PL_FAST_NOWHERE;
	if (!pl_fast_stands(set->way[at & (PL_CORE_WAYS - 1)], &set->e[at & (PL_CORE_WAYS - 1)].key,
		    node, word)) {
		at = (uint32_t)pl_env_seek_port(env, node, word);
		if (at == PL_FAST_NOWHERE)
			return PL_FAST_NOWHERE;
		*guess = at;
		set = pl_env_gauge_set(env, at >> 3);
		if (set == NULL)
			return PL_FAST_NOWHERE;
	}
	gauge = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	pl_fast_mark(m, &gauge->band, &gauge->q, &rules->q[id], value, i);
	return at;
}

/* Finds the link from the previous hop. Returns 0 when it is not known. */
PL_CORE_INLINE int pl_fast_link(struct pl_core_env *env, const struct pl_core_layout *l,
	uint64_t before, struct pl_fast_memo_hop *memo, uint32_t i, const uint32_t shape)
{
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_fast_marks *m = pl_env_marks(env);
	const uint64_t stack = memo->stack;
	const uint32_t has_ports =
		shape == PL_CORE_SHAPE_NODE ? 0 : l->place_has & PL_CORE_HAS_PORT;
	uint32_t at = pl_fast_guess(memo->link, rules->mask[PL_CORE_T_link]);
	struct pl_core_link_set *set = pl_env_link_set(env, at >> 3);
	const struct pl_core_link *link;
	const pl_core_word *key;

	if (set == NULL)
		return 0;
	key = (const pl_core_word *)&set->e[at & (PL_CORE_WAYS - 1)].key;
	if (!pl_fast_stands(set->way[at & (PL_CORE_WAYS - 1)], key, pl_fast_node(stack),
		    pl_fast_node(before)) ||
		key[2] != pl_fast_link_ports(stack, before) ||
		key[3] != pl_fast_link_has(has_ports)) {
		at = (uint32_t)pl_env_seek_link(env, stack, before, has_ports);
		if (at == PL_FAST_NOWHERE)
			return 0;
		memo->link = at;
		set = pl_env_link_set(env, at >> 3);
		if (set == NULL)
			return 0;
	}
	link = &set->e[at & (PL_CORE_WAYS - 1)];
	pl_core_heard(&set->way[at & (PL_CORE_WAYS - 1)], m->now_ns);
	m->link[i & PL_FAST_HOPS] = at;
	if (shape != PL_CORE_SHAPE_NODE && (PL_FAST_FRESH(m->has) & 1u << PL_CORE_Q_LINK_LATENCY))
		pl_fast_mark(m, &link->band, &link->q, &rules->q[PL_CORE_Q_LINK_LATENCY],
			m->transit[i & PL_FAST_HOPS], i);
	return 1;
}

/* Computes a link's latency like pl_core_derive; returns 0 when it is negative or above max_ns. */
PL_CORE_INLINE int pl_fast_transit(uint32_t *ret, uint64_t later, uint64_t earlier, uint32_t max_ns,
	const unsigned int time_bits)
{
	if (time_bits == 32) {
		uint32_t d = (uint32_t)later - (uint32_t)earlier;

		*ret = d;
		return d <= INT32_MAX && d <= max_ns;
	}
	*ret = (uint32_t)(later - earlier);
	return later - earlier <= max_ns;
}

/* Begins the path's print: the number of hops, and whether they have ports. */
PL_CORE_INLINE uint64_t pl_fast_print(const struct pl_core_rules *rules, uint32_t hops, int ports)
{
	return (hops + rules->secret[16]) * ((uint64_t)ports + rules->secret[32]);
}

PL_CORE_INLINE uint64_t pl_fast_print_hop(
	const struct pl_core_rules *rules, uint32_t i, uint32_t node, uint32_t ports)
{
	return (node + rules->secret[17 + i]) * (ports + rules->secret[33 + i]);
}

/* --- all hops --------------------------------------------------------------------------------- */

/*
 * Hops are read source first, once for each kind of value: few values are in registers at a
 * time, which suits the ten registers of the kernel's virtual machine. The first pass reads the
 * frame: it compares the stack, looks for missing values and stores the values in the marks. Later
 * passes use the tables. Within a table keys are marked as seen in the order of the hops.
 */
#ifdef __bpf__
#define PL_FAST_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define PL_FAST_ROLLED
#endif

/* Number of hops, opaque to the compiler from one loop to the next; otherwise the verifier would
 * follow each number on its own. */
#define PL_FAST_COUNT(m) PL_FAST_FRESH((m)->hops)

/* Returns the address of a block, by its distance from the newest one. The verifier needs a check
 * that it is within the stack. */
PL_CORE_INLINE const uint8_t *pl_fast_block(const struct pl_fast *q, uint32_t at)
{
	return q->stack + (at & (PL_CORE_STACK_BYTES - 4));
}

/* Returns the address of a value in a block; of an absent value that of the block's first word. */
PL_CORE_INLINE const uint8_t *pl_fast_field(
	const uint8_t *block, const struct pl_core_layout *l, unsigned int field)
{
	return block + (l->off[field] & 127);
}

/* Returns the most likely place of a key by its hash, in the form of a memo. */
PL_CORE_INLINE uint32_t pl_fast_home(uint64_t hash, uint32_t mask)
{
	return pl_core_set_of(hash, mask) << 3 | pl_core_home(hash);
}

/* Makes guesses for the keys of a path just noted: queues, or nodes alone, whose lines it
 * prefetches for all hops at once, and ports; not yet links. place_has: of the layout. */
PL_CORE_INLINE void pl_fast_expect(
	struct pl_core_env *env, struct pl_fast_memo *memo, const uint32_t place_has)
{
	const uint32_t n = PL_FAST_COUNT(pl_env_marks(env)),
		       port_has = place_has & PL_CORE_HAS_PORT;
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_place_set *set;

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		struct pl_fast_memo_hop *hop = &memo->hop[i];
		const uint32_t node = pl_fast_node(hop->stack), port = hop->stack & 0xffff;

		hop->place = pl_fast_home(pl_fast_place_hash(rules, node, port,
						  pl_fast_place_where(hop->queue, place_has)),
			rules->mask[PL_CORE_T_place]);
		set = pl_env_place_set(env, hop->place >> 3);
		if (set == NULL)
			return;
		PL_FAST_FETCH(set->way);
		PL_FAST_FETCH(&set->e[hop->place & (PL_CORE_WAYS - 1)]);
		hop->port = pl_fast_home(pl_fast_place_hash(rules, node, port, port_has << 16),
			rules->mask[PL_CORE_T_gauge]);
	}
}

PL_CORE_INLINE void pl_fast_expect_links(
	struct pl_core_env *env, struct pl_fast_memo *memo, const uint32_t has_ports)
{
	const uint32_t n = PL_FAST_COUNT(pl_env_marks(env));
	const struct pl_core_rules *rules = pl_env_rules(env);
	const struct pl_core_link_set *set;

	PL_FAST_ROLLED
	for (uint32_t i = 1; i < PL_FAST_HOPS && i < n; i++) {
		struct pl_fast_memo_hop *hop = &memo->hop[i];

		hop->link = pl_fast_home(
			pl_fast_link_hash(rules, hop->stack, memo->hop[i - 1].stack, has_ports),
			rules->mask[PL_CORE_T_link]);
		set = pl_env_link_set(env, hop->link >> 3);
		if (set == NULL)
			return;
		PL_FAST_FETCH(set->way);
		PL_FAST_FETCH(&set->e[hop->link & (PL_CORE_WAYS - 1)]);
	}
}

/* Copies the bytes of a stack of nodes into the memo. */
PL_CORE_INLINE uint32_t pl_fast_note_raw(
	const struct pl_fast_marks *m, const struct pl_fast *q, struct pl_fast_memo *memo)
{
	const uint32_t n = PL_FAST_COUNT(m);

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_RAW; i++) {
		const uint8_t *p = q->stack + 8 * i;

		if (2 * i + 1 < n) {
			PL_FAST_IN_FRAME(p, 8, q->end);
			memo->raw[i] = PL_FRAME_LOAD(uint64_t, p);
		} else if (2 * i < n) {
			PL_FAST_IN_FRAME(p, 4, q->end);
			memo->raw[i] = PL_FRAME_LOAD(uint32_t, p);
		}
	}
	return PL_SLOW_NONE;
}

/* Stores this stack in the memo, and its print in q; the caller compares the print with the
 * flow's. */
PL_CORE_INLINE uint32_t pl_fast_note(struct pl_core_env *env, struct pl_fast *q,
	const struct pl_core_layout *l, struct pl_fast_memo *memo, const uint32_t shape)
{
	const struct pl_fast_marks *m = pl_env_marks(env);
	const uint32_t block = shape == PL_CORE_SHAPE_NODE ? 4 : q->block, n = PL_FAST_COUNT(m),
		       place_has = shape == PL_CORE_SHAPE_NODE ? 0 : l->place_has;
	const struct pl_core_rules *rules = pl_env_rules(env);
	uint32_t at = n * block;

	memo->hops = q->hops;
	memo->shape = shape;
	q->print = pl_fast_print(rules, q->hops, (place_has & PL_CORE_HAS_PORT) != 0);
	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint8_t *p = pl_fast_block(q, at -= block);
		uint64_t stack;

		PL_FAST_IN_FRAME(p, PL_FAST_STACK_BYTES(shape), q->end);
		stack = pl_fast_stack(p, l, shape);
		if (!pl_fast_stack_whole(stack))
			return PL_SLOW_VALUE;
		q->print += pl_fast_print_hop(rules, i, pl_fast_node(stack), (uint32_t)stack);
		memo->hop[i].stack = stack;
		memo->hop[i].queue = 0;
		if (shape != PL_CORE_SHAPE_NODE) {
			p = pl_fast_field(p, l, PL_CORE_F_QUEUE);
			PL_FAST_IN_FRAME(p, 4, q->end);
			memo->hop[i].queue =
				pl_frame_be32(p) >> (l->queue_shift & 31) & l->queue_bits;
		}
	}
	if (shape == PL_CORE_SHAPE_NODE && pl_fast_note_raw(m, q, memo) != PL_SLOW_NONE)
		return PL_SLOW_INT;
	pl_env_expect(env, memo, place_has);
	if (rules->watch & 1u << PL_CORE_Q_LINK_LATENCY)
		pl_env_expect_links(env, memo, place_has & PL_CORE_HAS_PORT);
	return PL_SLOW_NONE;
}

/* Compares a stack of nodes alone with the memo's: in its raw form, two nodes at a time. */
PL_CORE_INLINE uint32_t pl_fast_again(
	const struct pl_fast_marks *m, const struct pl_fast *q, const struct pl_fast_memo *memo)
{
	const uint32_t n = PL_FAST_COUNT(m);
	uint64_t differ = 0;

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_RAW; i++) {
		const uint8_t *p = q->stack + 8 * i;

		if (2 * i + 1 >= n) {
			if (2 * i < n) {
				PL_FAST_IN_FRAME(p, 4, q->end);
				differ |= PL_FRAME_LOAD(uint32_t, p) ^ memo->raw[i];
			}
			break;
		}
		PL_FAST_IN_FRAME(p, 8, q->end);
		differ |= PL_FRAME_LOAD(uint64_t, p) ^ memo->raw[i];
	}
	return differ == 0 ? PL_SLOW_NONE : PL_SLOW_PATH;
}

/* Reads a field of every hop, which no hop may lack, into `values`, if that is not NULL. */
PL_CORE_INLINE uint32_t pl_fast_gather(const struct pl_fast_marks *m, const struct pl_fast *q,
	const struct pl_core_layout *l, const unsigned int field, uint32_t *values)
{
	const uint32_t n = PL_FAST_COUNT(m);
	uint32_t at = n * q->block, v;

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint8_t *p = pl_fast_field(pl_fast_block(q, at -= q->block), l, field);

		PL_FAST_IN_FRAME(p, 4, q->end);
		v = pl_frame_be32(p);
		if (v == UINT32_MAX)
			return PL_SLOW_VALUE;
		if (values != NULL)
			values[i & PL_FAST_HOPS] = v;
	}
	return PL_SLOW_NONE;
}

/* Reads latencies and queues, and checks that the stack is the memo's. */
PL_CORE_INLINE uint32_t pl_fast_values(struct pl_fast_marks *m, const struct pl_fast *q,
	const struct pl_core_layout *l, const struct pl_fast_memo *memo)
{
	const uint32_t n = PL_FAST_COUNT(m);
	/* If the layout has no latency, the node is read in its place. */
	const uint64_t plausible =
		l->present & PL_HOP_HAS_hop_latency_ns ? m->max_latency_ns : UINT32_MAX;
	uint32_t at = n * q->block, missing = 0, beyond = 0;

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint8_t *p = pl_fast_block(q, at -= q->block);
		const uint8_t *latency = pl_fast_field(p, l, PL_CORE_F_LATENCY),
			      *queue = pl_fast_field(p, l, PL_CORE_F_QUEUE);
		uint32_t w;

		PL_FAST_IN_FRAME(p, 8, q->end);
		PL_FAST_IN_FRAME(latency, 4, q->end);
		PL_FAST_IN_FRAME(queue, 4, q->end);
		if (pl_fast_stack(p, l, PL_CORE_SHAPE_VALUES) != memo->hop[i].stack)
			return PL_SLOW_PATH;
		w = pl_frame_be32(queue);
		if (w == UINT32_MAX)
			return PL_SLOW_VALUE;
		m->queue[i & PL_FAST_HOPS] = w >> (l->queue_shift & 31) & l->queue_bits;
		m->depth[i & PL_FAST_HOPS] = w & l->depth_mask;
		w = pl_frame_be32(latency);
		m->latency[i & PL_FAST_HOPS] = w;
		missing |= (uint32_t)pl_core_zero_bit(w ^ UINT32_MAX);
		beyond |= (uint32_t)((plausible - w) >> 63 & ~pl_core_zero_bit(w ^ UINT32_MAX));
	}
	m->missing = missing;
	return beyond != 0 ? PL_SLOW_VALUE : PL_SLOW_NONE;
}

PL_CORE_INLINE uint64_t pl_fast_time(const uint8_t *p, const unsigned int time_bits)
{
	return time_bits == 64 ? pl_frame_be64(p) : pl_frame_be32(p);
}

/* Reads both times of every hop: the clocks of neighbours must agree, and give the link's latency;
 * and derives the hop latencies that no word has. */
PL_CORE_INLINE uint32_t pl_fast_times(struct pl_fast_marks *m, const struct pl_fast *q,
	const struct pl_core_layout *l, const unsigned int time_bits)
{
	const uint64_t none = time_bits == 64 ? UINT64_MAX : UINT32_MAX;
	const uint32_t n = PL_FAST_COUNT(m);
	uint32_t at = n * q->block, transit, latency;
	uint64_t before = 0;

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint8_t *p = pl_fast_block(q, at -= q->block);
		const uint8_t *ingress = pl_fast_field(p, l, PL_CORE_F_INGRESS_TS),
			      *egress = pl_fast_field(p, l, PL_CORE_F_EGRESS_TS);
		uint64_t in, eg;

		PL_FAST_IN_FRAME(ingress, time_bits / 8, q->end);
		PL_FAST_IN_FRAME(egress, time_bits / 8, q->end);
		in = pl_fast_time(ingress, time_bits);
		eg = pl_fast_time(egress, time_bits);
		if (in == none || eg == none ||
			(i > 0 && !pl_fast_transit(
					  &transit, in, before, m->max_latency_ns, time_bits)))
			return PL_SLOW_VALUE;
		if (i > 0)
			m->transit[i & PL_FAST_HOPS] = transit;
		before = eg;
		if (!l->derived && m->latency[i & PL_FAST_HOPS] != UINT32_MAX)
			continue;
		eg -= in;
		if (time_bits == 32)
			eg = (uint32_t)eg;
		latency = (uint32_t)eg;
		if (eg > m->max_latency_ns)
			return PL_SLOW_VALUE;
		m->latency[i & PL_FAST_HOPS] = latency;
	}
	return PL_SLOW_NONE;
}

/* Reads the hops from the frame: PL_SLOW_NONE when the stack is the memo's, no value is missing and
 * no clock is off, which would be worth a note. */
PL_CORE_INLINE uint32_t pl_fast_frame(struct pl_fast_marks *m, const struct pl_fast *q,
	const struct pl_core_layout *l, const struct pl_fast_memo *memo)
{
	const uint32_t times = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns;
	uint32_t slow = pl_fast_values(m, q, l, memo);

	if (slow == PL_SLOW_NONE && (PL_FAST_FRESH(m->has) & 1u << PL_CORE_Q_LINK_LATENCY))
		slow = PL_FAST_BYTE(l->time_bits) == 64 ? pl_fast_times(m, q, l, 64)
							: pl_fast_times(m, q, l, 32);
	else if (slow == PL_SLOW_NONE && PL_FAST_FRESH(m->missing))
		slow = PL_SLOW_VALUE;
	else if (slow == PL_SLOW_NONE && (PL_FAST_FRESH(l->present) & times) != 0)
		/* Only one of the two times; the offset of the other is 0. */
		slow = pl_fast_gather(m, q, l,
			PL_FAST_FRESH(l->present) & PL_HOP_HAS_ingress_ts_ns ? PL_CORE_F_INGRESS_TS
									     : PL_CORE_F_EGRESS_TS,
			NULL);
	if (slow == PL_SLOW_NONE && (PL_FAST_FRESH(m->has) & 1u << PL_CORE_Q_TX_UTIL))
		slow = pl_fast_gather(m, q, l, PL_CORE_F_TX_UTIL, m->util);
	if (slow == PL_SLOW_NONE && (PL_FAST_FRESH(m->has) & 1u << PL_CORE_Q_BUFFER_DEPTH))
		slow = pl_fast_gather(m, q, l, PL_CORE_F_BUFFER, m->buffer);
	/* Level-2 ports are not used, but a missing one gets a note; their first word shows whether
	 * they are missing. */
	if (slow == PL_SLOW_NONE && PL_FAST_BYTE(l->ports2_words) != 0)
		slow = pl_fast_gather(m, q, l, PL_CORE_F_PORTS2, NULL);
	return slow;
}

PL_CORE_INLINE int pl_fast_places(struct pl_core_env *env, const struct pl_core_layout *l,
	struct pl_fast_memo *memo, const uint32_t shape)
{
	const uint32_t n = PL_FAST_COUNT(pl_env_marks(env));

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		if (!pl_fast_place(env, l, &memo->hop[i], i, shape))
			return 0;
	}
	return 1;
}

PL_CORE_INLINE int pl_fast_ports(
	struct pl_core_env *env, const struct pl_core_layout *l, struct pl_fast_memo *memo)
{
	struct pl_fast_marks *m = pl_env_marks(env);
	const uint32_t n = PL_FAST_COUNT(m);

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint64_t stack = memo->hop[i].stack;
		uint32_t at = pl_fast_gauge(env, pl_fast_node(stack),
			pl_fast_place_word(stack & 0xffff,
				pl_fast_place_where(0, l->place_has & PL_CORE_HAS_PORT)),
			&memo->hop[i].port, m->util[i & PL_FAST_HOPS], i, PL_CORE_Q_TX_UTIL);

		if (at == PL_FAST_NOWHERE)
			return 0;
		m->port[i & PL_FAST_HOPS] = at;
	}
	return 1;
}

PL_CORE_INLINE int pl_fast_buffers(struct pl_core_env *env, struct pl_fast_memo *memo)
{
	struct pl_fast_marks *m = pl_env_marks(env);
	const uint32_t n = PL_FAST_COUNT(m);

	PL_FAST_ROLLED
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		const uint32_t value = m->buffer[i & PL_FAST_HOPS];
		uint32_t at = pl_fast_gauge(env, pl_fast_node(memo->hop[i].stack),
			pl_fast_buffer_word(value), &memo->buffer[i], value & 0xffffff, i,
			PL_CORE_Q_BUFFER_DEPTH);

		if (at == PL_FAST_NOWHERE)
			return 0;
		m->buffer_at[i & PL_FAST_HOPS] = at;
	}
	return 1;
}

PL_CORE_INLINE int pl_fast_links(struct pl_core_env *env, const struct pl_core_layout *l,
	struct pl_fast_memo *memo, const uint32_t shape)
{
	const uint32_t n = PL_FAST_COUNT(pl_env_marks(env));
	uint64_t before = memo->hop[0].stack;

	PL_FAST_ROLLED
	for (uint32_t i = 1; i < PL_FAST_HOPS && i < n; i++) {
		if (!pl_fast_link(env, l, before, &memo->hop[i], i, shape))
			return 0;
		before = memo->hop[i].stack;
	}
	return 1;
}

/* Runs the steps of all hops; returns an enum pl_slow. NONE: all hops are done, except those marked
 * as changed. */
PL_CORE_INLINE uint32_t pl_fast_hops(struct pl_core_env *env, struct pl_fast *q,
	const struct pl_core_layout *l, struct pl_fast_memo *memo, const uint32_t shape)
{
	const uint32_t places = 1u << PL_CORE_Q_HOP_LATENCY | 1u << PL_CORE_Q_QUEUE_DEPTH;
	const struct pl_core_rules *rules = pl_env_rules(env);
	struct pl_fast_marks *m = pl_env_marks(env);
	const uint32_t watched =
		shape == PL_CORE_SHAPE_NODE ? 0 : PL_FAST_FRESH(rules->watch) & l->quantities;
	uint32_t slow = PL_SLOW_NONE;

	if (!q->known)
		slow = pl_fast_note(env, q, l, memo, shape);
	if (slow == PL_SLOW_NONE)
		slow = shape == PL_CORE_SHAPE_NODE ? pl_fast_again(m, q, memo)
						   : pl_fast_frame(m, q, l, memo);
	if (slow != PL_SLOW_NONE)
		return slow;
	if (((watched & places) || (rules->flags & PL_CORE_KEEP_PLACES)) &&
		!pl_fast_places(env, l, memo, shape))
		return PL_SLOW_KEY;
	if ((watched & 1u << PL_CORE_Q_TX_UTIL) && !pl_fast_ports(env, l, memo))
		return PL_SLOW_KEY;
	if ((watched & 1u << PL_CORE_Q_BUFFER_DEPTH) && !pl_fast_buffers(env, memo))
		return PL_SLOW_KEY;
	if ((rules->watch & 1u << PL_CORE_Q_LINK_LATENCY) && !pl_fast_links(env, l, memo, shape))
		return PL_SLOW_KEY;
	return PL_SLOW_NONE;
}
