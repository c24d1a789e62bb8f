/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of a flow cache in a file, noted in the file's journal (kept.h). */
#pragma once

#include "flow/cache_state.h"

/* Notes a step. Out of line: a cache in the process's own memory never calls it. */
__attribute__((noinline)) static void pl_flow_note(
	struct pl_flow_cache *c, enum pl_flow_step kind, uint32_t slot)
{
	struct pl_flow_journal *j = &c->kept->journal;
	const struct pl_flow_entry *f = &c->flows[slot];

	j->slot = slot;
	j->n_records = c->kept->n_records;
	if (kind != PL_FLOW_STEP_NEW) {
		memcpy(j->packets, f->packets, sizeof(j->packets));
		memcpy(j->bytes, f->bytes, sizeof(j->bytes));
		j->records = f->records;
		j->last_ts = f->last_ts;
		j->state = f->state;
		j->places = f->places;
		memcpy(j->flags, f->flags, sizeof(j->flags));
	}
	if (kind != PL_FLOW_STEP_NEW && kind != PL_FLOW_STEP_COUNT &&
		(f->state & PL_FLOW_ELSEWHERE) != 0)
		j->other = c->others[slot];
	if (kind == PL_FLOW_STEP_TAKE)
		j->entry = *f;
	PL_FLOW_FENCE();
	j->kind = kind;
	PL_FLOW_FENCE();
}

static inline void pl_flow_step(struct pl_flow_cache *c, enum pl_flow_step kind, uint32_t slot)
{
	if (__builtin_expect(c->keeps, 0))
		pl_flow_note(c, kind, slot);
}

/* Fence between the stores of a step. */
static inline void pl_flow_step_then(const struct pl_flow_cache *c)
{
	if (__builtin_expect(c->keeps, 0))
		PL_FLOW_FENCE();
}

/* Ends a step that added `packets` packets to the table. */
static inline void pl_flow_step_end(struct pl_flow_cache *c, uint64_t packets)
{
	struct pl_flow_kept *k = c->kept;

	if (__builtin_expect(!c->keeps, 1))
		return;
	PL_FLOW_FENCE();
	k->journal.kind = PL_FLOW_STEP_NONE;
	PL_FLOW_FENCE();
	k->held += packets;
	k->live = (uint32_t)c->counters.live;
}

/* Ends a step that made a record; when the records fill their room, they are flushed. */
static inline void pl_flow_step_made(struct pl_flow_cache *c)
{
	pl_flow_step_end(c, 0);
	if (c->kept->n_records == PL_FLOW_RECORDS)
		pl_flow_flush(c);
}
