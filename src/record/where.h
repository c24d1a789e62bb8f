/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filter expressions over paths and their hops (--where).
 *
 *   expression  tests joined by and, or, not, with parentheses; not binds tightest, then and, then
 *               or
 *   test        FIELD OP VALUE     OP: == != < <= > >=; words, addresses and ids: == != only
 *               FIELD in PREFIX    addresses: flow.src in 10.0.0.0/8
 *               flags.NAME         the flag is set (also flags.NAME == false)
 *               exists(FIELD), missing(FIELD)
 *               all TEST           the test is of a hops. field and every hop satisfies it
 *               any hop (X)        there is one hop that satisfies all of X, an expression over the
 *                                  fields of a hop
 *               all hops (X)       every hop satisfies X
 *   FIELD       a name of fields.def; a hop's field begins with "hops."
 *   VALUE       123, 0x7b, -5; times: 50us, 1.5ms, or plain ns; md, "md", 2.1; addresses; hex path
 *               ids
 *
 * A test of a hops. field is true when any hop satisfies it, each test with a hop of its own: only
 * within `any hop (…)` do several tests mean one and the same. There names are a hop's, with or
 * without "hops.". A missing value satisfies no comparison, not even !=; `not (X == 1)` is true for
 * it. A path without hops satisfies no hops. test, and neither `all` nor `all hops`.
 *
 * An expression is compiled once into a flat program; matching allocates nothing, changes nothing,
 * and any number of threads may match with one expression.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "record/record.h"

#define PL_WHERE_TEXT_MAX  4096
#define PL_WHERE_DEPTH_MAX 32 /* most parentheses within each other */

struct pl_where;

/* Compiles an expression. Returns 0, -EINVAL with diag, which has line 1 and the column of the
 * character at fault, or -ENOMEM. */
int pl_where_new(struct pl_where **ret, const char *text, struct pl_diag *diag);
void pl_where_free(struct pl_where *where);

bool pl_where_match(const struct pl_where *where, const struct pl_path *path,
	const struct pl_hop *hops, size_t n);

/* Compiles an expression over records of one flat kind: events (pl_fields(PL_KIND_EVENT)), rows of
 * a table. Names are those of `fields`, which are borrowed for the expression's life; there are no
 * hops. Match with pl_where_match_row only. */
int pl_where_new_over(struct pl_where **ret, const struct pl_field *fields, size_t n,
	const char *text, struct pl_diag *diag);
bool pl_where_match_row(const struct pl_where *where, const void *row, uint32_t present);

/* Text about the language for the help, like the comment above. */
const char *pl_where_help(void);
