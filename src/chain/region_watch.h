/* SPDX-License-Identifier: BSD-2-Clause */
/* Watch over region files that a command writes, or lets others write: a file that was cut, removed
 * or made again is reported, is a condition, and is in the account. The opened file stays in use: a
 * new file of that name is another region, with unknown hashes and lists. */
#pragma once

#include <stdbool.h>

#include "base/condition.h"
#include "memory/region.h"
#include "runtime/account.h"

/* State of a region. Zeroed at first. */
struct pl_region_watched {
	bool cut;
	bool gone; /* its name has no file, or another region's */
};

struct pl_region_watch {
	uint64_t next_ns, names_ns;
	unsigned int cut, gone; /* number of such regions */
	uint64_t removals;      /* found since the start */
	uint64_t lost_pages;    /* of all regions, at the last check */
};

/* Gives one of `n` regions; `arg` is the caller's. path: for the user. */
typedef const struct pl_region *pl_region_watched_get(
	void *arg, unsigned int i, const char **ret_path);

/* Checks all regions, at most ten times a second, and their names once a second; now_ns UINT64_MAX:
 * at once. */
void pl_region_watch_look(struct pl_region_watch *w, uint64_t now_ns, pl_region_watched_get *get,
	void *arg, struct pl_region_watched *state, unsigned int n);

/* Adds a condition for each region whose file was truncated or is gone. */
void pl_region_watch_conditions(const struct pl_region_watch *w, pl_region_watched_get *get,
	void *arg, const struct pl_region_watched *state, unsigned int n,
	struct pl_conditions *ret);

/* Returns true when readers may miss something that was written. */
static inline bool pl_region_watch_lost(const struct pl_region_watch *w)
{
	return w->cut + w->gone > 0;
}

/* Appends "; 1 region file was truncated, …"; nothing when all are unchanged. */
void pl_region_watch_tell(const struct pl_region_watch *w, struct pl_buf *text);

/* Adds "cut_regions", "lost_pages", "gone_regions" and "removals"; their families are those of the
 * translator or of the memory server. */
struct pl_region_watch_names {
	const char *cut, *lost, *gone, *removals;
};
extern const struct pl_region_watch_names pl_region_watch_dta, pl_region_watch_rdma;
void pl_region_watch_account(const struct pl_account *a, const struct pl_region_watch_names *names,
	const struct pl_region_watch *w);
