/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the truth while the network runs into a history (memory/history.h), which questions read
 * beside that of a collector. Its lists keep the last records; record numbers tell how many there
 * were.
 */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "record/record.h"

struct pl_dp_truth_log;

/* Creates the folder. events, paths, hops: room in records; paths 0: events only. Negative errno
 * with diag. */
int pl_dp_truth_log_new(struct pl_dp_truth_log **ret, const char *folder, uint64_t events,
	uint64_t paths, uint64_t hops, struct pl_diag *diag);
void pl_dp_truth_log_free(struct pl_dp_truth_log *t);
void pl_dp_truth_log_path(
	struct pl_dp_truth_log *t, const struct pl_path *path, const struct pl_hop *hops);
void pl_dp_truth_log_event(struct pl_dp_truth_log *t, const struct pl_event *event);
