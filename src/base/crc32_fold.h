/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of CRC-32 by carry-less multiplication (x86-64), for crc32.c and for code that loads bytes
 * in its own way. */
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

/*
 * Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (2009),
 * bit-reflected: x^n mod P, reflected and moved up by one, for the distances by which 128 bits are
 * folded forward.
 */
#define PL_CRC32_FOLD_512 _mm_set_epi64x(0x1c6e41596, 0x154442bd4) /* x^(512-32), x^(512+32) */
#define PL_CRC32_FOLD_128 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0) /* x^(128-32), x^(128+32) */
#define PL_CRC32_FOLD_64  _mm_set_epi64x(0, 0x163cd6124)           /* x^64 */
#define PL_CRC32_BARRETT  _mm_set_epi64x(0x1f7011641, 0x1db710641) /* floor(x^64 / P), P */

#define PL_CRC32_FOLDS    __attribute__((target("pclmul,sse4.1")))

/* Moves `x` forward by the distance of `k`, onto `next`. */
PL_CRC32_FOLDS static inline __m128i pl_crc32_fold(__m128i x, __m128i k, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Remainder of 128 bits. */
PL_CRC32_FOLDS static inline uint32_t pl_crc32_reduce(__m128i x)
{
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i t;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, PL_CRC32_FOLD_128, 0x10));
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), PL_CRC32_FOLD_64, 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 4), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), PL_CRC32_BARRETT, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), PL_CRC32_BARRETT, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

#endif
