/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of sequence accounting that are rarely reached. */
#include "decode/sequence.h"

void pl_sequence_unusual(struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max)
{
	pl_sequence_step(s, seq, bits >= 32 ? UINT32_MAX : (1u << bits) - 1, gap_max);
}
