/* SPDX-License-Identifier: BSD-2-Clause */
/* Time, in nanoseconds. Engines take it as an argument; only the outer layers read clocks. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t pl_clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Time since the Unix epoch, for time stamps; it may step. */
static inline uint64_t pl_clock_real_ns(void)
{
	return pl_clock_read(CLOCK_REALTIME);
}

/* Monotonic time, for intervals and time-outs; it never steps. */
static inline uint64_t pl_clock_mono_ns(void)
{
	return pl_clock_read(CLOCK_MONOTONIC);
}

static inline struct timespec pl_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };
}
