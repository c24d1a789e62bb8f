/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors for the user at the terminal. */
#include "base/complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"

#define BEFORE 60u /* bytes shown of a line before the fault, and behind it */
#define BEHIND 40u

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

/* True when a UTF-8 character begins there. */
static bool begins(char c)
{
	return (c & 0xc0) != 0x80;
}

static const char *line_of(const char *text, unsigned int line)
{
	for (unsigned int i = 1; i < line && strchr(text, '\n') != NULL; i++)
		text = strchr(text, '\n') + 1;
	return text;
}

void pl_complain_at(const char *what, const struct pl_diag *diag, const char *text)
{
	const char *line = line_of(text, diag->line), *from = line;
	const size_t n = strcspn(line, "\n");
	const char *const fault = line + (diag->column - 1 < n ? diag->column - 1 : n);
	const char *to = line + n;
	int width = 0;

	if (fault - line > (ptrdiff_t)BEFORE && n > BEFORE + BEHIND)
		from = fault - BEFORE;
	if (to - fault > (ptrdiff_t)BEHIND && n > BEFORE + BEHIND)
		to = fault + BEHIND;
	while (from < fault && !begins(*from))
		from++;
	while (to > fault && !begins(*to))
		to--;
	for (const char *p = from; p < fault; p++)
		width += begins(*p);
	pl_complain("%scolumn %u: %s\n  %s%.*s%s\n  %*s^", what, diag->column, diag->text,
		from > line ? "…" : "", (int)(to - from), from, to < line + n ? "…" : "",
		width + (from > line), "");
}

void pl_complain_diag(const struct pl_diag *diag)
{
	char text[sizeof(diag->text) + sizeof(diag->file) + 32];

	pl_diag_format(diag, text, sizeof(text));
	pl_complain("%s", text);
}
