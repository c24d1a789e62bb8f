/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/test.h"

/* For a wait that something must end: otherwise the program does not. */
#define HOUR UINT64_C(3600000000000)

static volatile sig_atomic_t heard[3]; /* SIGINT, SIGTERM, SIGUSR1 */

static void on_signal(int signo)
{
	heard[signo == SIGINT ? 0 : signo == SIGTERM ? 1 : 2]++;
}

/* Signals that a descriptor gives are not handled, and none is lost. */
static void test_fd(void)
{
	const int sent[] = { SIGUSR2, SIGTERM, SIGINT };
	const int fd = pl_signals_fd((const int[]){ SIGUSR2, 0 }, SFD_NONBLOCK);
	struct signalfd_siginfo info;
	unsigned int seen = 0;

	if (!ok(fd >= 0, "a descriptor"))
		return;
	heard[0] = heard[1] = heard[2] = 0;
	ok(read(fd, &info, sizeof(info)) < 0, "nothing came");
	for (unsigned int i = 0; i < 3; i++)
		kill(getpid(), sent[i]);
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		for (unsigned int i = 0; i < 3; i++)
			seen |= info.ssi_signo == (uint32_t)sent[i] ? 1u << i : 0;
	}
	eq(seen, 7, "each is read");
	eq(heard[0] + heard[1] + heard[2], 0, "none is heard");
	close(fd);
}

int main(void)
{
	struct pl_signals signals;
	struct pollfd fd = { .events = POLLIN };
	sigset_t now;
	int ends[2];

	if (!ok(pipe(ends) == 0, "a pipe"))
		return pl_test_done();
	fd.fd = ends[0];
	pl_signals_catch(&signals, on_signal, (const int[]){ SIGUSR1, 0 });
	kill(getpid(), SIGUSR1);
	eq(heard[2], 1, "at once, at first");
	heard[2] = 0;

	pl_signals_block(&signals);
	kill(getpid(), SIGUSR1);
	eq(heard[2], 0, "not in the middle of a turn");
	eq(pl_signals_poll(&signals, &fd, 1, HOUR), 0, "a signal ends the wait");
	eq(heard[2], 1);

	ok(write(ends[1], "x", 1) == 1, "something to be read, always");
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGINT);
	eq(heard[0] + heard[1], 0);
	eq(pl_signals_poll(&signals, &fd, 1, HOUR), 1, "it is told of");
	ok(heard[0] == 1 && heard[1] == 1, "and signals are heard");
	ok((fd.revents & POLLIN) != 0, "whose descriptor it is stays known");

	sigprocmask(SIG_SETMASK, NULL, &now);
	ok(sigismember(&now, SIGINT) && sigismember(&now, SIGTERM) && sigismember(&now, SIGUSR1),
		"between turns they are blocked again");
	eq(pl_signals_poll(&signals, NULL, 0, 1000000), 0, "nothing came");
	test_fd();
	return pl_test_done();
}
