/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A result row parsed from its message (query/result_json.h). Messages are untrusted: any bytes
 * give a row of the query or one of the other verdicts.
 */
#pragma once

#include <stddef.h>

#include "query/query.h"
#include "record/record.h"

#define PL_RESULT_ROW_MAX (256 * 1024) /* longest message that is parsed, in bytes */

struct pl_result_row {
	struct pl_query_row row; /* points to `values` and `exp` */
	struct pl_query_value values[PL_QUERY_ITEMS_MAX];
	char texts[PL_QUERY_ITEMS_MAX][PL_TEXT_TOLD + 1]; /* storage of text values */
	uint16_t exp[PL_QUERY_EXP_MAX];
	bool has_late; /* whether the message has row.late; older versions lack it */
};

enum pl_result_verdict {
	PL_RESULT_ROW_GOOD,
	PL_RESULT_ROW_OTHER, /* a row of another query's name */
	PL_RESULT_ROW_BAD,   /* not a row, or one without a column of the query */
};

/* Parses a row of the query `name`. Lists (topk, hist) are absent in the values. */
enum pl_result_verdict pl_result_row_read(struct pl_result_row *ret, const struct pl_query *query,
	const char *name, const char *message, size_t len);
