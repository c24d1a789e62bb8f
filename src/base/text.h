/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares texts that may be missing. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Returns true for equal texts, and when both are NULL. */
static inline bool pl_text_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}
