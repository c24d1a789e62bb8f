/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnosis for the user when an operation fails and a code is not enough: of a configuration, a
 * filter expression, a URI. The callee fills it, the caller prints it. Every function that takes
 * one accepts NULL. There is no other channel for text: library code never prints. */
#pragma once

struct pl_diag {
	char text[512];      /* a sentence without a full stop, UTF-8, always terminated */
	char file[256];      /* file with the fault; empty when it is not about a file */
	unsigned int line;   /* counted from 1; 0 when unknown */
	unsigned int column; /* counted from 1; 0 when unknown */
};

/* Control characters and broken UTF-8 among the arguments come out as "?". */
/* Replaces the text; leaves file, line and column as they are. */
void pl_diag_set(struct pl_diag *diag, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, with the error as its value: `return pl_diag_fail(diag, -EINVAL, "…", …)`. The
 * error is evaluated last, when errno may have changed. */
#define pl_diag_fail(diag, error, ...) (pl_diag_set(diag, __VA_ARGS__), (error))

/* Replaces text and position. */
void pl_diag_at(struct pl_diag *diag, unsigned int line, unsigned int column, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Appends `, did you mean "NEAREST"?`, with these quotes, if one of n words is near the word that was
 * given. */
void pl_diag_nearest(struct pl_diag *diag, char quote, const char *word, const char *const *words,
	unsigned long n);

/* Writes "file:line:column: text", without unknown parts. Returns the length like snprintf. */
int pl_diag_format(const struct pl_diag *diag, char *dst, unsigned long cap);
