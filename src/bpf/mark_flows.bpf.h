/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flows of mark.bpf.c, which includes the setup: a table of open addressing in two arrays that user
 * space maps. The state of a flow that processors share is in one line, the cell of a block that a
 * processor counts in another, whose place follows from the slot: a packet of a flow that is not in
 * the cache waits for both at once. A hash table of the kernel needs six lines, one after the
 * other. */
#pragma once

#include "bpf/mark_maps.bpf.h"
#include "bpf/mark_rules.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_mark_head);
} pl_mark_heads SEC(".maps");

/* Cells, each at pl_mark_cell_at(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_mark_cell);
} pl_mark_cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_mark_table);
} pl_mark_table SEC(".maps");

#define LOCK_TRIES 1024u

/* Finds the slot of the flow in w->key, from the slot of its hash to `far` slots behind it; -1 when
 * it is not there. *ret_free: a slot for a new flow, or slots when there is none. */
static __always_inline int scan(struct work *w, uint32_t at, uint32_t far, uint32_t *ret_free)
{
	const uint32_t slots = pl_mark_setup.slots;

	*ret_free = slots;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_MARK_PROBES; i++) {
		struct pl_mark_head *head = bpf_map_lookup_elem(&pl_mark_heads, &at);
		uint32_t state;

		if (head == NULL || i > far)
			return -1;
		state = *(volatile uint32_t *)&head->state;
		if ((state == PL_MARK_EMPTY || state == PL_MARK_FREE) && *ret_free == slots)
			*ret_free = at;
		if (state == PL_MARK_EMPTY)
			return -1;
		if (state != PL_MARK_FREE && pl_mark_key_is(&head->key, &w->key)) {
			if (state == PL_MARK_READY ||
				__sync_val_compare_and_swap(
					&head->state, PL_MARK_DYING, PL_MARK_READY) != PL_MARK_FREE)
				return (int)at;
		}
		at = at + 1 >= slots ? 0 : at + 1;
	}
	return -1;
}

/* Finds the slot of the flow in w->key; -1 when there is none. The search goes no further than any
 * flow was put: in time all slots are FREE, and each packet that no rule chooses would pass by 64
 * of them. */
__attribute__((noinline)) int pl_mark_do_find_flow(struct work *w, uint32_t at)
{
	uint32_t zero = 0, unused;
	const struct pl_mark_table *t = bpf_map_lookup_elem(&pl_mark_table, &zero);

	if (w == NULL || t == NULL)
		return -1;
	return scan(w, at, *(volatile const uint32_t *)&t->far, &unused);
}

/* Finds the slot of the flow, and puts the flow in if it is new; -1 when there is no room for it,
 * or another processor took too long with the table. One processor at a time does so, or a flow
 * that begins on two processors would get two slots. */
__attribute__((noinline)) int pl_mark_do_add_flow(struct work *w, uint32_t at)
{
	const uint32_t slots = pl_mark_setup.slots;
	uint32_t zero = 0, place, far, i;
	struct pl_mark_table *t = bpf_map_lookup_elem(&pl_mark_table, &zero);
	struct pl_mark_head *head;
	int slot;

	if (w == NULL || t == NULL)
		return -1;
#pragma clang loop unroll(disable)
	for (i = 0; i < LOCK_TRIES; i++) {
		if (__sync_val_compare_and_swap(&t->lock, 0, 1) == 0)
			break;
	}
	if (i == LOCK_TRIES)
		return -1;
	slot = scan(w, at, PL_MARK_PROBES, &place);
	if (slot < 0 && *(volatile uint32_t *)&t->n < pl_mark_setup.flows) {
		head = bpf_map_lookup_elem(&pl_mark_heads, &place);
		if (head != NULL) {
			head->key = w->key;
			head->pulsed = 0;
			head->packets = head->bytes = 0;
			far = place >= at ? place - at : place + slots - at;
			if (far > t->far)
				*(volatile uint32_t *)&t->far = far;
			(void)__sync_fetch_and_add(&t->n, 1);
			(void)__sync_lock_test_and_set(&head->state, PL_MARK_READY);
			slot = (int)place;
		}
	}
	(void)__sync_lock_test_and_set(&t->lock, 0);
	return slot;
}

/* Present block and part of the block, by user space. */
static __always_inline uint64_t tick_now(void)
{
	uint32_t zero = 0;
	const struct pl_mark_table *t = bpf_map_lookup_elem(&pl_mark_table, &zero);

	return t != NULL ? *(volatile const uint64_t *)&t->tick : 0;
}

struct flow {
	struct pl_mark_head *head;
	uint32_t slot;
};

/* Cell of this processor for the block; NULL when there is none. */
static __always_inline struct pl_mark_cell *cell_of(uint32_t slot, uint64_t block)
{
	uint32_t at = pl_mark_cell_at(slot, pl_mark_setup.slots, bpf_get_smp_processor_id(), block);

	return bpf_map_lookup_elem(&pl_mark_cells, &at);
}

/* Finds the flow of a packet, if rules choose it. False when they do not, or (*full) there is no
 * room for one more. */
static __always_inline bool flow_of(struct work *w, const struct pl_mark_packet *s,
	const struct pl_mark_key *key, bool leaving, struct flow *ret, bool *full)
{
	uint32_t zero = 0, at;
	struct pl_mark_table *t = bpf_map_lookup_elem(&pl_mark_table, &zero);
	struct pl_mark_cell *cell;
	int slot;

	*full = false;
	if (t == NULL || (pl_mark_setup.each != 0 && !chosen(w, s, leaving)))
		return false;
	at = pl_mark_slot_of(key, t->seed, pl_mark_setup.slots);
	ret->slot = at;
	ret->head = bpf_map_lookup_elem(&pl_mark_heads, &at);
	/* The cell is prefetched while the head is loaded. */
	cell = cell_of(at, w->block);
	if (cell != NULL)
		(void)*(volatile uint64_t *)&cell->block;
	if (ret->head != NULL && *(volatile uint32_t *)&ret->head->state == PL_MARK_READY &&
		pl_mark_key_is(&ret->head->key, key))
		return true;
	w->key = *key;
	slot = pl_mark_do_find_flow(w, at);
	if (slot < 0) {
		if (pl_mark_setup.each == 0 && !chosen(w, s, leaving))
			return false;
		slot = pl_mark_do_add_flow(w, at);
		*full = slot < 0;
	}
	if (slot < 0)
		return false;
	ret->slot = (uint32_t)slot;
	ret->head = bpf_map_lookup_elem(&pl_mark_heads, &ret->slot);
	return ret->head != NULL;
}
