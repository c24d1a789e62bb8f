/* SPDX-License-Identifier: BSD-2-Clause */
/* The definitions of folds, which stand before the query. */
#include <string.h>

#include "lang/ast.h"

static struct ast_item *new_item(struct lexer *lx)
{
	struct ast_item *item = pl_query_new(lx, sizeof(*item));

	if (item != NULL)
		item->at = lx->token.at;
	return item;
}

/* Parses name = expression. */
static void take_assignment(struct lexer *lx, struct ast_item *item, const char *what)
{
	item->name = pl_query_take_name(lx, what);
	if (item->name != NULL && strchr(item->name, '.') != NULL)
		pl_query_fail(lx, item->at, "the name of a variable has no point");
	if (!pl_query_take_kind(lx, T_EQ))
		pl_query_expected(lx, "\"=\" behind the name");
	item->expr = pl_query_parse_expr(lx);
}

/* (name = first value, …) */
static void take_states(struct lexer *lx, struct ast_item **tail)
{
	if (!pl_query_take_kind(lx, T_OPEN))
		pl_query_expected(lx, "\"(\" and the variables of the fold: (last = ts, n = 0)");
	do {
		struct ast_item *item = new_item(lx);

		if (item == NULL)
			return;
		take_assignment(lx, item, "the name of a variable");
		*tail = item;
		tail = &item->next;
	} while (pl_query_take_kind(lx, T_COMMA));
	if (!pl_query_take_kind(lx, T_CLOSE))
		pl_query_expected(lx, "a comma and a variable, or \")\"");
}

/* { name = expression, EMIT WHEN condition, … } */
static void take_steps(struct lexer *lx, struct ast_item **tail)
{
	if (!pl_query_take_kind(lx, T_OPEN_BRACE))
		pl_query_expected(lx, "\"{\" and assignments");
	do {
		struct ast_item *item = new_item(lx);

		if (item == NULL)
			return;
		if (!pl_query_take(lx, "emit"))
			take_assignment(lx, item, "an assignment, x = x + 1, or EMIT WHEN");
		else if (pl_query_take(lx, "when"))
			item->expr = pl_query_parse_expr(lx);
		*tail = item;
		tail = &item->next;
	} while (pl_query_take_kind(lx, T_COMMA));
	if (!pl_query_take_kind(lx, T_CLOSE_BRACE))
		pl_query_expected(lx, "a comma and an assignment, or \"}\"");
}

void pl_query_parse_folds(struct lexer *lx, struct ast_fold **tail)
{
	while (pl_query_is(lx, "fold")) {
		struct ast_fold *fold = pl_query_new(lx, sizeof(*fold));

		if (fold == NULL)
			return;
		pl_query_next(lx);
		fold->at = lx->token.at;
		fold->name = pl_query_take_name(lx, "a name for the fold");
		if (fold->name != NULL && strchr(fold->name, '.') != NULL)
			pl_query_fail(lx, fold->at, "the name of a fold has no point");
		take_states(lx, &fold->states);
		if (!pl_query_take(lx, "step"))
			pl_query_expected(lx, "STEP and what each record does: STEP { n = n + 1 }");
		take_steps(lx, &fold->steps);
		if (pl_query_take(lx, "end"))
			take_steps(lx, &fold->end);
		if (pl_query_is(lx, "merge"))
			pl_query_fail(lx, lx->token.at,
				"a fold has no MERGE: whether its parts can be merged follows from its steps, and EXPLAIN says it");
		if (lx->error != 0)
			return;
		*tail = fold;
		tail = &fold->next;
	}
}
