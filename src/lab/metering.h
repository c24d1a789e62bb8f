/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in a simulated network (mark/period.h): switches mark packets from hosts and
 * meter every link at both ends: in front of the sending queue, and at arrival. It gives loss and
 * delay of each link by marking, block by block, and the truth for comparison: what the
 * simulation's queues and links did to the packets of that block.
 *
 * Meters see only packet bytes and their node's clock; the truth comes only from the simulation's
 * records (dataplane/sim.h). Reports of switches are not metered.
 */
#pragma once

#include "lab/simulation.h"
#include "mark/bits.h"
#include "mark/correlate.h"

struct pl_lab_metering_truth {
	bool known; /* false: the block is too old, or there was no memory */
	/* The flow's packets of the block (pulse marking: after the pulse of block `since` up to
	 * that of this block) that entered the queue, were dropped there, were lost on the link,
	 * arrived. Duplicates by the link are not counted. */
	uint64_t sent, dropped, lost, arrived;
	/* Sum and maximum of the time in the queue, transmission included, of the packets that left
	 * it. */
	uint64_t residence_ns, residence_max_ns;
	uint64_t left;
	uint64_t transit_ns; /* sum of the time from point to point, of those that arrived */
	bool has_pulse;      /* the marker's pulse packet arrived */
	uint64_t pulse_ns;   /* its time from point to point */
};

struct pl_lab_metering_result {
	const struct pl_mark_result *by_marking; /* points 1 and 2: sending, receiving end */
	unsigned int link, end;                  /* of the topology; the sending end */
	const char *from, *to;                   /* nodes */
	struct pl_lab_metering_truth truth;
};

struct pl_lab_metering_cfg {
	uint8_t method; /* enum pl_mark_method */
	struct pl_mark_where where;
	uint64_t period_ns, guard_ns;
	uint64_t clock_ns;  /* maximum difference of two nodes' clocks */
	uint32_t flows_max; /* capacity of a meter; 0: 4096 */
	/* Called for every link direction whose sender is no host, for each flow and block with
	 * packets, once its counters are at rest at both ends: 1.5 periods after the block
	 * began. */
	void (*result)(void *arg, const struct pl_lab_metering_result *result);
	void *arg;
};

struct pl_lab_metering;

/* To be called before the simulation runs; the simulation must outlive it, the topology may be
 * freed. -EINVAL with diag: the bit is in an option, or not writable; -ENOMEM. */
int pl_lab_metering_new(struct pl_lab_metering **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const struct pl_lab_metering_cfg *cfg,
	struct pl_diag *diag);
void pl_lab_metering_free(struct pl_lab_metering *m);

/* To be called from the simulation's pl_dp_truth_ops.path; without it no truth is known. */
void pl_lab_metering_path(
	struct pl_lab_metering *m, const struct pl_path *path, const struct pl_hop *hops);

/* To be called when the simulation has run and no packet is in flight: reports the remaining
 * blocks. */
void pl_lab_metering_finish(struct pl_lab_metering *m);

struct pl_lab_metering_account {
	uint64_t marked;   /* packets */
	uint64_t unmarked; /* from hosts, without room for the bit */
	uint64_t
		without_room; /* packets that were not counted at a point: no room for their flow */
	uint64_t no_memory;   /* records, marks or truth lost for want of memory */
};
const struct pl_lab_metering_account *pl_lab_metering_account(const struct pl_lab_metering *m);
