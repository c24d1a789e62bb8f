/* SPDX-License-Identifier: BSD-2-Clause */
/* CLOCK_TAI, by which kernel programs stamp, and the time of day. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* How far CLOCK_TAI is ahead of the time of day now, in whole seconds, by which alone they differ; of
 * a host without leap seconds 0. */
static inline uint64_t pl_tai_ahead_ns(void)
{
	const int64_t ahead =
		(int64_t)pl_clock_read(CLOCK_TAI) - (int64_t)pl_clock_read(CLOCK_REALTIME);

	return (uint64_t)((ahead + 500000000) / 1000000000) * UINT64_C(1000000000);
}
