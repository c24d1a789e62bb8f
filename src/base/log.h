/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines, for the outer layers (cli, pipeline, web). Folders below return errors instead; any
 * folder may log at debug level. A line goes to the sink set by main (standard error by default).
 * Repeats of one format string and subject are folded: the first ten within ten seconds are shown,
 * then a count. Any thread may call. Text is made one line: control characters are written as \xNN;
 * text beyond 1000 bytes is cut.
 *
 * Standard error may be a pipe that no process reads. A line waits at most 100 ms for room, then it
 * is dropped and counted; the count is written once there is room again.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum pl_log_level { PL_LOG_ERROR, PL_LOG_WARNING, PL_LOG_NOTICE, PL_LOG_INFO, PL_LOG_DEBUG };
enum pl_log_format { PL_LOG_AUTO, PL_LOG_TEXT, PL_LOG_LOGFMT, PL_LOG_JSON };

/* Takes a line; one thread at a time calls it. It must not log. */
typedef void pl_log_sink(void *arg, enum pl_log_level level, const char *subject, const char *text);

void pl_log_set_level(enum pl_log_level level);     /* default: notice */
void pl_log_set_format(enum pl_log_format format);  /* auto: text on a terminal, else logfmt */
void pl_log_set_sink(pl_log_sink *sink, void *arg); /* NULL: standard error again */
int pl_log_parse_level(const char *text, enum pl_log_level *ret);   /* 0 or -EINVAL */
int pl_log_parse_format(const char *text, enum pl_log_format *ret); /* 0 or -EINVAL */

/* Logs a line. fmt and subject must be valid until the program ends, because repeats are recognised
 * by their addresses. */
void pl_log(enum pl_log_level level, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void pl_log_v(enum pl_log_level level, const char *subject, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Logs from a signal handler: no lock, no memory, no folding, always shown, never to a sink;
 * subject and text are plain words of ours. */
void pl_log_from_handler(enum pl_log_level level, const char *subject, const char *text);

/* Writes the counts of folded repeats whose ten seconds are over; with `all`, the others too. Call
 * it now and then, and with `all` at the end. Without it a count appears with the next line of its
 * kind. */
void pl_log_flush(bool all);

#define pl_error(subject, ...)  pl_log(PL_LOG_ERROR, subject, __VA_ARGS__)
#define pl_warn(subject, ...)   pl_log(PL_LOG_WARNING, subject, __VA_ARGS__)
#define pl_notice(subject, ...) pl_log(PL_LOG_NOTICE, subject, __VA_ARGS__)
#define pl_info(subject, ...)   pl_log(PL_LOG_INFO, subject, __VA_ARGS__)
#define pl_debug(subject, ...)  pl_log(PL_LOG_DEBUG, subject, __VA_ARGS__)
