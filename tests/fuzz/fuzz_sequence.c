/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequence accounting of any stream of numbers. First byte: their width and the largest gap; then
 * steps of a byte: small ones move on or back, large ones jump. Every other number may be one that
 * is counted late by our own doing. Beside it runs a ledger of every number seen since the last
 * restart, without a window: while no restart, straggler or constant exporter is in play, and
 * nothing is late, the two agree.
 */
#include "decode/sequence.h"
#include "fuzz.h"

enum { LEDGER = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t seen[LEDGER];
	struct pl_sequence s = { 0 };
	unsigned int bits;
	uint32_t mask, gap_max, at = 1u << 15, low = at, high = at, start;
	uint64_t repeats = 0, distinct = 0;
	bool plain = true, late;

	if (size < 2)
		return 0;
	bits = (data[0] & 1) != 0 ? 22 : 32;
	mask = bits == 22 ? 0x3fffff : UINT32_MAX;
	gap_max = (data[0] & 2) != 0 ? 100 : 65536;
	start = (uint32_t)data[0] << 14;
	memset(seen, 0, sizeof(seen));
	for (size_t i = 1; i < size && i < 2048; i++) {
		uint64_t lost = s.lost, span;
		int8_t step = (int8_t)data[i];
		uint32_t to = at;

		if (i > 1)
			to = step > 100    ? at + 60000u
			     : step < -100 ? at - 60000u
					   : at + (uint32_t)(int32_t)step;
		/* A number outside the ledger, or far from the others, ends the comparison, not the
		 * stream. */
		if (to >= LEDGER || to > high + gap_max || to + PL_SEQUENCE_WINDOW <= high)
			plain = false;
		at = to;
		late = (data[0] & 4) != 0 && (i & 1) == 0 &&
		       pl_sequence_late(&s, (start + at) & mask, mask, gap_max);
		if (late)
			plain = false;
		else
			pl_sequence_update(&s, start + at, bits, gap_max);
		must(s.reports == i);
		must(s.reordered + s.duplicates + s.stragglers + s.restarts <= s.reports);
		/* A gap of more than gap_max is never believed; a late report takes back one at
		 * most; numbers that turn out to be of several senders take back more. */
		must(s.lost - lost <= gap_max || lost - s.lost == 1 || (s.shared && s.lost < lost));
		/* What the window lacks is lost, so that what comes of it can be taken back. */
		must(pl_sequence_gaps(s.seen, s.span, PL_SEQUENCE_WINDOW) <= s.lost);
		must(s.skipped - s.recovered == s.lost);
		must((s.seen[0] & 1) != 0 && s.span <= PL_SEQUENCE_WINDOW);
		if (!plain)
			continue;
		repeats += seen[at];
		distinct += !seen[at];
		seen[at] = 1;
		low = at < low ? at : low;
		high = at > high ? at : high;
		span = high - low + 1;
		/* Before the first number nothing can be lost, and none is told lost twice. */
		plain = !s.constant && !s.shared && low == 1u << 15 && s.same < 2;
		if (!plain)
			continue;
		must(s.restarts == 0 && s.stragglers == 0);
		must(s.duplicates == repeats);
		must(s.lost == span - distinct);
	}
	return 0;
}
