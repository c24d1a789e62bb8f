/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints or logs the texts of services. */
#include "runtime/say.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/complain.h"
#include "base/log.h"

#define LINE_MAX_BYTES 2048

static _Atomic bool by_log;

void pl_say_by_log(bool on)
{
	atomic_store_explicit(&by_log, on, memory_order_relaxed);
}

bool pl_say_is_by_log(void)
{
	return atomic_load_explicit(&by_log, memory_order_relaxed);
}

void pl_say_v(const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES];

	if (pl_say_is_by_log()) {
		pl_log_v(PL_LOG_NOTICE, "service", fmt, ap);
		return;
	}
	vsnprintf(text, sizeof(text), fmt, ap);
	pl_complain("%s", text);
}

void pl_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pl_say_v(fmt, ap);
	va_end(ap);
}

void pl_say_diag(const struct pl_diag *diag)
{
	char text[sizeof(diag->text) + sizeof(diag->file) + 32];

	pl_diag_format(diag, text, sizeof(text));
	pl_say("%s", text);
}
