/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that set a flag, for commands that end well. While a command is set up they end whatever
 * system call waits. A loop around poll blocks them then, but for the time of pl_signals_poll, so
 * that nothing else of a turn ends early and no signal comes unseen just before the wait.
 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pl_signals {
	sigset_t heard, while_waiting;
};

/* What is called whenever SIGINT or SIGTERM has come, from a signal handler; NULL: nothing. */
void pl_signals_on_end(void (*call)(void));

/* As pl_signals_catch, for who waits in other ways. SIGPIPE is as it was. */
void pl_signals_handle(void (*handler)(int signo), const int *also);

/* SIGINT, SIGTERM, and those of `also`, which 0 ends. The handler sets a flag and no more. SIGPIPE
 * is ignored. */
void pl_signals_catch(struct pl_signals *s, void (*handler)(int signo), const int *also);

void pl_signals_block(struct pl_signals *s);

/* Once they are blocked: waits for the descriptors, at most so long, and hears what signals there
 * are. Also when a descriptor is ready at once: ppoll(2) by itself lets none in then, and a loop
 * with work at every turn would never end. How many are ready; 0 after a signal. */
int pl_signals_poll(const struct pl_signals *s, struct pollfd *fds, nfds_t n, uint64_t wait_ns);

/* A descriptor that SIGINT, SIGTERM and those of `also` (0 ends it) are read from, as signalfd(2)
 * has it. They are blocked in every thread that is started from here on; SIGPIPE is ignored. */
int pl_signals_fd(const int *also, int flags);
/* The next signal from it; false when there is none. */
bool pl_signals_read(int fd, int *ret_signo);
