/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records of a daemon's stream in the form "record" (export/watch.h): their bytes in
 * hexadecimal digits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "export/watch.h"

static inline int pl_stream_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads `size` bytes from twice as many digits. Returns false when some are no digits. */
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

/* A record of a tap or marking domain. */
union pl_stream_tapped {
	struct pl_flow288 flow;
	struct pl_pkt96 packet;
	struct pl_dns64 dns;
	struct pl_drop168 drop;
	struct pl_mark128 mark;
	struct pl_seg192 segment;
};

/* Reads the record of a line of n characters, without its end; returns its kind. NULL: it is no
 * record of a tap, or has another layout. */
static inline const struct pl_watch_kind *pl_stream_tapped(
	union pl_stream_tapped *ret, const char *line, size_t n)
{
	const struct pl_watch_kind *kind;

	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		const size_t word = strlen(kind->word), size = pl_flat(kind->flat)->size;

		if (n == word + 2 * size && memcmp(line, kind->word, word) == 0)
			return pl_stream_hex(ret, size, line + word) ? kind : NULL;
	}
	return NULL;
}
