/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on accumulators: add values, merge two, compute the result. */
#pragma once

#include "lang/accumulator.h"
#include "query/vector.h"

/* Adds the n values of `arg` to the accumulators that begin at accs[i] + agg->offset. `ts` is for
 * first and last. Not for COUNT_DISTINCT. */
void pl_query_agg_add(const struct agg *agg, uint8_t *const *accs, uint32_t n,
	const struct vector *arg, const uint64_t *ts);
/* Adds an accumulator to another, both of the aggregate. Not for COUNT_DISTINCT. */
void pl_query_agg_merge(const struct agg *agg, uint8_t *into, const uint8_t *from);
/* Writes the result of the accumulator that begins at acc + agg->offset into a cell of 16 bytes.
 * Returns false when it is absent. items: room for LIST_MAX items of a list. */
bool pl_query_agg_result(const struct agg *agg, const uint8_t *acc, void *cell,
	struct pl_query_item *items, uint64_t *absent);

/* sketch.c */
void pl_query_approx_add(struct acc_approx *acc, uint64_t hash);
uint64_t pl_query_approx_count(const struct acc_approx *acc);
void pl_query_approx_merge(struct acc_approx *into, const struct acc_approx *from);
void pl_query_quantile_add(struct acc_quantile *acc, uint64_t value, uint32_t n);
bool pl_query_quantile(const struct acc_quantile *acc, double q, uint64_t *ret);
void pl_query_topk_add(
	struct acc_topk *acc, uint32_t k, const uint64_t value[2], uint64_t count, uint64_t error);
void pl_query_topk_merge(struct acc_topk *into, const struct acc_topk *from, uint32_t k);
void pl_query_hist_add(struct acc_hist *acc, uint64_t value);
/* Lists the buckets that are not empty, by their least value. */
uint32_t pl_query_hist_items(const struct acc_hist *acc, struct pl_query_item *items);
uint32_t pl_query_topk_items(const struct acc_topk *acc, uint32_t k, enum pl_query_type type,
	struct pl_query_item *items);
