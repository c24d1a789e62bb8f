/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that other processes write, opened for reading as a service: they are shown with those
 * that are written here. */
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
	uint64_t next_ns; /* when to look at them again */
};

/* Of a struct pl_region_readers that pl_region_readers_init made. */
extern const struct pl_service_ops pl_region_reader_service;

/* What there is to be, n names with paths, which are copied; before it is opened. -ENOMEM. */
int pl_region_readers_init(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n);
/* While it runs, from the runtime's thread: opens those that are new, in place of those there are.
 * Negative errno with diag: then nothing has changed. */
int pl_region_readers_change(struct pl_region_readers *r, const char *const *names,
	const char *const *paths, unsigned int n, struct pl_diag *diag);
void pl_region_readers_done(struct pl_region_readers *r);
