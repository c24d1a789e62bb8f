/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The largest number of the present and the last slot of time, with its place; as pl_slot_max of
 * detect/aggregate.h, for 64 bits. Slots are fixed in time and reading resets nothing, so that any
 * number of scrapers that come at least once per slot each see every maximum. A slot is the time
 * divided by its length; a slot before the present one counts as the present one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pl_region_max_of {
	bool has;
	uint64_t value, number;
};

/* Initially all zeros. */
struct pl_region_max {
	uint64_t slot;
	struct pl_region_max_of now, before;
};

static inline void pl_region_max_advance(struct pl_region_max *m, uint64_t slot)
{
	if (slot <= m->slot)
		return;
	m->before = slot - m->slot == 1 ? m->now : (struct pl_region_max_of){ .has = false };
	m->now = (struct pl_region_max_of){ .has = false };
	m->slot = slot;
}

static inline void pl_region_max_add(
	struct pl_region_max *m, uint64_t slot, uint64_t value, uint64_t number)
{
	pl_region_max_advance(m, slot);
	if (!m->now.has || value > m->now.value)
		m->now = (struct pl_region_max_of){ true, value, number };
}

/* Returns false when neither slot has a number. */
static inline bool pl_region_max_read(
	struct pl_region_max *m, uint64_t slot, uint64_t *ret_value, uint64_t *ret_number)
{
	const struct pl_region_max_of *of = &m->now;

	pl_region_max_advance(m, slot);
	if (!of->has || (m->before.has && m->before.value > of->value))
		of = &m->before;
	*ret_value = of->value;
	*ret_number = of->number;
	return of->has;
}
