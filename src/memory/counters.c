/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds to and reads a count-min sketch. */
#include "memory/counters.h"

#include <errno.h>
#include <math.h>

int pl_counters_init(struct pl_counters *c, const struct pl_store_params *params, void *base)
{
	uint64_t bytes;

	if (params->primitive != PL_COUNTERS || pl_store_bytes(params, &bytes, NULL) < 0)
		return -EINVAL;
	*c = (struct pl_counters){
		.hashing = { params->hash, params->seed },
		.width = params->counters.width,
		.row_stride = params->counters.shared != 0 ? 0 : params->counters.width,
		.rows = params->counters.rows,
		.base = base,
	};
	return 0;
}

static inline uint64_t *cell_of(const struct pl_counters *c, struct pl_key key, unsigned int row)
{
	return (uint64_t *)(void *)(c->base + pl_counters_offset(c, key, row));
}

static inline uint64_t load(const uint64_t *cell)
{
	return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

int pl_counters_add(const struct pl_counters *c, struct pl_key key, uint64_t increment)
{
	unsigned int row;
	uint64_t sum;

	for (row = 0; row < c->rows; row++) {
		uint64_t *cell = cell_of(c, key, row);

		if (__builtin_add_overflow(load(cell), increment, &sum))
			break;
		__atomic_store_n(cell, sum, __ATOMIC_RELAXED);
	}
	if (row == c->rows)
		return 0;
	while (row-- > 0) {
		uint64_t *cell = cell_of(c, key, row);

		__atomic_store_n(cell, load(cell) - increment, __ATOMIC_RELAXED);
	}
	return -EOVERFLOW;
}

uint64_t pl_counters_get(const struct pl_counters *c, struct pl_key key)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int row = 0; row < c->rows; row++) {
		uint64_t v = load(cell_of(c, key, row));

		least = v < least ? v : least;
	}
	return least;
}

double pl_counters_add_up(double sum, const void *cells, uint64_t n)
{
	const uint64_t *cell = cells;

	for (uint64_t i = 0; i < n; i++)
		sum += (double)load(&cell[i]);
	return sum;
}

double pl_counters_total_of(const struct pl_counters *c, double sum)
{
	return c->row_stride != 0 ? sum : sum / c->rows;
}

double pl_counters_total(const struct pl_counters *c)
{
	return pl_counters_total_of(c, pl_counters_add_up(0, c->base, c->width));
}

struct pl_estimate pl_counters_bound(const struct pl_counters *c, uint64_t value, double total)
{
	double foreign = total / (double)c->width * (c->row_stride != 0 ? 1 : c->rows);

	return (struct pl_estimate){
		.value = value,
		.error = M_E * foreign,
		.confidence = 1 - exp(-(double)c->rows),
	};
}

struct pl_estimate pl_counters_estimate(
	const struct pl_counters *c, struct pl_key key, double total)
{
	return pl_counters_bound(c, pl_counters_get(c, key), total);
}
