/* SPDX-License-Identifier: BSD-2-Clause */
/* What the correlator keeps: blocks of flows with the records that came of them. */
#pragma once

#include "base/shares.h"
#include "mark/correlate.h"

#define NO_SAMPLE       UINT32_MAX
#define NO_BLOCK        UINT32_MAX

/* Blocks behind the newest in which a pulse is looked for that an earlier one is compared with. */
#define PULSE_LOOK_BACK 8u

/* A block that a point reported, whatever flows. */
#define SEEN_BLOCKS     8u
struct seen {
	uint64_t block; /* 0: none */
	bool torn;      /* not all of its records came */
	struct pl_addr source;
	struct pl_mark128 record; /* the first of it */
};

struct sample {
	uint32_t point; /* its place in the list of points */
	uint32_t next;
	struct pl_mark128 record;
};

struct block {
	struct pl_mark_flow flow;
	uint32_t n_samples, samples;
	uint64_t block, period_ns;
	uint64_t deadline_ns;  /* then it is told */
	uint64_t end_ns;       /* until then it is kept: later blocks look back */
	uint32_t older, newer; /* in the order they came */
	uint32_t chain;        /* of its place in the hash table */
	uint32_t share;        /* of who sent its first record */
	bool used, told;
	bool postponed; /* it waits for one period longer */
};

struct segment {
	uint32_t *from, *to; /* places in the list of points */
	uint32_t n_from, n_to;
};

struct pl_mark_correlator {
	struct pl_mark_correlator_config config;
	struct pl_mark_correlator_stats stats;
	struct segment *segments;
	uint32_t *points; /* ascending */
	uint32_t *tai;    /* of each point, as it said last, and 1; 0: it said nothing yet */
	uint32_t n_points;

	struct block *blocks;
	uint32_t n_blocks, free_block, oldest, newest;
	uint32_t *places; /* hash table of chains */
	uint32_t mask;
	struct sample *samples;
	uint32_t n_samples, free_sample;
	struct seen *seen;        /* absent: SEEN_BLOCKS of each point */
	struct pl_mark128 *zeros; /* likewise: of each point, while results are made */
	bool *gaps;               /* likewise: its next block is torn */
	uint32_t postponed;
	struct pl_shares shares; /* of blocks */
	uint32_t hand;           /* where one is looked for that makes room */
	uint64_t seed;
	uint64_t until_ns; /* deadlines before it are past */
	uint64_t due_ns;   /* no deadline of what is not told is before it */

	const struct pl_mark128 **at_point; /* of the block at hand; NULL: did not report */
	uint32_t *missing;
};

/* The records of a block, by the place of their point. */
void pl_mark_gather(const struct pl_mark_correlator *c, const struct block *b,
	const struct pl_mark128 **ret_at_point);

/* The block of the same flow so many blocks before; NULL: it is not kept. */
const struct block *pl_mark_block_before(
	const struct pl_mark_correlator *c, const struct block *b, uint64_t blocks);

/* Its place in the list of points; UINT32_MAX: no segment has it. */
uint32_t pl_mark_place_of_point(const struct pl_mark_correlator *c, uint32_t point);

/* ---- with `absent` ---- */

/* A point reported something of a block, by that sender. */
void pl_mark_note_seen(struct pl_mark_correlator *c, uint32_t point, const struct pl_addr *source,
	const struct pl_mark128 *record);
/* At its deadline: whether the block waits longer, because the next one of points that lack will
 * say whether they saw nothing of it. */
bool pl_mark_postpone(struct pl_mark_correlator *c, struct block *b);
/* Whether a point that has no record of the block's flow has seen none of its packets. `early`: as
 * far as is known before the next block. */
bool pl_mark_is_absent(
	const struct pl_mark_correlator *c, const struct block *b, uint32_t place, bool early);

/* Fills the result of a segment. False: no point of it has seen the flow. */
bool pl_mark_evaluate(struct pl_mark_result *ret, const struct pl_mark_correlator *c,
	const struct block *b, uint32_t segment);
