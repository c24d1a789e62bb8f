/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same packets at several places (entry.h). In each direction a flow's packets count at one
 * place, that of the first packet; packets at other places are listed and counted separately, and
 * affect nothing else. The flow may move to another place. That place becomes the counting one when
 * it saw a packet PL_FLOW_LAG_NS or more behind the last counted one, and the counting place stays
 * silent for as long again. Its packets since the last counted one are then added. One place for
 * each direction is watched in this way.
 *
 * Places are read in turns, so packets of one may come before or behind those of another at
 * the same time. Two rules keep copies from being added: a place that gave copies before adds
 * nothing of PL_FLOW_COPY_NS behind the last counted packet; and packets elsewhere are dropped when
 * one that is as new as the first of them is counted.
 *
 * The struct pl_flow_other that is given with a flow is that of the same slot.
 */
#pragma once

#include "flow/cache.h"
#include "flow/entry.h"

#define PL_FLOW_LAG_NS  UINT64_C(1000000000) /* packets of one place come at most so late */
#define PL_FLOW_COPY_NS UINT64_C(1000000)    /* time from one place of a host to another */

/* Accounts a packet of direction `d` at a place that does not count. */
void pl_flow_elsewhere(struct pl_flow_entry *flow, struct pl_flow_other *other, unsigned int d,
	const struct pl_pkt96 *packet, struct pl_flow_counters *counters);

/* From now on the watched place of direction `d` counts, and its packets are added to the record,
 * which has room for them. */
void pl_flow_take_over(struct pl_flow_entry *flow, struct pl_flow_other *other, unsigned int d,
	struct pl_flow_counters *counters);

/* True when direction `d` has a place that waits and is to count at `now_ns`. */
static inline bool pl_flow_is_due(const struct pl_flow_entry *flow,
	const struct pl_flow_other *other, unsigned int d, uint64_t now_ns)
{
	return (flow->places & PL_FLOW_WAITS << d) != 0 && now_ns >= other->alone_ts[d] &&
	       now_ns - other->alone_ts[d] >= PL_FLOW_LAG_NS;
}

/* Ends the watching: packets that have not been added when the flow ends never are. */
void pl_flow_elsewhere_end(
	struct pl_flow_entry *flow, struct pl_flow_other *other, struct pl_flow_counters *counters);

/* Begins the next record of a flow that goes on. */
void pl_flow_elsewhere_restart(struct pl_flow_entry *flow, struct pl_flow_other *other);

/* Writes the places into the record. */
void pl_flow_elsewhere_tell(struct pl_flow288 *ret, const struct pl_flow_other *other);
