/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sequence accounting of one report stream: numbers lost, late, repeated, or restarted. Numbers are
 * modulo 2^bits. A gap counts as lost when it opens and is taken back when its report arrives
 * within the window of 128. A number outside the window, or a jump forward above gap_max, is a
 * restart once the number after it follows (as RFC 3550 A.1 does for RTP); alone it is a straggler.
 * The decoder and the kernel program compile the same source.
 *
 * A stream is proven when two of its numbers fit each other. Random bytes that pass for a report
 * have a random number, so a sender that is not proven may be no exporter. Proof is a number within
 * the window around the highest one, one that confirms a restart, or two steps forward in a row, as
 * when other collectors get a part of the exporter's reports.
 *
 * Two senders with one identity (two processes, two line modules) each number their own stream: the
 * numbers jump from one stream to the other and back to where the first one was left. The positions
 * where streams were left are stored; after PL_SEQUENCE_RETURNS returns to such a position the
 * numbering is *shared*. Its losses cannot be known: the losses that the changes between the
 * streams made are taken back, and none are counted until PL_SEQUENCE_QUIET reports came without a
 * return. Reports that overtake each other by more than the window, again and again, look the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PL_SEQUENCE_WINDOW  128
#define PL_SEQUENCE_LEFT    4 /* places remembered */
#define PL_SEQUENCE_RETURNS 8
#define PL_SEQUENCE_QUIET   65536
#define PL_SEQUENCE_JUMPS   1024 /* most reports between jumps of one conflict */

struct pl_sequence {
	uint64_t seen[2]; /* bit i of both, lower first: highest - i was seen */
	uint64_t reports, lost, reordered, duplicates, restarts;
	uint64_t skipped, recovered; /* numbers skipped, and recovered later; lost: difference */
	uint64_t stragglers;         /* numbers outside the window, not followed: still counted as
				      * lost */
	uint64_t before; /* numbers accounted for before the (re)start: pl_sequence_covered */
	uint32_t highest;
	uint32_t next_if_restart; /* number that would confirm a restart */
	uint32_t span;            /* numbers since the (re)start, saturating at the window */
	/* reports since the start that all had the first number, until it is constant */
	uint32_t same;
	uint32_t left[PL_SEQUENCE_LEFT]; /* next numbers of sequences that were left */
	/* part of lost: by jumps beyond the window, since the first return and shortly before it */
	uint32_t jumped;
	uint32_t returned_at; /* reports at the last return or jump before it, modulo 2^32 */
	uint8_t n_left;       /* places taken in `left`, saturating; the next one is n_left % 4 */
	uint8_t returns;
	bool shared;  /* several senders use this sequence */
	bool pending; /* next_if_restart is valid */
	bool started;
	bool constant; /* all numbers were equal: the exporter does not number its reports */
	/* started, proven, counting, nothing pending: the next number needs no further check */
	bool steady;
	bool proven;     /* two numbers fitted each other */
	uint8_t forward; /* steps forward in a row, until it is proven */
	uint8_t zero[7];
};

/* Equal numbers from the start on that mean that the exporter does not count. */
#define PL_SEQUENCE_CONSTANT 3

/* Returns the count of numbers since the (re)start, as far back as the account goes: received and
 * lost. */
static inline uint64_t pl_sequence_covered(const struct pl_sequence *s)
{
	return s->reports - s->duplicates - s->stragglers + s->lost - s->before;
}

/* Starts the account at a report that is already counted. */
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

/* Counts a number ahead of the highest one, by no more than a gap may be. */
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

/* Stores the position of a stream that was left: it would go on with `next`. */
static inline void pl_sequence_leave(struct pl_sequence *s, uint32_t next)
{
	s->left[s->n_left % PL_SEQUENCE_LEFT] = next;
	s->n_left = s->n_left == UINT8_MAX ? UINT8_MAX - PL_SEQUENCE_LEFT + 1 : s->n_left + 1;
}

/* Returns the place that `seq` continues, or PL_SEQUENCE_LEFT. */
static inline uint32_t pl_sequence_place(
	const struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t within)
{
	uint32_t found = PL_SEQUENCE_LEFT;

	for (uint32_t i = 0; i < PL_SEQUENCE_LEFT; i++) {
		if (i < s->n_left && ((seq - s->left[i]) & mask) < within)
			found = i;
	}
	return found;
}

/* Counts a jump. Before the first return a jump may be an ordinary loss. */
static inline void pl_sequence_jumped(struct pl_sequence *s, uint32_t lost)
{
	if (s->returns == 0) {
		if ((uint32_t)s->reports - s->returned_at > PL_SEQUENCE_JUMPS)
			s->jumped = 0;
		s->returned_at = (uint32_t)s->reports;
	}
	s->jumped += lost;
}

/* Notes a return to the stream left at a place, because a number far from the highest one continues
 * it. The place gets `next`, the number with which the stream left now would go on. */
static inline void pl_sequence_returned(struct pl_sequence *s, uint32_t place, uint32_t next)
{
	s->left[place % PL_SEQUENCE_LEFT] = next;
	if ((uint32_t)s->reports - s->returned_at > PL_SEQUENCE_QUIET) {
		s->returns = 0;
		s->jumped = 0;
	}
	s->returned_at = (uint32_t)s->reports;
	if (s->returns < UINT8_MAX)
		s->returns++;
	if (s->returns < PL_SEQUENCE_RETURNS || s->shared)
		return;
	s->shared = true;
	/* Some late numbers may have been among those that were jumped over. */
	if (s->jumped > s->lost)
		s->jumped = (uint32_t)s->lost;
	s->lost -= s->jumped;
	s->recovered += s->jumped;
	s->jumped = 0;
	pl_sequence_start(s, s->highest);
}

/* Handles a number while several senders share the sequence: only to find out whether they still
 * do. */
static inline void pl_sequence_share(struct pl_sequence *s, uint32_t seq, uint32_t mask)
{
	const uint32_t ahead = (seq - s->highest) & mask, behind = (s->highest - seq) & mask;
	uint32_t place;

	if (ahead >= PL_SEQUENCE_WINDOW && behind >= PL_SEQUENCE_WINDOW) {
		place = pl_sequence_place(s, seq, mask, PL_SEQUENCE_WINDOW);
		if (place < PL_SEQUENCE_LEFT)
			pl_sequence_returned(s, place, (s->highest + 1) & mask);
		else
			pl_sequence_leave(s, (s->highest + 1) & mask);
	}
	s->highest = seq;
	if ((uint32_t)s->reports - s->returned_at <= PL_SEQUENCE_QUIET)
		return;
	s->shared = false;
	s->returns = s->n_left = 0;
	pl_sequence_start(s, seq);
}

static inline void pl_sequence_sort(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	uint32_t ahead = (seq - s->highest) & mask, behind = (s->highest - seq) & mask;
	uint32_t place;
	bool returned;

	if (s->shared) {
		pl_sequence_share(s, seq, mask);
		return;
	}
	if (!s->started) {
		pl_sequence_start(s, seq);
		s->same = 1;
		return;
	}
	if (s->constant) {
		if (seq == s->highest)
			return;
		/* The exporter does number its reports: the account begins here. */
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
		/* Two successive numbers far from the expected one: the exporter has restarted. */
		s->restarts++;
		s->stragglers--;
		/* The place that its first number made, or continued. */
		place = pl_sequence_place(s, seq, mask, 1);
		if (place < PL_SEQUENCE_LEFT && ahead >= PL_SEQUENCE_WINDOW)
			s->left[place] = (s->highest + 1) & mask;
		pl_sequence_start(s, (seq - 1) & mask);
		s->before--;
		s->highest = seq;
		s->seen[0] = 3;
		s->span = 2;
		return;
	}
	if (ahead != 0 && ahead <= mask / 2 && ahead <= gap_max) {
		if (ahead >= PL_SEQUENCE_WINDOW) {
			const uint32_t next = (s->highest + 1) & mask;

			place = pl_sequence_place(s, seq, mask, PL_SEQUENCE_WINDOW);
			pl_sequence_jumped(s, ahead - 1);
			pl_sequence_forward(s, seq, ahead);
			if (place < PL_SEQUENCE_LEFT)
				pl_sequence_returned(s, place, next);
			else
				pl_sequence_leave(s, next);
			return;
		}
		pl_sequence_forward(s, seq, ahead);
		return;
	}
	if (behind < PL_SEQUENCE_WINDOW) {
		if (pl_sequence_seen(s, behind)) {
			s->duplicates++;
			return;
		}
		s->reordered++;
		/* No number before the first one seen was counted as lost. */
		if (behind < s->span) {
			s->lost--;
			s->recovered++;
		}
		pl_sequence_mark(s, behind);
		return;
	}
	/* Successive numbers from elsewhere may be a restart with losses. */
	returned = !s->pending;
	s->stragglers++;
	s->pending = true;
	s->next_if_restart = (seq + 1) & mask;
	if (ahead < PL_SEQUENCE_WINDOW) /* above gap_max, but near */
		return;
	place = pl_sequence_place(s, seq, mask, PL_SEQUENCE_WINDOW);
	if (place >= PL_SEQUENCE_LEFT)
		pl_sequence_leave(s, s->next_if_restart);
	else if (returned)
		pl_sequence_returned(s, place, s->next_if_restart);
	else
		s->left[place] = s->next_if_restart;
}

/* Returns the gaps among the last `numbers` numbers of a window like pl_sequence.seen: they are
 * counted as lost, but may still be filled. */
static inline uint32_t pl_sequence_gaps(const uint64_t seen[2], uint32_t span, uint32_t numbers)
{
	const uint32_t n = numbers < span ? numbers : span;
	const uint64_t low = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	const uint64_t high = n >= 128 ? UINT64_MAX : n > 64 ? (UINT64_C(1) << (n - 64)) - 1 : 0;

	return (uint32_t)(__builtin_popcountll(~seen[0] & low) +
			  __builtin_popcountll(~seen[1] & high));
}

/* Proves the stream if the number, not counted yet, fits the previous ones. */
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

/* Extends the account back to `behind`: the numbers between are missing. The window's numbers
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

/* Counts a number that the exporter sent in order, but that arrives after later ones were counted:
 * it fills its gap, however far back, or is from before the account began; so it is neither a
 * straggler nor reordered. Returns false, and counts nothing, for any other number: no number in
 * order is further back than gap_max, as none is further ahead, and a stream that is not proven has
 * no order. */
static inline bool pl_sequence_late(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	const uint32_t behind = (s->highest - seq) & mask;

	if (!s->started || s->constant || s->shared || s->same > 0 || behind == 0 ||
		behind > mask / 2 || behind > gap_max || pl_sequence_seen(s, behind) ||
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
		/* No number is missing in its place. */
		s->duplicates++;
	}
	s->reports++;
	if (behind < PL_SEQUENCE_WINDOW)
		pl_sequence_mark(s, behind);
	return true;
}

/* Counts a number that is not the next one. */
static inline void pl_sequence_step(
	struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	pl_sequence_prove(s, seq, mask, gap_max);
	pl_sequence_sort(s, seq, mask, gap_max);
	s->steady = s->started && s->proven && !s->constant && !s->pending && !s->shared;
}

/* True when pl_sequence_again can count the number: the next one, one behind a gap that the window
 * has room for, or the constant one of an exporter that does not count. */
static inline bool pl_sequence_calm(
	const struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	const uint32_t gap = (seq - s->highest - 1) & mask;

	if (__builtin_expect(s->steady, 1))
		return gap == 0 || (gap < PL_SEQUENCE_WINDOW - 1 && gap < gap_max);
	return s->constant && seq == s->highest;
}

/* Counts a report for which pl_sequence_calm is true, like pl_sequence_next and the
 * pl_sequence_step that may follow. */
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

/* Counts a report. True when its number was the next one; otherwise pl_sequence_step must
 * follow. */
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
