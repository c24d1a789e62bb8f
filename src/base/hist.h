/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of non-negative integers with two buckets per power of two: fixed size, no configuration, so
 * any two can be added. Bucket i holds what is above pl_hist_upper(i - 1) and not above pl_hist_upper(i)
 * (upper bounds inclusive, as Prometheus wants them): 1, 1.4, 2, 2.8, 4, … 2^36; bucket 0 also holds zeros,
 * the last bucket everything beyond 2^36 (69 s in nanoseconds). Every even bucket ends at a power of two.
 * Plain memory: one writer; copy it for readers.
 */
#pragma once

#include <stdint.h>

#define PL_HIST_BUCKETS 74
#define PL_HIST_TOP_BIT 36

/* floor(2^62.5), the geometric middle of an octave */
#define PL_HIST_ROOT    0x5a827999fcef3242u

struct pl_hist {
	uint64_t sum;
	uint64_t buckets[PL_HIST_BUCKETS];
};

static inline unsigned int pl_hist_index(uint64_t v)
{
	unsigned int k;

	if (v <= 1)
		return 0;
	if (v > (uint64_t)1 << PL_HIST_TOP_BIT)
		return PL_HIST_BUCKETS - 1;
	k = 63 - (unsigned int)__builtin_clzll(v - 1); /* 2^k < v <= 2^(k+1) */
	return 2 * k + 1 + (v << (62 - k) > PL_HIST_ROOT);
}

/* Largest integer that bucket i takes; UINT64_MAX for the last. */
static inline uint64_t pl_hist_upper(unsigned int i)
{
	if (i >= PL_HIST_BUCKETS - 1)
		return UINT64_MAX;
	if (i % 2 == 0)
		return (uint64_t)1 << (i / 2);
	return PL_HIST_ROOT >> (62 - i / 2);
}

static inline void pl_hist_add(struct pl_hist *h, uint64_t v)
{
	h->sum += v;
	h->buckets[pl_hist_index(v)]++;
}

static inline void pl_hist_merge(struct pl_hist *into, const struct pl_hist *from)
{
	into->sum += from->sum;
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

static inline uint64_t pl_hist_count(const struct pl_hist *h)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++)
		n += h->buckets[i];
	return n;
}

/*
 * A value that at least a share q (0 to 1) of the entries do not exceed: the upper bound of the bucket where
 * that share is reached, at most 1.42 times the true quantile. 0 when empty; UINT64_MAX when it lies beyond
 * the range.
 */
static inline uint64_t pl_hist_quantile(const struct pl_hist *h, double q)
{
	double want = q * (double)pl_hist_count(h);
	uint64_t n = 0;

	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		n += h->buckets[i];
		if (n > 0 && (double)n >= want)
			return pl_hist_upper(i);
	}
	return 0;
}
