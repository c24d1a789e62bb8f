/* SPDX-License-Identifier: BSD-2-Clause */
/* Time, in nanoseconds. Engines take it as an argument; only the outer layers ask. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t pl_clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Since the Unix epoch; may step. For time stamps. */
static inline uint64_t pl_clock_real_ns(void)
{
	return pl_clock_read(CLOCK_REALTIME);
}

/* Never steps. For intervals and time-outs. */
static inline uint64_t pl_clock_mono_ns(void)
{
	return pl_clock_read(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread. For benchmarks. */
static inline uint64_t pl_clock_cpu_ns(void)
{
	return pl_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

static inline struct timespec pl_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };
}
