/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configured regions as one source: a separate worker reads new values in them, from whatever
 * writer. Values go to the outputs as they are, records also through aggregates and detection. Any
 * thread may read stats; a turn of the worker is short.
 */
#pragma once

#include "pipeline/region_input.h"

#define PL_REGION_SOURCE_NAME "regions"

struct pl_region_source;

/* Tables for the keys of regions' slots. */
struct pl_region_keys {
	struct {
		const char *region;
		const struct pl_key_names *names;
	} items[PL_CONFIG_REGIONS_MAX];
	unsigned int n;
};

/* Makes a source; opens nothing yet. keys: must outlive it. Returns -ENOMEM. */
int pl_region_source_new(struct pl_region_source **ret, const struct pl_config *config,
	const struct pl_region_keys *keys);
void pl_region_source_free(struct pl_region_source *source);

/* Opens every region before the worker starts: present contents are not new, unless the
 * configuration says so. Regions that cannot be opened are reported as trouble and tried again. */
void pl_region_source_open(struct pl_region_source *source);
/* Sets the regions to read; those that stay continue. Returns -ENOMEM: nothing has changed. */
int pl_region_source_change(struct pl_region_source *source, const struct pl_config *config);

/* The feed of its worker, which is freed first. */
const struct pl_worker_feed *pl_region_source_feed(const struct pl_region_source *source);

/* Uses what was added to `keys`. Before the worker starts. */
void pl_region_source_take_keys(struct pl_region_source *source);

/* Has all lists read at once, because something was written. Any thread. */
void pl_region_source_wake(struct pl_region_source *source);

/* Copies the stats of region i, from 0; returns false after the last. Any thread. */
bool pl_region_source_stats(
	struct pl_region_source *source, unsigned int i, struct pl_region_input_stats *ret);
