/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checked reader: a decoder takes bytes through it and cannot read past the packet. A failed
 * read gives zero (or NULL), sets the sticky mark and empties the cursor, so a loop that consumes
 * it ends and a decoder may read on and test once. A length from the wire splits a cursor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pl_cursor {
	const uint8_t *pos, *end;
	bool short_read;
};

static inline struct pl_cursor pl_cursor(const void *data, size_t len)
{
	return (struct pl_cursor){ data, (const uint8_t *)data + len, false };
}

static inline size_t pl_cursor_left(const struct pl_cursor *c)
{
	return (size_t)(c->end - c->pos);
}

static inline void pl_cursor_fail(struct pl_cursor *c)
{
	c->short_read = true;
	c->pos = c->end;
}

/* Takes n bytes; returns NULL and sets the mark when there are fewer. */
static inline const uint8_t *pl_cursor_take(struct pl_cursor *c, size_t n)
{
	const uint8_t *p = c->pos;

	if (__builtin_expect(n > pl_cursor_left(c), 0)) {
		pl_cursor_fail(c);
		return NULL;
	}
	c->pos = p + n;
	return p;
}

/* Returns the next n bytes without consuming them, or NULL; never sets the mark. */
static inline const uint8_t *pl_cursor_peek(const struct pl_cursor *c, size_t n)
{
	return n <= pl_cursor_left(c) ? c->pos : NULL;
}

static inline void pl_cursor_skip(struct pl_cursor *c, size_t n)
{
	(void)pl_cursor_take(c, n);
}

/* Splits off the inside of a length-prefixed block: n bytes of c, consumed from it. When there are
 * fewer, the result is empty and marked. */
static inline struct pl_cursor pl_cursor_split(struct pl_cursor *c, size_t n)
{
	const uint8_t *p = pl_cursor_take(c, n);

	if (p == NULL)
		return (struct pl_cursor){ c->end, c->end, true };
	return (struct pl_cursor){ p, p + n, false };
}

/* Cuts c to its first n bytes; returns false when it has fewer. */
static inline bool pl_cursor_trim(struct pl_cursor *c, size_t n)
{
	if (n > pl_cursor_left(c))
		return false;
	c->end = c->pos + n;
	return true;
}

/* Load big-endian values, at any alignment, from memory known to be there. */
static inline uint16_t pl_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t pl_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t pl_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t pl_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline uint8_t pl_get_u8(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 1);

	return p == NULL ? 0 : *p;
}

static inline uint16_t pl_get_be16(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 2);

	return p == NULL ? 0 : pl_be16(p);
}

static inline uint32_t pl_get_be24(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 3);

	return p == NULL ? 0 : pl_be24(p);
}

static inline uint32_t pl_get_be32(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 4);

	return p == NULL ? 0 : pl_be32(p);
}

static inline uint64_t pl_get_be64(struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 8);

	return p == NULL ? 0 : pl_be64(p);
}
