/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in a simulated network (mark/period.h): switches mark what hosts hand them, and
 * every link is metered at both ends, in front of the queue that it is sent from and where it
 * arrives. Loss and delay of each link by marking come block by block, and beside them what the
 * queues and links of the simulation did to the packets of that block.
 *
 * Meters see bytes of packets and their node's clock, nothing else; the truth comes from the records
 * of the simulation (dataplane/sim.h) and never from bits. Reports of switches are not metered.
 */
#pragma once

#include "lab/simulation.h"
#include "mark/bits.h"
#include "mark/correlate.h"

struct pl_lab_metering_truth {
	bool known; /* false: the block is over for too long, or there was no memory */
	/* Of the flow's packets that were marked in the block, in pulse marking behind the pulse of
	 * block `since` up to that of the block: came to the queue, were dropped there, were lost on
	 * the link, arrived. Copies that a link makes are in none of them. */
	uint64_t sent, dropped, lost, arrived;
	/* Time in the queue with the sending itself, of those that left it: sum, the longest. */
	uint64_t residence_ns, residence_max_ns;
	uint64_t left;
	uint64_t transit_ns; /* from the one point to the other, of those that arrived: sum */
	bool has_pulse;      /* the packet that the marker made the pulse arrived */
	uint64_t pulse_ns;   /* its time from the one point to the other */
};

struct pl_lab_metering_result {
	const struct pl_mark_result *by_marking; /* points 1 and 2: sending, receiving end */
	unsigned int link, end;                  /* of the topology: who sends */
	const char *from, *to;                   /* nodes */
	struct pl_lab_metering_truth truth;
};

struct pl_lab_metering_cfg {
	uint8_t method; /* enum pl_mark_method */
	struct pl_mark_where where;
	uint64_t period_ns, guard_ns;
	uint64_t clock_ns;  /* the most that clocks of two nodes differ */
	uint32_t flows_max; /* that a meter has room for; 0: 4096 */
	/* Of every link whose sender is a switch, for each flow and block with packets, once the
	 * block is at rest everywhere: 1.5 periods after it began. */
	void (*result)(void *arg, const struct pl_lab_metering_result *result);
	void *arg;
};

struct pl_lab_metering;

/* Before the simulation runs, which outlives it; the topology may go. -EINVAL with diag: the bit is
 * in an option; -ENOMEM. */
int pl_lab_metering_new(struct pl_lab_metering **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const struct pl_lab_metering_cfg *cfg,
	struct pl_diag *diag);
void pl_lab_metering_free(struct pl_lab_metering *m);

/* For pl_dp_truth_ops.path of the simulation: without it no truth is known. */
void pl_lab_metering_path(
	struct pl_lab_metering *m, const struct pl_path *path, const struct pl_hop *hops);

/* The simulation has run, and nothing is under way: tells the blocks that are left. */
void pl_lab_metering_finish(struct pl_lab_metering *m);

struct pl_lab_metering_books {
	uint64_t marked;   /* packets */
	uint64_t unmarked; /* that hosts handed over without room for the bit */
	uint64_t
		without_room; /* packets that were not counted at a point: more flows than it has room for */
	uint64_t no_memory; /* records or truth that got lost */
};
const struct pl_lab_metering_books *pl_lab_metering_books(const struct pl_lab_metering *m);
