/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of a question as rules of the taps in the kernel that it is asked of (lang/push.h), and
 * where each part of a question runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lang/push_counts.h"
#include "query/query.h"
#include "tap/rules.h"

/* None where a source is no tap in the kernel. */
void pl_query_push_rules(const struct pl_query *query, const char *const *sources, size_t n,
	struct pl_tap_rules *ret);

/* Whether the taps count packets for the query; *ret_why (may be NULL): why not. first: of an
 * answer the first rows are taken, so that their order matters. */
bool pl_query_push_plan(const struct pl_query *query, bool first, const char *const *sources,
	size_t n, struct pl_tap_count_plan *ret, const char **ret_why);

/* Appends to a plan the place where each part runs; without sources as a tap in the kernel would
 * run them. */
void pl_query_push_explain(const struct pl_query *query, bool push_down, bool first,
	const char *const *sources, size_t n, struct pl_buf *out);
