/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row of a result as a message: one JSON object, and the key that messages of the same group have
 * in common, so that a compacted topic or an upsert keeps the last of them.
 *
 *   key    NAME|VALUE,VALUE,…      the group's key columns; empty for rows that are of no group
 *   value  {"q":"ddos","v":1,"w0":5,"w0_s":"5","w1":9,"w1_s":"9","key":{"dst":"2001:db8::1"},
 *           "val":{"srcs":57},"thr":45,"final":true,"first_ts":6,"first_ts_s":"6","late":0,
 *           "exp":[3,7],"incomplete":false,"approx":false}
 *
 * w0 and w1 are the window, [w0, w1), ns since the Unix epoch; a row without a window lacks them.
 * Times, and other integers that a double does not hold, follow once more as a decimal string,
 * under their name with "_s". Addresses are texts, absent values null, lists arrays of
 * {"value":443,"count":9,"error":0}. `final` is false for a first crossing, which a row of the same
 * window and key follows; `incomplete` is true when something of the window was left out; `approx`
 * is true when a column is an estimate (approx_distinct, quantile, topk). `first_ts`, `late` and
 * `exp` are as in struct pl_query_row; a null at the end of `exp`: there are others. `thr` is the
 * number that HAVING compares with; it is there when HAVING is that one comparison.
 *
 * The same row gives the same bytes except `late`, which depends on the time at which the process
 * began to read: a repeated message is no news.
 */
#pragma once

#include "base/buf.h"
#include "query/query.h"

#define PL_QUERY_RESULT_VERSION 1
#define PL_QUERY_RESULT_LATE    "late"

/* Marks the columns of the result that name the group. `ret` has room for PL_QUERY_ITEMS_MAX.
 * Returns their number. */
uint32_t pl_query_key_columns(const struct pl_query *query, bool *ret);

/* Appends the key to `key`, and the object to `value`, without an end of line. `name` is the
 * query's name. Either buffer may be NULL. */
void pl_query_result_json(const struct pl_query *query, const char *name,
	const struct pl_query_row *row, struct pl_buf *key, struct pl_buf *value);
