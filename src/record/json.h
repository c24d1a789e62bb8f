/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as JSON objects, one per line where the caller ends the line. Keys and their order are
 * those of fields.def; a dotted name is a member of an object; an absent value has no key. 64-bit
 * integers are numbers with all their digits. Adding a key is allowed, renaming one is not.
 *
 * Nothing is added when the buffer has no room (buf->failed). Room for the longest form is asked
 * for at once: a buffer with a limit needs pl_path_json_max() to spare. Any thread may call.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "record/packet.h"
#include "record/record.h"

/* Writes {"kind":"path",…,"hops":[…]}: the hops are members of their path, source first. */
void pl_path_json(
	struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops, size_t n);
/* Writes {"kind":"hop","ts_ns":…,"report_id":"…","path_id":"…",…}: a hop on its own names its
 * report and path. */
void pl_hop_json(struct pl_buf *buf, const struct pl_hop *hop);
/* Writes an event. A path change has the nodes of both paths (record/path_book.h):
 * "path_nodes":[1,5,2],"path_hops":3, and likewise "old_…"; null when they are not known, and fewer
 * than hops when there are too many. */
void pl_event_json(struct pl_buf *buf, const struct pl_event *event);
/* Most bytes that it may need. */
size_t pl_event_json_max(void);

/* Writes {"kind":"value","ts_ns":…,"region":"…",…}. */
void pl_value_json(struct pl_buf *buf, const struct pl_value *value);
/* Most bytes that it may need. */
size_t pl_value_json_max(void);

/* Writes {"ts_ns":…,"src":"…",…}: a record of packets, DNS messages or flows, all fields in their
 * order. */
void pl_flat_json(struct pl_buf *buf, enum pl_flat_kind kind, const void *record);
/* Most bytes that it may need, with a Community ID behind it (record/community_id.h). */
size_t pl_flat_json_max(enum pl_flat_kind kind);

/* Most bytes that pl_path_json may need for a path of n hops. */
size_t pl_path_json_max(size_t n);
