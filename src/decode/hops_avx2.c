/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first line of a hop record is a permutation of the hop's block: values move and turn their
 * bytes. So a block is decoded by byte shuffles whose masks were made once per layout (plan_make in
 * hops.c). Only "not available" values need special treatment: a block with one of them goes to the plain decoder.
 */
#include "decode/internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx2"))) bool hops_decode_avx2(struct pl_hop *hops,
	const struct hop_plan *plan, const uint8_t *stack, unsigned int n,
	const struct pl_path *path)
{
	const size_t step = plan->block_bytes, back = plan->window_back;
	const int ports2 = plan->ports2_at;
	const __m128i ones = _mm_set1_epi32(-1);
	const __m256i last = _mm256_load_si256((const void *)(plan->fixed + 96));
	const __m256i context =
		_mm256_set_epi64x(0, 0, (long long)path->report_id, (long long)path->ts_ns);
	/* `index` is the upper byte of word 4 of the record's second quarter. */
	const __m256i next = _mm256_set_epi32(0, 0, 0, 1 << 24, 0, 0, 0, 0);
	const __m256i *mask = (const void *)plan->shuffle;
	const uint8_t *block = stack + n * step;
	__m256i first = _mm256_load_si256((const void *)(plan->fixed + 32));
	__m128i max_a = _mm_setzero_si128(), max_b = max_a, max_c = max_a;

	for (unsigned int i = 0; i < n; i++) {
		/* Newest first on the wire, source first in the record. The window begins before
		 * short blocks, so that it never ends behind them. */
		const __m128i *window = (const void *)((block -= step) - back);
		const __m256i a = _mm256_broadcastsi128_si256(_mm_loadu_si128(window));
		const __m256i b = _mm256_broadcastsi128_si256(_mm_loadu_si128(window + 1));
		const __m256i c = _mm256_broadcastsi128_si256(_mm_loadu_si128(window + 2));
		__m256i *line = (void *)&hops[i];

		/* A word of all ones is the largest possible word. */
		max_a = _mm_max_epu32(max_a, _mm256_castsi256_si128(a));
		max_b = _mm_max_epu32(max_b, _mm256_castsi256_si128(b));
		max_c = _mm_max_epu32(max_c, _mm256_castsi256_si128(c));
		_mm256_store_si256(
			line, _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(a, mask[0]),
						      _mm256_shuffle_epi8(b, mask[1])),
				      _mm256_shuffle_epi8(c, mask[2])));
		_mm256_store_si256(
			line + 1, _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(a, mask[3]),
							  _mm256_shuffle_epi8(b, mask[4])),
					  _mm256_or_si256(_mm256_shuffle_epi8(c, mask[5]), first)));
		_mm256_store_si256(line + 2, context);
		_mm256_store_si256(line + 3, last);
		first = _mm256_add_epi32(first, next);
		if (ports2 >= 0) {
			hops[i].ingress_port2 = pl_be32(block + ports2);
			hops[i].egress_port2 = pl_be32(block + ports2 + 4);
		} else if (ports2 == PLAN_PORTS2_OTHER) {
			hop_decode_bit6(&hops[i], block, &plan->layout);
		}
	}
	max_a = _mm_packs_epi32(_mm_cmpeq_epi32(max_a, ones), _mm_cmpeq_epi32(max_b, ones));
	max_c = _mm_packs_epi32(_mm_cmpeq_epi32(max_c, ones), _mm_setzero_si128());
	return ((unsigned int)_mm_movemask_epi8(_mm_packs_epi16(max_a, max_c)) &
		       plan->known_words) != 0;
}

#endif
