/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries out the plan of a lab: namespaces, links, addresses, routes, rates. The keeper starts its
 * commands. */
#pragma once

#include "lab/plan.h"
#include "lab/state.h"

struct pl_lab_build {
	const struct pl_lab_plan *plan; /* borrowed */
	const struct pl_lab_state
		*state;          /* gets names noted before they are made; NULL: none noted */
	bool (*stop)(void *arg); /* asked between steps: true cancels the build */
	void *arg;
	/* Descriptors of the nodes' namespaces, then of the one with the wires; -1: none. */
	int ns[PL_LAB_NETNSES];
};

/* Makes the folder of named network namespaces a shared mount, so that processes in other mount
 * namespaces see them. Negative errno with diag. */
int pl_lab_netns_folder(struct pl_diag *diag);
/* Returns -EEXIST with diag when a name of the plan is taken already. */
int pl_lab_check_names(const struct pl_lab_plan *plan, struct pl_diag *diag);

/* Runs the steps of the plan; the current folder must be the lab's, as files are made in it. The
 * calling thread returns to its network namespace. -ECANCELED when stop() returned true; other
 * errors with diag, which shows the failed step as a command. The caller undoes a failed build: the
 * state lists named namespaces; everything else disappears with these and with the descriptors. */
int pl_lab_build_run(struct pl_lab_build *b, struct pl_diag *diag);
/* Sets the routes, and the rates of bare links, that differ from `was`, a plan that was built and
 * has the same nodes and links. Adds a line to `out` for each node and link (change.h). Negative
 * errno with diag. */
int pl_lab_build_again(struct pl_lab_build *b, const struct pl_lab_plan *was, struct pl_buf *out,
	struct pl_diag *diag);
void pl_lab_build_close(struct pl_lab_build *b);
