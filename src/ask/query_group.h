/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question as a member of a Kafka consumer group. */
#pragma once

#include "ask/query_sql.h"
#include "query/query.h"

/* `name` is the question's, "" without one. Returns an exit code; complains. */
int pl_query_group(const struct pl_query_sql *args, const struct pl_query *query, const char *name,
	const char *uri, enum pl_flat_kind kind);
