/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of one flow's block at a meter, and the record (mark128/1 of record/fields.def) made
 * from them. Cells are tagged with their block: a cell with another tag is empty, so nothing is
 * ever cleared and an idle block reads as zeros.
 *
 * Four cells for each flow, at block & 3, are enough: the block being read, that of the meter's
 * clock, and those of late and early packets are at most three blocks apart. A cell has one writer;
 * those of several processors are added.
 */
#pragma once

#include "mark/period.h"

#define PL_MARK_CELLS 4u

struct pl_mark_cell {
	uint64_t block; /* 0: empty */
	uint64_t packets, bytes;
	int64_t sum_ns, first_ns, pulse_ns; /* as in the record; pulse_ns is of the first pulse */
	uint32_t late, early;
	uint32_t pulses;
	uint32_t beyond; /* packets outside the guard band */
};

/* Prepares a cell for a block: the cell of another block becomes empty first. */
static inline void pl_mark_cell_turn(struct pl_mark_cell *c, uint64_t block)
{
	if (c->block == block)
		return;
	__builtin_memset(c, 0, sizeof(*c));
	c->block = block;
}

/* Counts the `packets` of one buffer (several with GSO and GRO), which have the same bits; at most
 * one is the pulse. */
static inline void pl_mark_cell_count(struct pl_mark_cell *c, const struct pl_mark_seen *seen,
	uint32_t packets, uint64_t bytes, uint64_t period_ns, uint64_t guard_ns)
{
	pl_mark_cell_turn(c, seen->block);
	if (c->packets == 0 || seen->offset_ns < c->first_ns)
		c->first_ns = seen->offset_ns;
	c->packets += packets;
	c->bytes += bytes;
	c->sum_ns += (int64_t)packets * seen->offset_ns;
	c->late += seen->what == PL_MARK_LATE ? packets : 0;
	c->early += seen->what == PL_MARK_EARLY ? packets : 0;
	c->beyond += pl_mark_is_beyond(seen, period_ns, guard_ns) != 0 ? packets : 0;
}

/* Counts a pulse; its packet is counted separately. */
static inline void pl_mark_cell_pulse(struct pl_mark_cell *c, const struct pl_mark_seen *seen)
{
	pl_mark_cell_turn(c, seen->block);
	if (c->pulses == 0 || seen->offset_ns < c->pulse_ns)
		c->pulse_ns = seen->offset_ns;
	c->pulses++;
}

/* Pulse marking: stores the flow's counts at the pulse, which is the first of its block. */
static inline void pl_mark_cell_snapshot(
	struct pl_mark_cell *c, const struct pl_mark_seen *seen, uint64_t packets, uint64_t bytes)
{
	c->packets = packets;
	c->bytes = bytes;
	c->first_ns = seen->offset_ns;
	c->early = seen->what == PL_MARK_EARLY;
}

#ifndef __bpf__

/* Pulse marking: adds a cell of the same block, keeping the counts of the earlier pulse. */
void pl_mark_cell_add_pulse(struct pl_mark_cell *to, const struct pl_mark_cell *from);

/* Adds a cell of the same block; one of another block adds nothing. */
void pl_mark_cell_add(struct pl_mark_cell *to, const struct pl_mark_cell *from);

/* Properties of a measurement point, the same in all its records of a block. */
struct pl_mark_point {
	uint32_t point;
	uint8_t method; /* enum pl_mark_method */
	uint64_t period_ns;
	uint16_t flags; /* PL_MARK_IS_MARKER, _IS_SYNCED, … */
	uint16_t tai_offset;
	uint64_t clock_error_ns; /* UINT64_MAX: not known */
};

struct pl_mark_flow {
	struct pl_addr src, dst;
	uint16_t sport, dport;
	uint8_t proto;
	uint8_t has_flow_id;
	uint16_t zero;
	uint32_t flow_id;
};

/* Makes the record of a block; a cell of another block counts as empty. Counts that do not fit
 * become their largest value. */
void pl_mark_record(struct pl_mark128 *ret, const struct pl_mark_point *point,
	const struct pl_mark_flow *flow, uint64_t block, const struct pl_mark_cell *cell);

/* Compare records by flow; with qsort(), by block, flow and point. */
int pl_mark_compare_flow(const struct pl_mark128 *a, const struct pl_mark128 *b);
int pl_mark_compare(const void *a, const void *b);

/* True when a meter can have made the record; a record from outside may contain anything. Period,
 * block and method are possible, and offsets and their sum are within two periods for each packet,
 * in cyclic marking three, so that sums over several records do not overflow. */
bool pl_mark_record_is_usable(const struct pl_mark128 *r);

#endif
