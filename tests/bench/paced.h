/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of a benchmark that sends at a rate, or as fast as it goes, on the second processor while
 * another thread measures.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct pl_bench_paced {
	/* Set by the caller: sends n packets, from 1 to PL_BATCH_MAX, in the thread. */
	void (*send)(void *arg, uint32_t n);
	void *arg;
	/* The rest is paced.c's. */
	pthread_t thread;
	atomic_bool stop;
	double rate;
};

/* rate: packets per second; 0: as fast as it goes. -errno. */
int pl_bench_paced_begin(struct pl_bench_paced *p, double rate);
/* Waits for the thread's end. Only after a begin that worked. */
void pl_bench_paced_end(struct pl_bench_paced *p);

/* Sleeps 0.5 to 3.5 ms, so that what is probed in between comes at times that have nothing to do with
 * anybody's clock. state: any number at first. */
void pl_bench_doze(uint32_t *state);
