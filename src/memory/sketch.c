/* SPDX-License-Identifier: BSD-2-Clause */
/* Merges columns into a sketch, and reads it. */
#include "memory/sketch.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

int pl_sketch_init(struct pl_sketch *s, const struct pl_store_params *params, void *base)
{
	uint64_t bytes;

	if (params->primitive != PL_SKETCH || pl_store_bytes(params, &bytes, NULL) < 0)
		return -EINVAL;
	*s = (struct pl_sketch){
		.hashing = { params->hash, params->seed },
		.columns = params->sketch.columns,
		.rows = params->sketch.rows,
		.cell_bytes = params->sketch.cell_bytes,
		.kind = params->sketch.kind,
		.base = base,
	};
	return 0;
}

struct pl_extent pl_sketch_place(const struct pl_sketch *s, uint64_t first, uint64_t n)
{
	uint64_t column_bytes = (uint64_t)s->rows * s->cell_bytes;

	assert(first <= s->columns && n <= s->columns - first);
	return (struct pl_extent){ PL_SKETCH_CELLS_AT + first * column_bytes, n * column_bytes };
}

/* ---- cells of 1, 4 and 8 bytes ---- */

static uint64_t largest(const struct pl_sketch *s)
{
	return s->cell_bytes == 8   ? UINT64_MAX
	       : s->cell_bytes == 4 ? UINT32_MAX
				    : PL_SKETCH_RANK_MAX;
}

static inline uint8_t *cell_of(const struct pl_sketch *s, uint64_t i)
{
	assert(i < (uint64_t)s->columns * s->rows);
	return s->base + PL_SKETCH_CELLS_AT + i * s->cell_bytes;
}

static inline uint64_t load(const struct pl_sketch *s, const uint8_t *cell)
{
	const void *p = cell;

	if (s->cell_bytes == 8)
		return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
	if (s->cell_bytes == 4)
		return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
	return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

static inline void store(const struct pl_sketch *s, uint8_t *cell, uint64_t v)
{
	void *p = cell;

	if (s->cell_bytes == 8)
		__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
	else if (s->cell_bytes == 4)
		__atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_RELAXED);
	else
		__atomic_store_n(cell, (uint8_t)v, __ATOMIC_RELAXED);
}

/* A cell of foreign memory, which may be at any address. */
static uint64_t fetch(const struct pl_sketch *s, const uint8_t *p)
{
	uint64_t v = 0;

	memcpy(&v, p, s->cell_bytes);
	return v;
}

static inline uint64_t merged(const struct pl_sketch *s, uint64_t a, uint64_t b)
{
	uint64_t max = largest(s);

	if (s->kind == PL_SKETCH_HYPERLOGLOG)
		return a > b ? a : b;
	return b > max - a ? max : a + b;
}

static inline void merge_cell(const struct pl_sketch *s, uint8_t *cell, uint64_t v)
{
	uint64_t before = load(s, cell), after = merged(s, before, v);

	if (after != before)
		store(s, cell, after);
}

/* ---- merging ---- */

bool pl_sketch_plausible(const struct pl_sketch *s, const void *cells, uint64_t bytes)
{
	const uint8_t *from = cells;

	for (uint64_t i = 0; s->kind == PL_SKETCH_HYPERLOGLOG && i < bytes; i++) {
		if (from[i] > PL_SKETCH_RANK_MAX)
			return false;
	}
	return true;
}

int pl_sketch_merge(const struct pl_sketch *s, uint64_t first, uint64_t n, const void *cells)
{
	const uint8_t *from = cells;
	uint64_t n_cells = n * s->rows;

	if (first > s->columns || n > s->columns - first)
		return -ERANGE;
	if (!pl_sketch_plausible(s, cells, n_cells * s->cell_bytes))
		return -EINVAL;
	for (uint64_t i = 0; i < n_cells; i++)
		merge_cell(s, cell_of(s, first * s->rows + i), fetch(s, from + i * s->cell_bytes));
	return 0;
}

/* ---- read side ---- */

uint64_t pl_sketch_completed(const struct pl_sketch *s)
{
	const void *word = s->base;

	return pl_sketch_completed_of(s, __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE));
}

double pl_sketch_add_up(const struct pl_sketch *s, double sum, const void *columns, uint64_t n)
{
	for (uint64_t c = 0; c < n; c++)
		sum += (double)load(s, (const uint8_t *)columns + c * s->rows * s->cell_bytes);
	return sum;
}

double pl_sketch_total(const struct pl_sketch *s)
{
	return pl_sketch_add_up(s, 0, s->base + PL_SKETCH_CELLS_AT, s->columns);
}

uint64_t pl_sketch_cell(const struct pl_sketch *s, const void *cell)
{
	return load(s, cell);
}

int pl_sketch_bound(const struct pl_sketch *s, uint64_t value, double total,
	struct pl_estimate *ret, bool *ret_saturated)
{
	if (s->kind != PL_SKETCH_COUNT_MIN)
		return -EINVAL;
	*ret = (struct pl_estimate){
		.value = value,
		.error = M_E * total / (double)s->columns,
		.confidence = 1 - exp(-(double)s->rows),
	};
	*ret_saturated = value == largest(s);
	return 0;
}

/* Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017): registers at zero,
 * and at the largest rank. Both sums end because the precision of a double is limited. */
static double sigma(double x)
{
	double y = 1, z = x, before;

	if (x >= 1)
		return INFINITY;
	do {
		x *= x;
		before = z;
		z += x * y;
		y += y;
	} while (z > before);
	return z;
}

static double tau(double x)
{
	double y = 1, z = 1 - x, before;

	if (x <= 0 || x >= 1)
		return 0;
	do {
		x = sqrt(x);
		before = z;
		y *= 0.5;
		z -= (1 - x) * (1 - x) * y;
	} while (z < before);
	return z / 3;
}

int pl_sketch_count_ranks(const struct pl_sketch *s, uint64_t ranks[PL_SKETCH_RANKS],
	const void *registers, uint64_t n)
{
	if (s->kind != PL_SKETCH_HYPERLOGLOG)
		return -EINVAL;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t rank = load(s, (const uint8_t *)registers + i);

		if (rank > PL_SKETCH_RANK_MAX)
			return -EBADMSG;
		ranks[rank]++;
	}
	return 0;
}

void pl_sketch_cardinality_of(const struct pl_sketch *s, const uint64_t ranks[PL_SKETCH_RANKS],
	double *ret_keys, double *ret_error)
{
	double m = (double)s->columns, z;

	z = m * tau(1 - (double)ranks[PL_SKETCH_RANK_MAX] / m);
	for (unsigned int k = PL_SKETCH_RANK_MAX - 1; k >= 1; k--)
		z = 0.5 * (z + (double)ranks[k]);
	z += m * sigma((double)ranks[0] / m);
	*ret_keys = m * m / (2 * M_LN2 * z);
	*ret_error = 1.04 / sqrt(m);
}

int pl_sketch_cardinality(const struct pl_sketch *s, double *ret_keys, double *ret_error)
{
	uint64_t ranks[PL_SKETCH_RANKS] = { 0 };
	int r = pl_sketch_count_ranks(s, ranks, s->base + PL_SKETCH_CELLS_AT, s->columns);

	if (r == 0)
		pl_sketch_cardinality_of(s, ranks, ret_keys, ret_error);
	return r;
}
