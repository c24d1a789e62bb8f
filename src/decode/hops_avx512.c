/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does the work of hops_avx2.c with an instruction that permutes 64 bytes (AVX-512 VBMI): a block
 * is one load, and each half of the record is one permutation of it, merged with the constant bytes
 * of all records. It takes 15 instructions per hop, the AVX2 version 40.
 */
#include "decode/internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) bool hops_decode_avx512(
	struct pl_hop *hops, const struct hop_plan *plan, const uint8_t *stack, unsigned int n,
	const struct pl_path *path)
{
	const size_t step = plan->block_bytes;
	const __mmask64 inside = plan->block_mask; /* bytes behind the block are not read */
	const __mmask16 known = (__mmask16)(plan->known_words >> (plan->window_back / 4));
	const __mmask64 from0 = plan->permuted[0], from1 = plan->permuted[1];
	const __m512i permute0 = _mm512_loadu_si512(plan->permute[0]);
	const __m512i permute1 = _mm512_loadu_si512(plan->permute[1]);
	const __m512i ones = _mm512_set1_epi32(-1);
	/* `index` is the upper byte of word 12. */
	const __m512i next = _mm512_maskz_set1_epi32(1 << 12, 1 << 24);
	__m512i first = _mm512_load_si512(plan->fixed);
	const __m512i second = _mm512_mask_broadcast_i32x4(_mm512_load_si512(plan->fixed + 64), 0xf,
		_mm_set_epi64x((long long)path->report_id, (long long)path->ts_ns));
	const uint8_t *block = stack + n * step;
	__mmask16 missing = 0;

	for (unsigned int i = 0; i < n; i++) {
		/* Newest first on the wire, source first in the record. */
		const __m512i b = _mm512_maskz_loadu_epi8(inside, block -= step);

		missing |= _mm512_mask_cmpeq_epi32_mask(known, b, ones);
		_mm512_store_si512(
			&hops[i], _mm512_mask_permutexvar_epi8(first, from0, permute0, b));
		_mm512_store_si512((uint8_t *)&hops[i] + 64,
			_mm512_mask_permutexvar_epi8(second, from1, permute1, b));
		first = _mm512_add_epi32(first, next);
	}
	return missing != 0;
}

#endif
