/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records into a history (memory/history.h): a folder of regions that survives the process and is
 * read in place. An entry is delivered when it is in the regions, from where readers have it at
 * once; the disk has it after the next group commit. When a file is cut from outside, or cannot be
 * written to disk, that is told until it is mended: entries for regions with holes are dropped with
 * cause io.
 */
#pragma once

#include "export/exporter.h"
#include "memory/history.h"

struct pl_region_out_options {
	const char *folder; /* copied */
	struct pl_history_options history;
};

/* As pl_history_begin; history.tell is for later, too. */
int pl_region_out_open(
	struct pl_export **ret, const struct pl_region_out_options *options, struct pl_diag *diag);
