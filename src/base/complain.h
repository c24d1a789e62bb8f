/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors for the user at the terminal, on standard error. Only for code that runs on behalf of a
 * command: other folders return their text in a struct pl_diag. */
#pragma once

struct pl_diag;

/* Prints "pathline: TEXT" and a line end. Standard output is flushed first, so that the order is
 * right. */
void pl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, with the exit code as its value: `return pl_fail(PL_EXIT_USAGE, "…", …)`. The
 * code is evaluated last, when errno may have changed. */
#define pl_fail(code, ...) (pl_complain(__VA_ARGS__), (code))

/* Prints a diagnosis of a text, with the line that it points at and a mark under the character at
 * fault; of a long line, the part near that. `what` stands before the column ("" or "--where,
 * "). */
void pl_complain_at(const char *what, const struct pl_diag *diag, const char *text);

/* Prints a diagnosis, with its file and line if it has them. */
void pl_complain_diag(const struct pl_diag *diag);
