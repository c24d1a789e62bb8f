/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The regions that a configuration has read, as one source: a worker of its own takes what is new
 * in them, whoever wrote it. Values go to the outputs as they are, records also through aggregates
 * and detection. Stats may be asked for by any thread; a turn of the worker is short.
 */
#pragma once

#include "pipeline/region_input.h"

#define PL_REGION_SOURCE_NAME "regions"

struct pl_region_source;

/* Opens nothing yet. -ENOMEM. */
int pl_region_source_new(struct pl_region_source **ret, const struct pl_config *config);
void pl_region_source_free(struct pl_region_source *source);

/* Opens every region: what is in them now is not new, unless the configuration says so. Those that
 * cannot be opened are trouble, and are tried again. Before the worker starts. */
void pl_region_source_open(struct pl_region_source *source);
/* Sets the regions to read from now on; those that stay go on. -ENOMEM: nothing has changed. */
int pl_region_source_change(struct pl_region_source *source, const struct pl_config *config);

/* For its worker, which is freed first. */
const struct pl_worker_feed *pl_region_source_feed(const struct pl_region_source *source);

/* Where the keys of this region's slots are noted; both live as long as the source. Before the worker
 * starts. */
void pl_region_source_name_keys(
	struct pl_region_source *source, const char *region, const struct pl_key_names *names);

/* Something was written: looks at all lists at once. Any thread. */
void pl_region_source_wake(struct pl_region_source *source);

/* Of region i, from 0; false behind the last. Any thread. */
bool pl_region_source_stats(
	struct pl_region_source *source, unsigned int i, struct pl_region_input_stats *ret);
