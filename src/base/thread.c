/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a named thread that gets no signals; makes conditions. */
#include "base/thread.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

int pl_thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg)
{
	static const int own[] = { SIGBUS, SIGSYS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	char own_name[16] = "";
	sigset_t others, before;
	int r;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	/* The thread inherits the name. To name another thread takes /proc, which a confined
	 * process may not write. */
	(void)prctl(PR_GET_NAME, own_name);
	(void)prctl(PR_SET_NAME, name);
	r = pthread_create(ret, NULL, run, arg);
	(void)prctl(PR_SET_NAME, own_name);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

void pl_cond_init(pthread_cond_t *ret)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(ret, &attr);
	pthread_condattr_destroy(&attr);
}
