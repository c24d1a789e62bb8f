/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Append: lists of entries in the order of arrival, each list a ring of `slots`. A list is
 *
 *   0   8   head: how many entries were ever published; entry number i lies in slot i mod slots
 *   8   56  zero
 *   64      the slots, entry_stride apart; then zeros up to a multiple of 64
 *
 * A sealed entry is its bytes, zeros up to a multiple of 8, the low 32 bits of its number (4), and
 * a check value of its list, its full number and its bytes (4). An unsealed one is its bytes alone:
 * what the published DTA code writes, with a head beside it.
 *
 * A list has one writer. It writes at most batch_max entries, then the head; so a reader whose copy
 * was taken while entry number i was at least head + batch_max - slots, by a head read afterwards,
 * has what was written for i. Seals also reveal entries whose write was lost on the network
 * although the head advanced, and what a killed writer left.
 */
#pragma once

#include "memory/hashing.h"
#include "memory/store.h"

struct pl_append {
	uint64_t seed;
	uint64_t slots;
	uint64_t list_stride; /* bytes from list to list */
	uint32_t lists, entry_bytes, entry_stride, batch_max;
	bool sealed;
	uint8_t *base; /* borrowed; NULL: geometry only */
};

#define PL_APPEND_SEAL_BYTES 8u
#define PL_APPEND_RING_AT    64u

/* Initializes the geometry, as pl_key_write_init does. */
int pl_append_init(struct pl_append *a, const struct pl_store_params *params, void *base);

/* ---- geometry ---- */

/* Places of n entries from number `first` on, n at most slots: one run of bytes or, around the
 * ring's end, two. Returns the number of runs. */
unsigned int pl_append_place(const struct pl_append *a, uint32_t list, uint64_t first, uint64_t n,
	struct pl_extent ret[2]);

/* Makes the bytes of entry `number` as they lie in its slot: entry_stride of them. */
void pl_append_image(const struct pl_append *a, uint32_t list, uint64_t number, const void *entry,
	void *ret_image);

/* Place of the head: 8 bytes, little-endian, the number of entries. A writer writes it after the
 * entries it counts. */
static inline struct pl_extent pl_append_head_place(const struct pl_append *a, uint32_t list)
{
	return (struct pl_extent){ list * a->list_stride, 8 };
}

/* ---- local put ---- */

/* Appends n entries, entry_bytes apart; publishes them together when n is at most batch_max, else
 * in batches of that. Returns the number of the first. The list must exist (asserted: lists are not
 * named by the wire). */
uint64_t pl_append_put(const struct pl_append *a, uint32_t list, const void *entries, size_t n);

/* Publishes entries that another process or a NIC has written, up to number `head`, for lists whose
 * writer does not publish. */
void pl_append_publish(const struct pl_append *a, uint32_t list, uint64_t head);

/* ---- read side ---- */

/* Entries ever published in the list. */
uint64_t pl_append_head(const struct pl_append *a, uint32_t list);

/* Number of the oldest entry that can still be read. */
uint64_t pl_append_oldest(const struct pl_append *a, uint32_t list);

struct pl_append_reader {
	const struct pl_append *a; /* borrowed */
	uint32_t list;
	uint64_t cursor;  /* number of the entry to be read next */
	uint64_t overrun; /* entries overwritten before they were read */
	/* published entries whose seal does not fit: lost on the way, or torn by a crash */
	uint64_t damaged;
	/* times the head was found behind the cursor: a new list in the same place */
	uint64_t head_resets;
};

/* Begins at entry number `from`; entries overwritten since then count as overrun. */
void pl_append_reader_init(
	struct pl_append_reader *r, const struct pl_append *a, uint32_t list, uint64_t from);

/* Copies up to n entries, entry_bytes apart, and moves the cursor behind them. Returns the number
 * copied; 0 when no entry is new. ret_numbers (may be NULL) gets the number of each: they rise,
 * with gaps where entries were lost, which the reader counts. The call never gives a torn entry, or
 * one of an older round. */
size_t pl_append_read(
	struct pl_append_reader *r, void *ret_entries, uint64_t *ret_numbers, size_t n);

/* Takes the entry out of bytes read from elsewhere (query.h): entry_stride of them, aligned to 8.
 * False when the entry is sealed and not whole, or another one. */
bool pl_append_take(const struct pl_append *a, uint32_t list, uint64_t number, const void *image,
	void *ret_entry);
/* Number of the oldest entry that can be read with this head. */
uint64_t pl_append_oldest_of(const struct pl_append *a, uint64_t head);

/* True when the slot holds the complete entry. False for unsealed lists. */
bool pl_append_whole(const struct pl_append *a, uint32_t list, uint64_t number);

enum pl_append_head_is {
	PL_HEAD_FITS, /* the head fits the entries, or that cannot be known */
	PL_HEAD_LOW,  /* more than `slack` entries behind the head are complete */
	PL_HEAD_HIGH, /* no entry readable by the head is there, but others are */
};

/* Compares the head with the entries of a sealed list: checks a few entries, and all of them only
 * when these do not fit. `slack`: most entries that the writer may have left unpublished:
 * batch_max, or 0 when it closed the region. A head that is too high by less than a list looks as
 * if entries were lost on the way, and fits. Unless the head fits, *ret_head gets it as it is and
 * *ret_end as it must be, for pl_append_publish. */
enum pl_append_head_is pl_append_examine(const struct pl_append *a, uint32_t list, uint64_t slack,
	uint64_t *ret_head, uint64_t *ret_end);

/* Number of entries behind the head that are whole: a writer wrote them but was killed before it
 * published them. 0 for unsealed lists. */
uint64_t pl_append_unpublished(const struct pl_append *a, uint32_t list);
