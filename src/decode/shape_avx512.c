/* SPDX-License-Identifier: BSD-2-Clause */
/* The first 112 bytes of a packet in two registers: compared with the shape, and moved into the
 * record. */
#include "decode/shape.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AND_XOR 0x6a /* (a & b) ^ c */
#define AND_OR  0xea /* (a & b) | c */

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) bool shape_take_avx512(
	const struct header_shape *s, const uint8_t *data, struct pl_path *path)
{
	const uint8_t *value = (const uint8_t *)s->value, *mask = (const uint8_t *)s->mask;
	const uint8_t *fixed = (const uint8_t *)&s->path;
	const __m512i a = _mm512_loadu_si512(data);
	const __m512i b = _mm512_loadu_si512(data + SHAPE_BYTES - 64);
	const __m512i differ = _mm512_or_si512(_mm512_ternarylogic_epi64(a, _mm512_load_si512(mask),
						       _mm512_load_si512(value), AND_XOR),
		_mm512_ternarylogic_epi64(b, _mm512_loadu_si512(mask + SHAPE_BYTES - 64),
			_mm512_loadu_si512(value + SHAPE_BYTES - 64), AND_XOR));

	if (__builtin_expect(_mm512_test_epi64_mask(differ, differ) != 0, 0))
		return false;
	if (s->is_long) {
		const shape_block tail = shape_differs(s, SHAPE_BLOCKS, data + SHAPE_BYTES);

		if (__builtin_expect((tail[0] | tail[1]) != 0, 0))
			return false;
	}
	for (unsigned int i = 0; i < 128; i += 64) {
		const __m512i moved =
			_mm512_permutex2var_epi8(a, _mm512_loadu_si512(s->permute + i), b);

		_mm512_storeu_si512((uint8_t *)path + i,
			_mm512_ternarylogic_epi64(moved, _mm512_loadu_si512(s->bits + i),
				_mm512_loadu_si512(fixed + i), AND_OR));
	}
	return true;
}

#endif
