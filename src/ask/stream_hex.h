/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a daemon's stream in the form "record" (export/watch.h): their bytes in hexadecimal digits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int pl_stream_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `size` bytes out of twice as many digits. False: some are none. */
static inline bool pl_stream_hex(void *to, size_t size, const char *digits)
{
	uint8_t *p = to;

	for (size_t i = 0; i < size; i++) {
		const int high = pl_stream_digit(digits[2 * i]),
			  low = pl_stream_digit(digits[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		p[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
