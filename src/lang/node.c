/* SPDX-License-Identifier: BSD-2-Clause */
/* Properties of checked expressions, and the fast form of their comparisons. */
#include <string.h>

#include "lang/plan.h"

bool pl_query_same(const struct node *a, const struct node *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || a->op != b->op || a->type != b->type ||
		a->compare != b->compare || a->bits != b->bits || a->invert != b->invert ||
		a->column != b->column || a->mask != b->mask || a->lo != b->lo ||
		a->span != b->span)
		return false;
	if (a->op == N_CONST && a->type == PL_QUERY_TEXT)
		return strcmp(a->text, b->text) == 0;
	if ((a->op == N_CONST || a->op == N_PREFIX) && memcmp(&a->addr, &b->addr, 16) != 0)
		return false;
	return pl_query_same(a->a, b->a) && pl_query_same(a->b, b->b) && pl_query_same(a->c, b->c);
}

/* True when the values have another width than their operands, so that they cannot be computed in
 * place. */
bool pl_query_apart(const struct node *node)
{
	return node->op == N_COMPARE || node->op == N_PREFIX || node->op == N_V4 ||
	       node->op == N_IF || node->op == N_EACH_HOP;
}

/* Vectors in use while it is evaluated, the result's among them. */
uint32_t pl_query_vectors(const struct node *node)
{
	uint32_t a = node->a != NULL ? pl_query_vectors(node->a) : 1;
	uint32_t b = node->b != NULL ? pl_query_vectors(node->b) + 1 : 1;
	uint32_t c = node->c != NULL ? pl_query_vectors(node->c) + 2 : 1;

	b = c > b ? c : b;
	return (a > b ? a : b) + pl_query_apart(node);
}

/* The column, and the mask upon it, when that is all of the expression. */
static const struct column *masked_column(const struct node *node, uint64_t *ret_mask)
{
	*ret_mask = UINT64_MAX;
	if (node->op == N_BIT_AND && node->type == PL_QUERY_UNSIGNED && node->b->op == N_CONST) {
		*ret_mask = node->b->u;
		node = node->a;
	}
	if (node->op != N_COLUMN || node->type != PL_QUERY_UNSIGNED || node->column->absent >= 0)
		return NULL;
	return node->column;
}

static enum token_kind turned(enum token_kind compare)
{
	switch (compare) {
	case T_LT:
		return T_GT;
	case T_LE:
		return T_GE;
	case T_GT:
		return T_LT;
	case T_GE:
		return T_LE;
	default:
		return compare;
	}
}

/*
 * A comparison of a column of unsigned numbers, masked perhaps, with a constant is a range: one
 * subtraction and one comparison, without a vector for either side. Empty ranges stay as they are.
 */
const struct node *pl_query_fuse(struct checker *c, const struct node *node)
{
	enum token_kind compare = node->compare;
	const struct node *column = node->a, *value = node->b;
	const struct column *of;
	struct node *test;
	uint64_t mask;

	if (column->op == N_CONST) {
		column = node->b;
		value = node->a;
		compare = turned(compare);
	}
	of = value->op == N_CONST && value->type == PL_QUERY_UNSIGNED ? masked_column(column, &mask)
								      : NULL;
	if (of == NULL || (compare == T_LT && value->u == 0) ||
		(compare == T_GT && value->u == UINT64_MAX))
		return node;
	test = pl_query_node(c, N_TEST, PL_QUERY_BOOL, node->at);
	if (test == NULL)
		return NULL;
	test->column = of;
	test->mask = mask & of->mask;
	test->invert = compare == T_NE;
	switch (compare) {
	case T_LT:
		test->span = value->u - 1;
		break;
	case T_LE:
		test->span = value->u;
		break;
	case T_GT:
		test->lo = value->u + 1;
		test->span = UINT64_MAX - test->lo;
		break;
	case T_GE:
		test->lo = value->u;
		test->span = UINT64_MAX - test->lo;
		break;
	default:
		test->lo = value->u;
		break;
	}
	return test;
}
