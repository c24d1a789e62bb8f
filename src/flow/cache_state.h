/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow cache from inside: for its files. */
#pragma once

#include "flow/cache.h"
#include "flow/table.h"

struct pl_flow_cache {
	struct pl_flow_bucket *buckets;
	struct pl_flow_entry *flows; /* of bucket b from b * PL_FLOW_WAYS on */
	struct pl_flow_other
		*others; /* of the same slot; what nothing was seen of elsewhere is not touched */
	uint32_t n_buckets, scanned;
	uint32_t idle_ticks; /* a flow's tick is at most so far ahead */
	uint32_t behind;     /* packets in a row that are far behind the clock */
	uint64_t clock_ns;
	struct pl_flow_config config;
	pl_flow_sink *sink;
	void *arg;
	uint64_t seed[4];
	const struct pl_flow_listening *listening; /* NULL: not known */
	struct pl_flow_counters counters;
	uint32_t seq, n_records;
	struct pl_flow288 records[PL_FLOW_RECORDS];
};

/* Whether the flow is over by the clock. One of a time after it was there when it was set back. */
static inline bool pl_flow_is_over(const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return f->last_ts > c->clock_ns || c->clock_ns - f->last_ts >= c->config.idle_ns ||
	       ((f->state & PL_FLOW_CLOSING) != 0 && c->clock_ns - f->ended_ts >= c->config.end_ns);
}

static inline struct pl_flow_other *pl_flow_other_of(
	const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return &c->others[f - c->flows];
}

static inline uint32_t pl_flow_tick(uint64_t ns)
{
	return (uint32_t)(ns >> PL_FLOW_TICK);
}
