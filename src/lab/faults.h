/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of links in a simulated network, from its start or a later time, as users write them. */
#pragma once

#include "lab/simulation.h"

struct pl_lab_faults;

/*
 * Each text is LINK:KEY=VALUE[ KEY=VALUE]…[@TIME]: the link as for pl_lab_wires_impair ("A-B" both
 * directions, "A>B" from A to B), keys of impair.c, and simulated time since the start, 0 without
 * it. Also takes the faults of the topology's story. To be called before the simulation runs. The
 * faults must live as long as the simulation runs; the topology may be freed afterwards. -EINVAL,
 * -ENOENT with diag, -ENOMEM.
 */
int pl_lab_faults_new(struct pl_lab_faults **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const char *const *texts, size_t n, struct pl_diag *diag);
void pl_lab_faults_free(struct pl_lab_faults *f);
