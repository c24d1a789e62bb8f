/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequence accounting of one report stream: what was lost, late, repeated, or restarted. Numbers are modulo
 * 2^bits. A gap counts as lost when it opens and is taken back when its report arrives within the window of
 * 128. A number outside the window, or a jump forward above gap_max, is a restart once the number after it
 * follows (as RFC 3550 A.1 does for RTP); alone it is a straggler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PL_SEQUENCE_WINDOW 128

struct pl_sequence {
	unsigned __int128 seen; /* bit i: highest - i was seen */
	uint64_t reports, lost, reordered, duplicates, restarts;
	uint64_t skipped, recovered; /* gaps opened, and filled later; lost is their difference */
	uint64_t stragglers;         /* outside the window and not followed: counted lost before */
	uint32_t highest;
	uint32_t next_if_restart; /* the number that would confirm a restart */
	uint32_t span;            /* numbers since the (re)start, saturating at the window */
	uint32_t same; /* reports since the start that all carried the first number, saturating */
	bool pending;  /* next_if_restart is meaningful */
	bool started;
	bool constant; /* never moved: the exporter does not number its reports */
	bool steady;   /* started, counting and nothing pending: the next number needs no thought */
};

static inline void pl_sequence_start(struct pl_sequence *s, uint32_t seq)
{
	s->seen = 1;
	s->highest = seq;
	s->span = 1;
	s->pending = false;
	s->started = true;
}

/* What is not "the next number". */
void pl_sequence_unusual(struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max);

/* Counts a report; true when it was "the next number", else pl_sequence_unusual must follow. */
static inline bool pl_sequence_next(struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	s->reports++;
	if (__builtin_expect(((seq - s->highest) & mask) != 1 || !s->steady, 0))
		return false;
	s->highest = seq;
	s->seen = s->seen << 1 | 1;
	if (s->span < PL_SEQUENCE_WINDOW)
		s->span++;
	return true;
}

static inline void pl_sequence_update(
	struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max)
{
	uint32_t mask = bits >= 32 ? UINT32_MAX : (1u << bits) - 1;

	if (!pl_sequence_next(s, seq, mask))
		pl_sequence_unusual(s, seq & mask, bits, gap_max);
}
