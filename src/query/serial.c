/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes accumulators as bytes, reads them back and checks them. */
#include "query/serial.h"

#include <math.h>
#include <string.h>

#define N_MAX    ((uint64_t)1 << 62) /* largest number of values in an accumulator */
#define RANK_MAX (64 - HLL_BITS + 1)
#define DENSE    UINT16_MAX

/* Bytes of an accumulator that is written unchanged; 0: it has another form. */
static uint32_t plain_size(const struct agg *agg)
{
	switch (agg->kind) {
	case AGG_COUNT:
	case AGG_BIT_OR:
	case AGG_SUM:
	case AGG_AVG:
	case AGG_MIN:
	case AGG_MAX:
	case AGG_STDDEV:
	case AGG_FIRST:
	case AGG_LAST:
		return agg->size;
	default:
		return 0;
	}
}

bool pl_query_serial_can(const struct agg *agg)
{
	return plain_size(agg) > 0 || agg->kind == AGG_COUNT_DISTINCT ||
	       agg->kind == AGG_APPROX_DISTINCT || agg->kind == AGG_QUANTILE ||
	       agg->kind == AGG_TOPK || agg->kind == AGG_HIST;
}

/* ---- written ---- */

static void put_u16(struct pl_buf *out, uint64_t value)
{
	const uint16_t v = (uint16_t)value;

	pl_buf_add(out, &v, sizeof(v));
}

static void put_u64(struct pl_buf *out, uint64_t value)
{
	pl_buf_add(out, &value, sizeof(value));
}

static void put_approx(struct pl_buf *out, const struct acc_approx *acc)
{
	const unsigned int all = 1 << HLL_BITS;
	unsigned int n = 0;

	for (unsigned int i = 0; i < all; i++)
		n += acc->registers[i] != 0;
	if (n * 3 > all) {
		put_u16(out, DENSE);
		pl_buf_add(out, acc->registers, all);
		return;
	}
	put_u16(out, n);
	for (unsigned int i = 0; i < all; i++) {
		if (acc->registers[i] == 0)
			continue;
		put_u16(out, i);
		pl_buf_chr(out, (char)acc->registers[i]);
	}
}

static uint64_t count_of(const struct agg *agg, const void *acc, unsigned int i)
{
	return agg->kind == AGG_HIST ? ((const struct acc_hist *)acc)->counts[i]
				     : ((const struct acc_quantile *)acc)->counts[i];
}

static unsigned int buckets_of(const struct agg *agg)
{
	return agg->kind == AGG_HIST ? HIST_BUCKETS : QUANTILE_BUCKETS;
}

static void put_buckets(struct pl_buf *out, const struct agg *agg, const void *acc)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < buckets_of(agg); i++)
		n += count_of(agg, acc, i) != 0;
	put_u16(out, n);
	for (unsigned int i = 0; i < buckets_of(agg); i++) {
		if (count_of(agg, acc, i) == 0)
			continue;
		put_u16(out, i);
		put_u64(out, count_of(agg, acc, i));
	}
}

void pl_query_serial_put(struct pl_buf *out, const struct agg *agg, const uint8_t *at)
{
	const struct acc_topk *top = (const void *)at;

	if (plain_size(agg) > 0) {
		pl_buf_add(out, at, plain_size(agg));
	} else if (agg->kind == AGG_APPROX_DISTINCT) {
		put_approx(out, (const void *)at);
	} else if (agg->kind == AGG_TOPK) {
		put_u16(out, top->used);
		pl_buf_add(out, top->counters, top->used * sizeof(*top->counters));
	} else {
		put_buckets(out, agg, at);
	}
}

uint32_t pl_query_serial_most(const struct agg *agg)
{
	if (plain_size(agg) > 0)
		return plain_size(agg);
	if (agg->kind == AGG_APPROX_DISTINCT)
		return 2 + (1 << HLL_BITS);
	if (agg->kind == AGG_TOPK)
		return 2 + topk_capacity(agg->k) * (uint32_t)sizeof(struct topk_counter);
	return 2 + buckets_of(agg) * (2 + 8);
}

/* ---- read ---- */

static uint16_t get_u16(struct pl_cursor *in)
{
	const uint8_t *p = pl_cursor_take(in, 2);
	uint16_t v = 0;

	if (p != NULL)
		memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get_u64(struct pl_cursor *in)
{
	const uint8_t *p = pl_cursor_take(in, 8);
	uint64_t v = 0;

	if (p != NULL)
		memcpy(&v, p, sizeof(v));
	return v;
}

bool pl_query_serial_value(enum pl_query_type type, const uint8_t *value)
{
	uint64_t u;
	double d;

	memcpy(&u, value, 8);
	memcpy(&d, value, 8);
	if (type == PL_QUERY_BOOL)
		return u <= 1;
	return type != PL_QUERY_DOUBLE || isfinite(d);
}

static bool plain_is_good(const struct agg *agg, const void *acc)
{
	const struct acc_extreme *extreme = acc;
	const struct acc_spread *spread = acc;
	const struct acc_edge *edge = acc;
	const struct acc_sum *sum = acc;
	const wide limit = (wide)1 << 126;

	switch (agg->kind) {
	case AGG_COUNT:
		return *(const uint64_t *)acc <= N_MAX;
	case AGG_SUM:
	case AGG_AVG:
		if (arg_type(agg) == PL_QUERY_DOUBLE)
			return ((const struct acc_real *)acc)->n <= N_MAX;
		return sum->n <= N_MAX && sum->sum < limit && sum->sum > -limit;
	case AGG_MIN:
	case AGG_MAX:
		return extreme->n <= N_MAX &&
		       pl_query_serial_value(arg_type(agg), (const uint8_t *)&extreme->u);
	case AGG_STDDEV:
		return spread->n <= N_MAX && !isnan(spread->mean) && spread->m2 >= 0;
	case AGG_FIRST:
	case AGG_LAST:
		return edge->has <= 1 &&
		       pl_query_serial_value(arg_type(agg), (const uint8_t *)&edge->addr);
	default:
		return true;
	}
}

static bool get_approx(struct pl_cursor *in, struct acc_approx *acc)
{
	const unsigned int all = 1 << HLL_BITS, n = get_u16(in);
	const uint8_t *p;

	if (n == DENSE) {
		p = pl_cursor_take(in, all);
		if (p != NULL)
			memcpy(acc->registers, p, all);
	}
	for (unsigned int i = 0; n != DENSE && i < n && !in->short_read; i++) {
		const uint16_t at = get_u16(in);

		p = pl_cursor_take(in, 1);
		if (p == NULL || at >= all)
			return false;
		acc->registers[at] = *p;
	}
	for (unsigned int i = 0; i < all; i++) {
		if (acc->registers[i] > RANK_MAX)
			return false;
	}
	return true;
}

static bool get_buckets(struct pl_cursor *in, const struct agg *agg, void *acc)
{
	const unsigned int n = get_u16(in);

	for (unsigned int i = 0; i < n && !in->short_read; i++) {
		const uint16_t at = get_u16(in);
		const uint64_t count = get_u64(in);

		if (at >= buckets_of(agg) || count > N_MAX)
			return false;
		if (agg->kind == AGG_HIST)
			((struct acc_hist *)acc)->counts[at] = count;
		else if (count <= UINT32_MAX)
			((struct acc_quantile *)acc)->counts[at] = (uint32_t)count;
		else
			return false;
	}
	return true;
}

static bool get_top(struct pl_cursor *in, const struct agg *agg, struct acc_topk *acc)
{
	const unsigned int n = get_u16(in);
	const uint8_t *p = pl_cursor_take(in, n * sizeof(*acc->counters));

	if (p == NULL || n > topk_capacity(agg->k))
		return false;
	acc->used = n;
	memcpy(acc->counters, p, n * sizeof(*acc->counters));
	for (unsigned int i = 0; i < n; i++) {
		const struct topk_counter *c = &acc->counters[i];

		if (c->count > N_MAX || c->error > c->count ||
			!pl_query_serial_value(arg_type(agg), (const uint8_t *)c->value))
			return false;
	}
	return true;
}

bool pl_query_serial_get(struct pl_cursor *in, const struct agg *agg, uint8_t *acc)
{
	const uint32_t size = plain_size(agg);
	const uint8_t *p;
	bool good;

	if (size > 0) {
		p = pl_cursor_take(in, size);
		if (p != NULL)
			memcpy(acc, p, size);
		good = p != NULL && plain_is_good(agg, acc);
	} else if (agg->kind == AGG_APPROX_DISTINCT) {
		good = get_approx(in, (void *)acc);
	} else if (agg->kind == AGG_TOPK) {
		good = get_top(in, agg, (void *)acc);
	} else {
		good = get_buckets(in, agg, acc);
	}
	return good && !in->short_read;
}

bool pl_query_serial_overflows(const struct agg *agg, const uint8_t *into, const uint8_t *from)
{
	const struct acc_sum *a = (const void *)(into + agg->offset);
	const struct acc_sum *b = (const void *)(from + agg->offset);
	wide sum;

	return (agg->kind == AGG_SUM || agg->kind == AGG_AVG) && arg_type(agg) != PL_QUERY_DOUBLE &&
	       __builtin_add_overflow(a->sum, b->sum, &sum);
}
