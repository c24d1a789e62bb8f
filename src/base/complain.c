/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors told to the person at the terminal. */
#include "base/complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"

void pl_complain(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("pathline: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void pl_complain_diag(const struct pl_diag *diag)
{
	char text[sizeof(diag->text) + sizeof(diag->file) + 32];

	pl_diag_format(diag, text, sizeof(text));
	pl_complain("%s", text);
}
