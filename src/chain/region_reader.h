/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of other processes, opened for reading as a service: they are shown with the regions that
 * are written here. */
#pragma once

#include "memory/region.h"
#include "runtime/runtime.h"

struct pl_region_reader {
	char *name, *path;
	struct pl_region *region;
};

struct pl_region_readers {
	struct pl_region_reader *items; /* heap */
	unsigned int n;
	struct pl_condition_board conditions;
	uint64_t next_ns; /* time of the next check of them */
};

/* For a struct pl_region_readers made by pl_region_readers_init. */
extern const struct pl_service_ops pl_region_reader_service;

/* Sets the n regions, names with paths, which are copied; before it is opened. Returns -ENOMEM. */
int pl_region_readers_init(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n);
/* Called while it runs, by the runtime's thread: opens the new regions in place of the present
 * ones. Returns negative errno with diag: then nothing has changed. */
int pl_region_readers_change(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n, struct pl_diag *diag);
void pl_region_readers_done(struct pl_region_readers *r);
