/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: sums by key in a count-min sketch of cells of 64 bits. A key adds to one cell of each
 * row; the smallest of them is the answer, never too low. Rows lie one behind the other, or share
 * one array (PL_HASH_DTA), where a cell also carries the foreign increments of the other rows.
 *
 * A cell is added to by one aligned fetch-and-add, here or by a NIC; a process killed in
 * the middle of a put leaves some rows counted, which the smallest leaves out.
 */
#pragma once

#include <assert.h>

#include "memory/hashing.h"
#include "memory/store.h"

struct pl_counters {
	struct pl_hashing hashing;
	uint64_t width;
	uint64_t row_stride; /* cells from row to row; 0 when shared */
	uint32_t rows;
	uint8_t *base; /* borrowed; NULL: geometry only */
};

/* Initializes the geometry, as pl_key_write_init does. */
int pl_counters_init(struct pl_counters *c, const struct pl_store_params *params, void *base);

/* ---- geometry ---- */

static inline struct pl_key pl_counters_key(
	const struct pl_counters *c, const void *key, size_t key_bytes)
{
	return pl_key_make(&c->hashing, key, key_bytes);
}

/* Offset of the key's cell in a row: eight bytes, aligned, to which the increment is added. */
static inline uint64_t pl_counters_offset(
	const struct pl_counters *c, struct pl_key key, unsigned int row)
{
	assert(row < c->rows);
	return (row * c->row_stride + pl_key_slot(&c->hashing, key, row, c->width)) * 8;
}

/* ---- local put ---- */

/* Adds `increment`, for a single writer. Returns 0; or -EOVERFLOW, with nothing added, when a cell
 * would pass 2^64 - 1. */
int pl_counters_add(const struct pl_counters *c, struct pl_key key, uint64_t increment);

/* ---- read side ---- */

/* Estimate that may be too high: the true sum is at most `value`, and at least value - error with
 * the probability `confidence`. */
struct pl_estimate {
	uint64_t value;
	double error;
	double confidence;
};

/* Smallest of the key's cells. */
uint64_t pl_counters_get(const struct pl_counters *c, struct pl_key key);

/* Sum of all increments: reads a row, or all cells of a shared array. */
double pl_counters_total(const struct pl_counters *c);

/* Estimate of the key's sum, with the bound that follows from `total` (pl_counters_total): a cell
 * carries foreign increments of total / width on average, shared rows * total / width; e times that
 * is passed in one row with probability 1/e. */
struct pl_estimate pl_counters_estimate(
	const struct pl_counters *c, struct pl_key key, double total);

/* Functions for cells read from elsewhere (query.h). pl_counters_add_up adds n more cells to `sum`,
 * which begins at 0 and holds width cells in the end; pl_counters_total_of makes the total of it;
 * pl_counters_bound makes the estimate of a key whose smallest cell is `value`. */
double pl_counters_add_up(double sum, const void *cells, uint64_t n);
double pl_counters_total_of(const struct pl_counters *c, double sum);
struct pl_estimate pl_counters_bound(const struct pl_counters *c, uint64_t value, double total);
