/* SPDX-License-Identifier: BSD-2-Clause */
/* A token bucket by the caller's time: `rate` per second in the long run, `burst` at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pl_bucket {
	double rate, burst; /* rate 0: no limit */
	double tokens;
	uint64_t at_ns; /* time of `tokens` */
};

/* Fills the bucket. burst 0: the tokens of a tenth of a second, at least 1. */
static inline void pl_bucket_init(struct pl_bucket *b, double rate, double burst, uint64_t now_ns)
{
	if (burst <= 0)
		burst = rate / 10 > 1 ? rate / 10 : 1;
	*b = (struct pl_bucket){ rate, burst, burst, now_ns };
}

static inline void pl_bucket_fill(struct pl_bucket *b, uint64_t now_ns)
{
	if (now_ns <= b->at_ns)
		return;
	b->tokens += (double)(now_ns - b->at_ns) * b->rate / 1e9;
	b->at_ns = now_ns;
	if (b->tokens > b->burst)
		b->tokens = b->burst;
}

/* True when there is a token. */
static inline bool pl_bucket_has(struct pl_bucket *b, uint64_t now_ns)
{
	if (b->rate == 0)
		return true;
	pl_bucket_fill(b, now_ns);
	return b->tokens >= 1;
}

static inline void pl_bucket_take(struct pl_bucket *b)
{
	if (b->rate != 0)
		b->tokens -= 1;
}

/* Time of the next token. */
static inline uint64_t pl_bucket_due_ns(const struct pl_bucket *b)
{
	double wait;

	if (b->rate == 0 || b->tokens >= 1)
		return b->at_ns;
	wait = (1 - b->tokens) * 1e9 / b->rate;
	return wait < 1e18 ? b->at_ns + (uint64_t)wait + 1 : UINT64_MAX;
}
