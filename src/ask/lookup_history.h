/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up keys in a history, for pathline lookup: the last path of a flow, the last hop at a
 * queue, the drops of a node. */
#pragma once

#include "ask/query_keys.h"
#include "memory/history.h"

struct pl_lookup_history {
	const char *from;             /* a folder, or one of its files */
	enum pl_history_store store;  /* flows, queues or drops */
	struct pl_key_source *source; /* gives the keys */
	const char *form;             /* one of pl_out_forms */
	const char *where;            /* of flows and queues; NULL: all */
};

/* Prints the history's values for the keys. Returns an exit code; prints errors. */
int pl_lookup_history(const struct pl_lookup_history *args);
