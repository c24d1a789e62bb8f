/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks for the line at an address that is read or written soon. Any address will do.
 *
 * Not __builtin_prefetch by itself: to GCC (seen with 12.2) a function that does nothing else has no effect, and calls of
 * it are dropped without a word. The empty assembly is an effect.
 */
#pragma once

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
