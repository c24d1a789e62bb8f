/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow cache from inside: for its files. */
#pragma once

#include "flow/cache.h"
#include "flow/kept.h"
#include "flow/record_of.h"
#include "flow/table.h"

struct pl_flow_cache {
	struct pl_flow_kept *kept;
	struct pl_flow_bucket *buckets;
	struct pl_flow_entry *flows; /* of bucket b from b * PL_FLOW_WAYS on */
	struct pl_flow_other
		*others; /* of the same slot; what nothing was seen of elsewhere is not touched */
	uint32_t n_buckets, scanned;
	uint32_t idle_ticks; /* a flow's tick is at most so far ahead */
	uint32_t behind;     /* packets in a row that are far behind the clock */
	bool keeps;          /* the memory is a file's: steps are noted in its journal */
	struct pl_flow_config config;
	pl_flow_sink *sink;
	void *arg;
	uint64_t seed[4];
	const struct pl_flow_listening *listening; /* NULL: not known */
	struct pl_flow_counters counters;
	struct pl_flow_state *state; /* NULL: memory of the process, or of a test */
	struct pl_flow_state_counters state_counters;
};

/* Whether the flow is over by the clock. One of a time after it was there when it was set back. */
static inline bool pl_flow_is_over(const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return f->last_ts > c->kept->clock_ns ||
	       c->kept->clock_ns - f->last_ts >= c->config.idle_ns ||
	       ((f->state & PL_FLOW_CLOSING) != 0 &&
		       c->kept->clock_ns - f->ended_ts >= c->config.end_ns);
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

/* The record that the flow would have now. */
static inline void pl_flow_make_record(const struct pl_flow_cache *c, struct pl_flow288 *ret,
	const struct pl_flow_entry *f, enum pl_flow_end reason, uint32_t seq)
{
	pl_flow_record_of(ret, f, pl_flow_other_of(c, f), reason, seq, c->listening);
	if (c->kept->n_outages > 0)
		ret->unseen_ns = pl_flow_unseen(c->kept, ret->first_ts, ret->last_ts);
}

/* When the flow is over unless a packet comes. */
static inline uint64_t pl_flow_due_ns(const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return (f->state & PL_FLOW_CLOSING) != 0 ? f->ended_ts + c->config.end_ns
						 : f->last_ts + c->config.idle_ns;
}

/* cache.c, for resume.c. Last records: pl_flow_end_of() frees the slot, too. */
void pl_flow_end_of(struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason);
/* A record of a flow that goes on; ts_ns: where the next one begins. An empty flow's begins anew with its packet. */
void pl_flow_give(
	struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason, uint64_t ts_ns);
void pl_flow_flush(struct pl_flow_cache *c);
void pl_flow_settle(struct pl_flow_cache *c, struct pl_flow_entry *f, uint64_t now_ns);

/* cache_new.c */
uint32_t pl_flow_buckets_for(const struct pl_flow_config *config);
int pl_flow_config_check(const struct pl_flow_config *config, struct pl_diag *diag);
void pl_flow_new_seed(uint64_t ret[4], const void *salt);
/* A cache without memory for its table. */
struct pl_flow_cache *pl_flow_cache_bare(
	const struct pl_flow_config *config, pl_flow_sink *sink, void *arg);
/* The table is in this memory, laid out for so many buckets (kept.h). */
void pl_flow_cache_place(struct pl_flow_cache *c, void *memory, uint32_t n_buckets);

/* mend.c: makes whole what a killed process left, and leaves out what cannot be right, of any bytes. */
void pl_flow_mend(struct pl_flow_cache *c);
