/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a flow cache, for cache_new.c, cache.c (packets), live.c (its clock), largest.c (top
 * flows), and, when it is kept in a file, state_file.c, mend.c and resume.c. */
#pragma once

#include "flow/cache.h"
#include "flow/kept.h"
#include "flow/live.h"
#include "flow/record_of.h"
#include "flow/table.h"

struct pl_flow_cache {
	struct pl_flow_kept *kept;
	struct pl_flow_bucket *buckets;
	struct pl_flow_entry *flows; /* flows of bucket b begin at b * PL_FLOW_WAYS */
	struct pl_flow_other
		*others; /* packets elsewhere, of the flow in the same slot; untouched if there are
			  * none */
	uint32_t n_buckets, scanned;
	uint32_t idle_ticks; /* idle timeout; no flow's tick is further ahead */
	uint32_t behind;     /* packets in a row that are far behind the clock */
	uint64_t swept_ns;   /* clock when the whole table was last looked through */
	uint64_t ahead_ns;   /* by how much a flow's time may be ahead of the clock: live sources
			      * have their own clocks */
	struct pl_flow_live live;
	bool keeps; /* the memory is that of a file: the journal notes each step */
	struct pl_flow_config config;
	pl_flow_sink *sink;
	void *arg;
	uint64_t seed[4];
	const struct pl_flow_listening *listening; /* NULL: not known */
	struct pl_flow_counters counters;
	struct pl_flow_state *state; /* NULL: memory of the process, or of a test */
	struct pl_flow_state_counters state_counters;
};

static inline uint64_t pl_flow_since(uint64_t from_ns, uint64_t now_ns)
{
	return now_ns > from_ns ? now_ns - from_ns : 0;
}

/* True when the flow is over at now_ns. A flow later than that, by more than sources can be, is from
 * before the clock was set back, and over. */
static inline bool pl_flow_is_over(
	const struct pl_flow_cache *c, const struct pl_flow_entry *f, uint64_t now_ns)
{
	return pl_flow_since(now_ns, f->last_ts) > c->ahead_ns ||
	       pl_flow_since(f->last_ts, now_ns) >= c->config.idle_ns ||
	       ((f->state & PL_FLOW_CLOSING) != 0 &&
		       pl_flow_since(f->ended_ts, now_ns) >= c->config.end_ns);
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

/* Makes the record that the flow would have now. */
static inline void pl_flow_make_record(const struct pl_flow_cache *c, struct pl_flow288 *ret,
	const struct pl_flow_entry *f, enum pl_flow_end reason, uint32_t seq)
{
	pl_flow_record_of(ret, f, pl_flow_other_of(c, f), reason, seq, c->listening);
	if (c->kept->n_outages > 0)
		ret->unseen_ns = pl_flow_unseen(c->kept, ret->first_ts, ret->last_ts);
}

/* Time at which the flow is over unless a packet comes. */
static inline uint64_t pl_flow_due_ns(const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return (f->state & PL_FLOW_CLOSING) != 0 ? f->ended_ts + c->config.end_ns
						 : f->last_ts + c->config.idle_ns;
}

/* cache.c, for resume.c. pl_flow_end_of() makes the flow's last record and frees its slot. */
void pl_flow_end_of(struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason);
/* Makes a record of a flow that goes on; the next record begins at ts_ns. That of an empty flow
 * begins with its next packet instead. */
void pl_flow_give(
	struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason, uint64_t ts_ns);
void pl_flow_flush(struct pl_flow_cache *c);
void pl_flow_settle(struct pl_flow_cache *c, struct pl_flow_entry *f, uint64_t now_ns);

/* cache_new.c */
uint32_t pl_flow_buckets_for(const struct pl_flow_config *config);
int pl_flow_config_check(const struct pl_flow_config *config, struct pl_diag *diag);
void pl_flow_new_seed(uint64_t ret[4], const void *salt);
/* Makes a cache without memory for its table. */
struct pl_flow_cache *pl_flow_cache_bare(
	const struct pl_flow_config *config, pl_flow_sink *sink, void *arg);
/* Places the table into this memory, which is laid out for n_buckets (kept.h). */
void pl_flow_cache_place(struct pl_flow_cache *c, void *memory, uint32_t n_buckets);

/* mend.c: repairs what a killed process left, and leaves out flows that cannot be right, whatever
 * the bytes are. */
void pl_flow_mend(struct pl_flow_cache *c);
