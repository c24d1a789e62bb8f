/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The checked reader of core/report_core.h: the twin of wire/cursor.h for the kernel program, with
 * the same names and order of checks. A position is compared with the length that is left; in the
 * kernel also with the end of the frame, because the verifier understands only that. A length from
 * the wire is skipped through the cursor, up to a maximum. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef PL_CORE_INLINE
#define PL_CORE_INLINE static inline __attribute__((always_inline))
#endif

#ifdef __bpf__
/* Keeps the compiler from splitting a pointer in two, of which the verifier would know only one. */
#define PL_FRAME_OPAQUE(v) asm volatile("" : "+r"(v))
#else
#define PL_FRAME_OPAQUE(v)
#endif

struct pl_frame_cursor {
	const uint8_t *pos;
	const uint8_t *end; /* end of the frame */
	uint32_t left;      /* bytes from pos on, within the frame */
};

PL_CORE_INLINE const uint8_t *pl_frame_peek(const struct pl_frame_cursor *c, uint32_t n)
{
	if (c->left < n)
		return NULL;
#ifdef __bpf__
	if (c->pos + n > c->end)
		return NULL;
#endif
	return c->pos;
}

PL_CORE_INLINE const uint8_t *pl_frame_take(struct pl_frame_cursor *c, uint32_t n)
{
	const uint8_t *p = pl_frame_peek(c, n);

	if (p == NULL)
		return NULL;
	c->pos = p + n;
	c->left -= n;
	return p;
}

/* Skips a length from the wire; returns 0 when it is above max, or above the bytes left. */
PL_CORE_INLINE int pl_frame_skip(struct pl_frame_cursor *c, uint32_t n, uint32_t max)
{
	if (n > max || n > c->left)
		return 0;
	c->pos += n;
	c->left -= n;
	PL_FRAME_OPAQUE(c->pos);
	return 1;
}

PL_CORE_INLINE int pl_frame_trim(struct pl_frame_cursor *c, uint32_t n)
{
	if (n > c->left)
		return 0;
	c->left = n;
	return 1;
}

/* Loads from memory known to be there, big-endian. The kernel program's compiler assumes alignment;
 * the machine does not need it. */
#ifdef __bpf__
#define PL_FRAME_LOAD(type, p) (*(const type *)(p))
#else
#define PL_FRAME_LOAD(type, p)                                                                     \
	({                                                                                         \
		type load_;                                                                        \
		memcpy(&load_, (p), sizeof(load_));                                                \
		load_;                                                                             \
	})
#endif

PL_CORE_INLINE uint32_t pl_frame_be16(const uint8_t *p)
{
	return __builtin_bswap16(PL_FRAME_LOAD(uint16_t, p));
}

PL_CORE_INLINE uint32_t pl_frame_be32(const uint8_t *p)
{
	return __builtin_bswap32(PL_FRAME_LOAD(uint32_t, p));
}

PL_CORE_INLINE uint64_t pl_frame_be64(const uint8_t *p)
{
	return __builtin_bswap64(PL_FRAME_LOAD(uint64_t, p));
}

/* Write an address as in struct pl_addr, as two words. */
PL_CORE_INLINE void pl_frame_addr_v4(uint64_t *ret, const uint8_t *p)
{
	ret[0] = 0;
	ret[1] = (uint64_t)PL_FRAME_LOAD(uint32_t, p) << 32 | 0xffff0000;
}

PL_CORE_INLINE void pl_frame_addr_v6(uint64_t *ret, const uint8_t *p)
{
	ret[0] = PL_FRAME_LOAD(uint64_t, p);
	ret[1] = PL_FRAME_LOAD(uint64_t, p + 8);
}

PL_CORE_INLINE uint32_t pl_core_popcount16(uint32_t v)
{
	v = v - (v >> 1 & 0x5555);
	v = (v & 0x3333) + (v >> 2 & 0x3333);
	v = (v + (v >> 4)) & 0x0f0f;
	return (v + (v >> 8)) & 0x1f;
}
