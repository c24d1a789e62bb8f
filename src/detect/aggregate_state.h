/* SPDX-License-Identifier: BSD-2-Clause */
/* Structure of an aggregate, for the files that count into it and merge it. Internal to
 * detect/aggregate*.c. */
#pragma once

#include "base/hash.h"
#include "base/shares.h"
#include "detect/aggregate.h"

#define CHUNK_HOPS  24 /* so few that their cells stay in the first-level cache */
#define HOPS_MAX    255
#define CHUNK_PATHS 64

/* Cells of one hop. */
struct hop_cells {
	uint32_t queue, port, link; /* PL_CELL_NONE: not known */
};

/* Cells that the last report of a path counted into, beside the path's cell: the next report most
 * likely counts into the same ones. They are a guess, compared with the cell's key, so a cell that
 * was reused does no harm. Keys without a cell of their own are not kept. */
struct path_memory {
	uint64_t epoch; /* the aggregate's epoch when written; another one: nothing is known */
	struct hop_cells hops[PL_PATH_STEPS_MAX];
};

/* Work on a hop during the passes over a chunk. */
struct hop_work {
	struct hop_cells guess, cells;
	bool has_queue, has_port, has_link;
	uint8_t depth, latency; /* buckets */
};

_Static_assert(PL_HIST_BUCKETS <= 256, "a bucket's number fits");

struct path_work {
	uint64_t hash;
	struct path_memory *memory; /* NULL: the path has no cell of its own */
	uint32_t cell;
	bool has_path;
	uint8_t latency; /* bucket */
};

/* A key that found no room, from a source with less than its share. */
#define WANTED_MAX        8
#define WANTED_PER_SECOND 1024 /* most keys searched for: a full table must not slow the rest */

struct wanted {
	uint64_t key[4];
	uint64_t hash;
	struct pl_addr source;
	enum pl_agg_table table;
};

struct pl_aggregate {
	struct pl_aggregate_options options; /* options, with the defaults filled in */
	struct pl_cells tables[PL_AGG_TABLE_MAX];
	struct pl_shares shares[PL_AGG_TABLE_MAX];
	uint32_t hand[PL_AGG_TABLE_MAX];
	struct wanted wanted[WANTED_MAX]; /* keys without a cell in the present chunk */
	unsigned int n_wanted;
	unsigned int may_want; /* how many more keys may be added to `wanted` in this second */
	struct pl_agg_totals totals;
	uint64_t now_ns;
	uint64_t slot;
	uint64_t seed;
	uint64_t epoch;             /* counts changes that make cell numbers invalid; from 1 */
	struct path_memory *memory; /* one for each path's cell */
	struct path_work paths[CHUNK_PATHS];
	struct hop_work hops[CHUNK_HOPS + HOPS_MAX];
};

/* Hashes of keys. The seed is secret and goes into the factor that holds the 64-bit identifier; the
 * other factor never reaches the constant that pl_hash_mix adds to it (its upper 16 bits hold at
 * most 7), so no key chosen by a sender makes the product vanish. */
static inline uint64_t queue_hash(uint64_t seed, const uint64_t w[2])
{
	return pl_hash_mix(w[0] ^ seed, w[1]);
}

static inline uint64_t link_hash(uint64_t seed, const uint64_t w[4])
{
	uint64_t a = pl_hash_mix(w[0] ^ seed, w[3] << 48 | (uint32_t)w[2]);
	uint64_t b = pl_hash_mix(w[1] ^ ~seed, w[3] << 48 | w[2] >> 32);

	return a + (b << 31 | b >> 33);
}

static inline uint64_t path_hash(uint64_t seed, uint64_t path_id)
{
	return pl_hash_mix(path_id ^ seed, 0);
}

/* Makes a cell for a new key; when there is no room, returns the overflow cell and lists the key in
 * `wanted`. */
uint32_t pl_aggregate_make(struct pl_aggregate *agg, enum pl_agg_table table, uint64_t hash,
	const void *key, size_t key_len, const struct pl_addr *source);
/* Makes cells for the wanted keys, as far as other sources have to make room. No number of a cell
 * may be in use meanwhile. */
void pl_aggregate_grant(struct pl_aggregate *agg);

/* Cell of this key, made when new; the overflow cell when there is no room. */
static inline uint32_t obtain(struct pl_aggregate *agg, enum pl_agg_table table, uint64_t hash,
	const void *key, size_t key_len, const struct pl_path *path)
{
	uint32_t cell = pl_cells_find(&agg->tables[table], hash, key, key_len);
	struct pl_addr source;

	if (__builtin_expect(cell != PL_CELL_NONE, 1))
		return cell;
	source = pl_path_source(path);
	return pl_aggregate_make(agg, table, hash, key, key_len, &source);
}

/* Moves the slot on: the current maximum becomes the previous one. */
void pl_slot_max_advance(struct pl_slot_max *m, uint64_t slot);
