/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is written while others read it, copied by relaxed atomic words: no word is ever torn, the order of
 * words is free. Counts are in bytes; places are aligned to the word.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* `bytes` is a multiple of 8. */
static inline void pl_words_store(void *to, const void *from, size_t bytes)
{
	uint64_t *w = to;
	uint64_t v;

	for (size_t i = 0; i < bytes / 8; i++) {
		memcpy(&v, (const uint8_t *)from + 8 * i, sizeof(v));
		__atomic_store_n(&w[i], v, __ATOMIC_RELAXED);
	}
}

static inline void pl_words_load(void *to, const void *from, size_t bytes)
{
	const uint64_t *w = from;
	uint64_t v;

	for (size_t i = 0; i < bytes / 8; i++) {
		v = __atomic_load_n(&w[i], __ATOMIC_RELAXED);
		memcpy((uint8_t *)to + 8 * i, &v, sizeof(v));
	}
}

/* Up to 8 bytes from anywhere, the rest zero; and back. */
static inline uint64_t pl_word_gather(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (n >= 8) {
		memcpy(&v, p, 8);
		return v;
	}
	if (n >= 4) {
		uint32_t first, last; /* which may overlap */

		memcpy(&first, p, 4);
		memcpy(&last, p + n - 4, 4);
		return first | (uint64_t)last << 8 * (n - 4);
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static inline void pl_word_scatter(uint8_t *p, uint64_t v, size_t n)
{
	if (n >= 8) {
		memcpy(p, &v, 8);
		return;
	}
	if (n >= 4) {
		const uint32_t first = (uint32_t)v, last = (uint32_t)(v >> 8 * (n - 4));

		memcpy(p, &first, 4);
		memcpy(p + n - 4, &last, 4);
		return;
	}
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* The same by words of four bytes. */
static inline void pl_words32_store(void *to, const void *from, size_t bytes)
{
	uint32_t *w = to;
	uint32_t v;

	for (size_t i = 0; i < bytes / 4; i++) {
		memcpy(&v, (const uint8_t *)from + 4 * i, sizeof(v));
		__atomic_store_n(&w[i], v, __ATOMIC_RELAXED);
	}
}

static inline void pl_words32_load(void *to, const void *from, size_t bytes)
{
	const uint32_t *w = from;
	uint32_t v;

	for (size_t i = 0; i < bytes / 4; i++) {
		v = __atomic_load_n(&w[i], __ATOMIC_RELAXED);
		memcpy((uint8_t *)to + 4 * i, &v, sizeof(v));
	}
}

/*
 * Fences around runs of words: what was stored before a release is seen no later than what is stored after it; an
 * acquire keeps later loads behind earlier ones. The thread sanitizer does not know fences, and needs none: every
 * word is atomic.
 */
#if defined(__SANITIZE_THREAD__)
#define PL_WORDS_FENCE(order) __atomic_signal_fence(order)
#else
#define PL_WORDS_FENCE(order) __atomic_thread_fence(order)
#endif

static inline void pl_words_release(void)
{
	PL_WORDS_FENCE(__ATOMIC_RELEASE);
}

static inline void pl_words_acquire(void)
{
	PL_WORDS_FENCE(__ATOMIC_ACQUIRE);
}
