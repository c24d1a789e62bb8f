/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of alternate marking as rows, and their totals. */
#pragma once

#include "ask/mark_capture.h"
#include "ask/mark_hashes.h"
#include "ask/mark_out.h"
#include "mark/correlate.h"
#include "mark/two_way.h"
#include "show/row_out.h"

/* Totals of a segment over all results. */
struct pl_mark_total {
	uint64_t results, sent, received, with_loss, with_delay;
	int64_t loss, least_ns, most_ns;
};

/* Two-way delays of a segment. */
struct pl_mark_rounds {
	uint64_t n;
	int64_t least_ns, most_ns;
};

/* Adds a result; tell_delay prints the delays so far, if there are any, as "; delay 1us to 2us
 * (3)". */
void pl_mark_total_add(struct pl_mark_total *total, const struct pl_mark_result *result);
void pl_mark_total_tell_delay(const struct pl_mark_total *total);

/* Append the names of alarms (bits) with a plus between them; print how many of the results had
 * each. */
void pl_mark_alarms_put(struct pl_buf *out, uint32_t alarms);
void pl_mark_alarms_tell(const uint64_t alarms[32], uint64_t results);

struct pl_mark_rows {
	const struct pl_mark_capture *captures; /* point n is captures[n - 1] */
	const struct pl_mark_segment *segments;
	uint32_t n_segments;
	uint32_t tai_offset;              /* of the points' clocks, seconds */
	uint64_t guard_ns;                /* 0: not known */
	uint32_t unsaid;                  /* alarms that are left out, bits */
	bool apart[PL_MARK_SEGMENTS_MAX]; /* segments whose ends differ in clocks by periods */
	/* Flows from `back` have results of the segments from `there` on, others of those before,
	 * which are the same segments in the opposite direction. */
	const struct pl_prefix *back;
	unsigned int n_back;
	uint32_t there;
	bool quiet;               /* nothing is printed */
	bool sampled;             /* prints delays of packets that a hash chose */
	struct pl_mark_out *give; /* the results as records */
	struct pl_row_out out;
	struct pl_mark_two_way *two_way; /* NULL without `back` */
	struct pl_mark_chooser chooser;
	bool no_memory; /* two-way delays, or delays of chosen packets, are missing */
	struct pl_mark_total totals[PL_MARK_SEGMENTS_MAX];
	struct pl_mark_rounds rounds[PL_MARK_SEGMENTS_MAX / 2];
	uint64_t alarms[32];
	uint64_t results;
	uint64_t ways[2], negative_rounds; /* results of each direction */
};

/* Returns true when packets from the address pass the captures in the opposite order. */
bool pl_mark_rows_is_back(const struct pl_mark_rows *rows, const struct pl_addr *src);

/* Begins the rows; the structure is zero but for the members above `out`. Returns false without
 * memory. */
bool pl_mark_rows_init(struct pl_mark_rows *rows, const char *form);
void pl_mark_rows_done(struct pl_mark_rows *rows);
/* Takes a result, as pl_mark_correlator_config.result; arg: the rows. */
void pl_mark_rows_add(void *rows, const struct pl_mark_result *result);
/* Prints the totals and the alarms to standard error. */
void pl_mark_rows_tell(const struct pl_mark_rows *rows);
