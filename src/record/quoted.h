/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and texts of SQL, in which a quotation mark is doubled. */
#pragma once

#include "base/buf.h"

/* Writes the text without marks around it. */
static inline void pl_put_doubled(struct pl_buf *out, const char *text, char mark)
{
	for (; *text != '\0'; text++) {
		if (*text == mark)
			pl_buf_chr(out, mark);
		pl_buf_chr(out, *text);
	}
}

static inline void pl_put_quoted(struct pl_buf *out, const char *text, char mark)
{
	pl_buf_chr(out, mark);
	pl_put_doubled(out, text, mark);
	pl_buf_chr(out, mark);
}
