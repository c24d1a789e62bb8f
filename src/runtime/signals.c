/* SPDX-License-Identifier: BSD-2-Clause */
/* Catches signals and sets flags. */
#include "runtime/signals.h"

#include <stdatomic.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static void set_of(sigset_t *ret, const int *also)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	for (; *also != 0; also++)
		sigaddset(ret, *also);
}

static void (*_Atomic to_end)(int signo);
static void (*_Atomic hurry)(void);

void pl_signals_on_end(void (*call)(void))
{
	atomic_store_explicit(&hurry, call, memory_order_relaxed);
}

static void tell_end(void)
{
	void (*call)(void) = atomic_load_explicit(&hurry, memory_order_relaxed);

	if (call != NULL)
		call();
}

static void on_end(int signo)
{
	void (*handler)(int) = atomic_load_explicit(&to_end, memory_order_relaxed);

	tell_end();
	handler(signo);
}

void pl_signals_handle(void (*handler)(int signo), const int *also)
{
	struct sigaction end = { .sa_handler = on_end }, other = { .sa_handler = handler };

	atomic_store_explicit(&to_end, handler, memory_order_relaxed);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	for (; *also != 0; also++)
		sigaction(*also, &other, NULL);
}

void pl_signals_catch(struct pl_signals *s, void (*handler)(int signo), const int *also)
{
	signal(SIGPIPE, SIG_IGN);
	set_of(&s->heard, also);
	pl_signals_handle(handler, also);
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

bool pl_signals_read(int fd, int *ret_signo)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	*ret_signo = (int)info.ssi_signo;
	if (*ret_signo == SIGTERM || *ret_signo == SIGINT)
		tell_end();
	return true;
}
