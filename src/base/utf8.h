/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 by the Unicode standard 15, table 3-7: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the sequence at the start of s (n > 0 bytes). If it is well-formed, returns true, with its
 * length (1 to 4) in *ret_len and the code point in *ret_cp. Otherwise returns false, and *ret_len
 * is the length of the part to replace by one U+FFFD ("maximal subpart", Unicode 3.9), at least
 * 1. */
static inline bool pl_utf8_next(const char *s, size_t n, size_t *ret_len, uint32_t *ret_cp)
{
	const uint8_t *p = (const uint8_t *)s;
	uint8_t low = 0x80, high = 0xbf;
	size_t more;
	uint32_t cp;

	*ret_len = 1;
	if (p[0] < 0x80) {
		*ret_cp = p[0];
		return true;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		more = 1;
		cp = p[0] & 0x1fu;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		more = 2;
		cp = p[0] & 0x0fu;
		if (p[0] == 0xe0)
			low = 0xa0;
		if (p[0] == 0xed)
			high = 0x9f;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		more = 3;
		cp = p[0] & 0x07u;
		if (p[0] == 0xf0)
			low = 0x90;
		if (p[0] == 0xf4)
			high = 0x8f;
	} else {
		return false;
	}
	for (size_t i = 1; i <= more; i++) {
		if (i >= n || p[i] < low || p[i] > high)
			return false;
		cp = cp << 6 | (p[i] & 0x3fu);
		*ret_len = i + 1;
		low = 0x80;
		high = 0xbf;
	}
	*ret_cp = cp;
	return true;
}

/* True when all n bytes are well-formed. */
static inline bool pl_utf8_valid(const char *s, size_t n)
{
	while (n > 0) {
		size_t len;
		uint32_t cp;

		if (!pl_utf8_next(s, n, &len, &cp))
			return false;
		s += len;
		n -= len;
	}
	return true;
}
