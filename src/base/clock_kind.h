/* SPDX-License-Identifier: BSD-2-Clause */
/* Kind of clock that a time was read from. Two times can be compared to the nanosecond only when
 * they are of one clock, or of clocks that are held together; a record has no room for the kind, so
 * streams of records carry it beside them. One kind fits three bits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum pl_clock_kind {
#define PL_STAMP_KIND(id, name, words) PL_STAMP_##id,
#include "base/clock_kinds.def"
#undef PL_STAMP_KIND
	PL_STAMP_KINDS
};

_Static_assert(PL_STAMP_KINDS == 8, "a kind has three bits in tmpkt/1");

/* Name of a kind, such as "nic"; "none" for an invalid number. */
static inline const char *pl_clock_name(enum pl_clock_kind kind)
{
	static const char *const names[PL_STAMP_KINDS] = {
#define PL_STAMP_KIND(id, name, words) name,
#include "base/clock_kinds.def"
#undef PL_STAMP_KIND
	};

	return names[(unsigned int)kind < PL_STAMP_KINDS ? kind : PL_STAMP_NONE];
}

/* True when a set has times of more than one clock. */
static inline bool pl_clocks_differ(uint32_t kinds)
{
	return (kinds & (kinds - 1)) != 0 || (kinds >> PL_STAMP_MIXED & 1) != 0;
}

/* Bit of a kind in a set of kinds; 0 for PL_STAMP_NONE, which is not known. */
static inline uint32_t pl_clock_bit(enum pl_clock_kind kind)
{
	return kind != PL_STAMP_NONE ? 1u << (unsigned int)kind : 0;
}

/* Kind of a set of times, in which bit 1 << kind is set; PL_STAMP_NONE for an empty set. */
static inline enum pl_clock_kind pl_clock_of(uint32_t kinds)
{
	unsigned int kind = 0;

	if (kinds == 0)
		return PL_STAMP_NONE;
	while ((kinds >> kind & 1) == 0)
		kind++;
	return kinds >> kind == 1 && kind < PL_STAMP_KINDS ? (enum pl_clock_kind)kind
							   : PL_STAMP_MIXED;
}
