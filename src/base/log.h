/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines, for the outer layers (cli, pipeline, web). Folders below return errors instead; debug level
 * is free to all. A line goes to the sink set by main (standard error by default). Repeats of one format
 * string are folded: the first ten within ten seconds are shown, then a count. Any thread may call.
 */
#pragma once

#include <stdbool.h>

enum pl_log_level { PL_LOG_ERROR, PL_LOG_WARNING, PL_LOG_NOTICE, PL_LOG_INFO, PL_LOG_DEBUG };
enum pl_log_format { PL_LOG_AUTO, PL_LOG_TEXT, PL_LOG_LOGFMT, PL_LOG_JSON };

typedef void pl_log_sink(void *arg, enum pl_log_level level, const char *subject, const char *text);

void pl_log_set_level(enum pl_log_level level);
void pl_log_set_format(enum pl_log_format format);  /* auto: text on a terminal, else logfmt */
void pl_log_set_sink(pl_log_sink *sink, void *arg); /* NULL: standard error again */
int pl_log_parse_level(const char *text, enum pl_log_level *ret);
int pl_log_parse_format(const char *text, enum pl_log_format *ret);

void pl_log(enum pl_log_level level, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define pl_error(subject, ...)  pl_log(PL_LOG_ERROR, subject, __VA_ARGS__)
#define pl_warn(subject, ...)   pl_log(PL_LOG_WARNING, subject, __VA_ARGS__)
#define pl_notice(subject, ...) pl_log(PL_LOG_NOTICE, subject, __VA_ARGS__)
#define pl_info(subject, ...)   pl_log(PL_LOG_INFO, subject, __VA_ARGS__)
#define pl_debug(subject, ...)  pl_log(PL_LOG_DEBUG, subject, __VA_ARGS__)
