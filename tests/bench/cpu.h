/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors: binding of threads, the time they have had, and the distance between two of them. */
#pragma once

#include "base/clock.h"

/* CPU time of the calling thread. */
static inline uint64_t pl_cpu_thread_ns(void)
{
	return pl_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Processors this process may run on; at least 1. */
unsigned int pl_cpu_count(void);

/* Binds the calling thread to the i-th processor it is allowed (modulo their number). Returns 0 or
 * a negative errno. */
int pl_cpu_pin(unsigned int i);

/*
 * One way of a message between two processors, in ns: two threads on the first two allowed
 * processors hand a cache line back and forth; the median of short rounds. It rises when neighbours
 * disturb the machine, which is why benchmarks print it. NaN when there is one processor only.
 * Takes some 20 ms.
 */
double pl_cpu_pingpong_ns(void);
