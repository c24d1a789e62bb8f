/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that a command writes, or has written by others, looked at now and then: a file that
 * somebody cuts is told on standard error, once, and is in the account. */
#pragma once

#include <stdbool.h>

#include "memory/region.h"
#include "runtime/account.h"

/* Why a service is not ready that has such a region. */
#define PL_REGION_CUT_UNREADY "a region was truncated: writes beyond its end are lost"

struct pl_region_watch {
	uint64_t next_ns;
	unsigned int cut;    /* regions of which it was told */
	uint64_t lost_pages; /* of all, when they were last looked at */
};

/* One of `n` regions; `arg` is the caller's. path: for people. */
typedef const struct pl_region *pl_region_watched(void *arg, unsigned int i, const char **ret_path);

/* Looks at all of them, at most ten times a second; now_ns UINT64_MAX: in any case. `told`: n
 * flags, false at first: those that are cut. */
void pl_region_watch_look(struct pl_region_watch *w, uint64_t now_ns, pl_region_watched *get,
	void *arg, bool *told, unsigned int n);

/* "cut_regions" and "lost_pages"; their families have these names. */
void pl_region_watch_account(const struct pl_account *a, const char *cut_name,
	const char *lost_name, const struct pl_region_watch *w);
