/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sketches of several reporters merged into one: columns of `rows` cells, column-major, so that a
 * run of columns is a run of bytes. The store is
 *
 *   0   8  columns that are complete, in their order: written after them
 *   8   56 zero
 *   64     cell of column c and row r at 64 + (c * rows + r) * cell_bytes; then zeros up to a
 *          multiple of 64
 *
 * Count-min: a key adds to cell (h_r(key), r) of each row; merging adds, and a cell that would pass
 * its largest value stays there and says so in the answer. HyperLogLog: one row of registers;
 * merging takes the larger.
 */
#pragma once

#include "memory/counters.h"
#include "memory/hashing.h"
#include "memory/store.h"

struct pl_sketch {
	struct pl_hashing hashing;
	uint64_t columns;
	uint32_t rows, cell_bytes, kind;
	uint8_t *base; /* borrowed; NULL: geometry only */
};

#define PL_SKETCH_CELLS_AT 64u
#define PL_SKETCH_RANK_MAX 61u /* largest register of HyperLogLog */
#define PL_SKETCH_RANKS    (PL_SKETCH_RANK_MAX + 1)

/* Initializes the geometry, as pl_key_write_init does. */
int pl_sketch_init(struct pl_sketch *s, const struct pl_store_params *params, void *base);

/* ---- geometry ---- */

/* Place of columns first .. first + n - 1, all within the sketch. */
struct pl_extent pl_sketch_place(const struct pl_sketch *s, uint64_t first, uint64_t n);

static inline struct pl_key pl_sketch_key(
	const struct pl_sketch *s, const void *key, size_t key_bytes)
{
	return pl_key_make(&s->hashing, key, key_bytes);
}

/* Offset of the key's cell in a row: cell_bytes, aligned to them. */
static inline uint64_t pl_sketch_offset(
	const struct pl_sketch *s, struct pl_key key, unsigned int row)
{
	const uint64_t column = pl_key_slot(&s->hashing, key, row, s->columns);

	return PL_SKETCH_CELLS_AT + (column * s->rows + row) * s->cell_bytes;
}

/* ---- merging ---- */

/* True when keys can have made these cells of HyperLogLog; always true for count-min. */
bool pl_sketch_plausible(const struct pl_sketch *s, const void *cells, uint64_t bytes);

/* Merges n columns of cells, little-endian and laid out as in the store, beginning at column
 * `first`. Returns 0; -ERANGE when some are outside the sketch, or -EINVAL when they are not
 * plausible; then none is merged. Repeats are not detected: a sum would count twice, so the caller
 * sees to it. */
int pl_sketch_merge(const struct pl_sketch *s, uint64_t first, uint64_t n, const void *cells);

/* ---- read side ---- */

/* Number n of complete columns: columns 0 .. n - 1 are of the present sketch, with all reporters in
 * them; the others may hold an earlier one's. A number above the columns of the sketch counts as 0.
 * Columns read before are of the present sketch when n is no less afterwards. */
uint64_t pl_sketch_completed(const struct pl_sketch *s);

/* Sum of the first row's cells. */
double pl_sketch_total(const struct pl_sketch *s);

/* HyperLogLog: number of different keys, and the relative standard error (1.04 / sqrt(columns)).
 * Returns -EINVAL for other kinds. */
int pl_sketch_cardinality(const struct pl_sketch *s, double *ret_keys, double *ret_error);

/* Functions for bytes read from elsewhere (query.h): the number of complete columns by the store's
 * first word; the value of a cell; the sum with n more columns, which begins at 0; count-min's
 * estimate of a key whose smallest cell is `value` (`saturated`: the cell stands at its largest
 * value, the true sum may be higher; -EINVAL for other kinds); n more registers counted by their
 * rank (-EBADMSG when one is too large), and the number of keys that follows from all ranks. */
static inline uint64_t pl_sketch_completed_of(const struct pl_sketch *s, uint64_t word)
{
	return word <= s->columns ? word : 0;
}
uint64_t pl_sketch_cell(const struct pl_sketch *s, const void *cell);
double pl_sketch_add_up(const struct pl_sketch *s, double sum, const void *columns, uint64_t n);
int pl_sketch_bound(const struct pl_sketch *s, uint64_t value, double total,
	struct pl_estimate *ret, bool *ret_saturated);
int pl_sketch_count_ranks(const struct pl_sketch *s, uint64_t ranks[PL_SKETCH_RANKS],
	const void *registers, uint64_t n);
void pl_sketch_cardinality_of(const struct pl_sketch *s, const uint64_t ranks[PL_SKETCH_RANKS],
	double *ret_keys, double *ret_error);
