/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds cells of several processors, and makes a record of a cell. */
#include "mark/record.h"

void pl_mark_cell_add(struct pl_mark_cell *to, const struct pl_mark_cell *from)
{
	if (from->block != to->block)
		return;
	if (from->packets > 0 && (to->packets == 0 || from->first_ns < to->first_ns))
		to->first_ns = from->first_ns;
	if (from->pulses > 0 && (to->pulses == 0 || from->pulse_ns < to->pulse_ns))
		to->pulse_ns = from->pulse_ns;
	to->packets += from->packets;
	to->bytes += from->bytes;
	to->sum_ns += from->sum_ns;
	to->late += from->late;
	to->early += from->early;
	to->pulses += from->pulses;
	to->beyond += from->beyond;
}

void pl_mark_cell_add_pulse(struct pl_mark_cell *to, const struct pl_mark_cell *from)
{
	const uint32_t pulses = to->pulses + from->pulses;

	if (from->block != to->block || from->pulses == 0)
		return;
	if (to->pulses == 0 || from->pulse_ns < to->pulse_ns)
		*to = *from;
	to->pulses = pulses;
}

void pl_mark_record(struct pl_mark128 *ret, const struct pl_mark_point *point,
	const struct pl_mark_flow *flow, uint64_t block, const struct pl_mark_cell *cell)
{
	static const struct pl_mark_cell empty;
	const struct pl_mark_cell *c = cell->block == block ? cell : &empty;

	const bool timed = (point->flags & PL_MARK_UNTIMED) == 0;

	*ret = (struct pl_mark128){
		.ts_ns = block * point->period_ns - point->tai_offset * UINT64_C(1000000000),
		.src = flow->src,
		.dst = flow->dst,
		.sport = flow->sport,
		.dport = flow->dport,
		.proto = flow->proto,
		.method = point->method,
		.mark_flags = (uint16_t)(point->flags | (c->beyond > 0 ? PL_MARK_IS_BEYOND : 0) |
					 (flow->has_flow_id != 0 ? PL_MARK_HAS_FLOW_ID : 0)),
		.block = block,
		.period_ns = point->period_ns,
		.packets = c->packets,
		.bytes = c->bytes,
		.sum_ns = timed ? c->sum_ns : 0,
		.first_ns = timed ? c->first_ns : 0,
		.pulse_ns = timed ? c->pulse_ns : 0,
		.point = point->point,
		.flow_id = flow->has_flow_id != 0 ? flow->flow_id : 0,
		.late = c->late,
		.early = c->early,
		.clock_error_ns = point->clock_error_ns < UINT32_MAX
					  ? (uint32_t)point->clock_error_ns
					  : UINT32_MAX,
		.tai_offset = point->tai_offset,
		.pulses = c->pulses < UINT16_MAX ? (uint16_t)c->pulses : UINT16_MAX,
	};
}

/* Largest possible distance of a packet from the start of the block it is counted in. */
static uint64_t most_ns(const struct pl_mark128 *r)
{
	return (pl_mark_reach(r->method) + 1) * r->period_ns;
}

static bool is_offset(int64_t ns, const struct pl_mark128 *r)
{
	return ns <= (int64_t)most_ns(r) && ns >= -(int64_t)most_ns(r);
}

/* True when the sum is possible; not checked when the largest possible sum overflows. */
static bool is_sum(const struct pl_mark128 *r)
{
	const uint64_t most = most_ns(r);
	const uint64_t sum = r->sum_ns < 0 ? -(uint64_t)r->sum_ns : (uint64_t)r->sum_ns;

	return r->packets > INT64_MAX / most || sum <= r->packets * most;
}

bool pl_mark_record_is_usable(const struct pl_mark128 *r)
{
	return r->period_ns >= PL_MARK_PERIOD_MIN_NS && r->period_ns <= PL_MARK_PERIOD_MAX_NS &&
	       r->block > 0 && r->block < UINT64_MAX / 4 / r->period_ns && r->method != 0 &&
	       r->method < PL_MARK_METHOD_MAX && is_offset(r->first_ns, r) &&
	       is_offset(r->pulse_ns, r) && is_sum(r);
}

int pl_mark_compare_flow(const struct pl_mark128 *a, const struct pl_mark128 *b)
{
	int d = memcmp(&a->src, &b->src,
		offsetof(struct pl_mark128, method) - offsetof(struct pl_mark128, src));

	if (d == 0 && a->flow_id != b->flow_id)
		d = a->flow_id < b->flow_id ? -1 : 1;
	return d;
}

int pl_mark_compare(const void *left, const void *right)
{
	const struct pl_mark128 *a = left, *b = right;
	int d;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	d = pl_mark_compare_flow(a, b);
	return d != 0 ? d : a->point < b->point ? -1 : a->point > b->point;
}
