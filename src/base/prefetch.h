/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prefetches the line at an address that is read or written soon. Any address is allowed.
 *
 * __builtin_prefetch alone is not enough: GCC (seen with 12.2) takes a function that does nothing
 * else for one without effect, and drops its calls without a warning. The empty assembly is an
 * effect.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void pl_prefetch(const void *p)
{
	__builtin_prefetch(p);
	__asm__ volatile("");
}

static inline void pl_prefetch_write(const void *p)
{
	__builtin_prefetch(p, 1);
	__asm__ volatile("");
}

/* Prefetches all cache lines of `size` bytes, one line or more. */
static inline void pl_prefetch_all(const void *at, size_t size, bool write)
{
	size_t i = 0;

	do {
		if (write)
			pl_prefetch_write((const uint8_t *)at + i);
		else
			pl_prefetch((const uint8_t *)at + i);
		i += 64;
	} while (i < size);
}
