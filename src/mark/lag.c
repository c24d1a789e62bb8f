/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the least delay between the reading of a point's blocks and the arrival of their
 * records. */
#include "mark/domain.h"

void pl_mark_note_lag(struct pl_mark_point_state *p, uint64_t block, uint64_t lag_ns)
{
	const bool next = p->lag_blocks == 0 || block > p->newest_block;

	if (next && ++p->lag_blocks > PL_MARK_LAG_BLOCKS) {
		p->lag_ns = p->lag_least_ns;
		p->lag_blocks = 1;
	}
	if ((next && p->lag_blocks == 1) || lag_ns < p->lag_least_ns)
		p->lag_least_ns = lag_ns;
}

bool pl_mark_is_behind(const struct pl_mark_point_state *p, uint64_t period_ns)
{
	return p->lag_ns >= period_ns + period_ns / 2;
}
