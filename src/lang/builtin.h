/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries by name (lang/builtins.def), with parameters: ddos, ddos(threshold=100, window=2s). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"

struct pl_query_param {
	const char *name, *value, *help; /* value: when it is not given */
};

#define PL_QUERY_PARAMS_MAX 8

struct pl_query_builtin {
	const char *name, *help, *text;                    /* text: with $name for parameters */
	struct pl_query_param params[PL_QUERY_PARAMS_MAX]; /* ends with a name of NULL */
};

/* All of them; returns how many. */
uint32_t pl_query_builtins(const struct pl_query_builtin **ret);

/*
 * The text of a query by its name and what stands in parentheses behind it, appended to `out`.
 * -EINVAL with diag: line 1 and the character at fault; -ENOENT when the name is none of them, the
 * nearest in diag; -ENOMEM.
 */
int pl_query_builtin_text(struct pl_buf *out, const char *call, struct pl_diag *diag);
