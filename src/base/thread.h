/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads with names, and conditions by the monotonic clock. */
#pragma once

#include <pthread.h>

/* Starts a thread that takes no signal but those that its own instructions cause: SIGBUS of a
 * mapped file that was cut, SIGSYS of a refused system call, and faults. Blocked, these would end
 * the process. name: at most 15 characters, for people. Returns 0 or a negative errno. */
int pl_thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg);

/* Makes a condition whose timed waits are by pl_clock_mono_ns. */
void pl_cond_init(pthread_cond_t *ret);
