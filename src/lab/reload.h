/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the switches of a running lab new files: all of them, or none. */
#pragma once

#include "lab/commands.h"

struct pl_lab_reload {
	struct pl_lab_commands *commands;
	const struct pl_lab_plan *was, *want; /* both of the same nodes and links */
};

/* Checks the changed files, and that their switches run. -EINVAL, -ESRCH with diag. */
int pl_lab_reload_check(const struct pl_lab_reload *r, struct pl_diag *diag);
/* Writes the files that differ and waits until their switches have read them. When one fails, it
 * and those before it get their old files back: negative errno with diag. The current folder must
 * be the lab's. Adds a line for each switch (change.h). */
int pl_lab_reload_run(const struct pl_lab_reload *r, struct pl_buf *out, struct pl_diag *diag);
