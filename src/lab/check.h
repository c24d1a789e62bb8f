/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether what a lab's commands did is right, once they have ended: by the commands that its file has
 * for that, and, where Direct Telemetry Access is among them, by their accounts together. */
#pragma once

#include "lab/said.h"

/*
 * s: of commands that have ended (said.h). Runs what checks them, in their nodes, and adds what came of
 * it, as text or an object. The current folder becomes that of the lab. 1: all is right; 0: it is not,
 * or a command did not end well; negative errno with diag.
 */
int pl_lab_check(const struct pl_lab_found *f, const struct pl_lab_sayings *s, bool json,
	struct pl_buf *out, struct pl_diag *diag);
