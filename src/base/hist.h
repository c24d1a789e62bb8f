/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of non-negative integers with four buckets per power of two: fixed size, no
 * configuration, so any two can be added. Bucket i holds values above pl_hist_upper(i - 1) and
 * not above pl_hist_upper(i) (upper bounds inclusive, as Prometheus wants them): 1, 1.19, 1.41,
 * 1.68, 2, … 2^36; bucket 0 also holds zeros, the last bucket everything beyond 2^36 (69 s in
 * nanoseconds). Every fourth bucket ends at a power of two. These are the buckets of schema 2 of
 * Prometheus' native histograms and of OpenTelemetry's exponential ones. The error: a value and
 * the bound of its bucket differ by a factor of less than 2^(1/4) = 1.19. Plain memory: one
 * writer; copy it for readers.
 */
#pragma once

#include <stdint.h>

#define PL_HIST_PER_OCTAVE 4
#define PL_HIST_TOP_BIT    36
#define PL_HIST_BUCKETS    (PL_HIST_PER_OCTAVE * PL_HIST_TOP_BIT + 2)

/* Steps within an octave: floor(2^62.25), floor(2^62.5), floor(2^62.75). */
#define PL_HIST_STEP_1     0x4c1bf828c6dc54b7u
#define PL_HIST_STEP_2     0x5a827999fcef3242u
#define PL_HIST_STEP_3     0x6ba27e656b4eb57au

struct pl_hist {
	uint64_t sum;
	uint64_t buckets[PL_HIST_BUCKETS];
};

static inline unsigned int pl_hist_index(uint64_t v)
{
	unsigned int k;
	uint64_t t;

	if (v <= 1)
		return 0;
	if (v > (uint64_t)1 << PL_HIST_TOP_BIT)
		return PL_HIST_BUCKETS - 1;
	k = 63 - (unsigned int)__builtin_clzll(v - 1); /* 2^k < v <= 2^(k+1) */
	t = v << (62 - k);
	return PL_HIST_PER_OCTAVE * k + 1 + (t > PL_HIST_STEP_1) + (t > PL_HIST_STEP_2) +
	       (t > PL_HIST_STEP_3);
}

/* Largest integer that bucket i takes; UINT64_MAX for the last. */
static inline uint64_t pl_hist_upper(unsigned int i)
{
	static const uint64_t steps[PL_HIST_PER_OCTAVE] = { (uint64_t)1 << 62, PL_HIST_STEP_1,
		PL_HIST_STEP_2, PL_HIST_STEP_3 };

	if (i >= PL_HIST_BUCKETS - 1)
		return UINT64_MAX;
	return steps[i % PL_HIST_PER_OCTAVE] >> (62 - i / PL_HIST_PER_OCTAVE);
}

/* Adds v when its index, pl_hist_index(v), is known. */
static inline void pl_hist_add_at(struct pl_hist *h, unsigned int index, uint64_t v)
{
	h->sum += v;
	h->buckets[index]++;
}

static inline void pl_hist_add(struct pl_hist *h, uint64_t v)
{
	pl_hist_add_at(h, pl_hist_index(v), v);
}

static inline void pl_hist_merge(struct pl_hist *into, const struct pl_hist *from)
{
	into->sum += from->sum;
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

/*
 * Adds a histogram of whole powers of two: counts[0] of values up to 1, counts[i] of those above
 * 2^(i-1) and not above 2^i. They go to the bucket that ends at the same power of two, the
 * uppermost of their octave: at powers of two cumulative counts stay exact, between them they are
 * low, and a quantile that falls among them is high by a factor of less than two. `sum` is the sum
 * of the values.
 */
static inline void pl_hist_add_log2(
	struct pl_hist *h, const uint64_t *counts, unsigned int n, uint64_t sum)
{
	h->sum += sum;
	for (unsigned int i = 0; i < n; i++)
		h->buckets[i <= PL_HIST_TOP_BIT ? PL_HIST_PER_OCTAVE * i : PL_HIST_BUCKETS - 1] +=
			counts[i];
}

static inline uint64_t pl_hist_count(const struct pl_hist *h)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++)
		n += h->buckets[i];
	return n;
}

/*
 * A value that at least a share q (0 to 1) of the entries do not exceed: the upper bound of the
 * bucket where that share is reached, less than 1.19 times the true quantile. 0 when empty;
 * UINT64_MAX when it lies beyond the range.
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
