/* SPDX-License-Identifier: BSD-2-Clause */
/* Accumulators of aggregates, in the layout of a group. All begin as zeros. */
#pragma once

#include "lang/plan.h"

/* A number of 128 bits, aligned to 8 bytes. */
typedef __int128 wide __attribute__((aligned(8)));

struct acc_distinct {
	uint64_t n;
	uint32_t head, incomplete; /* first entry in the set of the aggregate, plus 1 */
};

/* Sums of integers do not overflow: there are fewer than 2^63 records. */
struct acc_sum {
	wide sum;
	uint64_t n;
};

struct acc_real {
	double sum;
	uint64_t n;
};

/* Smallest or largest value. n shows whether there is one, so zero bytes mean none. */
struct acc_extreme {
	uint64_t n;
	union {
		uint64_t u;
		int64_t i;
		double d;
	};
};

/* Welford's running mean and sum of squared differences. */
struct acc_spread {
	uint64_t n;
	double mean, m2;
};

struct acc_edge {
	uint64_t has;
	uint64_t ts;
	union {
		uint64_t u;
		struct pl_addr addr;
	};
};

/* HyperLogLog with 2^10 registers: a standard error of 1.04 / 32, 3.3 %. */
#define HLL_BITS 10
struct acc_approx {
	uint8_t registers[1 << HLL_BITS];
};

/* Buckets of quantiles, 32 for each power of two: values below 64 are exact, others within 1/32. */
#define QUANTILE_SUB     5
#define QUANTILE_BUCKETS ((64 - QUANTILE_SUB + 1) << QUANTILE_SUB)
struct acc_quantile {
	uint32_t counts[QUANTILE_BUCKETS];
};

/* Most values of topk. Space-Saving has four counters for each value asked for. */
#define TOPK_MAX 64
struct topk_counter {
	uint64_t value[2];
	uint64_t count, error;
};
struct acc_topk {
	uint64_t used;
	struct topk_counter counters[];
};

/* Histogram: counts of 0, of 1, of 2 and 3, of 4 to 7, and so on. */
#define HIST_BUCKETS 65
struct acc_hist {
	uint64_t counts[HIST_BUCKETS];
};

/* Moving average: value += q * (x - value), in the order of the values, from the first one on. */
struct acc_ewma {
	uint64_t n;
	double value;
};

/* Variables of a fold, in the layout of its row. */
struct acc_fold {
	uint64_t began;
	uint64_t absent; /* bit i: variable i is absent */
	uint64_t cells[][2];
};

/* Most items of a list. */
#define LIST_MAX HIST_BUCKETS

/* Type of the values of an aggregate; those of count(*) have none. */
static inline enum pl_query_type arg_type(const struct agg *agg)
{
	return agg->n_args > 0 ? agg->args[0]->type : PL_QUERY_UNSIGNED;
}

static inline uint32_t topk_capacity(uint32_t k)
{
	return 4 * k < 64 ? 64 : 4 * k;
}
