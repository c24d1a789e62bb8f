/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of a node: the time that it shows at a true time, with an offset and a drift. It is
 * exact: the drift is in whole parts per billion. True times of one clock never go back.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"

/* Largest drift either way, in ppb: half the speed, or half as fast again. */
#define PL_DP_DRIFT_MAX 500000000

struct pl_dp_clock {
	uint64_t since_ns; /* true time of the last change */
	uint64_t shown_ns; /* shown time at that moment */
	int64_t drift_ppb; /* above 0: the clock is fast */
};

/* Sets the clock to the true time plus an offset, at least 0 (the Unix epoch). All zeros is a
 * correct clock. -EINVAL when the drift is beyond PL_DP_DRIFT_MAX. */
int pl_dp_clock_set(struct pl_dp_clock *c, uint64_t true_ns, int64_t offset_ns, int64_t drift_ppb);

/* Parse an offset, "5ms" or "-5ms", up to a day, and a drift in ppm, "20" or "-0.5", up to 1000.
 * -EINVAL with diag. */
int pl_dp_clock_parse_offset(const char *text, int64_t *ret_ns, struct pl_diag *diag);
int pl_dp_clock_parse_drift(const char *text, int64_t *ret_ppb, struct pl_diag *diag);
/* Check a configuration's values of the two. */
int pl_dp_clock_check_offset(const char *text, struct pl_diag *diag);
int pl_dp_clock_check_drift(const char *text, struct pl_diag *diag);

/* Returns the time that the clock shows. */
uint64_t pl_dp_clock_read(const struct pl_dp_clock *c, uint64_t true_ns);
