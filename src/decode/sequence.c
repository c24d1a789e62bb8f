/* SPDX-License-Identifier: BSD-2-Clause */
#include "decode/sequence.h"

/* So many equal numbers from the start on mean that the exporter does not count. */
#define CONSTANT_AFTER 3

static void unusual(struct pl_sequence *s, uint32_t seq, uint32_t mask, uint32_t gap_max)
{
	uint32_t ahead = (seq - s->highest) & mask, behind = (s->highest - seq) & mask;

	if (!s->started) {
		pl_sequence_start(s, seq);
		s->same = 1;
		return;
	}
	if (s->constant || s->same >= 1) {
		if (seq == s->highest && s->reports == s->same + 1u) {
			s->same++;
			s->duplicates++;
			if (s->same >= CONSTANT_AFTER) {
				s->constant = true;
				s->duplicates = 0;
			}
			return;
		}
		s->same = 0;
		if (s->constant) {
			/* It counts after all: begin here. */
			s->constant = false;
			pl_sequence_start(s, seq);
			return;
		}
	}
	if (s->pending && seq == s->next_if_restart) {
		/* Two in a row from elsewhere: the exporter began anew. */
		s->restarts++;
		s->stragglers--;
		pl_sequence_start(s, (seq - 1) & mask);
		s->highest = seq;
		s->seen = 3;
		s->span = 2;
		return;
	}
	if (ahead != 0 && ahead <= mask / 2 && ahead <= gap_max) {
		s->lost += ahead - 1;
		s->skipped += ahead - 1;
		s->seen = ahead < PL_SEQUENCE_WINDOW ? s->seen << ahead | 1 : 1;
		s->highest = seq;
		s->span =
			s->span + ahead < PL_SEQUENCE_WINDOW ? s->span + ahead : PL_SEQUENCE_WINDOW;
		s->pending = false;
		return;
	}
	if (behind < PL_SEQUENCE_WINDOW) {
		unsigned __int128 bit = (unsigned __int128)1 << behind;

		if ((s->seen & bit) != 0) {
			s->duplicates++;
		} else {
			s->reordered++;
			/* Before the first number seen nothing was counted lost. */
			if (behind < s->span) {
				s->lost--;
				s->recovered++;
			}
			s->seen |= bit;
		}
		return;
	}
	s->stragglers++;
	s->pending = true;
	s->next_if_restart = (seq + 1) & mask;
}

void pl_sequence_unusual(struct pl_sequence *s, uint32_t seq, unsigned int bits, uint32_t gap_max)
{
	unusual(s, seq, bits >= 32 ? UINT32_MAX : (1u << bits) - 1, gap_max);
	s->steady = s->started && !s->constant && !s->pending;
}
