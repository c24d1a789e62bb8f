/* SPDX-License-Identifier: BSD-2-Clause */
/* State of the correlator, for correlate.c (blocks and their records), fast.c (their times),
 * absent.c (points without a flow) and evaluate.c (results). */
#pragma once

#include "base/shares.h"
#include "mark/correlate.h"

#define NO_SAMPLE       UINT32_MAX
#define NO_BLOCK        UINT32_MAX

/* Number of earlier blocks in which the previous pulse is searched. */
#define PULSE_LOOK_BACK 8u

/* Number of the newest blocks kept for each point, of any flow. */
#define SEEN_BLOCKS     8u
struct seen {
	uint64_t block; /* 0: none */
	bool torn;      /* not all of its records came */
	struct pl_addr source;
	struct pl_mark128 record; /* first record of the block */
};

/* Number of blocks that a point's clock is not believed for after a record that came too early: others
 * of the same clock may be delayed until they look punctual. */
#define FAST_BLOCKS 8u
/* More blocks than results wait: those behind such a pause are doubted alone. */
#define FAST_PAUSE  64u
/* Blocks in which a point's clock was ahead. */
struct fast {
	uint64_t from, to; /* to 0: none */
};

struct sample {
	uint32_t point; /* index in the list of points */
	uint32_t next;
	struct pl_mark128 record;
};

struct block {
	struct pl_mark_flow flow;
	uint32_t n_samples, samples;
	uint64_t block, period_ns;
	uint64_t deadline_ns;  /* time at which its results are given */
	uint64_t end_ns;       /* time until which it is kept: later blocks look back */
	uint32_t older, newer; /* neighbours in the order of arrival */
	uint32_t chain;        /* next block in its chain of the hash table */
	uint32_t share;        /* share of the sender of its first record */
	bool used, told;
	bool postponed; /* it waits one period longer */
};

struct segment {
	uint32_t *from, *to; /* indices in the list of points */
	uint32_t n_from, n_to;
};

struct pl_mark_correlator {
	struct pl_mark_correlator_config config;
	struct pl_mark_correlator_stats stats;
	struct segment *segments;
	uint32_t *points;  /* ascending */
	uint32_t *tai;     /* of each point, the last TAI offset it reported, plus 1; 0: none yet */
	struct fast *fast; /* of each point */
	uint32_t n_points;

	struct block *blocks;
	uint32_t n_blocks, free_block, oldest, newest;
	uint32_t *places; /* hash table of chains */
	uint32_t mask;
	struct sample *samples;
	uint32_t n_samples, free_sample;
	struct seen *seen;        /* absent: SEEN_BLOCKS of each point */
	struct pl_mark128 *zeros; /* absent: a record of each point, while results are made */
	bool *gaps;               /* absent: the next block of the point is torn */
	uint32_t postponed;
	struct pl_shares shares; /* shares of blocks */
	uint32_t hand;           /* position of the next search for a block to replace */
	uint64_t seed;
	uint64_t until_ns;     /* time up to which deadlines are past */
	uint64_t due_ns;       /* no deadline of an open block is before it */
	uint64_t beyond_block; /* newest block of any flow with packets beyond the guard band */

	const struct pl_mark128 **at_point; /* records of the present block by point; or NULL */
	uint32_t *missing;
};

/* Collects the records of a block, by the index of their point. */
void pl_mark_gather(const struct pl_mark_correlator *c, const struct block *b,
	const struct pl_mark128 **ret_at_point);

/* Returns the block of the same flow, `blocks` earlier; NULL when it is not kept or has another
 * period. */
const struct block *pl_mark_block_before(
	const struct pl_mark_correlator *c, const struct block *b, uint64_t blocks);

/* Index of the point in the list of points; UINT32_MAX when the point is in no segment. */
uint32_t pl_mark_place_of_point(const struct pl_mark_correlator *c, uint32_t point);

/* ---- the time of records ---- */

/* Time until which records of a block are awaited. */
uint64_t pl_mark_deadline(const struct pl_mark_correlator *c, const struct pl_mark128 *r);
/* True when the record's deadline is further away than that of any possible block. */
bool pl_mark_is_ahead(const struct pl_mark_correlator *c, const struct pl_mark128 *r);
/* Records when a block record comes more than half a period before its block is read: the point's
 * clock is ahead. */
void pl_mark_note_fast(
	struct pl_mark_correlator *c, uint32_t point, const struct pl_mark128 *record);
/* True when the clock of one of the points was ahead in the block: its packets are not those of the
 * block at other points. */
bool pl_mark_is_fast(
	const struct pl_mark_correlator *c, uint64_t block, const uint32_t *points, uint32_t n);

/* ---- with `absent` ---- */

/* Stores that `source` sent a record of a block for the point. */
void pl_mark_note_seen(struct pl_mark_correlator *c, uint32_t point, const struct pl_addr *source,
	const struct pl_mark128 *record);
/* Called at the deadline. True when the block waits one period longer, because the next block of
 * the missing points will tell whether they saw no packet of its flow. */
bool pl_mark_postpone(struct pl_mark_correlator *c, struct block *b);
/* True when a point without a record of the block's flow has seen none of its packets. `early`: as
 * far as that can be known before the next block. */
bool pl_mark_is_absent(
	const struct pl_mark_correlator *c, const struct block *b, uint32_t place, bool early);

/* Fills the result of a segment. False when none of its points reported the flow. */
bool pl_mark_evaluate(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, uint32_t segment);
