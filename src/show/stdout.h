/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard output, whoever reads it. A pipe that nobody reads would hold a command for ever, also
 * one that was told to end: SIGTERM sets a flag, and the write goes on. Every byte goes through
 * here, printf's too, and waits in poll(2); once the command was told to end, a reader that takes
 * nothing for two seconds is not waited for any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

struct pl_print;
/* For services: text as it is, at once. */
extern const struct pl_print pl_stdout_print, pl_stderr_print;

/* Puts it below the stream `stdout`; first of all. Returns the stream that was there, for those who
 * need its descriptor. */
FILE *pl_stdout_open(void);
FILE *pl_stdout_terminal(void);

/* The command was told to end, by a signal that is not pending any more. Any thread, and signal
 * handlers. */
void pl_stdout_hurry(void);
/* True when the last text was given up for that. */
bool pl_stdout_given_up(void);

/* All of it, which is freed. The exit code, after complaining when it cannot be written. */
int pl_stdout_all(struct pl_buf *out);

/* All of it, not buffered. *gone: nobody reads any more, or not within the time; *error: a
 * negative errno of another failure. */
void pl_stdout_write(const char *text, size_t n, bool *gone, int *error);
/* The same with a buffer, which is empty afterwards; nothing more after an error. */
void pl_stdout_flush(struct pl_buf *buf, bool *gone, int *error);
