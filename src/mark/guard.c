/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the period and the guard band (RFC 9341 5). */
#include "mark/guard.h"

#include <errno.h>

int pl_mark_guard_check(uint64_t *ret_guard_ns, unsigned int method, uint64_t period_ns,
	const struct pl_mark_spread *spread, struct pl_diag *diag)
{
	const uint64_t guard = pl_mark_guard(spread),
		       limit = pl_mark_guard_limit(method, period_ns);

	*ret_guard_ns = guard;
	if (period_ns < PL_MARK_PERIOD_MIN_NS || period_ns > PL_MARK_PERIOD_MAX_NS)
		return pl_diag_fail(diag, -EINVAL, "a period of %.9g s: from 1 us to 1 h",
			(double)period_ns / 1e9);
	if (guard < limit)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the guard band is %.9g s (clocks %.9g + delay %.9g + 3 x deviation %.9g) and must be below %.9g s, %s of the period: take a period above %.9g s, or clocks that are closer",
		(double)guard / 1e9, (double)spread->clock_ns / 1e9, (double)spread->delay_ns / 1e9,
		(double)spread->deviation_ns / 1e9, (double)limit / 1e9,
		limit < period_ns / 2 ? "a quarter"
		: limit > period_ns   ? "one and a half times"
				      : "half",
		(double)guard / 1e9 * (double)period_ns / (double)limit);
}
