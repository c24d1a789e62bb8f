/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of a flow cache with live packets of several sources whose clocks differ. It runs with
 * the receiver's own clock, shifted by the distance of the source that is furthest behind: the
 * least distance (time of a batch's newest packet, minus the time at which it came) of one or two
 * idle timeouts. So neither a source that is ahead nor a forged time ends the flows of others. A
 * flow of a source that is ahead ends by its own packets' times, or so much later.
 *
 * Sources count as long as they are at most PL_FLOW_APART_NS behind the one that is furthest ahead.
 * A source whose times are later than the caller allows counts only while there is no other. When
 * packets of this host are too far behind, PL_FLOW_BEHIND of them in a row and for PL_FLOW_STEP_NS,
 * its clock was set back, and older distances are dropped. Packets of other hosts never cause that,
 * because any host can send records with such a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sources are so far ahead of the receiver's clock at most, and so far behind one another. */
#define PL_FLOW_AHEAD_NS UINT64_C(60000000000)
#define PL_FLOW_APART_NS (2 * PL_FLOW_AHEAD_NS)
/* When all packets were too far behind for this long, they set the clock. */
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

/* Adds a batch that came at now_ns, and returns the present clock. idle_ns: the idle timeout. */
uint64_t pl_flow_live_came(struct pl_flow_live *live, uint64_t newest_ns, uint32_t n,
	uint64_t now_ns, uint64_t idle_ns, struct pl_flow_counters *counters);
/* Counts a packet of the batch by its time. */
void pl_flow_live_count(
	struct pl_flow_live *live, uint64_t ts_ns, struct pl_flow_counters *counters);
