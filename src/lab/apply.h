/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes a running lab to match another topology file: the request, and the parts that the lab
 * processes of all tiers share. */
#pragma once

#include "base/buf.h"
#include "lab/state.h"

/*
 * Asks the lab to become `want`, as pl_lab_topology_load made it, without the collector. `out` gets
 * a line for each change (change.h), none when nothing differs. -EINVAL with diag: the lab cannot
 * follow; nothing is changed. -ECHILD, -ETIMEDOUT and others with diag: a command did not start;
 * changes before it remain.
 */
int pl_lab_apply(const struct pl_lab_found *f, struct pl_lab_topology *want, struct pl_buf *out,
	struct pl_diag *diag);

/* Called in the lab's process: reads the file that a request names, in the current folder, with the
 * collector if wanted, and removes it. Also after a failure *ret is to be released with
 * pl_lab_topology_done and free; it is NULL without memory. Negative errno with diag. */
int pl_lab_apply_read(struct pl_lab_topology **ret, const char *lab, const char *file,
	bool with_collector, struct pl_diag *diag);
/* Replaces the file `topology` in the current folder, from which other processes learn the lab's
 * network. Negative errno. */
int pl_lab_apply_note(const struct pl_lab_topology *t);
