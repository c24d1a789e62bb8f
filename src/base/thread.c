/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"

#include <signal.h>

int pl_thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
	static const int own[] = { SIGBUS, SIGSYS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t others, before;
	int r;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	r = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}
