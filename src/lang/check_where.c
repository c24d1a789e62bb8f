/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on records: WHERE, and the parts of it that go to a side of pairs. */
#include "lang/plan.h"

bool pl_query_has_aggregate(const struct checker *c, const struct ast *ast)
{
	const char *state;

	if (ast == NULL)
		return false;
	if (ast->kind == A_CALL && pl_query_find_agg(ast->name) >= 0)
		return true;
	if (ast->kind == A_NAME && pl_query_find_fold(c, ast->name, &state) != NULL)
		return true;
	for (const struct ast *x = ast->list; x != NULL; x = x->next) {
		if (pl_query_has_aggregate(c, x))
			return true;
	}
	return pl_query_has_aggregate(c, ast->a) || pl_query_has_aggregate(c, ast->b);
}

bool pl_query_check_depth(struct checker *c, const struct node *node)
{
	if (node == NULL)
		return false;
	if (pl_query_vectors(node) <= VECTORS_MAX)
		return true;
	return pl_query_refuse(c, node->at, "the expression is too deep");
}

/* Splits a condition into its parts joined by `and`, to be checked one after the other. */
static bool split(struct checker *c, const struct node *node)
{
	struct stage *stage = c->stage;

	if (node->op == N_AND &&
		stage->n_where + 1 < sizeof(stage->where) / sizeof(stage->where[0]))
		return split(c, node->a) && split(c, node->b);
	if (stage->n_where == sizeof(stage->where) / sizeof(stage->where[0])) {
		node = pl_query_operation(
			c, N_AND, PL_QUERY_BOOL, node->at, stage->where[--stage->n_where], node);
		if (node == NULL)
			return false;
	}
	stage->where[stage->n_where++] = node;
	return true;
}

bool pl_query_check_add(struct checker *c, const struct node *condition)
{
	return pl_query_check_depth(c, condition) && split(c, condition);
}

/* ---- over the sides of pairs ---- */

bool pl_query_names_column(const struct node *node)
{
	if (node == NULL)
		return false;
	return node->column != NULL || pl_query_names_column(node->a) ||
	       pl_query_names_column(node->b) || pl_query_names_column(node->c);
}

const struct node *pl_query_try_over(const struct checker *outer, const struct pairs *pairs,
	unsigned int side, const struct ast *ast)
{
	struct checker c = *outer;
	const struct node *node;

	c.quiet = true;
	c.failed = false;
	if (side < 2)
		c.stage = pairs->sides[side];
	c.schema = side < 2 ? &c.stage->input : &pairs->both;
	node = pl_query_check(&c, ast);
	return c.failed ? NULL : node;
}

bool pl_query_check_push(
	struct checker *outer, struct pairs *pairs, unsigned int side, const struct ast *ast)
{
	const struct node *node = pl_query_try_over(outer, pairs, side, ast);
	struct checker c = *outer;

	if (node == NULL || node->type != PL_QUERY_BOOL || !pl_query_names_column(node))
		return false;
	c.stage = pairs->sides[side];
	c.schema = &c.stage->input;
	return pl_query_check_add(&c, node);
}

/* Moves a part of WHERE that names only one side of the pairs to the filter of that side. */
static bool goes_to_a_side(struct checker *c, const struct ast *ast)
{
	struct pairs *pairs = c->stage->pairs;

	/* The right record of a left join may be absent, and a condition true for that. */
	return pl_query_check_push(c, pairs, 0, ast) ||
	       (pairs->kind == J_INNER && pl_query_check_push(c, pairs, 1, ast));
}

/* ---- WHERE ---- */

/* Checks a condition. For pairs each part is checked alone, because a part may need the columns of
 * one side only. */
static bool check_condition(struct checker *c, const struct ast *ast)
{
	const struct node *node;

	if (c->stage->pairs != NULL && ast->kind == A_BINARY && ast->op == T_AND)
		return check_condition(c, ast->a) && check_condition(c, ast->b);
	node = pl_query_check_bool(c, pl_query_check(c, ast), "WHERE");
	if (node == NULL)
		return false;
	return (c->stage->pairs != NULL && goes_to_a_side(c, ast)) || pl_query_check_add(c, node);
}

bool pl_query_check_where(struct checker *c)
{
	if (c->select->where == NULL)
		return true;
	if (pl_query_has_aggregate(c, c->select->where))
		return pl_query_refuse(c, c->select->where->at,
			"WHERE is of records; conditions on aggregates stand in HAVING");
	return check_condition(c, c->select->where);
}
