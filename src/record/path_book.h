/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes of the path ids in events. An event has room for the two ids of a path change, and none for
 * their nodes; code that makes or reads events notes the nodes here, and code that writes events
 * finds them. Each process has one book with the 2048 paths noted last; a path that is not in it is
 * shown as not known.
 *
 * Any thread may call any of these; none waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define PL_PATH_NODES_MAX 16

/* Nodes of a path, source first: at most PL_PATH_NODES_MAX of them. */
struct pl_path_nodes {
	uint32_t hops; /* hops of the path; 0: not known */
	uint32_t n;    /* nodes in node */
	uint64_t node[PL_PATH_NODES_MAX];
};

void pl_path_book_note(uint64_t path_id, const struct pl_path_nodes *nodes);
/* Finds the nodes of a path; false when the path is not in the book, and ret has no nodes. */
bool pl_path_book_find(uint64_t path_id, struct pl_path_nodes *ret);

/* Returns true when the event has two paths, and gives their nodes if they are known. */
bool pl_event_paths(
	const struct pl_event *event, struct pl_path_nodes *ret_now, struct pl_path_nodes *ret_old);

/* Writes "1>5>2"; ">..." at the end when there are more; "unknown". Returns the length. */
#define PL_PATH_NODES_TEXT (PL_PATH_NODES_MAX * 21 + 8)
size_t pl_path_nodes_text(char dst[PL_PATH_NODES_TEXT], const struct pl_path_nodes *nodes);
