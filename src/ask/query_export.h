/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline query --export: a question as tables and SQL of another system. */
#pragma once

#include <stddef.h>

#include "base/diag.h"
#include "query/query.h"

extern const char *const pl_query_export_systems[]; /* ends with NULL */

/* A source, at most one, is the topic that has the records. An exit code; complains. */
int pl_query_export_print(const struct pl_query *query, const char *question, const char *system,
	const char *const *sources, size_t n);

/* query_sql.c: the question with a mark under the character at fault. */
void pl_complain_question(const char *text, const struct pl_diag *diag);
