/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors told to the person at the terminal, on standard error. Only for what runs on behalf of a
 * command: other folders hand their text up in a struct pl_diag.
 */
#pragma once

struct pl_diag;

/* "pathline: TEXT" and a line end. What standard output still holds is written first, so that the
 * order is right. */
void pl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same of a diagnosis of a text, with the line that it points at and a mark under the character at
 * fault; of a long line what is near that. `what` stands before the column ("" or "--where, "). */
void pl_complain_at(const char *what, const struct pl_diag *diag, const char *text);

/* The same of a diagnosis, with its file and line where it has them. */
void pl_complain_diag(const struct pl_diag *diag);
