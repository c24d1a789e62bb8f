/* SPDX-License-Identifier: BSD-2-Clause */
/* Square waves of explicit flow measurement: their blocks, and the loss in them (RFC 9506 3.2). */
#include "mark/efm.h"

#define SHORTEST 32u /* packets of class 0 */

static void add_block(struct pl_efm_blocks *b, uint64_t packets, uint32_t threshold)
{
	uint64_t room = SHORTEST;
	unsigned int class = 0;

	while (class < PL_EFM_CLASSES && room < packets) {
		room *= 2;
		class ++;
	}
	if (class == PL_EFM_CLASSES) {
		b->longer++;
		return;
	}
	if (class > 0 && packets <= room / 2 + threshold) {
		b->near[class]++;
		b->near_packets[class] += packets;
	} else {
		b->far[class]++;
		b->far_packets[class] += packets;
	}
}

static void end_block(struct pl_efm_square *s, uint32_t threshold)
{
	if (!s->first)
		add_block(&s->blocks, s->count, threshold);
	s->first = false;
	s->turning = false;
	s->colour ^= 1;
	s->count = s->next;
}

void pl_efm_square_take(struct pl_efm_square *s, unsigned int colour, uint32_t threshold)
{
	if (!s->begun) {
		s->begun = s->first = true;
		s->turning = false;
		s->colour = (uint8_t)colour;
		s->count = 1;
		return;
	}
	if (s->turning && ++s->past > threshold)
		end_block(s, threshold);
	if (s->turning) {
		s->next += colour != s->colour;
		s->count += colour == s->colour;
	} else if (colour == s->colour) {
		s->count++;
	} else {
		s->turning = true;
		s->next = 1;
		s->past = 0;
	}
}

void pl_efm_square_break(struct pl_efm_square *s)
{
	s->begun = false;
}

uint32_t pl_efm_square_of(const struct pl_efm_blocks *b)
{
	uint32_t best = 0;
	uint64_t most = 0;

	/* Class 1 is N = 64; a block a little above a power of two belongs to that N. */
	for (unsigned int class = 1; class < PL_EFM_CLASSES - 1; class ++) {
		uint64_t n = b->far[class] + b->near[class + 1];

		n += class == 1 ? b->near[class] + b->far[0] : 0;
		if (n > most) {
			most = n;
			best = SHORTEST << class;
		}
	}
	return best;
}

struct pl_efm_loss pl_efm_loss_of(const struct pl_efm_blocks *b, uint32_t square)
{
	struct pl_efm_loss l = { .is_square = false };
	uint64_t fitting = 0, all = b->longer;
	unsigned int own = 0;

	while (own < PL_EFM_CLASSES && SHORTEST << own < square)
		own++;
	for (unsigned int class = 0; class < PL_EFM_CLASSES; class ++) {
		const uint64_t near = b->near[class], far = b->far[class];

		all += near + far;
		if (class > own + 1)
			continue;
		/* A block a little above N counts as any block. */
		l.blocks += near;
		l.sent += near * square;
		l.packets += b->near_packets[class];
		l.blocks += far;
		l.sent += far * square * (class > own ? 3 : 1);
		l.packets += b->far_packets[class];
		l.merged += class > own ? far : 0;
		fitting += class > own ? near : class == own ? near + far : 0;
	}
	l.is_square = l.blocks > 0 && 2 * fitting > all;
	return l;
}

double pl_efm_loss_ratio(const struct pl_efm_loss *l)
{
	return l->sent > 0 ? 1 - (double)l->packets / (double)l->sent : 0;
}
