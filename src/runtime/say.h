/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of services to the user: a line "pathline: TEXT" on standard error, or a log line of the
 * level notice once the process logs. Any thread. Output for programs goes through a struct
 * pl_print of the caller.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* true: messages become log lines; false: they go to standard error. */
void pl_say_by_log(bool on);
bool pl_say_is_by_log(void);

/* fmt must be valid as long as the program runs. */
void pl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void pl_say_v(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
void pl_say_diag(const struct pl_diag *diag);

/* Output of data: whole lines, at once. Any thread. */
struct pl_print {
	void (*text)(void *arg, const char *text, size_t n);
	void *arg;
};
