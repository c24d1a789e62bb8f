/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is written while others read it, copied by relaxed atomic words: no word is ever
 * torn, the order of words is free. Counts are in bytes; places are aligned to the word.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* Copies `bytes`, a multiple of 8. */
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

/* Makes a word of up to 8 bytes from anywhere, the rest zero; and the reverse. */
static inline uint64_t pl_word_gather(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (n >= 8) {
		memcpy(&v, p, 8);
		return v;
	}
	if (n >= 4) {
		uint32_t first, last; /* may overlap */

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

/* Copies words of four bytes in the same way. */
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

/* Fences around runs of words: stores before a release are seen no later than stores after it; an
 * acquire keeps later loads behind earlier ones. The thread sanitizer does not know fences, and
 * needs none: every word is atomic. */
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

/* Places a piece of 1, 2, 4 or 8 bytes, to which `to` is aligned. */
static inline void pl_word_place(uint8_t *to, const uint8_t *from, size_t size, int order)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 8:
		memcpy(&v8, from, 8);
		__atomic_store_n((uint64_t *)(void *)to, v8, order);
		break;
	case 4:
		memcpy(&v4, from, 4);
		__atomic_store_n((uint32_t *)(void *)to, v4, order);
		break;
	case 2:
		memcpy(&v2, from, 2);
		__atomic_store_n((uint16_t *)(void *)to, v2, order);
		break;
	default:
		__atomic_store_n(to, *from, order);
		break;
	}
}

/* Places the bytes before or behind aligned words of 8 bytes: fewer than 8, the largest aligned
 * pieces first. */
static inline void pl_words_place_rest(uint8_t *to, const uint8_t *from, size_t bytes)
{
	while (bytes > 0) {
		size_t size = 4;

		while (size > bytes || ((uintptr_t)to & (size - 1)) != 0)
			size /= 2;
		pl_word_place(to, from, size, __ATOMIC_RELEASE);
		to += size;
		from += size;
		bytes -= size;
	}
}

/* Places two words with one instruction, as far as there are pairs, and returns the rest of n. Only
 * on processors where a vector store to an aligned place is known to move each word at once, and to
 * be seen in the order of the program (Intel's and AMD's manuals); elsewhere the words are placed
 * one by one. The thread sanitizer sees the words. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
typedef long long pl_words_pair __attribute__((vector_size(16), may_alias));

static inline size_t pl_words_place_pairs(uint8_t **to, const uint8_t **from, size_t n)
{
	pl_words_pair pair;

	if (n >= 24 && ((uintptr_t)*to & 8) != 0) {
		pl_word_place(*to, *from, 8, __ATOMIC_RELAXED);
		*to += 8;
		*from += 8;
		n -= 8;
	}
	if (((uintptr_t)*to & 8) != 0)
		return n;
	for (; n >= 16; n -= 16, *to += 16, *from += 16) {
		memcpy(&pair, *from, sizeof(pair));
		*(volatile pl_words_pair *)(void *)*to = pair;
	}
	pl_words_release();
	return n;
}
#else
static inline size_t pl_words_place_pairs(uint8_t **to, const uint8_t **from, size_t n)
{
	(void)to;
	(void)from;
	return n;
}
#endif

/* Places any bytes anywhere, as a NIC writes them: aligned words of 8 bytes are never torn, nor are
 * those of 4 that lie whole in it. Bytes placed before are seen no later than the first byte, and
 * all of these no later than the last piece: a reader that acquires a seal or a head which was
 * written last sees the bytes that it covers. On x86 these are plain moves. */
static inline void pl_words_place(void *place, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	uint8_t *to = place;
	const size_t before = -(uintptr_t)to & 7;

	pl_words_release();
	if (before != 0) {
		const size_t first = before < n ? before : n;

		pl_words_place_rest(to, from, first);
		to += first;
		from += first;
		n -= first;
	}
	n = pl_words_place_pairs(&to, &from, n);
	for (; n >= 16; n -= 8, to += 8, from += 8)
		pl_word_place(to, from, 8, __ATOMIC_RELAXED);
	if (n >= 8) {
		pl_word_place(to, from, 8, __ATOMIC_RELEASE);
		to += 8;
		from += 8;
		n -= 8;
	}
	if (n > 0)
		pl_words_place_rest(to, from, n);
}
