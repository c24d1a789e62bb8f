/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of a question as rules of the kernel taps it reads (lang/push.h), and the place where
 * each part of a question runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lang/push_counts.h"
#include "query/query.h"
#include "tap/rules.h"

/* Makes rules from the query's filters; none unless every source is a tap in the kernel. */
void pl_query_push_rules(const struct pl_query *query, const char *const *sources, size_t n,
	struct pl_tap_rules *ret);

/* Returns whether the taps count packets for the query; if not, *ret_why (may be NULL) is the
 * reason. first: only the first rows are wanted, so that the order of records matters. */
bool pl_query_push_plan(const struct pl_query *query, bool first, const char *const *sources,
	size_t n, struct pl_tap_count_plan *ret, const char **ret_why);

/* Appends to a plan the place where each part runs; without sources, for a tap in the kernel. */
void pl_query_push_explain(const struct pl_query *query, bool push_down, bool first,
	const char *const *sources, size_t n, struct pl_buf *out);
