/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sequence accounting of one report stream: what was lost, late, repeated, or restarted. Numbers
 * are modulo 2^bits. A gap counts as lost when it opens and is taken back when its report arrives
 * within the window of 128. A number outside the window, or a jump forward above gap_max, is a
 * restart once the number after it follows (as RFC 3550 A.1 does for RTP); alone it is a straggler.
 * The same lines run in the decoder and in the kernel program.
 *
 * A stream is proven when two of its numbers go together. Random bytes that pass for a report have
 * a random number, so what is not proven may not be an exporter at all. Proof is a number within
 * the window around the highest one, one that confirms a restart, or two steps forward in a row:
 * reports of an exporter of which others get a part.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PL_SEQUENCE_WINDOW 128

struct pl_sequence {
	uint64_t seen[2]; /* bit i of the two, lower first: highest - i was seen */
	uint64_t reports, lost, reordered, duplicates, restarts;
	uint64_t skipped, recovered; /* gaps opened, and filled later; lost is their difference */
	uint64_t stragglers;         /* outside the window and not followed: counted lost before */
	uint64_t before; /* numbers accounted for when it (re)started: pl_sequence_covered */
	uint32_t highest;
	uint32_t next_if_restart; /* the number that would confirm a restart */
	uint32_t span;            /* numbers since the (re)start, saturating at the window */
	/* reports since the start that all carried the first number, until it is constant */
	uint32_t same;
	bool pending; /* next_if_restart is meaningful */
	bool started;
	bool constant; /* never moved: the exporter does not number its reports */
	/* started, proven, counting, nothing pending: the next number needs no thought */
	bool steady;
	bool proven;     /* two numbers went together */
	uint8_t forward; /* steps forward in a row, while it is not proven */
	uint8_t zero[2];
};

/* So many equal numbers from the start on mean that the exporter does not count. */
#define PL_SEQUENCE_CONSTANT 3

/* Numbers from the (re)start on, as far back as the account goes: those that came, and those that
 * are lost. */
static inline uint64_t pl_sequence_covered(const struct pl_sequence *s)
{
	return s->reports - s->duplicates - s->stragglers + s->lost - s->before;
}

/* The report was counted already. */
static inline void pl_sequence_start(struct pl_sequence *s, uint32_t seq)
{
	s->before = 0;
	s->before = pl_sequence_covered(s) - 1;
	s->seen[0] = 1;
	s->seen[1] = 0;
	s->highest = seq;
	s->span = 1;
	s->pending = false;
	s->started = true;
}

static inline void pl_sequence_shift(struct pl_sequence *s, uint32_t by)
{
	if (by >= PL_SEQUENCE_WINDOW) {
		s->seen[1] = s->seen[0] = 0;
	} else if (by >= 64) {
		s->seen[1] = s->seen[0] << (by & 63);
		s->seen[0] = 0;
	} else if (by > 0) {
		s->seen[1] = s->seen[1] << by | s->seen[0] >> ((64 - by) & 63);
		s->seen[0] <<= by;
	}
}

static inline bool pl_sequence_seen(const struct pl_sequence *s, uint32_t behind)
{
	uint64_t word = behind < 64 ? s->seen[0] : s->seen[1];

	return behind < PL_SEQUENCE_WINDOW && (word >> (behind & 63) & 1) != 0;
}

static inline void pl_sequence_mark(struct pl_sequence *s, uint32_t behind)
{
	if (behind < 64)
		s->seen[0] |= UINT64_C(1) << (behind & 63);
	else
		s->seen[1] |= UINT64_C(1) << (behind & 63);
}

/* Ahead of the highest number, by no more than a gap may be. */
static inline void pl_sequence_forward(struct pl_sequence *s, uint32_t seq, uint32_t ahead)
{
	s->lost += ahead - 1;
	s->skipped += ahead - 1;
	pl_sequence_shift(s, ahead);
	s->seen[0] |= 1;
	s->highest = seq;
	s->span = ahead < PL_SEQUENCE_WINDOW - s->span ? s->span + ahead : PL_SEQUENCE_WINDOW;
	s->same = 0;
	s->pending = false;
}

static inline void pl_sequence_sort(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	uint32_t ahead = (seq - s->highest) & mask, behind = (s->highest - seq) & mask;

	if (!s->started) {
		pl_sequence_start(s, seq);
		s->same = 1;
		return;
	}
	if (s->constant) {
		if (seq == s->highest)
			return;
		/* It counts after all: begin here. */
		s->constant = false;
		s->same = 0;
		pl_sequence_start(s, seq);
		return;
	}
	if (s->same >= 1) {
		if (seq == s->highest && s->reports == s->same + UINT64_C(1)) {
			s->same++;
			s->duplicates++;
			if (s->same >= PL_SEQUENCE_CONSTANT) {
				s->constant = true;
				s->duplicates = 0;
			}
			return;
		}
		s->same = 0;
	}
	if (s->pending && seq == s->next_if_restart) {
		/* Two in a row from elsewhere: the exporter began anew. */
		s->restarts++;
		s->stragglers--;
		pl_sequence_start(s, (seq - 1) & mask);
		s->before--;
		s->highest = seq;
		s->seen[0] = 3;
		s->span = 2;
		return;
	}
	if (ahead != 0 && ahead <= mask / 2 && ahead <= gap_max) {
		pl_sequence_forward(s, seq, ahead);
		return;
	}
	if (behind < PL_SEQUENCE_WINDOW) {
		if (pl_sequence_seen(s, behind)) {
			s->duplicates++;
			return;
		}
		s->reordered++;
		/* Before the first number seen nothing was counted lost. */
		if (behind < s->span) {
			s->lost--;
			s->recovered++;
		}
		pl_sequence_mark(s, behind);
		return;
	}
	s->stragglers++;
	s->pending = true;
	s->next_if_restart = (seq + 1) & mask;
}

/* Gaps among the last `numbers` numbers of a window as pl_sequence.seen: counted as lost, but they
 * may still be filled. */
static inline uint32_t pl_sequence_gaps(const uint64_t seen[2], uint32_t span, uint32_t numbers)
{
	const uint32_t n = numbers < span ? numbers : span;
	const uint64_t low = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	const uint64_t high = n >= 128 ? UINT64_MAX : n > 64 ? (UINT64_C(1) << (n - 64)) - 1 : 0;

	return (uint32_t)(__builtin_popcountll(~seen[0] & low) +
			  __builtin_popcountll(~seen[1] & high));
}

/* Before the number is counted: whether it goes together with those before. */
static inline void pl_sequence_prove(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	const uint32_t ahead = (seq - s->highest) & mask, behind = (s->highest - seq) & mask;

	if (s->proven || !s->started)
		return;
	s->forward = ahead <= mask / 2 && ahead <= gap_max ? (uint8_t)(s->forward + 1) : 0;
	s->proven = ahead < PL_SEQUENCE_WINDOW || behind < PL_SEQUENCE_WINDOW || s->forward > 1 ||
		    (s->pending && seq == s->next_if_restart);
}

/* The account goes further back, to `behind`: what lies between is missing. The window's numbers
 * within the span, and only those, are counted as lost while they are not seen. */
static inline void pl_sequence_extend(struct pl_sequence *s, uint32_t behind)
{
	uint64_t by;

	if (s->span < PL_SEQUENCE_WINDOW) {
		const uint32_t end = behind < PL_SEQUENCE_WINDOW ? behind : PL_SEQUENCE_WINDOW;

		by = pl_sequence_gaps(s->seen, PL_SEQUENCE_WINDOW, end) -
		     pl_sequence_gaps(s->seen, PL_SEQUENCE_WINDOW, s->span) + (behind - end);
		s->span = behind < PL_SEQUENCE_WINDOW ? behind + 1 : PL_SEQUENCE_WINDOW;
	} else {
		by = behind - pl_sequence_covered(s);
	}
	s->lost += by;
	s->skipped += by;
}

/*
 * A number that came in its turn, but is counted after later ones by no fault of the exporter: it
 * fills its gap, however far back, or was there before the account began; neither makes it a
 * straggler or out of order. False, and nothing counted, when it is none of that. Further back than
 * gap_max nothing comes in its turn, as nothing lies further ahead; and what is not proven has no
 * turns.
 */
static inline bool pl_sequence_late(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	const uint32_t behind = (s->highest - seq) & mask;

	if (!s->started || s->constant || s->same > 0 || behind == 0 || behind > mask / 2 ||
		behind > gap_max || pl_sequence_seen(s, behind) ||
		(s->pending && seq == s->next_if_restart))
		return false;
	pl_sequence_prove(s, seq, mask, gap_max);
	if (!s->proven)
		return false;
	if (behind >= s->span &&
		(s->span < PL_SEQUENCE_WINDOW || behind >= pl_sequence_covered(s))) {
		pl_sequence_extend(s, behind);
	} else if (behind < PL_SEQUENCE_WINDOW ||
		   s->lost > pl_sequence_gaps(s->seen, s->span, PL_SEQUENCE_WINDOW)) {
		s->lost--;
		s->recovered++;
	} else {
		/* Nothing is missing where it belongs. */
		s->duplicates++;
	}
	s->reports++;
	if (behind < PL_SEQUENCE_WINDOW)
		pl_sequence_mark(s, behind);
	return true;
}

/* What is not "the next number". */
static inline void pl_sequence_step(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	pl_sequence_prove(s, seq, mask, gap_max);
	pl_sequence_sort(s, seq, mask, gap_max);
	s->steady = s->started && s->proven && !s->constant && !s->pending;
}

/* Whether pl_sequence_again counts the number: the next one, one behind a gap, or that of an
 * exporter that does not count. */
static inline bool pl_sequence_calm(
	const struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	const uint32_t gap = (seq - s->highest - 1) & mask;

	if (__builtin_expect(s->steady, 1))
		return gap == 0 || (gap < mask / 2 && gap < gap_max);
	return s->constant && seq == s->highest;
}

/* Counts a report of which pl_sequence_calm is true: as pl_sequence_next, and pl_sequence_step
 * where it has to follow. */
__attribute__((always_inline)) static inline void pl_sequence_again(
	struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	const uint32_t ahead = (seq - s->highest) & mask;

	s->reports++;
	if (__builtin_expect(!s->steady, 0))
		return;
	if (__builtin_expect(ahead != 1, 0)) {
		pl_sequence_forward(s, seq, ahead);
		return;
	}
	s->highest = seq;
	s->seen[1] = s->seen[1] << 1 | s->seen[0] >> 63;
	s->seen[0] = s->seen[0] << 1 | 1;
	if (s->span < PL_SEQUENCE_WINDOW)
		s->span++;
}

/* Counts a report; true when it was "the next number", else pl_sequence_step must follow. */
static inline bool pl_sequence_next(struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	s->reports++;
	if (__builtin_expect(((seq - s->highest) & mask) != 1 || !s->steady, 0))
		return false;
	s->highest = seq;
	s->seen[1] = s->seen[1] << 1 | s->seen[0] >> 63;
	s->seen[0] = s->seen[0] << 1 | 1;
	if (s->span < PL_SEQUENCE_WINDOW)
		s->span++;
	return true;
}
