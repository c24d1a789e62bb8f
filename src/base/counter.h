/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A counter with one writer and any readers. The writer's increment is a plain load, add and store
 * (relaxed: readers want a recent value, no order with anything else).
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct pl_counter {
	_Atomic uint64_t value;
};

static inline void pl_count(struct pl_counter *c, uint64_t n)
{
	uint64_t v = atomic_load_explicit(&c->value, memory_order_relaxed);

	atomic_store_explicit(&c->value, v + n, memory_order_relaxed);
}

static inline uint64_t pl_counter_read(const struct pl_counter *c)
{
	return atomic_load_explicit(&c->value, memory_order_relaxed);
}
