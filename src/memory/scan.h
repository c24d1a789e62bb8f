/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes in a store since its last walk, for key-write, counters and postcards: slots, cells,
 * chunks. A walk goes over the store piece by piece, as many slots at a time as its caller allows,
 * while others write; it keeps 8 bytes of each slot, by which it knows the slot again (a change of
 * a slot is overlooked with a probability of 2^-64; counters are kept as they are).
 *
 * Key-write: several copies of one value are found once, the others counted, as long as they are
 * found in the same walk or the next one, and no more than about 65536 values change in a walk;
 * beyond that a copy may be found as a change of its own. Whether a slot is whole cannot be told
 * without its key. One of 8 bytes is written at once; a larger one that has changed waits until its
 * caller asks again (pl_scan_settle), and counts when it is still the same: a writer needs less
 * than a microsecond for a slot, unless it is interrupted in the midst of it.
 *
 * Counters: of rows with cells of their own the first one is walked: each increment is in one cell
 * of it. Rows that share one array are walked as that array: each increment is in it `rows` times.
 *
 * Postcards can be read by those who know the flow only: changes are counted, none is found.
 */
#pragma once

#include "memory/key_write.h"
#include "memory/store.h"

struct pl_scan_waiting {
	uint64_t number, hash;
};

struct pl_scan_copy {
	uint64_t hash, walk;
};

struct pl_scan {
	uint32_t primitive;
	struct pl_key_write key_write;
	const uint8_t *base;
	uint64_t n, stride, at;          /* slots; bytes between them; next slot */
	uint64_t *seen;                  /* heap, n */
	struct pl_scan_copy *copies;     /* heap; NULL: there is one copy of each value */
	uint64_t copies_mask, walk;      /* walks begun */
	struct pl_scan_waiting *waiting; /* heap; NULL: slots are written at once */
	uint32_t n_waiting, max_waiting, settled;
	bool quiet;          /* this walk finds nothing, it only learns the slots */
	uint64_t in_use_now; /* slots in use in this walk so far */
	/* Sums since the scan was made. changed = found + repeated + keyed. */
	uint64_t changed, found, repeated, keyed;
	uint64_t unsettled; /* changed again while they waited: left to the next walk */
	uint64_t emptied;   /* cells that fell: the store was emptied, or a cell wrapped */
	uint64_t increase;  /* sum by which walked cells grew, modulo 2^64 */
	/* Counts of the last complete walk. */
	uint64_t in_use, walks;
};

struct pl_scan_found {
	uint64_t number; /* number of the slot or cell */
	/* counters: the cell, and the amount by which it grew */
	uint64_t cell, increase;
	uint32_t bytes; /* key-write: bytes of the value in the caller's room */
};

/* Initializes a scan. base: aligned as a store must be, only read. quiet: the first walk finds
 * nothing. Returns 0, -ENOMEM, or -EINVAL when the parameters are of no such store. */
int pl_scan_init(
	struct pl_scan *s, const struct pl_store_params *params, const void *base, bool quiet);
void pl_scan_done(struct pl_scan *s);

/* Changes to another store of the same parameters; no walk is under way. anew: all its slots are
 * new; otherwise it is the same store at another address. */
void pl_scan_rebase(struct pl_scan *s, const void *base, bool anew);

/* Begins a walk at the first slot. */
void pl_scan_begin(struct pl_scan *s);

/* Finds the next change; value: room for PL_VALUE_MAX bytes. *budget: slots that may be read; the
 * call subtracts those that it read. False when the budget is used, or the walk is over
 * (pl_scan_over). */
bool pl_scan_next(struct pl_scan *s, uint64_t *budget, struct pl_scan_found *ret, void *ret_value);
/* Gives the next of the changes that wait, after as much time as a writer may be interrupted for.
 * The caller repeats it until it returns false. While changes wait no walk begins, and when there
 * is no room for more, pl_scan_next takes the budget. */
bool pl_scan_settle(struct pl_scan *s, struct pl_scan_found *ret, void *ret_value);
static inline bool pl_scan_over(const struct pl_scan *s)
{
	return s->at == s->n;
}
