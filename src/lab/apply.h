/* SPDX-License-Identifier: BSD-2-Clause */
/* A lab that is up becomes what another file says: the request, and what its processes, of whichever
 * tier, have in common. */
#pragma once

#include "base/buf.h"
#include "lab/state.h"

/*
 * Has the lab become what `want` says, as pl_lab_topology_load made it, without the collector. `out` has a
 * line for each thing that was changed (change.h), none when there was none. -EINVAL with diag: what
 * cannot be; then nothing is changed. -ECHILD, -ETIMEDOUT and others with diag: a command did not start; all
 * before it is changed.
 */
int pl_lab_apply(const struct pl_lab_found *f, struct pl_lab_topology *want, struct pl_buf *out,
	struct pl_diag *diag);

/* In the lab's process: of the file that a request names, in the current folder, with the collector if
 * that is wanted; the file goes. To be freed also after a failure, with free. Negative errno with diag. */
int pl_lab_apply_read(struct pl_lab_topology **ret, const char *lab, const char *file,
	bool with_collector, struct pl_diag *diag);
/* It is what the lab is from now on, for whoever asks. */
int pl_lab_apply_note(const struct pl_lab_topology *t);
