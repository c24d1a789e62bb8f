/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts processors, binds threads to them, and measures how far two are from each other. */
#include "tests/bench/cpu.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROUNDS = 21, TURNS = 2000 };

unsigned int pl_cpu_count(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

static int pin_within(const cpu_set_t *allowed, unsigned int i)
{
	unsigned int n = (unsigned int)CPU_COUNT(allowed);
	cpu_set_t one;

	if (n == 0)
		return -EINVAL;
	i %= n;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, allowed) || i-- != 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return -pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	}
	return -EINVAL;
}

int pl_cpu_pin(unsigned int i)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return -errno;
	return pin_within(&allowed, i);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

struct table {
	_Alignas(64) _Atomic unsigned int ball; /* odd: the other thread's turn */
	cpu_set_t allowed;
};

static void *other_side(void *arg)
{
	struct table *t = arg;

	(void)pin_within(&t->allowed, 1);
	for (unsigned int i = 0; i < ROUNDS * TURNS; i++) {
		/* Acquire pairs with the release of pl_cpu_pingpong_ns's store, and back. */
		while (atomic_load_explicit(&t->ball, memory_order_acquire) != 2 * i + 1)
			relax();
		atomic_store_explicit(&t->ball, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double pl_cpu_pingpong_ns(void)
{
	struct table t = { 0 };
	double rounds[ROUNDS];
	pthread_t other;
	unsigned int turn = 0;

	if (sched_getaffinity(0, sizeof(t.allowed), &t.allowed) != 0 || CPU_COUNT(&t.allowed) < 2)
		return NAN;
	if (pthread_create(&other, NULL, other_side, &t) != 0)
		return NAN;
	(void)pin_within(&t.allowed, 0);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint64_t start = pl_clock_mono_ns();

		for (unsigned int i = 0; i < TURNS; i++, turn++) {
			atomic_store_explicit(&t.ball, 2 * turn + 1, memory_order_release);
			while (atomic_load_explicit(&t.ball, memory_order_acquire) != 2 * turn + 2)
				relax();
		}
		rounds[r] = (double)(pl_clock_mono_ns() - start) / (2.0 * TURNS);
	}
	pthread_join(other, NULL);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(t.allowed), &t.allowed);
	qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
	return rounds[ROUNDS / 2];
}
