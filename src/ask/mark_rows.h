/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of alternate marking as rows, and their totals. */
#pragma once

#include "ask/mark_capture.h"
#include "ask/mark_out.h"
#include "mark/correlate.h"
#include "show/row_out.h"

/* Of a segment, over all results. */
struct pl_mark_total {
	uint64_t results, sent, received, with_loss, with_delay;
	int64_t loss, least_ns, most_ns;
};

/* Adds a result, and says of the delays so far, if there are any, "; delay 1us to 2us (3)". */
void pl_mark_total_add(struct pl_mark_total *total, const struct pl_mark_result *result);
void pl_mark_total_tell_delay(const struct pl_mark_total *total);

/* The names of alarms (bits) with a plus between them, and how many of the results had each. */
void pl_mark_alarms_put(struct pl_buf *out, uint32_t alarms);
void pl_mark_alarms_tell(const uint64_t alarms[32], uint64_t results);

struct pl_mark_rows {
	const struct pl_mark_capture *captures; /* point n is captures[n - 1] */
	const struct pl_mark_segment *segments;
	uint32_t n_segments;
	uint32_t tai_offset;               /* of the points' clocks, seconds */
	uint64_t guard_ns;                 /* 0: not known */
	uint32_t unsaid;                   /* alarms that are left out, bits */
	bool apart[PL_MARK_LINKS_MAX + 1]; /* segments whose ends' clocks are periods apart */
	bool quiet;                        /* nothing is printed */
	struct pl_mark_out *give;          /* the results as records */
	struct pl_row_out out;
	struct pl_mark_total totals[PL_MARK_LINKS_MAX + 1];
	uint64_t alarms[32];
	uint64_t results;
};

/* Of zeros, with what stands above `out`. */
void pl_mark_rows_init(struct pl_mark_rows *rows, const char *form);
/* pl_mark_correlator_config.result; arg: the rows. */
void pl_mark_rows_add(void *rows, const struct pl_mark_result *result);
/* The totals and the alarms, to standard error. */
void pl_mark_rows_tell(const struct pl_mark_rows *rows);
