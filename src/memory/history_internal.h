/* SPDX-License-Identifier: BSD-2-Clause */
/* An open history, shared by history*.c. */
#pragma once

#include "memory/history.h"

struct pl_history {
	char *folder; /* folder, or the single file */
	bool single;
	struct pl_region *regions[PL_HISTORY_MAX]; /* NULL: not there */
	char *trouble[PL_HISTORY_MAX];             /* readers: why a store is not open; names its
						    * file */
	char *aside[PL_HISTORY_MAX];               /* writers: new name of a damaged file */
	struct pl_diag why[PL_HISTORY_MAX];        /* writers: fault of that file */
	struct pl_append lists[PL_HISTORY_HOPS + 1];
	struct pl_key_write flows, queues;
	struct pl_counters drops;
};

/* Path of a store's file, "FOLDER/events.region", which the caller frees; NULL when out of
 * memory. */
char *history_file(const char *folder, enum pl_history_store store);

/* Initializes the structure of the store over its region. Returns 0, or -EINVAL when the region is
 * of another kind. */
int history_attach(struct pl_history *h, enum pl_history_store store);
