/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of parsers: bytes written as hexadecimal digits. */
#pragma once

#include "base/test.h"
#include "wire/cursor.h"

/* Returns the bytes in memory of exactly their size, so that a sanitizer sees a read behind them. They
 * are valid until the next call. */
static inline struct pl_cursor from_hex(const char *hex)
{
	static uint8_t *exact;
	uint8_t bytes[2048];
	const size_t n = pl_test_hex(bytes, sizeof(bytes), hex);

	free(exact);
	exact = malloc(n > 0 ? n : 1);
	if (exact == NULL)
		abort();
	memcpy(exact, bytes, n);
	return pl_cursor(exact, n);
}
