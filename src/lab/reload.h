/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches of a lab that is up read other files: all of them, or none. */
#pragma once

#include "lab/commands.h"

struct pl_lab_reload {
	struct pl_lab_commands *commands;
	const struct pl_lab_plan *was, *want; /* of the same nodes and links */
};

/* Whether the files are good, and the switches that have to read one run. -EINVAL, -ESRCH with diag. */
int pl_lab_reload_check(const struct pl_lab_reload *r, struct pl_diag *diag);
/* The files whose texts differ are written, and their switches have read them when it returns. When one
 * refuses, those before it get their old ones again: negative errno with diag. The lab's folder is the
 * current one. A line for each switch (change.h). */
int pl_lab_reload_run(const struct pl_lab_reload *r, struct pl_buf *out, struct pl_diag *diag);
