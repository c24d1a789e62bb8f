/* SPDX-License-Identifier: BSD-2-Clause */
/* The offset of CLOCK_TAI, by which kernel programs stamp, from CLOCK_REALTIME. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* Returns the offset of CLOCK_TAI from CLOCK_REALTIME now, a whole number of seconds; 0 on a host
 * whose kernel was not told it. */
static inline uint64_t pl_tai_ahead_ns(void)
{
	const int64_t ahead =
		(int64_t)pl_clock_read(CLOCK_TAI) - (int64_t)pl_clock_read(CLOCK_REALTIME);

	return (uint64_t)((ahead + 500000000) / 1000000000) * UINT64_C(1000000000);
}
