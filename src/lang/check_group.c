/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions over groups: a key becomes its column, and an aggregate its own. */
#include <string.h>

#include "lang/plan.h"

static const struct node *check_alias(struct checker *c, const struct ast *ast)
{
	for (const struct ast_item *i = c->aliases ? c->select->items : NULL; i != NULL;
		i = i->next) {
		const struct node *node;

		if (i->name == NULL || strcmp(i->name, ast->name) != 0)
			continue;
		c->aliases = false;
		node = pl_query_check_group(c, i->expr);
		c->aliases = true;
		return node;
	}
	return NULL;
}

/* Tries whether the expression is a key (*ret_key), or a constant, without an error when it is
 * neither. Nodes of the attempt are freed at once. */
static bool try_key(struct checker *c, const struct ast *ast, uint32_t *ret_key)
{
	struct arena *arena = c->lx->arena, scratch = { 0 };
	const bool quiet = c->quiet;
	const struct node *node;
	bool found;

	c->lx->arena = &scratch;
	c->quiet = true;
	node = pl_query_check(c, ast);
	c->lx->arena = arena;
	c->quiet = quiet;
	c->failed = c->lx->error != 0;
	found = node != NULL && node->op == N_CONST;
	*ret_key = UINT32_MAX;
	for (uint32_t i = 0; i < c->stage->n_keys && node != NULL && !found; i++) {
		if (pl_query_same(c->stage->keys[i].node, node)) {
			*ret_key = i;
			found = true;
		}
	}
	pl_query_arena_done(&scratch);
	return found;
}

/* The column of the aggregate of this number; NULL for -1. */
static const struct node *column_of(struct checker *c, int number, uint32_t at)
{
	const struct stage *stage = c->stage;

	return number < 0 ? NULL
			  : pl_query_column_node(c,
				    &stage->groups.columns[stage->n_keys + (uint32_t)number], at);
}

const struct node *pl_query_check_group(struct checker *c, const struct ast *ast)
{
	const struct node *node;
	const char *state;
	uint32_t key;

	if (ast->kind == A_NAME && pl_query_find_fold(c, ast->name, &state) != NULL)
		return column_of(c, pl_query_check_fold(c, ast), ast->at);
	if (try_key(c, ast, &key))
		return key == UINT32_MAX
			       ? pl_query_check(c, ast)
			       : pl_query_column_node(c, &c->stage->groups.columns[key], ast->at);
	if (c->lx->error != 0)
		return NULL;
	if (ast->kind == A_CALL && pl_query_find_agg(ast->name) >= 0)
		return column_of(c, pl_query_check_agg(c, ast), ast->at);
	if (ast->kind == A_NAME) {
		node = check_alias(c, ast);
		if (node != NULL || c->failed)
			return node;
		if (pl_query_check_name(c, ast) == NULL)
			return NULL;
		return pl_query_check_error(c, ast->at,
			"\"%s\" is neither a key of GROUP BY nor within an aggregate", ast->name);
	}
	if (ast->kind == A_TEXT)
		return pl_query_check(c, ast);
	if (ast->kind == A_EACH_HOP || pl_query_is_hop_test(c, ast))
		return pl_query_check_error(
			c, ast->at, "a test of hops is of records: it stands in WHERE");
	if (ast->kind == A_CALL)
		return pl_query_check_call(c, ast, pl_query_check_group);
	return pl_query_check_operator(c, ast, pl_query_check_group);
}
