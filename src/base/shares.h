/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the entries of a shared table that each sender holds, so that no sender takes the table
 * from the others. A sender is a source of pl_addr_source. As long as there is room every source
 * gets entries. When the table is full, a new entry of a source replaces one of a source that holds
 * more than the new one's source would then hold (max-min fairness): sources that need few entries
 * have them, and sources that need many share the rest.
 *
 * The table itself remembers for each entry the number of its share. The table decides which
 * entry goes; pl_shares_choose finds one at bounded cost. Nothing allocates after
 * pl_shares_init. One thread.
 */
#pragma once

#include "base/addr.h"
#include "base/cells.h"

struct pl_share {
	struct pl_addr source;
	uint32_t held;
	uint32_t zero[3];
};

struct pl_shares {
	struct pl_cells cells; /* struct pl_share */
	uint64_t seed;
};

/* Makes shares for a table with this number of entries. Returns 0 or -ENOMEM. */
int pl_shares_init(struct pl_shares *s, uint32_t entries);
void pl_shares_done(struct pl_shares *s);
uint64_t pl_shares_memory(uint32_t entries);
void pl_shares_clear(struct pl_shares *s);
void pl_shares_copy(struct pl_shares *dst, const struct pl_shares *src); /* for as many entries */

/* Counts one entry more for the source; returns the number of its share. No more are held at a time
 * than there are entries. */
uint32_t pl_shares_take(struct pl_shares *s, const struct pl_addr *source);
/* Counts one entry of that share less. */
void pl_shares_give(struct pl_shares *s, uint32_t share);

/* Number of entries that a source holds. */
uint32_t pl_shares_held(const struct pl_shares *s, const struct pl_addr *source);

static inline const struct pl_share *pl_shares_at(const struct pl_shares *s, uint32_t share)
{
	return pl_cells_at(&s->cells, share);
}

/* An entry that may have to go. */
struct pl_share_entry {
	uint32_t share;
	uint64_t seen_ns; /* time of its last use */
	bool idle;        /* it may go at no loss */
};

/* Cell of `table` that makes room for a source which holds `held` of it: an idle one, or one of the
 * source that holds most, the one of least use; PL_CELL_NONE when no examined source holds enough
 * to give one up. `always`: one of them has to. The call examines the next PL_SHARES_LOOK cells
 * from *hand on, which moves: the cost is bounded, and the source with most of the table is met
 * soon. */
#define PL_SHARES_LOOK 16
uint32_t pl_shares_choose(const struct pl_shares *s, const struct pl_cells *table, uint32_t *hand,
	uint32_t held, bool always,
	struct pl_share_entry (*entry)(const void *arg, const void *cell), const void *arg);
