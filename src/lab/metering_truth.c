/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums the truth of marked packets by block, flow and link direction. */
#include "lab/metering_truth.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void metering_truth_done(struct metering_truth *t)
{
	for (unsigned int i = 0; i < METERING_BLOCKS; i++)
		free(t->blocks[i].cells);
}

/* Returns the cell, or the free one in its place; the table has a free one. */
static struct metering_truth_cell *find(
	const struct metering_truth_block *b, const struct pl_mark_flow *flow, uint32_t direction)
{
	uint32_t at = (uint32_t)pl_hash(flow, sizeof(*flow), direction) & (b->room - 1);

	while (b->cells[at].used && (b->cells[at].direction != direction ||
					    memcmp(&b->cells[at].flow, flow, sizeof(*flow)) != 0))
		at = (at + 1) & (b->room - 1);
	return &b->cells[at];
}

static bool grow(struct metering_truth_block *b)
{
	struct metering_truth_block bigger = {
		.block = b->block, .n = b->n, .room = b->room == 0 ? 64 : b->room * 2
	};

	bigger.cells = calloc(bigger.room, sizeof(*bigger.cells));
	if (bigger.cells == NULL)
		return false;
	for (uint32_t i = 0; i < b->room; i++) {
		if (b->cells[i].used)
			*find(&bigger, &b->cells[i].flow, b->cells[i].direction) = b->cells[i];
	}
	free(b->cells);
	*b = bigger;
	return true;
}

struct pl_lab_metering_truth *metering_truth_cell(struct metering_truth *t, uint64_t block,
	const struct pl_mark_flow *flow, uint32_t direction)
{
	struct metering_truth_block *b = &t->blocks[block % METERING_BLOCKS];
	struct metering_truth_cell *c;

	if (b->block > block)
		return NULL;
	if (b->block < block) {
		b->block = block;
		b->n = 0;
		if (b->cells != NULL)
			memset(b->cells, 0, b->room * sizeof(*b->cells));
	}
	if (b->n >= b->room / 2 && !grow(b))
		return NULL;
	c = find(b, flow, direction);
	if (!c->used) {
		*c = (struct metering_truth_cell){ .flow = *flow,
			.direction = direction,
			.used = true,
			.sum = { .known = true } };
		b->n++;
	}
	return &c->sum;
}

void metering_truth_sum(const struct metering_truth *t, uint64_t after, uint64_t block,
	const struct pl_mark_flow *flow, uint32_t direction, struct pl_lab_metering_truth *ret)
{
	*ret = (struct pl_lab_metering_truth){ .known = block - after <= METERING_BLOCKS };
	for (uint64_t k = after + 1; k <= block && ret->known; k++) {
		const struct metering_truth_block *b = &t->blocks[k % METERING_BLOCKS];
		const struct pl_lab_metering_truth *c;

		ret->known = b->block <= k;
		/* No packet of any flow in this block. */
		if (b->block != k || b->room == 0)
			continue;
		c = &find(b, flow, direction)->sum;
		ret->sent += c->sent;
		ret->dropped += c->dropped;
		ret->lost += c->lost;
		ret->arrived += c->arrived;
		ret->residence_ns += c->residence_ns;
		ret->left += c->left;
		ret->transit_ns += c->transit_ns;
		if (c->residence_max_ns > ret->residence_max_ns)
			ret->residence_max_ns = c->residence_max_ns;
		if (k == block) {
			ret->has_pulse = c->has_pulse;
			ret->pulse_ns = c->pulse_ns;
		}
	}
}
