/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limit of a queue pair after a congestion notification (CNP, RoCEv2 annex A17.9.3). Without a
 * notification there is no limit. The first one limits the queue pair to half of the rate at which
 * it sent just before; each further one halves the limit, but not more often than once in
 * PL_PACE_CUT_NS. Each PL_PACE_RAISE_NS without a notification raises the limit by a sixteenth of
 * the rate before the first cut; at that rate the limit ends.
 */
#pragma once

#include "base/bucket.h"

#define PL_PACE_CUT_NS   UINT64_C(1000000)
#define PL_PACE_RAISE_NS UINT64_C(10000000)
#define PL_PACE_SLOT_NS  UINT64_C(10000000) /* interval over which the rate is measured */
#define PL_PACE_LEAST    1000.0             /* packets per second: lowest limit */

struct pl_pace {
	struct pl_bucket bucket; /* rate 0: no limit */
	double before;           /* packets per second before the first cut */
	uint64_t cut_ns, raise_ns;
	/* measurement */
	uint64_t slot_ns;
	uint32_t slot_n;
	double slot_rate; /* rate in the slot before */
};

static inline double pl_pace_rate(const struct pl_pace *p)
{
	return p->bucket.rate;
}

/* Counts n sent packets. */
static inline void pl_pace_sent(struct pl_pace *p, uint32_t n, uint64_t now_ns)
{
	const uint64_t past = now_ns - p->slot_ns;

	if (past >= PL_PACE_SLOT_NS) {
		p->slot_rate = p->slot_ns == 0 ? 0 : (double)p->slot_n * 1e9 / (double)past;
		p->slot_n = 0;
		p->slot_ns = now_ns;
	}
	p->slot_n += n;
	if (p->bucket.rate != 0)
		p->bucket.tokens -= n;
}

static inline void pl_pace_limit(struct pl_pace *p, double rate, uint64_t now_ns)
{
	pl_bucket_init(&p->bucket, rate, rate / 1000 > 4 ? rate / 1000 : 4, now_ns);
	p->bucket.tokens = 0;
}

/* Applies a congestion notification. */
static inline void pl_pace_cut(struct pl_pace *p, uint64_t now_ns)
{
	const double slot = (double)p->slot_n * 1e9 / (double)PL_PACE_SLOT_NS;
	double rate = p->bucket.rate;

	p->raise_ns = now_ns + PL_PACE_RAISE_NS;
	if (rate != 0 && now_ns - p->cut_ns < PL_PACE_CUT_NS)
		return;
	p->cut_ns = now_ns;
	if (rate == 0) {
		rate = slot > p->slot_rate ? slot : p->slot_rate;
		p->before = rate > PL_PACE_LEAST ? rate : PL_PACE_LEAST;
	}
	rate /= 2;
	pl_pace_limit(p, rate > PL_PACE_LEAST ? rate : PL_PACE_LEAST, now_ns);
}

/* Number of packets that may be sent now; UINT32_MAX: no limit. */
static inline uint32_t pl_pace_room(struct pl_pace *p, uint64_t now_ns)
{
	double rate = p->bucket.rate;

	if (rate == 0)
		return UINT32_MAX;
	while (rate < p->before && now_ns >= p->raise_ns) {
		rate += p->before / 16;
		p->raise_ns += PL_PACE_RAISE_NS;
	}
	if (now_ns >= p->raise_ns) {
		p->bucket.rate = 0;
		return UINT32_MAX;
	}
	pl_bucket_fill(&p->bucket, now_ns);
	if (rate != p->bucket.rate) {
		p->bucket.rate = rate;
		p->bucket.burst = rate / 1000 > 4 ? rate / 1000 : 4;
	}
	return p->bucket.tokens >= 1 ? (uint32_t)p->bucket.tokens : 0;
}

/* Time at which there is room again; only valid when there was none. */
static inline uint64_t pl_pace_due_ns(const struct pl_pace *p)
{
	return pl_bucket_due_ns(&p->bucket);
}
