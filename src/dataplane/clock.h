/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of a node: what it shows at a true time, with an offset, a drift and steps. Exact: the
 * drift is whole parts per billion, and a change does not move what the clock shows but by the step
 * that is asked for. True times of one clock never go back.
 */
#pragma once

#include <stdint.h>

/* A clock that runs half as fast, or half as fast again, is a fault and no clock. */
#define PL_DP_DRIFT_MAX 500000000

struct pl_dp_clock {
	uint64_t since_ns; /* true time of the last change */
	uint64_t shown_ns; /* by the clock then */
	int64_t drift_ppb; /* above 0: it is fast */
};

/* Shows the true time and an offset. All zero is a right clock. -EINVAL: the drift is beyond
 * PL_DP_DRIFT_MAX either way. */
int pl_dp_clock_set(struct pl_dp_clock *c, uint64_t true_ns, int64_t offset_ns, int64_t drift_ppb);

/* From now on it drifts so; what it shows goes on. -EINVAL as above. */
int pl_dp_clock_drift(struct pl_dp_clock *c, uint64_t true_ns, int64_t drift_ppb);

/* Now it jumps by so much. */
void pl_dp_clock_step(struct pl_dp_clock *c, uint64_t true_ns, int64_t step_ns);

/* What it shows; 0 when that would be before the Unix epoch. */
uint64_t pl_dp_clock_read(const struct pl_dp_clock *c, uint64_t true_ns);
