/* SPDX-License-Identifier: BSD-2-Clause */
/* Raises the priority of a benchmark's processes, and restores it. */
#include "tests/bench/priority.h"

#include <stdio.h>
#include <sys/resource.h>

/* Where sessions are scheduled as groups, a thread's priority counts within its session only. */
static int group_priority(void)
{
	FILE *f = fopen("/proc/self/autogroup", "re");
	int nice = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*s nice %d", &nice) != 1)
		nice = 0;
	fclose(f);
	return nice;
}

static void set_group_priority(int nice)
{
	FILE *f = fopen("/proc/self/autogroup", "we");

	if (f == NULL)
		return;
	fprintf(f, "%d", nice);
	fclose(f);
}

void pl_bench_raise(struct pl_bench_priority *ret_before)
{
	ret_before->thread = getpriority(PRIO_PROCESS, 0);
	ret_before->group = group_priority();
	(void)setpriority(PRIO_PROCESS, 0, PL_BENCH_PRIORITY);
	set_group_priority(PL_BENCH_PRIORITY);
}

void pl_bench_restore(const struct pl_bench_priority *before)
{
	(void)setpriority(PRIO_PROCESS, 0, before->thread);
	set_group_priority(before->group);
}
