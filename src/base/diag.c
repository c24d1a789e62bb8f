/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the text that says why an operation failed. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

/* Quoted input ends on a terminal: control characters and broken UTF-8 (which includes a sequence
 * the size limit cut) become question marks. */
static void clean(char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n;) {
		size_t len;
		uint32_t cp;
		bool good = pl_utf8_next(text + i, n - i, &len, &cp);

		if (!good || cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			memset(text + i, '?', len);
		i += len;
	}
}

__attribute__((format(printf, 2, 0))) static void set(
	struct pl_diag *diag, const char *fmt, va_list ap)
{
	char text[sizeof(diag->text)]; /* an argument may be the old text */

	vsnprintf(text, sizeof(text), fmt, ap);
	clean(text);
	memcpy(diag->text, text, sizeof(text));
}

void pl_diag_set(struct pl_diag *diag, const char *fmt, ...)
{
	va_list ap;

	if (diag == NULL)
		return;
	va_start(ap, fmt);
	set(diag, fmt, ap);
	va_end(ap);
}

void pl_diag_at(struct pl_diag *diag, unsigned int line, unsigned int column, const char *fmt, ...)
{
	va_list ap;

	if (diag == NULL)
		return;
	va_start(ap, fmt);
	set(diag, fmt, ap);
	va_end(ap);
	diag->line = line;
	diag->column = column;
}

void pl_diag_nearest(struct pl_diag *diag, char quote, const char *word, const char *const *words,
	unsigned long n)
{
	const char *near = pl_nearest(word, words, n);

	if (diag != NULL && near != NULL)
		pl_diag_set(diag, "%s, did you mean %c%s%c?", diag->text, quote, near, quote);
}

int pl_diag_format(const struct pl_diag *diag, char *dst, unsigned long cap)
{
	char place[sizeof(diag->file) + 32] = "";

	if (diag->line != 0 && diag->column != 0)
		snprintf(place, sizeof(place), "%s%s%u:%u: ", diag->file,
			diag->file[0] != '\0' ? ":" : "", diag->line, diag->column);
	else if (diag->line != 0)
		snprintf(place, sizeof(place), "%s%s%u: ", diag->file,
			diag->file[0] != '\0' ? ":" : "", diag->line);
	else if (diag->file[0] != '\0')
		snprintf(place, sizeof(place), "%s: ", diag->file);
	return snprintf(dst, cap, "%s%s", place, diag->text);
}
