/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing run of bytes, for text forms and request bodies. Failure is sticky: after the first
 * failed allocation, or once a set limit would be passed, nothing more is added and `failed` stays
 * set, so a formatter is written straight down and checked once at its end. Not for the packet
 * path. No number depends on the locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pl_buf {
	char *data; /* NUL-terminated once anything was added; NULL before */
	size_t len; /* bytes, without the terminator */
	size_t cap; /* allocated, with room for the terminator */
	/* refuse to hold more bytes than this, 0 = none; set it before the first byte */
	size_t limit;
	bool failed;
};

void pl_buf_init(struct pl_buf *buf);
void pl_buf_done(struct pl_buf *buf);
void pl_buf_reset(struct pl_buf *buf); /* empties, keeps the memory, clears failed */

/* Slow half of pl_buf_reserve. */
char *pl_buf_grow(struct pl_buf *buf, size_t n);

/* Reserves room for n more bytes; NULL (and failed) when there is none. Follow with
 * pl_buf_advance. */
static inline char *pl_buf_reserve(struct pl_buf *buf, size_t n)
{
	if (buf->cap - buf->len > n && !buf->failed)
		return buf->data + buf->len;
	return pl_buf_grow(buf, n);
}

static inline void pl_buf_advance(struct pl_buf *buf, size_t n)
{
	buf->len += n;
	buf->data[buf->len] = '\0';
}

static inline void pl_buf_add(struct pl_buf *buf, const void *data, size_t n)
{
	char *to = pl_buf_reserve(buf, n);

	if (to == NULL)
		return;
	if (n > 0)
		memcpy(to, data, n);
	pl_buf_advance(buf, n);
}

static inline void pl_buf_str(struct pl_buf *buf, const char *text)
{
	pl_buf_add(buf, text, strlen(text));
}

static inline void pl_buf_chr(struct pl_buf *buf, char c)
{
	char *to = pl_buf_reserve(buf, 1);

	if (to == NULL)
		return;
	*to = c;
	pl_buf_advance(buf, 1);
}

void pl_buf_u64(struct pl_buf *buf, uint64_t v);
void pl_buf_i64(struct pl_buf *buf, int64_t v);
void pl_buf_hex64(struct pl_buf *buf, uint64_t v); /* 16 digits, lower case, no prefix */
void pl_buf_double(
	struct pl_buf *buf, double v); /* shortest form that reads back; NaN, +Inf, -Inf */
void pl_buf_printf(struct pl_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
