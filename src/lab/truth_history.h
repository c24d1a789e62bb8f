/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The truth of a simulated network as a history (memory/history.h), which queries read beside that
 * of a collector. Its size is not known before the end: until then records wait in unnamed
 * temporary files.
 */
#pragma once

#include "base/diag.h"
#include "record/packet.h"
#include "record/record.h"

struct pl_lab_truth_history;

/* Makes the folder; its name is borrowed. -EEXIST with diag: it has a history; -ENOMEM; errors of
 * files with diag. */
int pl_lab_truth_history_new(
	struct pl_lab_truth_history **ret, const char *folder, struct pl_diag *diag);
/* Append records in the order of time. _write reports failures. */
void pl_lab_truth_history_path(
	struct pl_lab_truth_history *t, const struct pl_path *path, const struct pl_hop *hops);
void pl_lab_truth_history_event(struct pl_lab_truth_history *t, const struct pl_event *event);
/* File in the folder with the block records of marking switches, which queries read, too. */
#define PL_LAB_TRUTH_MARKS "marks.mark128"
void pl_lab_truth_history_mark(struct pl_lab_truth_history *t, const struct pl_mark128 *record);
/* Writes all records into the folder. Negative errno with diag. */
int pl_lab_truth_history_write(struct pl_lab_truth_history *t, struct pl_diag *diag);
void pl_lab_truth_history_free(struct pl_lab_truth_history *t);
