/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checked writer, the counterpart of cursor.h: writes big-endian values into the caller's
 * memory, sets a sticky mark when they do not fit, and patches bytes written before (lengths,
 * checksums). Positions are offsets, so a patch can never point outside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pl_build {
	uint8_t *data;
	size_t len, cap; /* bytes written; bytes of data */
	bool full;       /* something did not fit; len no longer grows */
};

static inline struct pl_build pl_build(void *data, size_t cap)
{
	return (struct pl_build){ data, 0, cap, false };
}

/* Returns n bytes to be filled by the caller, or NULL and sets the mark. */
static inline uint8_t *pl_build_reserve(struct pl_build *b, size_t n)
{
	uint8_t *p;

	if (b->full || n > b->cap - b->len) {
		b->full = true;
		return NULL;
	}
	p = b->data + b->len;
	b->len += n;
	return p;
}

static inline void pl_put(struct pl_build *b, const void *data, size_t n)
{
	uint8_t *p = pl_build_reserve(b, n);

	if (p != NULL && n > 0)
		memcpy(p, data, n);
}

static inline void pl_put_zero(struct pl_build *b, size_t n)
{
	uint8_t *p = pl_build_reserve(b, n);

	if (p != NULL && n > 0)
		memset(p, 0, n);
}

static inline void pl_put_u8(struct pl_build *b, uint8_t v)
{
	pl_put(b, &v, 1);
}

static inline void pl_put_be16(struct pl_build *b, uint16_t v)
{
	v = __builtin_bswap16(v);
	pl_put(b, &v, 2);
}

static inline void pl_put_be24(struct pl_build *b, uint32_t v)
{
	v = __builtin_bswap32(v << 8);
	pl_put(b, &v, 3);
}

static inline void pl_put_be32(struct pl_build *b, uint32_t v)
{
	v = __builtin_bswap32(v);
	pl_put(b, &v, 4);
}

static inline void pl_put_be64(struct pl_build *b, uint64_t v)
{
	v = __builtin_bswap64(v);
	pl_put(b, &v, 8);
}

/* Overwrites bytes already put; ignored (and marked) when the range was never written. */
static inline void pl_patch(struct pl_build *b, size_t at, const void *data, size_t n)
{
	if (at > b->len || n > b->len - at)
		b->full = true;
	else
		memcpy(b->data + at, data, n);
}

static inline void pl_patch_u8(struct pl_build *b, size_t at, uint8_t v)
{
	pl_patch(b, at, &v, 1);
}

static inline void pl_patch_be16(struct pl_build *b, size_t at, uint16_t v)
{
	v = __builtin_bswap16(v);
	pl_patch(b, at, &v, 2);
}

static inline void pl_patch_be32(struct pl_build *b, size_t at, uint32_t v)
{
	v = __builtin_bswap32(v);
	pl_patch(b, at, &v, 4);
}
