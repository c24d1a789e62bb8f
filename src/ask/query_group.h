/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question as a member of a Kafka consumer group. */
#pragma once

#include "ask/query_sql.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "kafka/kafka.h"
#include "query/query.h"

/* `name` is the question's, "" without one. Returns an exit code; prints errors. */
#if PL_HAVE_KAFKA
int pl_query_group(const struct pl_query_sql *args, const struct pl_query *query, const char *name,
	const char *uri, enum pl_flat_kind kind);
#else
static inline int pl_query_group(const struct pl_query_sql *args, const struct pl_query *query,
	const char *name, const char *uri, enum pl_flat_kind kind)
{
	struct pl_diag diag = { .text = "" };

	(void)args;
	(void)query;
	(void)name;
	(void)uri;
	(void)kind;
	(void)pl_kafka_check(&diag);
	pl_complain_diag(&diag);
	return PL_EXIT_UNAVAILABLE;
}
#endif
