/* SPDX-License-Identifier: BSD-2-Clause */
/* Accumulators: add values, merge two, compute the result. Works by column: the kind of the
 * aggregate is tested once for a batch. */
#include "query/aggregate.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

/* Runs `use` with the accumulator `acc` and the number k of each value that is not absent. */
#define EACH(type, use)                                                                            \
	do {                                                                                       \
		if (!arg->some_absent) {                                                           \
			for (uint32_t k = 0; k < n; k++) {                                         \
				type *acc = (type *)(void *)(accs[k] + offset);                    \
				use;                                                               \
			}                                                                          \
		} else {                                                                           \
			for (uint32_t k = 0; k < n; k++) {                                         \
				type *acc = (type *)(void *)(accs[k] + offset);                    \
				if (arg->absent[k])                                                \
					continue;                                                  \
				use;                                                               \
			}                                                                          \
		}                                                                                  \
	} while (0)

/* Writes a value as 16 bytes that are equal for equal values. */
static void to_words(uint64_t w[2], const struct vector *arg, uint32_t k, enum pl_query_type type)
{
	w[0] = w[1] = 0;
	if (type == PL_QUERY_ADDR)
		memcpy(w, &arg->a[k], 16);
	else if (type == PL_QUERY_BOOL)
		w[0] = arg->b[k];
	else if (type == PL_QUERY_DOUBLE && arg->d[k] == 0)
		w[0] = 0; /* -0 equals 0 */
	else
		w[0] = arg->u[k];
}

static void add_sum(
	const struct agg *agg, uint8_t *const *accs, uint32_t n, const struct vector *arg)
{
	const uint32_t offset = agg->offset;

	if (arg_type(agg) == PL_QUERY_UNSIGNED)
		EACH(struct acc_sum, (acc->sum += arg->u[k], acc->n++));
	else if (arg_type(agg) == PL_QUERY_SIGNED)
		EACH(struct acc_sum, (acc->sum += arg->i[k], acc->n++));
	else
		EACH(struct acc_real, (acc->sum += arg->d[k], acc->n++));
}

#define TAKE_IF(m, op)                                                                             \
	EACH(struct acc_extreme, {                                                                 \
		acc->m = acc->n == 0 || arg->m[k] op acc->m ? arg->m[k] : acc->m;                  \
		acc->n++;                                                                          \
	})

static void add_extreme(
	const struct agg *agg, uint8_t *const *accs, uint32_t n, const struct vector *arg)
{
	const uint32_t offset = agg->offset;
	const bool least = agg->kind == AGG_MIN;

	switch (arg_type(agg)) {
	case PL_QUERY_UNSIGNED:
		if (least)
			TAKE_IF(u, <);
		else
			TAKE_IF(u, >);
		break;
	case PL_QUERY_SIGNED:
		if (least)
			TAKE_IF(i, <);
		else
			TAKE_IF(i, >);
		break;
	default:
		if (least)
			TAKE_IF(d, <);
		else
			TAKE_IF(d, >);
		break;
	}
}

static double as_double(const struct vector *arg, uint32_t k, enum pl_query_type type)
{
	return type == PL_QUERY_UNSIGNED ? (double)arg->u[k]
	       : type == PL_QUERY_SIGNED ? (double)arg->i[k]
					 : arg->d[k];
}

static void add_spread(
	const struct agg *agg, uint8_t *const *accs, uint32_t n, const struct vector *arg)
{
	const enum pl_query_type type = arg_type(agg);
	const uint32_t offset = agg->offset;

	EACH(struct acc_spread, {
		double x = as_double(arg, k, type);
		double delta = x - acc->mean;

		acc->n++;
		acc->mean += delta / (double)acc->n;
		acc->m2 += delta * (x - acc->mean);
	});
}

static void add_ewma(
	const struct agg *agg, uint8_t *const *accs, uint32_t n, const struct vector *arg)
{
	const enum pl_query_type type = arg_type(agg);
	const uint32_t offset = agg->offset;

	EACH(struct acc_ewma, {
		double x = as_double(arg, k, type);

		acc->value = acc->n == 0 ? x : acc->value + agg->q * (x - acc->value);
		acc->n++;
	});
}

/* Adds to the first or last by time; of equal times the one fed first, or last, counts. */
static void add_edge(const struct agg *agg, uint8_t *const *accs, uint32_t n,
	const struct vector *arg, const uint64_t *ts)
{
	const enum pl_query_type type = arg_type(agg);
	const uint32_t offset = agg->offset;
	const bool first = agg->kind == AGG_FIRST;

	EACH(struct acc_edge, {
		if (!acc->has || (first ? ts[k] < acc->ts : ts[k] >= acc->ts)) {
			uint64_t w[2];

			to_words(w, arg, k, type);
			acc->has = 1;
			acc->ts = ts[k];
			memcpy(&acc->addr, w, 16);
		}
	});
}

static void add_sketch(
	const struct agg *agg, uint8_t *const *accs, uint32_t n, const struct vector *arg)
{
	const enum pl_query_type type = arg_type(agg);
	const uint32_t offset = agg->offset;
	uint64_t w[2];

	if (agg->kind == AGG_APPROX_DISTINCT)
		EACH(struct acc_approx, {
			to_words(w, arg, k, type);
			/* Mixed only once, consecutive numbers would give hashes that are too even. */
			pl_query_approx_add(acc, pl_hash_mix(pl_hash_mix(w[0], w[1]), 0));
		});
	else if (agg->kind == AGG_QUANTILE)
		EACH(struct acc_quantile, pl_query_quantile_add(acc, arg->u[k], 1));
	else if (agg->kind == AGG_HIST)
		EACH(struct acc_hist, pl_query_hist_add(acc, arg->u[k]));
	else
		EACH(struct acc_topk, {
			to_words(w, arg, k, type);
			pl_query_topk_add(acc, agg->k, w, 1, 0);
		});
}

void pl_query_agg_add(const struct agg *agg, uint8_t *const *accs, uint32_t n,
	const struct vector *arg, const uint64_t *ts)
{
	const uint32_t offset = agg->offset;

	switch (agg->kind) {
	case AGG_COUNT:
		if (arg != NULL) {
			EACH(uint64_t, ++*acc);
			break;
		}
		for (uint32_t k = 0; k < n; k++)
			++*(uint64_t *)(void *)(accs[k] + offset);
		break;
	case AGG_SUM:
	case AGG_AVG:
		add_sum(agg, accs, n, arg);
		break;
	case AGG_MIN:
	case AGG_MAX:
		add_extreme(agg, accs, n, arg);
		break;
	case AGG_STDDEV:
		add_spread(agg, accs, n, arg);
		break;
	case AGG_FIRST:
	case AGG_LAST:
		add_edge(agg, accs, n, arg, ts);
		break;
	case AGG_EWMA:
		add_ewma(agg, accs, n, arg);
		break;
	case AGG_BIT_OR:
		EACH(uint64_t, *acc |= arg->u[k]);
		break;
	case AGG_COUNT_DISTINCT:
	case AGG_FOLD: /* fold.c */
		break;
	default:
		add_sketch(agg, accs, n, arg);
		break;
	}
}

/* ---- two of them ---- */

static bool is_beyond(
	const struct agg *agg, const struct acc_extreme *a, const struct acc_extreme *b)
{
	const bool least = agg->kind == AGG_MIN;

	switch (arg_type(agg)) {
	case PL_QUERY_UNSIGNED:
		return least ? a->u < b->u : a->u > b->u;
	case PL_QUERY_SIGNED:
		return least ? a->i < b->i : a->i > b->i;
	default:
		return least ? a->d < b->d : a->d > b->d;
	}
}

/* Chan, Golub, LeVeque (1979). */
static void merge_spread(struct acc_spread *a, const struct acc_spread *b)
{
	double delta = b->mean - a->mean, n = (double)(a->n + b->n);

	if (b->n == 0)
		return;
	a->m2 += b->m2 + delta * delta * (double)a->n * (double)b->n / n;
	a->mean += delta * (double)b->n / n;
	a->n += b->n;
}

static void merge_edge(const struct agg *agg, struct acc_edge *a, const struct acc_edge *b)
{
	bool takes = agg->kind == AGG_FIRST ? b->ts < a->ts : b->ts >= a->ts;

	if (b->has && (!a->has || takes))
		*a = *b;
}

static void merge_sum(const struct agg *agg, void *a, const void *b)
{
	if (arg_type(agg) == PL_QUERY_DOUBLE) {
		((struct acc_real *)a)->sum += ((const struct acc_real *)b)->sum;
		((struct acc_real *)a)->n += ((const struct acc_real *)b)->n;
	} else {
		((struct acc_sum *)a)->sum += ((const struct acc_sum *)b)->sum;
		((struct acc_sum *)a)->n += ((const struct acc_sum *)b)->n;
	}
}

/* Counts stay at the largest number, as when values are added. */
static void merge_quantile(struct acc_quantile *a, const struct acc_quantile *b)
{
	for (unsigned int i = 0; i < QUANTILE_BUCKETS; i++)
		a->counts[i] = a->counts[i] > UINT32_MAX - b->counts[i]
				       ? UINT32_MAX
				       : a->counts[i] + b->counts[i];
}

static void merge_state(const struct fold_state *state, uint64_t *a, const uint64_t *b)
{
	const enum pl_query_type type = state->init->type;
	double x, y, first = state->init->d;
	bool less;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (state->merge == FOLD_ADD && type == PL_QUERY_DOUBLE) {
		x += y - first;
		memcpy(a, &x, sizeof(x));
	} else if (state->merge == FOLD_ADD) {
		*a += *b - state->init->u;
	} else if (state->merge == FOLD_GREATEST || state->merge == FOLD_LEAST) {
		less = type == PL_QUERY_DOUBLE   ? x < y
		       : type == PL_QUERY_SIGNED ? (int64_t)*a < (int64_t)*b
						 : *a < *b;
		if (less == (state->merge == FOLD_GREATEST))
			*a = *b;
	}
}

static void merge_fold(const struct fold *fold, struct acc_fold *into, const struct acc_fold *from)
{
	if (!from->began)
		return;
	if (!into->began) {
		memcpy(into, from, sizeof(*into) + (size_t)fold->n_states * CELL_BYTES);
		return;
	}
	for (uint32_t i = 0; i < fold->n_states; i++) {
		const uint64_t bit = (uint64_t)1 << i;

		if (from->absent & bit)
			continue;
		if (into->absent & bit)
			memcpy(into->cells[i], from->cells[i], CELL_BYTES);
		else
			merge_state(&fold->states[i], into->cells[i], from->cells[i]);
		into->absent &= ~bit;
	}
}

void pl_query_agg_merge(const struct agg *agg, uint8_t *into, const uint8_t *from)
{
	void *a = into + agg->offset;
	const void *b = from + agg->offset;
	struct acc_extreme *x = a;
	const struct acc_extreme *y = b;

	switch (agg->kind) {
	case AGG_COUNT:
		*(uint64_t *)a += *(const uint64_t *)b;
		break;
	case AGG_BIT_OR:
		*(uint64_t *)a |= *(const uint64_t *)b;
		break;
	case AGG_SUM:
	case AGG_AVG:
		merge_sum(agg, a, b);
		break;
	case AGG_MIN:
	case AGG_MAX:
		if (y->n > 0) {
			if (x->n == 0 || is_beyond(agg, y, x))
				x->u = y->u;
			x->n += y->n;
		}
		break;
	case AGG_STDDEV:
		merge_spread(a, b);
		break;
	case AGG_FIRST:
	case AGG_LAST:
		merge_edge(agg, a, b);
		break;
	case AGG_COUNT_DISTINCT:
		break;
	case AGG_APPROX_DISTINCT:
		pl_query_approx_merge(a, b);
		break;
	case AGG_QUANTILE:
		merge_quantile(a, b);
		break;
	case AGG_TOPK:
		pl_query_topk_merge(a, b, agg->k);
		break;
	case AGG_HIST:
		for (unsigned int i = 0; i < HIST_BUCKETS; i++)
			((struct acc_hist *)a)->counts[i] +=
				((const struct acc_hist *)b)->counts[i];
		break;
	case AGG_EWMA: /* refused when a query would need it */
		break;
	case AGG_FOLD:
		if (agg->size > 0)
			merge_fold(agg->fold, a, b);
		break;
	}
}

/* ---- results ---- */

static bool sum_result(const struct agg *agg, const void *acc, void *cell, uint64_t *absent)
{
	const struct acc_sum *s = acc;
	const struct acc_real *r = acc;
	bool fits;

	if (arg_type(agg) == PL_QUERY_DOUBLE) {
		double v = agg->kind == AGG_AVG ? r->sum / (double)r->n : r->sum;

		if (r->n == 0)
			return false;
		memcpy(cell, &v, sizeof(v));
		*absent += !isfinite(v);
		return isfinite(v);
	}
	if (s->n == 0)
		return false;
	if (agg->kind == AGG_AVG) {
		double v = (double)s->sum / (double)s->n;

		memcpy(cell, &v, sizeof(v));
		return true;
	}
	fits = arg_type(agg) == PL_QUERY_UNSIGNED ? s->sum <= UINT64_MAX
						  : s->sum >= INT64_MIN && s->sum <= INT64_MAX;
	*absent += !fits;
	memcpy(cell, &s->sum, 8);
	return fits;
}

static bool list_result(
	const struct agg *agg, const void *acc, void *cell, struct pl_query_item *items)
{
	uint64_t n = agg->kind == AGG_HIST ? pl_query_hist_items(acc, items)
					   : pl_query_topk_items(acc, agg->k, arg_type(agg), items);

	memcpy(cell, &items, sizeof(uintptr_t));
	memcpy((char *)cell + 8, &n, sizeof(n));
	return true;
}

bool pl_query_agg_result(const struct agg *agg, const uint8_t *group, void *cell,
	struct pl_query_item *items, uint64_t *absent)
{
	const void *acc = group + agg->offset;
	const struct acc_spread *spread = acc;
	const struct acc_edge *edge = acc;
	const struct acc_fold *fold = acc;
	uint64_t n;
	double d;

	switch (agg->kind) {
	case AGG_COUNT:
	case AGG_BIT_OR:
	case AGG_COUNT_DISTINCT: /* begins with the number */
		memcpy(cell, acc, 8);
		return true;
	case AGG_SUM:
	case AGG_AVG:
		return sum_result(agg, acc, cell, absent);
	case AGG_MIN:
	case AGG_MAX:
		memcpy(cell, (const char *)acc + offsetof(struct acc_extreme, u), 8);
		return ((const struct acc_extreme *)acc)->n > 0;
	case AGG_STDDEV:
		d = spread->n > 0 ? sqrt(spread->m2 / (double)spread->n) : 0;
		memcpy(cell, &d, sizeof(d));
		*absent += !isfinite(d);
		return spread->n > 0 && isfinite(d);
	case AGG_EWMA:
		memcpy(cell, &((const struct acc_ewma *)acc)->value, 8);
		*absent += !isfinite(((const struct acc_ewma *)acc)->value);
		return ((const struct acc_ewma *)acc)->n > 0 &&
		       isfinite(((const struct acc_ewma *)acc)->value);
	case AGG_FIRST:
	case AGG_LAST:
		memcpy(cell, &edge->addr, 16);
		return edge->has;
	case AGG_APPROX_DISTINCT:
		n = pl_query_approx_count(acc);
		memcpy(cell, &n, sizeof(n));
		return true;
	case AGG_QUANTILE:
		if (!pl_query_quantile(acc, agg->q, &n))
			return false;
		memcpy(cell, &n, sizeof(n));
		return true;
	case AGG_TOPK:
	case AGG_HIST:
		return list_result(agg, acc, cell, items);
	case AGG_FOLD:
		memcpy(cell, fold->cells[agg->k], 16);
		return fold->began != 0 && (fold->absent >> agg->k & 1) == 0;
	}
	return false;
}
