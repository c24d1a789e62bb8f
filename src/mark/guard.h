/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks periods and guard bands: refuses those that would give wrong results, and names the
 * numbers. */
#pragma once

#include "base/diag.h"
#include "mark/period.h"

/* Returns 0 with the guard band in *ret_guard_ns, or -EINVAL with diag when the period is too short
 * or too long, or the guard band is not less than its limit (pl_mark_guard_limit). */
int pl_mark_guard_check(uint64_t *ret_guard_ns, unsigned int method, uint64_t period_ns,
	const struct pl_mark_spread *spread, struct pl_diag *diag);
