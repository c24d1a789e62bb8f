/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates that are approximate: distinct counts, quantiles, the most frequent values. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query/aggregate.h"

/* ---- HyperLogLog (Flajolet and others, 2007) ---- */

void pl_query_approx_add(struct acc_approx *acc, uint64_t hash)
{
	uint8_t *r = &acc->registers[hash >> (64 - HLL_BITS)];
	/* A bit set behind the hash's own bits limits the rank. */
	uint8_t rank =
		(uint8_t)(__builtin_clzll(hash << HLL_BITS | (uint64_t)1 << (HLL_BITS - 1)) + 1);

	*r = rank > *r ? rank : *r;
}

void pl_query_approx_merge(struct acc_approx *into, const struct acc_approx *from)
{
	for (unsigned int i = 0; i < 1 << HLL_BITS; i++)
		into->registers[i] = from->registers[i] > into->registers[i] ? from->registers[i]
									     : into->registers[i];
}

uint64_t pl_query_approx_count(const struct acc_approx *acc)
{
	const double m = 1 << HLL_BITS, alpha = 0.7213 / (1 + 1.079 / m);
	unsigned int zeros = 0;
	double sum = 0, estimate;

	for (unsigned int i = 0; i < 1 << HLL_BITS; i++) {
		sum += ldexp(1, -acc->registers[i]);
		zeros += acc->registers[i] == 0;
	}
	estimate = alpha * m * m / sum;
	/* With few values empty registers give the better estimate (linear counting). */
	if (estimate <= 2.5 * m && zeros > 0)
		estimate = m * log(m / zeros);
	return (uint64_t)(estimate + 0.5);
}

/* ---- quantiles: buckets in steps of 1/32 of a power of two ---- */

static unsigned int bucket_of(uint64_t v)
{
	unsigned int e;

	if (v < 2 << QUANTILE_SUB)
		return (unsigned int)v;
	e = 63 - (unsigned int)__builtin_clzll(v) - QUANTILE_SUB;
	return (e << QUANTILE_SUB) + (unsigned int)(v >> e);
}

/* Returns the middle of a bucket. */
static uint64_t value_of(unsigned int bucket)
{
	unsigned int e;
	uint64_t low;

	if (bucket < 2 << QUANTILE_SUB)
		return bucket;
	e = (bucket >> QUANTILE_SUB) - 1;
	low = (uint64_t)(bucket - (e << QUANTILE_SUB)) << e;
	return low + ((uint64_t)1 << e) / 2;
}

void pl_query_quantile_add(struct acc_quantile *acc, uint64_t value, uint32_t n)
{
	uint32_t *count = &acc->counts[bucket_of(value)];

	*count = *count > UINT32_MAX - n ? UINT32_MAX : *count + n;
}

/* Returns ceil(q * n) of the decimal fraction that was written for q. Its double may be a little
 * more, such as that of 0.07, and 100 of them more than 7. */
static uint64_t rank_of(double q, uint64_t n)
{
	const double exact = q * (double)n, whole = round(exact);

	return (uint64_t)(fabs(exact - whole) <= exact * DBL_EPSILON ? whole : ceil(exact));
}

/* Finds the least value such that at least a share q of all values is not greater. Returns false
 * when there is none. */
bool pl_query_quantile(const struct acc_quantile *acc, double q, uint64_t *ret)
{
	uint64_t n = 0, rank, seen = 0;

	for (unsigned int i = 0; i < QUANTILE_BUCKETS; i++)
		n += acc->counts[i];
	if (n == 0)
		return false;
	rank = rank_of(q, n);
	for (unsigned int i = 0; i < QUANTILE_BUCKETS; i++) {
		seen += acc->counts[i];
		if (seen >= rank && acc->counts[i] > 0) {
			*ret = value_of(i);
			return true;
		}
	}
	return false;
}

/* ---- histograms: a bucket for each power of two ---- */

void pl_query_hist_add(struct acc_hist *acc, uint64_t value)
{
	acc->counts[value == 0 ? 0 : 64 - __builtin_clzll(value)]++;
}

uint32_t pl_query_hist_items(const struct acc_hist *acc, struct pl_query_item *items)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		if (acc->counts[i] == 0)
			continue;
		items[n] = (struct pl_query_item){ .value.type = PL_QUERY_UNSIGNED,
			.count = acc->counts[i] };
		items[n++].value.u = i == 0 ? 0 : (uint64_t)1 << (i - 1);
	}
	return n;
}

/* ---- Space-Saving (Metwally, Agrawal, El Abbadi, 2005) ---- */

void pl_query_topk_add(
	struct acc_topk *acc, uint32_t k, const uint64_t value[2], uint64_t count, uint64_t error)
{
	struct topk_counter *least = NULL;

	for (uint64_t i = 0; i < acc->used; i++) {
		struct topk_counter *c = &acc->counters[i];

		if (c->value[0] == value[0] && c->value[1] == value[1]) {
			c->count += count;
			c->error += error;
			return;
		}
		if (least == NULL || c->count < least->count)
			least = c;
	}
	if (acc->used < topk_capacity(k)) {
		acc->counters[acc->used++] =
			(struct topk_counter){ { value[0], value[1] }, count, error };
		return;
	}
	assert(least != NULL); /* there are 64 or more */
	/* The value may have come as often as the one that it replaces. */
	*least = (struct topk_counter){ { value[0], value[1] }, least->count + count,
		least->count + error };
}

/* A value that one accumulator lacks may have come as often as its least one, once it is full. */
void pl_query_topk_merge(struct acc_topk *into, const struct acc_topk *from, uint32_t k)
{
	uint64_t least = from->used == topk_capacity(k) ? UINT64_MAX : 0;

	for (uint64_t i = 0; i < from->used; i++)
		least = from->counters[i].count < least ? from->counters[i].count : least;
	for (uint64_t i = 0; least > 0 && i < into->used; i++) {
		bool there = false;

		for (uint64_t j = 0; j < from->used && !there; j++)
			there = memcmp(into->counters[i].value, from->counters[j].value, 16) == 0;
		into->counters[i].count += there ? 0 : least;
		into->counters[i].error += there ? 0 : least;
	}
	for (uint64_t i = 0; i < from->used; i++)
		pl_query_topk_add(into, k, from->counters[i].value, from->counters[i].count,
			from->counters[i].error);
}

/* Of equal counts, texts come in their order: their addresses differ from run to run. */
static int more_first(const void *a, const void *b, void *type)
{
	const struct topk_counter *x = a, *y = b;
	const char *text[2];

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (*(const enum pl_query_type *)type != PL_QUERY_TEXT)
		return memcmp(x->value, y->value, sizeof(x->value));
	memcpy(&text[0], x->value, sizeof(text[0]));
	memcpy(&text[1], y->value, sizeof(text[1]));
	return strcmp(text[0], text[1]);
}

uint32_t pl_query_topk_items(const struct acc_topk *acc, uint32_t k, enum pl_query_type type,
	struct pl_query_item *items)
{
	struct topk_counter sorted[4 * TOPK_MAX];
	uint32_t n = acc->used < k ? (uint32_t)acc->used : k;

	memcpy(sorted, acc->counters, acc->used * sizeof(*sorted));
	qsort_r(sorted, acc->used, sizeof(*sorted), more_first, &type);
	for (uint32_t i = 0; i < n; i++) {
		items[i] = (struct pl_query_item){
			.value.type = type, .count = sorted[i].count, .error = sorted[i].error
		};
		memcpy(&items[i].value.addr, sorted[i].value, 16);
	}
	return n;
}
