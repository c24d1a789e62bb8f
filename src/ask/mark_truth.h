/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints results of alternate marking in a simulated network (lab/metering.h) as rows, with the
 * truth beside them, and their totals beside the counters of queues and links, for "pathline
 * simulate --marking". */
#pragma once

#include "ask/mark_rows.h"
#include "lab/metering.h"
#include "show/row_out.h"

struct pl_mark_truth_total {
	char from[PL_LAB_NAME_MAX + 1], to[PL_LAB_NAME_MAX + 1];
	struct pl_mark_total sum;
};

struct pl_mark_truth_rows {
	uint64_t start_ns; /* of the simulation */
	struct pl_row_out out;
	struct pl_mark_truth_total *totals; /* of each direction of a link, 2 * link + end */
	unsigned int n;
	uint64_t results, wrong, alarms[32];
};

/* Begins the rows. -ENOMEM. */
int pl_mark_truth_init(struct pl_mark_truth_rows *q, const char *form, uint64_t start_ns,
	const struct pl_lab_topology *t);
/* Takes a result, as pl_lab_metering_cfg.result; arg: the rows. */
void pl_mark_truth_add(void *rows, const struct pl_lab_metering_result *result);
/* Prints the totals to standard error. */
void pl_mark_truth_tell(const struct pl_mark_truth_rows *q, const struct pl_lab_simulation *s,
	struct pl_dp_sim *sim, const struct pl_lab_metering_account *account);
/* Writes the last rows; returns false when writing failed. */
bool pl_mark_truth_end(struct pl_mark_truth_rows *q);
