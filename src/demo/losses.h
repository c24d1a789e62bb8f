/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of alternate marking in the demonstration's switches: loss of each link, one way, summed
 * over the reported blocks, beside the truth. Fed by the thread that simulates, read by any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/metering.h"

#define PL_DEMO_LINKS_MAX 64

struct pl_demo_link_loss {
	char from[PL_LAB_NAME_MAX + 1], to[PL_LAB_NAME_MAX + 1];
	uint64_t node; /* the sending node, and its port, as in reports */
	unsigned int port;
	uint64_t sent;
	int64_t lost;       /* by marking */
	uint64_t true_lost; /* of the same packets, in the queue in front of it and on the link */
};

struct pl_demo_losses_sum {
	struct pl_demo_link_loss links[PL_DEMO_LINKS_MAX]; /* with packets; most lost first */
	unsigned int n;
	uint64_t results; /* flows' blocks on links */
	uint64_t wrong;   /* of them, with another loss than the true one */
	/* Packets later than the guard band: in none of the sums. */
	uint64_t not_vouched;
	uint64_t newest; /* last block reported */
	/* For the link that is to lose: block in which the loss began, and in which it was found;
	 * 0: not yet. */
	uint64_t leak_block, found_block;
};

struct pl_demo_losses;

struct pl_demo_losses_options {
	/* Ends of the link that is to lose, in this direction; literals. */
	const char *leak_from, *leak_to;
};

/* Makes the results of a simulation of the topology, which has not run yet and outlives them. Negative
 * errno with diag. */
int pl_demo_losses_new(struct pl_demo_losses **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const struct pl_demo_losses_options *options,
	struct pl_diag *diag);
void pl_demo_losses_free(struct pl_demo_losses *l);

/* pl_dp_truth_ops.path of the simulation. */
void pl_demo_losses_path(
	struct pl_demo_losses *l, const struct pl_path *path, const struct pl_hop *hops);
/* Notes that the link begins to lose, for the first time. */
void pl_demo_losses_leak(struct pl_demo_losses *l, uint64_t now_ns);

void pl_demo_losses_read(struct pl_demo_losses *l, struct pl_demo_losses_sum *ret);
