/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets counted by key instead of recorded: the counts that a query asks of a tap in the kernel,
 * as data of its program (bpf/tap.bpf.c), and the counts that the program returns. A key is the
 * number of a window and words of the record that the packet would get, each under a mask. From a
 * key a record is made again, with the bits under the masks and, as its time, the start of the
 * window. */
#pragma once

#include "core/report_cursor.h"
#include "record/packet.h"

#define PL_TAP_COUNT_WORDS 6u

/* Plan, set before the program is loaded. */
struct pl_tap_count_plan {
	uint64_t pane_ns;                  /* length of a window; 0: all packets are of window 0 */
	uint32_t on;                       /* 0: packets become records */
	uint32_t n;                        /* words of a key; masks of the others are 0 */
	uint32_t at[PL_TAP_COUNT_WORDS];   /* different offsets in the record, multiples of 8 */
	uint64_t mask[PL_TAP_COUNT_WORDS]; /* masks in memory order */
};

struct pl_tap_count_key {
	uint64_t window; /* time since the Unix epoch, divided by pane_ns */
	uint64_t words[PL_TAP_COUNT_WORDS];
};

struct pl_tap_count_value {
	uint64_t packets, wire_bytes, pay_bytes; /* sums of wire_len and of pay_len */
	/* earliest time; if processors count at the same time, perhaps that of a later packet */
	uint64_t first_ns;
};

/* Counts of the packets of one key. */
struct pl_tap_count {
	struct pl_pkt96 record; /* 0 outside the masks; ts_ns: start of the window */
	struct pl_tap_count_value value;
};

PL_CORE_INLINE uint64_t pl_tap_count_window(uint64_t pane_ns, uint64_t ts_ns)
{
	return pane_ns != 0 ? ts_ns / pane_ns : 0;
}

/* Returns the word at an offset of a record under a mask. */
PL_CORE_INLINE uint64_t pl_tap_count_word(const struct pl_pkt96 *r, uint32_t at, uint64_t mask)
{
	return *(const uint64_t *)(const void *)((const uint8_t *)r + at) & mask;
}

#ifndef __bpf__
static inline void pl_tap_count_make(struct pl_tap_count *ret, const struct pl_tap_count_plan *plan,
	const struct pl_tap_count_key *key, const struct pl_tap_count_value *value)
{
	memset(&ret->record, 0, sizeof(ret->record));
	for (uint32_t i = 0; i < plan->n && i < PL_TAP_COUNT_WORDS; i++)
		memcpy((uint8_t *)&ret->record + plan->at[i], &key->words[i], sizeof(uint64_t));
	ret->record.ts_ns = key->window * plan->pane_ns;
	ret->value = *value;
}
#endif
