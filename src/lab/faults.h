/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of links in a simulated network, from its start or from a time on, as users write them. */
#pragma once

#include "lab/simulation.h"

struct pl_lab_faults;

/*
 * Each text is LINK:KEY=VALUE[ KEY=VALUE]…[@TIME]: the link as pl_lab_wires_impair has it ("A-B" both
 * directions, "A>B" that from A to B), keys of impair.c, and simulated time since the start, without
 * which it holds from the start on. Before the simulation runs; it outlives the faults no run, and
 * the topology may go. -EINVAL, -ENOENT with diag, -ENOMEM; then the simulation may have some.
 */
int pl_lab_faults_new(struct pl_lab_faults **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const char *const *texts, size_t n, struct pl_diag *diag);
void pl_lab_faults_free(struct pl_lab_faults *f);
