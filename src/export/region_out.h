/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes records into a history (memory/history.h): a folder of regions that outlives the process
 * and is read in place. An entry is delivered when it is in the regions, where readers have it at
 * once; it is on disk after the next group commit. A file that was cut by another process or cannot
 * be written to disk is reported until that is mended: entries for regions with holes are dropped
 * with cause io.
 */
#pragma once

#include "export/exporter.h"
#include "memory/history.h"

struct pl_region_out_options {
	const char *folder; /* copied */
	struct pl_history_options history;
};

/* Returns what pl_history_begin does; history.tell must stay valid until closing. */
int pl_region_out_open(
	struct pl_export **ret, const struct pl_region_out_options *options, struct pl_diag *diag);
