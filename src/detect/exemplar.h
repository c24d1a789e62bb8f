/* SPDX-License-Identifier: BSD-2-Clause */
/* Exemplars of a histogram, the flows that its largest values came from: the largest value of the
 * current fixed slot of time and of the one before it (as in pl_slot_max: reading resets nothing),
 * each with its flow. Every report reads the gate, which stands beside other words that it touches;
 * the two exemplars are written only when a value exceeds all before it in its slot, which few do.
 * Reports without a flow make none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

#define PL_EXEMPLAR_PORTS 1 /* bits of `has` */
#define PL_EXEMPLAR_PATH  2
#define PL_EXEMPLAR_FLOW  4 /* the exemplar is set */

struct pl_exemplar {
	uint64_t value;
	uint64_t ts_ns; /* arrival of the report, since the Unix epoch */
	struct pl_addr src, dst;
	uint64_t path_id;
	uint16_t sport, dport;
	uint8_t proto;
	uint8_t has;
};

struct pl_exemplar_gate {
	uint64_t slot;
	uint64_t above; /* a value must be at least this; 0: any */
};

/* Exemplars: [0] of the current slot, [1] of the one before it. */
struct pl_exemplars {
	struct pl_exemplar in[2];
};

static inline void pl_exemplar_advance(
	struct pl_exemplar_gate *gate, struct pl_exemplars *e, uint64_t slot)
{
	if (gate->slot == slot)
		return;
	e->in[1] = e->in[0];
	if (slot != gate->slot + 1)
		e->in[1].has = 0;
	e->in[0].has = 0;
	*gate = (struct pl_exemplar_gate){ .slot = slot };
}

/* Offers a value; `slot` never falls. */
static inline void pl_exemplar_offer(struct pl_exemplar_gate *gate, struct pl_exemplars *e,
	uint64_t slot, uint64_t value, const struct pl_path *path)
{
	if (__builtin_expect(gate->slot == slot && value < gate->above, 1))
		return;
	if ((path->present & PL_PATH_HAS_src) == 0)
		return;
	pl_exemplar_advance(gate, e, slot);
	gate->above = value + (value < UINT64_MAX);
	e->in[0] = (struct pl_exemplar){ .value = value,
		.ts_ns = path->ts_ns,
		.src = path->src,
		.dst = path->dst,
		.path_id = path->path_id,
		.sport = path->sport,
		.dport = path->dport,
		.proto = path->proto,
		.has = PL_EXEMPLAR_FLOW |
		       ((path->present & PL_PATH_HAS_sport) != 0 ? PL_EXEMPLAR_PORTS : 0) |
		       ((path->present & PL_PATH_HAS_path_id) != 0 ? PL_EXEMPLAR_PATH : 0) };
}

static inline const struct pl_exemplar *pl_exemplar_larger(
	const struct pl_exemplar *a, const struct pl_exemplar *b)
{
	if (a->has == 0 || b->has == 0)
		return a->has != 0 ? a : b;
	return b->value > a->value ? b : a;
}

static inline void pl_exemplar_merge(struct pl_exemplar_gate *gate, struct pl_exemplars *into,
	const struct pl_exemplar_gate *from_gate, const struct pl_exemplars *from)
{
	struct pl_exemplar_gate g = *from_gate;
	struct pl_exemplars f = *from;
	uint64_t slot = g.slot > gate->slot ? g.slot : gate->slot;

	pl_exemplar_advance(gate, into, slot);
	pl_exemplar_advance(&g, &f, slot);
	for (unsigned int i = 0; i < 2; i++)
		into->in[i] = *pl_exemplar_larger(&into->in[i], &f.in[i]);
	if (g.above > gate->above)
		gate->above = g.above;
}

/* Larger exemplar of both slots; NULL when neither has one. `slot`: the present one. */
static inline const struct pl_exemplar *pl_exemplar_show(
	const struct pl_exemplar_gate *gate, const struct pl_exemplars *e, uint64_t slot)
{
	const struct pl_exemplar *x;

	if (slot > gate->slot + 1)
		return NULL;
	x = slot == gate->slot ? pl_exemplar_larger(&e->in[0], &e->in[1]) : &e->in[0];
	return x->has != 0 ? x : NULL;
}
