/* SPDX-License-Identifier: BSD-2-Clause */
/* What history*.c share: an open history. */
#pragma once

#include "memory/history.h"

struct pl_history {
	char *folder; /* or the one file */
	bool single;
	struct pl_region *regions[PL_HISTORY_MAX]; /* NULL: not there */
	char *trouble[PL_HISTORY_MAX];             /* of readers: why not, with the file's name */
	char *aside[PL_HISTORY_MAX];        /* of writers: the name that a damaged file got */
	struct pl_diag why[PL_HISTORY_MAX]; /* what is the matter with it */
	struct pl_append lists[PL_HISTORY_HOPS + 1];
	struct pl_key_write flows, queues;
	struct pl_counters drops;
};

/* "FOLDER/events.region", to be freed; NULL: no memory. */
char *history_file(const char *folder, enum pl_history_store store);

/* The store's own structure over its region; -EINVAL when it is not of the kind that belongs
 * there. */
int history_attach(struct pl_history *h, enum pl_history_store store);
