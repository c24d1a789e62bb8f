/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries out the plan of a lab: namespaces, links, addresses, routes, rates. Its commands are the
 * keeper's. */
#pragma once

#include "lab/plan.h"
#include "lab/state.h"

struct pl_lab_build {
	const struct pl_lab_plan *plan; /* borrowed */
	const struct pl_lab_state
		*state;          /* where names are noted before they are made; NULL: not */
	bool (*stop)(void *arg); /* asked between steps: the build is not wanted any more */
	void *arg;
	/* Descriptors of the namespaces of nodes, that of the wires behind them; -1. */
	int ns[PL_LAB_NETNSES];
};

/* The folder of named namespaces is there, and what is mounted in it is seen by all. Negative errno
 * with diag. */
int pl_lab_netns_folder(struct pl_diag *diag);
/* -EEXIST with diag that says which name of the plan there is already. */
int pl_lab_check_names(const struct pl_lab_plan *plan, struct pl_diag *diag);

/* The lab's folder is the current one: files are made in it.
 * Leaves the calling thread in its network namespace. -ECANCELED when it was told to stop; other
 * errors with diag, which has the step that failed as a command. Undoing is the caller's: the names
 * are in the state, and all else goes with them and the descriptors. */
int pl_lab_build_run(struct pl_lab_build *b, struct pl_diag *diag);
/* The plan has taken the place of `was`, whose network has been built and has the same nodes and links:
 * routes and rates of bare links that are others are set. A line for each node and link (change.h). */
int pl_lab_build_again(struct pl_lab_build *b, const struct pl_lab_plan *was, struct pl_buf *out,
	struct pl_diag *diag);
void pl_lab_build_close(struct pl_lab_build *b);
