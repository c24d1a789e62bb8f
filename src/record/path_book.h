/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the path ids in events stand for. An event has room for the two ids of a path change, and
 * none for their nodes; whoever raises or reads it notes them here, and whoever writes it down
 * finds them. One book per process, 2048 paths, those noted last; a path that is not in it is shown
 * as not known.
 *
 * Any thread may call any of these; none waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define PL_PATH_NODES_MAX 16

/* The nodes of a path, source first: the first PL_PATH_NODES_MAX of them. */
struct pl_path_nodes {
	uint32_t hops; /* in all; 0: not known */
	uint32_t n;    /* of them in node */
	uint64_t node[PL_PATH_NODES_MAX];
};

void pl_path_book_note(uint64_t path_id, const struct pl_path_nodes *nodes);
/* False, and nothing known in ret, when it is not in the book. */
bool pl_path_book_find(uint64_t path_id, struct pl_path_nodes *ret);

/* Whether the event tells of two paths: then their nodes, as far as they are known. */
bool pl_event_paths(
	const struct pl_event *event, struct pl_path_nodes *ret_now, struct pl_path_nodes *ret_old);

/* "1>5>2"; ">..." at the end when there are more; "unknown". Returns the length. */
#define PL_PATH_NODES_TEXT (PL_PATH_NODES_MAX * 21 + 8)
size_t pl_path_nodes_text(char dst[PL_PATH_NODES_TEXT], const struct pl_path_nodes *nodes);
