/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that set a flag, for commands that end in order. While a command starts, signals
 * interrupt any system call that waits. A loop around poll blocks them then, except during
 * pl_signals_poll, so that no other call of a turn is interrupted and no signal is missed just
 * before the wait.
 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pl_signals {
	sigset_t heard, while_waiting;
};

/* Sets a function that is called, from a signal handler, on each SIGINT or SIGTERM; NULL: none. */
void pl_signals_on_end(void (*call)(void));

/* As pl_signals_catch, for commands that wait in other ways. SIGPIPE is unchanged. */
void pl_signals_handle(void (*handler)(int signo), const int *also);

/* Catches SIGINT, SIGTERM, and the signals of `also`, a list that ends with 0. The handler sets a
 * flag and no more. SIGPIPE is ignored. */
void pl_signals_catch(struct pl_signals *s, void (*handler)(int signo), const int *also);

void pl_signals_block(struct pl_signals *s);

/* Once signals are blocked: waits for the descriptors, at most wait_ns, and lets pending signals
 * in, also when a descriptor is ready at once: ppoll(2) alone lets none in then, and a loop with
 * work at every turn would never end. Returns the number of ready descriptors; 0 after a signal. */
int pl_signals_poll(const struct pl_signals *s, struct pollfd *fds, nfds_t n, uint64_t wait_ns);

/* Makes a descriptor from which SIGINT, SIGTERM and the signals of `also` (ends with 0) are read,
 * as by signalfd(2). They are blocked in every thread started later; SIGPIPE is ignored. */
int pl_signals_fd(const int *also, int flags);
/* Reads the next signal. Returns false when there is none. */
bool pl_signals_read(int fd, int *ret_signo);
