/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries by name (lang/builtins.def), with parameters: ddos, ddos(threshold=100, window=2s). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"

struct pl_query_param {
	const char *name, *value, *help; /* value: the default */
};

#define PL_QUERY_PARAMS_MAX 8

struct pl_query_builtin {
	const char *name, *help, *text;                    /* text: has $name for parameters */
	struct pl_query_param params[PL_QUERY_PARAMS_MAX]; /* ends with a name of NULL */
};

/* Lists all queries by name; returns their number. */
uint32_t pl_query_builtins(const struct pl_query_builtin **ret);

/* Appends the text of a query by its name, with the arguments in parentheses behind it and EXPLAIN
 * before it when it stands there, to `out`.
 * Returns 0; -EINVAL with diag: line 1 and the character at fault; -ENOENT when there is no such
 * name, with the nearest in diag; -ENOMEM. */
int pl_query_builtin_text(struct pl_buf *out, const char *call, struct pl_diag *diag);
