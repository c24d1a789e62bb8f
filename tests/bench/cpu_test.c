/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/cpu.h"

#include <math.h>
#include <sched.h>

#include "base/test.h"

int main(void)
{
	unsigned int n = pl_cpu_count();
	cpu_set_t before, after;
	double ns;

	ok(n >= 1);
	sched_getaffinity(0, sizeof(before), &before);
	ns = pl_cpu_pingpong_ns();
	ok(n < 2 ? isnan(ns) : ns > 1 && ns < 1e7, "one way between two processors: %.0f ns", ns);
	sched_getaffinity(0, sizeof(after), &after);
	ok(CPU_EQUAL(&before, &after), "and the thread is as free as before");
	eq(pl_cpu_pin(n), 0, "modulo their number");
	eq(pl_cpu_count(), 1, "pinned to one");
	sched_getaffinity(0, sizeof(after), &after);
	ok(CPU_ISSET(sched_getcpu(), &after), "and on it");
	eq(pl_cpu_pin(1), 0, "to the first of one");
	ok(isnan(pl_cpu_pingpong_ns()), "one processor alone has no distance");
	return pl_test_done();
}
