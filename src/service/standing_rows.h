/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topic of rows as the source of a standing query: the rows that members of a consumer group gave
 * (query_member.h) go on to its outputs. Of a topic that is written in transactions only what was
 * committed is read, each row once. In any other a row of a window that was written again, which has
 * the same bytes, is left out while it is among the latest PL_STANDING_ROWS_SEEN or so.
 *
 * With a group the position is committed behind rows that are in all files and topics of the query,
 * and that went on to events at least PL_STANDING_ROWS_HOLD_NS ago: what outputs still hold comes
 * again after a crash. Rows that an output dropped, which it counts, hold nothing back, but for
 * those that no broker had acknowledged when the process ended.
 */
#pragma once

#include "service/standing_query.h"

#define PL_STANDING_ROWS_SEEN    65536
#define PL_STANDING_ROWS_HOLD_NS UINT64_C(2000000000)

/* Waits for no broker. Negative errno with diag. */
int pl_standing_rows_open(struct pl_standing_query *q, struct pl_diag *diag);
/* Whether there is more at once. */
bool pl_standing_rows_turn(struct pl_standing_query *q, uint64_t now_ns);
/* Commits the position of the last row, if all are delivered, else that of those that are; waits so
 * long for it at most; 0: not at all. */
void pl_standing_rows_commit(struct pl_standing_query *q, uint32_t wait_ms);
void pl_standing_rows_close(struct pl_standing_query *q);
