/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The truth about a simulated network as a history (memory/history.h), which questions read beside
 * that of a collector. How much there will be is not known before the end: records wait in a file
 * without a name until then.
 */
#pragma once

#include "base/diag.h"
#include "record/packet.h"
#include "record/record.h"

struct pl_lab_truth_history;

/* Makes the folder. -EEXIST with diag when the folder has a history, -ENOMEM, errors of the file with diag. */
int pl_lab_truth_history_new(
	struct pl_lab_truth_history **ret, const char *folder, struct pl_diag *diag);
/* In the order of time. What fails is told by _write. */
void pl_lab_truth_history_path(
	struct pl_lab_truth_history *t, const struct pl_path *path, const struct pl_hop *hops);
void pl_lab_truth_history_event(struct pl_lab_truth_history *t, const struct pl_event *event);
/* Block records of a network whose switches mark, which questions read from the folder, too. */
#define PL_LAB_TRUTH_MARKS "marks.mark128"
void pl_lab_truth_history_mark(struct pl_lab_truth_history *t, const struct pl_mark128 *record);
/* Makes the lists in the folder. Negative errno with diag. */
int pl_lab_truth_history_write(struct pl_lab_truth_history *t, struct pl_diag *diag);
void pl_lab_truth_history_free(struct pl_lab_truth_history *t);
