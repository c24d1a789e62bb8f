/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue between one producing and one consuming thread: slots of one size in one
 * allocation, copied in and out in batches, without locks and without waiting (Lamport 1977;
 * each side keeps a copy of the other's index and reads the shared one only when the copy says
 * full or empty, as in FastForward and DPDK). Items without room are not stored; the caller
 * counts them. The two indexes, and what each side writes, lie on their own pairs of cache lines
 * (x86 fetches lines in pairs).
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PL_RING_APART 128

struct pl_ring {
	/* Fixed after init. */
	uint8_t *slots;
	size_t slot_size;
	uint64_t mask; /* slots - 1, slots a power of two */

	/* Written by the producer: number of slots ever pushed, and its copy of `popped`. */
	_Alignas(PL_RING_APART) _Atomic uint64_t pushed;
	uint64_t popped_seen;

	/* Of the consumer. */
	_Alignas(PL_RING_APART) _Atomic uint64_t popped;
	uint64_t pushed_seen;
};

/* Makes a ring of at least n slots (1 to 2^30; rounded up to a power of two). Returns 0, -EINVAL or
 * -ENOMEM. */
static inline int pl_ring_init(struct pl_ring *ring, size_t n, size_t slot_size)
{
	size_t slots = 1;

	memset(ring, 0, sizeof(*ring));
	if (n == 0 || n > (size_t)1 << 30 || slot_size == 0)
		return -EINVAL;
	while (slots < n)
		slots *= 2;
	ring->slots = calloc(slots, slot_size);
	if (ring->slots == NULL)
		return -ENOMEM;
	ring->slot_size = slot_size;
	ring->mask = slots - 1;
	return 0;
}

/* Frees the ring; neither thread may still use it. */
static inline void pl_ring_done(struct pl_ring *ring)
{
	free(ring->slots);
	ring->slots = NULL;
}

static inline size_t pl_ring_capacity(const struct pl_ring *ring)
{
	return (size_t)ring->mask + 1;
}

/* Number of slots that were filled a moment ago; from any thread. */
static inline size_t pl_ring_used(struct pl_ring *ring)
{
	/* Acquire keeps the second load behind the first, so the difference is never negative (it
	 * may pass the capacity when both threads move on in between). The rest is relaxed: a
	 * figure for people. */
	uint64_t popped = atomic_load_explicit(&ring->popped, memory_order_acquire);
	uint64_t pushed = atomic_load_explicit(&ring->pushed, memory_order_relaxed);

	return (size_t)(pushed - popped);
}

static inline uint8_t *pl_ring_slot(const struct pl_ring *ring, uint64_t i)
{
	return ring->slots + (i & ring->mask) * ring->slot_size;
}

/* Number of the n slots from index i on that lie before the end of the memory. */
static inline size_t pl_ring_straight(const struct pl_ring *ring, uint64_t i, size_t n)
{
	size_t left = (size_t)(ring->mask + 1 - (i & ring->mask));

	return n < left ? n : left;
}

/* Producer: copies in as many of the n items as have room; returns how many. */
static inline size_t pl_ring_push(struct pl_ring *ring, const void *items, size_t n)
{
	/* Relaxed: only this thread writes it. */
	uint64_t pushed = atomic_load_explicit(&ring->pushed, memory_order_relaxed);
	size_t room = (size_t)(ring->mask + 1 - (pushed - ring->popped_seen)), first;

	if (room < n) {
		/* Acquire, with the release in pop: the consumer has read the slots before we
		 * overwrite them. */
		ring->popped_seen = atomic_load_explicit(&ring->popped, memory_order_acquire);
		room = (size_t)(ring->mask + 1 - (pushed - ring->popped_seen));
	}
	assert(room <= ring->mask + 1);
	if (n > room)
		n = room;
	if (n == 0)
		return 0;
	first = pl_ring_straight(ring, pushed, n);
	memcpy(pl_ring_slot(ring, pushed), items, first * ring->slot_size);
	memcpy(ring->slots, (const uint8_t *)items + first * ring->slot_size,
		(n - first) * ring->slot_size);
	/* Release: the items are in their slots before the consumer sees the count. */
	atomic_store_explicit(&ring->pushed, pushed + n, memory_order_release);
	return n;
}

/* Consumer: copies out up to n items, oldest first; returns how many. */
static inline size_t pl_ring_pop(struct pl_ring *ring, void *ret_items, size_t n)
{
	/* Relaxed: only this thread writes it. */
	uint64_t popped = atomic_load_explicit(&ring->popped, memory_order_relaxed);
	size_t there = (size_t)(ring->pushed_seen - popped), first;

	if (there < n) {
		/* Acquire, with the release in push: the slots hold the items of the count. */
		ring->pushed_seen = atomic_load_explicit(&ring->pushed, memory_order_acquire);
		there = (size_t)(ring->pushed_seen - popped);
	}
	assert(there <= ring->mask + 1);
	if (n > there)
		n = there;
	if (n == 0)
		return 0;
	first = pl_ring_straight(ring, popped, n);
	memcpy(ret_items, pl_ring_slot(ring, popped), first * ring->slot_size);
	memcpy((uint8_t *)ret_items + first * ring->slot_size, ring->slots,
		(n - first) * ring->slot_size);
	/* Release: our reads are over before the producer may overwrite the slots. */
	atomic_store_explicit(&ring->popped, popped + n, memory_order_release);
	return n;
}
