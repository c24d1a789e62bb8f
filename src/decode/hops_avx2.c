/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first line of a hop record is a permutation of the hop's block: values move and turn their bytes. So a
 * block is decoded by byte shuffles whose masks were made once per layout (plan_make in hops.c). Only the
 * values "not available" need thought; a block with one of them goes to the plain decoder.
 *
 * Measured with `pathline bench decode-int`: a third of the plain decoder's time per hop.
 */
#include "decode/internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx2"))) bool hops_decode_avx2(struct pl_hop *hops,
	const struct hop_plan *plan, const uint8_t *stack, unsigned int n,
	const struct hop_context *ctx)
{
	const size_t step = plan->block_bytes, back = plan->window_back;
	const int ports2 = plan->ports2_at;
	const __m256i ones = _mm256_set1_epi32(-1);
	const __m256i first = _mm256_load_si256((const void *)plan->first);
	const __m256i last = _mm256_load_si256((const void *)plan->last);
	const __m256i context =
		_mm256_set_epi64x(0, 0, (long long)ctx->report_id, (long long)ctx->ts_ns);
	const __m256i *mask = (const void *)plan->shuffle;
	const uint8_t *block = stack + n * step;
	bool plain = false; /* a hop lacks a value */

	for (unsigned int i = 0; i < n; i++) {
		/* Newest first on the wire, source first in the record. The window begins before short blocks,
		 * so that it never ends behind them. */
		const uint8_t *window = (block -= step) - back;
		const __m256i a =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)window));
		const __m256i b =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(window + 16)));
		const __m256i c =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(window + 32)));
		struct pl_hop *h = &hops[i];
		__m256i *line = (void *)h;
		unsigned int missing = (unsigned int)_mm256_movemask_epi8(_mm256_packs_epi16(
			_mm256_packs_epi32(
				_mm256_cmpeq_epi32(a, ones), _mm256_cmpeq_epi32(b, ones)),
			_mm256_packs_epi32(_mm256_cmpeq_epi32(c, ones), _mm256_setzero_si256())));

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
		h->index = (uint8_t)i;
		if (ports2 >= 0) {
			h->ingress_port2 = pl_be32(block + ports2);
			h->egress_port2 = pl_be32(block + ports2 + 4);
		} else if (ports2 == PLAN_PORTS2_OTHER) {
			hop_decode_bit6(h, block, &plan->layout);
		}
		if (__builtin_expect(missing & plan->known_words, 0)) {
			hop_decode_plain(h, block, &plan->layout);
			h->ts_ns = ctx->ts_ns;
			h->report_id = ctx->report_id;
			h->index = (uint8_t)i;
			plain |= h->present != plan->present;
		}
	}
	return plain;
}

#else

bool hops_decode_avx2(struct pl_hop *hops, const struct hop_plan *plan, const uint8_t *stack,
	unsigned int n, const struct hop_context *ctx)
{
	(void)hops;
	(void)plan;
	(void)stack;
	(void)n;
	(void)ctx;
	__builtin_unreachable();
}

#endif
