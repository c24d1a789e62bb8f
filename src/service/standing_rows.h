/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topic of rows as the source of a standing query: rows of the members of a consumer group
 * (query_member.h) go on to its outputs. In a topic written in transactions only committed rows are
 * read, each once. In any other, a row of a window that was written again, with the same bytes, is
 * left out while it is among the latest PL_STANDING_ROWS_SEEN or so.
 *
 * With a group, a position is committed when the rows before it are in all files and topics of the
 * query, and went on to events at least PL_STANDING_ROWS_HOLD_NS ago: rows that outputs still hold
 * come again after a crash. Rows that an output dropped, which it counts, do not hold the position
 * back, except for those that no broker had acknowledged when the process ended.
 */
#pragma once

#include "service/standing_query.h"

#define PL_STANDING_ROWS_SEEN    65536
#define PL_STANDING_ROWS_HOLD_NS UINT64_C(2000000000)

/* Opens the topic without waiting for a broker. Returns negative errno with diag. */
int pl_standing_rows_open(struct pl_standing_query *q, struct pl_diag *diag);
/* Reads messages. Returns whether there may be more at once. */
bool pl_standing_rows_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Commits the position after the last row if all rows are delivered, else that before the last mark
 * if those are; waits at most this long; 0: not at all. */
void pl_standing_rows_commit(struct pl_standing_query *q, uint32_t wait_ms);
void pl_standing_rows_close(struct pl_standing_query *q);
