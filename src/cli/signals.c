/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/signals.h"

#include <sys/signalfd.h>
#include <time.h>

#include "base/clock.h"

static void set_of(sigset_t *ret, const int *also)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	for (; *also != 0; also++)
		sigaddset(ret, *also);
}

void pl_signals_catch(struct pl_signals *s, void (*handler)(int signo), const int *also)
{
	struct sigaction sa = { .sa_handler = handler };

	signal(SIGPIPE, SIG_IGN);
	set_of(&s->heard, also);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	for (; *also != 0; also++)
		sigaction(*also, &sa, NULL);
}

void pl_signals_block(struct pl_signals *s)
{
	sigprocmask(SIG_BLOCK, &s->heard, &s->while_waiting);
}

int pl_signals_poll(const struct pl_signals *s, struct pollfd *fds, nfds_t n, uint64_t wait_ns)
{
	const struct timespec ts = pl_clock_timespec(wait_ns);
	int ready = ppoll(fds, n, &ts, &s->while_waiting);

	if (ready > 0)
		(void)ppoll(NULL, 0, &(struct timespec){ 0 }, &s->while_waiting);
	return ready > 0 ? ready : 0;
}

int pl_signals_fd(const int *also, int flags)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	set_of(&set, also);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | flags);
}
