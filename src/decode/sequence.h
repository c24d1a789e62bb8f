/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence accounting (core/sequence.h) for the decoder: rare cases are out of line. */
#pragma once

#include "core/sequence.h"

/* Counts a number that is not the next one: a gap, a late one, a duplicate, a restart. */
void pl_sequence_unusual(struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max);

static inline void pl_sequence_update(
	struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max)
{
	uint32_t mask = bits >= 32 ? UINT32_MAX : (1u << bits) - 1;

	if (!pl_sequence_next(s, seq, mask))
		pl_sequence_unusual(s, seq & mask, bits, gap_max);
}
