/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that a command writes, or has written by others, looked at now and then: a file that
 * somebody cuts, removes or makes anew is told, is a condition, and is in the account. What was
 * opened stays what is written: another file of the name is another region, whose hashes and lists
 * nobody here knows. */
#pragma once

#include <stdbool.h>

#include "base/condition.h"
#include "memory/region.h"
#include "runtime/account.h"

/* What is known of a region. Zeroed at first. */
struct pl_region_watched {
	bool cut;
	bool gone; /* its name has no file, or that of another region */
};

struct pl_region_watch {
	uint64_t next_ns, names_ns;
	unsigned int cut, gone; /* regions that are */
	uint64_t removals;      /* that were found, ever */
	uint64_t lost_pages;    /* of all, when they were last looked at */
};

/* One of `n` regions; `arg` is the caller's. path: for people. */
typedef const struct pl_region *pl_region_watched_get(
	void *arg, unsigned int i, const char **ret_path);

/* Looks at all of them, at most ten times a second, at their names once a second; now_ns
 * UINT64_MAX: in any case. */
void pl_region_watch_look(struct pl_region_watch *w, uint64_t now_ns, pl_region_watched_get *get,
	void *arg, struct pl_region_watched *state, unsigned int n);

/* Of each that is not what it was. */
void pl_region_watch_conditions(const struct pl_region_watch *w, pl_region_watched_get *get,
	void *arg, const struct pl_region_watched *state, unsigned int n,
	struct pl_conditions *ret);

/* Whether somebody may look in vain for what was written. */
static inline bool pl_region_watch_lost(const struct pl_region_watch *w)
{
	return w->cut + w->gone > 0;
}

/* "; 1 region file was truncated, …": behind what is there; nothing when all are what they were. */
void pl_region_watch_tell(const struct pl_region_watch *w, struct pl_buf *text);

/* "cut_regions", "lost_pages", "gone_regions" and "removals"; their families are those of the
 * translator or of the memory server. */
struct pl_region_watch_names {
	const char *cut, *lost, *gone, *removals;
};
extern const struct pl_region_watch_names pl_region_watch_dta, pl_region_watch_rdma;
void pl_region_watch_account(const struct pl_account *a, const struct pl_region_watch_names *names,
	const struct pl_region_watch *w);
