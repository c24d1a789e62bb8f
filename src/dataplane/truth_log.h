/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The truth as it happens, in a history (memory/history.h) that questions read at the same time,
 * beside that of a collector. Its lists have the last records; how many there were is known by their
 * numbers.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "record/record.h"

struct pl_dp_truth_log;

/* Makes the folder. How many records the lists have room for; paths 0: there will be events alone.
 * Negative errno with diag. */
int pl_dp_truth_log_new(struct pl_dp_truth_log **ret, const char *folder, uint64_t events,
	uint64_t paths, uint64_t hops, struct pl_diag *diag);
void pl_dp_truth_log_free(struct pl_dp_truth_log *t);
void pl_dp_truth_log_path(
	struct pl_dp_truth_log *t, const struct pl_path *path, const struct pl_hop *hops);
void pl_dp_truth_log_event(struct pl_dp_truth_log *t, const struct pl_event *event);
