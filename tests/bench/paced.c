/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends at a rate in a thread of its own. */
#include "tests/bench/paced.h"

#include <time.h>

#include "base/clock.h"
#include "tests/bench/cpu.h"
#include "wire/packet.h"

#define PACE_NS 200000 /* between the bursts of a rate */

static void *send_load(void *arg)
{
	struct pl_bench_paced *p = arg;
	const uint64_t start = pl_clock_mono_ns();
	double made = 0;

	(void)pl_cpu_pin(1);
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		double due = PL_BATCH_MAX;

		if (p->rate > 0)
			due = p->rate * (double)(pl_clock_mono_ns() - start) * 1e-9 - made;
		if (due >= 1) {
			const uint32_t n = due < PL_BATCH_MAX ? (uint32_t)due : PL_BATCH_MAX;

			p->send(p->arg, n);
			made += n;
		} else {
			nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL);
		}
	}
	return NULL;
}

int pl_bench_paced_begin(struct pl_bench_paced *p, double rate)
{
	p->rate = rate;
	atomic_store(&p->stop, false);
	return -pthread_create(&p->thread, NULL, send_load, p);
}

void pl_bench_paced_end(struct pl_bench_paced *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
}

void pl_bench_doze(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	nanosleep(&(struct timespec){ .tv_nsec = 500000 + *state % 3000000 }, NULL);
}
