/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row of a result read back from its message (query/result_json.h). Messages are from outside:
 * any bytes are a row of the query or one of the other verdicts.
 */
#pragma once

#include <stddef.h>

#include "query/query.h"
#include "record/record.h"

#define PL_RESULT_ROW_MAX (256 * 1024) /* bytes of a message that are read */

struct pl_result_row {
	struct pl_query_row row; /* its values and points are those below */
	struct pl_query_value values[PL_QUERY_ITEMS_MAX];
	char texts[PL_QUERY_ITEMS_MAX][PL_TEXT_TOLD + 1]; /* of the values that are such */
	uint16_t exp[PL_QUERY_EXP_MAX];
	bool has_late; /* the message says it; messages of older versions do not */
};

enum pl_result_verdict {
	PL_RESULT_ROW_GOOD,
	PL_RESULT_ROW_OTHER, /* a row of a question with another name */
	PL_RESULT_ROW_BAD,   /* no row, or one without a column of the query */
};

/* `name` is the one that the message has to name. Lists (topk, hist) are absent in the values. */
enum pl_result_verdict pl_result_row_read(struct pl_result_row *ret, const struct pl_query *query,
	const char *name, const char *message, size_t len);
