/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a question as tables and SQL of another system, for pathline query --export. */
#pragma once

#include <stddef.h>

#include "base/diag.h"
#include "query/query.h"

extern const char *const pl_query_export_systems[]; /* ends with NULL */

/* Prints the question. The only source, if there is one, is the topic that has the records. Returns
 * an exit code; prints errors. */
int pl_query_export_print(const struct pl_query *query, const char *question, const char *system,
	const char *const *sources, size_t n);

/* Prints an error and the question with a mark under the character at fault (query_sql.c). */
void pl_complain_question(const char *text, const struct pl_diag *diag);
