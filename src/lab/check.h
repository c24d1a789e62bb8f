/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the results of a lab's commands, once they have ended: runs the checks of the lab's file,
 * and, with Direct Telemetry Access, joins the commands' accounts. */
#pragma once

#include "lab/said.h"

/*
 * Runs the checks of the ended commands `s` (said.h) in their nodes and adds the results to `out`,
 * as text or a JSON object. The current folder becomes the lab's. Returns 1 when all is right, 0
 * when it is not or a command did not end well, or negative errno with diag.
 */
int pl_lab_check(const struct pl_lab_found *f, const struct pl_lab_sayings *s, bool json,
	struct pl_buf *out, struct pl_diag *diag);
