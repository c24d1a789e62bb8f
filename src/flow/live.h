/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of flows whose packets come while they are seen, of several sources whose clocks differ.
 * It goes on with the receiver's own clock, by the slowest source's distance to that: the least
 * distance (time of a batch's newest packet, minus the time at which it came) of one or two idle
 * timeouts. So neither a source that is ahead nor a forged time ends the flows of others. A flow of a
 * source that is ahead ends by its own packets' times, or so much later.
 *
 * Sources count as long as they are PL_FLOW_APART_NS or less behind the one that is ahead of all.
 * One whose times are later than the caller allows counts only while there is no other. When packets of
 * this host are too far behind, PL_FLOW_BEHIND of them in a row and for PL_FLOW_STEP_NS, its clock was set
 * back: distances of before are forgotten. Anybody can send records of such a time, so those of others
 * never do that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sources are so far ahead of the receiver's clock at most, and so far behind one another. */
#define PL_FLOW_AHEAD_NS UINT64_C(60000000000)
#define PL_FLOW_APART_NS (2 * PL_FLOW_AHEAD_NS)
/* Without a packet that is not too far behind for so long, those that are tell the clock. */
#define PL_FLOW_STEP_NS  UINT64_C(1000000000)

struct pl_flow_counters;

struct pl_flow_distances {
	int64_t low, high;
	bool any;
};

struct pl_flow_live {
	bool started;     /* `distance` is known */
	bool allowed;     /* `last` has times that the caller allows */
	int64_t distance; /* of the clock to the receiver's */
	uint64_t begun_ns, most_ns, newest_ns;
	uint64_t agreed_ns; /* when a packet came last that was not too far behind */
	uint64_t behind;    /* packets of this host since, all of them too far behind */
	struct pl_flow_distances last[2]; /* of the present idle timeout, and of the one before */
};

/* Notes a batch that came at now_ns, and returns the clock of now. idle_ns: the idle timeout. */
uint64_t pl_flow_live_came(struct pl_flow_live *live, uint64_t newest_ns, uint32_t n,
	uint64_t now_ns, uint64_t idle_ns, struct pl_flow_counters *counters);
/* Counts a packet of the batch by its time. */
void pl_flow_live_count(
	struct pl_flow_live *live, uint64_t ts_ns, struct pl_flow_counters *counters);
