/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to standard output. A pipe without a reader would block a command for ever, even after
 * SIGTERM, which only sets a flag while the write goes on. So every byte, also of printf, is
 * written by this file, which waits in poll(2). Once a signal asked the command to end, it waits at
 * most two seconds for a reader that takes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

struct pl_print;
/* Printers for services: write text unchanged, at once. */
extern const struct pl_print pl_stdout_print, pl_stderr_print;

/* Puts these functions below the stream `stdout`; to be called first of all. Returns the original
 * stream, for its descriptor. */
FILE *pl_stdout_open(void);
FILE *pl_stdout_terminal(void);

/* Records that a signal, which is no longer pending, asked the command to end. To be called by any
 * thread, and by signal handlers. */
void pl_stdout_hurry(void);
/* Returns true when writing was given up for that. */
bool pl_stdout_given_up(void);

/* Writes the buffer and frees it. Returns the exit code; prints an error when writing fails. */
int pl_stdout_all(struct pl_buf *out);

/* Writes a buffer at once and empties it; writes nothing after an error. *gone: the reader is gone,
 * or took nothing in time; *error: negative errno of another failure. */
void pl_stdout_flush(struct pl_buf *buf, bool *gone, int *error);
