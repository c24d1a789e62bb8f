/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions over one form of records: names become columns, and every node gets its type. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/plan.h"

static const struct node *unknown_column(struct checker *c, const char *name, uint32_t at)
{
	const char *names[4 * PL_QUERY_COLUMNS_MAX];
	char hint[NAME_MAX_LEN + 32];
	size_t n = 0;

	if (c->quiet) {
		c->failed = true;
		return NULL;
	}
	if (c->stage->hops.n > 0 && strncmp(name, "hops.", 5) == 0)
		return pl_query_check_error(c, at,
			"a path has several hops: test them (any hop (…)), or read FROM hops");
	for (uint32_t i = 0; i < c->schema->n && n < 3 * PL_QUERY_COLUMNS_MAX; i++)
		names[n++] = c->schema->columns[i].name;
	for (const struct ast_item *i = c->aliases ? c->select->items : NULL;
		i != NULL && n < 4 * PL_QUERY_COLUMNS_MAX; i = i->next) {
		if (i->name != NULL)
			names[n++] = i->name;
	}
	return pl_query_check_error(c, at, "unknown column \"%s\"%s", name,
		pl_query_did_you_mean(hint, sizeof(hint), name, names, n));
}

/* Reports all sources when the name is one of several. */
static const struct node *several(struct checker *c, const struct ast *ast)
{
	char list[4 * NAME_MAX_LEN] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < c->schema->n; i++) {
		const struct column *column = &c->schema->columns[i];

		if (column->qualified || column->source == NULL || used >= sizeof(list) ||
			strcmp(column->name, ast->name) != 0)
			continue;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s.%s",
			used > 0 ? " or " : "", column->source, column->name);
	}
	return pl_query_check_error(c, ast->at,
		"\"%s\" is a column of several sources: write it with its source, %s", ast->name,
		list);
}

const struct node *pl_query_check_name(struct checker *c, const struct ast *ast)
{
	const struct column *column;
	int n;

	if (c->in_hop) {
		const struct node *node = pl_query_check_name_of_hop(c, ast);

		return node != NULL || c->failed ? node : unknown_column(c, ast->name, ast->at);
	}
	column = pl_query_find_column(c->schema, ast->name, &n);
	if (n > 1)
		return several(c, ast);
	if (column == NULL)
		return unknown_column(c, ast->name, ast->at);
	return pl_query_column_node(c, column, ast->at);
}

static const struct node *constant(struct checker *c, const struct ast *ast)
{
	static const enum pl_query_type types[] = { [A_NUMBER] = PL_QUERY_UNSIGNED,
		[A_REAL] = PL_QUERY_DOUBLE,
		[A_BOOL] = PL_QUERY_BOOL,
		[A_ADDR] = PL_QUERY_ADDR };
	struct node *node = pl_query_node(c, N_CONST, types[ast->kind], ast->at);

	if (node != NULL)
		node->addr = ast->addr;
	return node;
}

/* ---- operators ---- */

static bool is_number(const struct node *node)
{
	return node->type <= PL_QUERY_DOUBLE;
}

/* Converts two numbers into the wider type of the two. */
static bool widen(struct checker *c, const struct node **a, const struct node **b)
{
	const enum pl_query_type type = (*a)->type > (*b)->type ? (*a)->type : (*b)->type;

	if (!is_number(*a) || !is_number(*b))
		return true;
	*a = pl_query_convert(c, *a, type);
	*b = *a != NULL ? pl_query_convert(c, *b, type) : NULL;
	return *b != NULL;
}

static const struct node *arithmetic(struct checker *c, enum token_kind op, uint32_t at,
	const struct node *a, const struct node *b)
{
	static const enum node_op ops[] = { [T_PIPE] = N_BIT_OR,
		[T_AMP] = N_BIT_AND,
		[T_PLUS] = N_ADD,
		[T_MINUS] = N_SUB,
		[T_STAR] = N_MUL,
		[T_SLASH] = N_DIV,
		[T_PERCENT] = N_MOD };
	const struct node *worse = is_number(a) ? b : a;
	const enum pl_query_type type = a->type > b->type ? a->type : b->type;

	if (!is_number(worse))
		return pl_query_check_error(c, worse->at,
			"\"%s\" needs numbers, and this is of type %s", pl_query_operator(op),
			pl_query_type_name(worse->type));
	if (type == PL_QUERY_DOUBLE && (op == T_PIPE || op == T_AMP || op == T_PERCENT))
		return pl_query_check_error(c, at, "\"%s\" needs integers", pl_query_operator(op));
	if (!widen(c, &a, &b))
		return NULL;
	/* A difference of unsigned numbers is exact where it fits. */
	return pl_query_operation(c, ops[op],
		type == PL_QUERY_UNSIGNED && op == T_MINUS ? PL_QUERY_SIGNED : type, at, a, b);
}

static const struct node *comparison(struct checker *c, enum token_kind op, uint32_t at,
	const struct node *a, const struct node *b)
{
	struct node *node;

	if (is_number(a) != is_number(b) || (!is_number(a) && a->type != b->type))
		return pl_query_check_error(c, at,
			"\"%s\" compares a value of type %s with one of type %s",
			pl_query_operator(op), pl_query_type_name(a->type),
			pl_query_type_name(b->type));
	if (a->type == PL_QUERY_LIST)
		return pl_query_check_error(c, at, "a list is not compared");
	if ((a->type == PL_QUERY_BOOL || a->type == PL_QUERY_ADDR || a->type == PL_QUERY_TEXT) &&
		op != T_EQ && op != T_NE)
		return pl_query_check_error(c, at,
			"values of type %s have no order: compare with = or !=",
			pl_query_type_name(a->type));
	if (a->type != b->type && (a->type == PL_QUERY_DOUBLE || b->type == PL_QUERY_DOUBLE)) {
		a = pl_query_convert(c, a, PL_QUERY_DOUBLE);
		b = pl_query_convert(c, b, PL_QUERY_DOUBLE);
	}
	node = a != NULL && b != NULL ? pl_query_operation(c, N_COMPARE, PL_QUERY_BOOL, at, a, b)
				      : NULL;
	if (node == NULL)
		return NULL;
	node->compare = op;
	return pl_query_fuse(c, node);
}

static const struct node *logic(
	struct checker *c, enum node_op op, uint32_t at, const struct node *a, const struct node *b)
{
	const char *what = op == N_AND ? "\"and\"" : op == N_OR ? "\"or\"" : "\"not\"";

	if (pl_query_check_bool(c, a, what) == NULL ||
		(op != N_NOT && pl_query_check_bool(c, b, what) == NULL))
		return NULL;
	return pl_query_operation(c, op, PL_QUERY_BOOL, at, a, b);
}

static const struct node *negative(struct checker *c, uint32_t at, const struct node *a)
{
	if (!is_number(a))
		return pl_query_check_error(c, a->at,
			"\"-\" needs a number, and this is of type %s",
			pl_query_type_name(a->type));
	if (a->op == N_CONST && a->type == PL_QUERY_UNSIGNED && a->u <= (uint64_t)1 << 63)
		return pl_query_constant(c, PL_QUERY_SIGNED, -a->u, at);
	if (a->type == PL_QUERY_UNSIGNED)
		a = pl_query_convert(c, a, PL_QUERY_SIGNED);
	return a != NULL ? pl_query_operation(c, N_NEG, a->type, at, a, NULL) : NULL;
}

static const struct node *in_prefix(
	struct checker *c, const struct node *a, const struct ast *prefix)
{
	struct node *node;

	if (a->type != PL_QUERY_ADDR)
		return pl_query_check_error(
			c, prefix->at, "a prefix needs an address before \"in\"");
	node = pl_query_operation(c, N_PREFIX, PL_QUERY_BOOL, prefix->at, a, NULL);
	if (node != NULL) {
		node->addr = prefix->addr;
		node->bits = prefix->bits;
	}
	return node;
}

/* Checks `in`: equality with one of the list, as alternatives. */
static const struct node *in_list(struct checker *c, const struct ast *ast, const struct node *a)
{
	const struct node *all = NULL, *one, *b;
	unsigned int n = 0;

	for (const struct ast *x = ast->list; x != NULL; x = x->next) {
		if (++n > 64)
			return pl_query_check_error(c, x->at, "a list of more than 64 values");
		if (x->kind == A_PREFIX) {
			one = in_prefix(c, a, x);
		} else {
			b = pl_query_check_beside(c, x, a, pl_query_check);
			one = b != NULL ? comparison(c, T_EQ, x->at, a, b) : NULL;
		}
		if (one == NULL)
			return NULL;
		all = all == NULL ? one : logic(c, N_OR, x->at, all, one);
	}
	return all;
}

/* ---- functions ---- */

static const struct node *coalesce(struct checker *c, const struct ast *ast, check_fn *check)
{
	const struct node *a = ast->list != NULL ? check(c, ast->list) : NULL;
	const struct node *b;

	if (c->failed)
		return NULL;
	if (a == NULL || ast->list->next == NULL || ast->list->next->next != NULL)
		return pl_query_check_error(
			c, ast->at, "coalesce needs two values: coalesce(x, 0)");
	b = check(c, ast->list->next);
	if (b == NULL || !widen(c, &a, &b))
		return NULL;
	if (a->type != b->type || a->type == PL_QUERY_LIST)
		return pl_query_check_error(
			c, ast->at, "the values of coalesce are of different types");
	return pl_query_operation(c, N_COALESCE, a->type, ast->at, a, b);
}

/* Checks up to three arguments; returns their number, or 0 after an error. */
static unsigned int take_args(
	struct checker *c, const struct ast *ast, check_fn *check, const struct node *args[3])
{
	unsigned int n = 0;

	for (const struct ast *x = ast->list; x != NULL; x = x->next) {
		if (n == 3)
			return 4;
		args[n] = check(c, x);
		if (args[n++] == NULL)
			return 0;
	}
	return n;
}

/* Two values of one type, numbers converted to the wider one. */
static bool one_type(struct checker *c, uint32_t at, const char *name, const struct node **a,
	const struct node **b)
{
	if (!widen(c, a, b))
		return false;
	if ((*a)->type == (*b)->type && (*a)->type != PL_QUERY_LIST)
		return true;
	return pl_query_refuse(c, at, "the values of %s are of type %s and of type %s", name,
		pl_query_type_name((*a)->type), pl_query_type_name((*b)->type));
}

/* Checks if(condition, x, y). */
static const struct node *choice(struct checker *c, const struct ast *ast, check_fn *check)
{
	const struct node *args[3];
	unsigned int n = take_args(c, ast, check, args);
	struct node *node;

	if (c->failed)
		return NULL;
	if (n != 3)
		return pl_query_check_error(
			c, ast->at, "if needs a condition and two values: if(ttl < 10, 1, 0)");
	if (pl_query_check_bool(c, args[0], "if") == NULL ||
		!one_type(c, ast->at, "if", &args[1], &args[2]))
		return NULL;
	node = pl_query_operation(c, N_IF, args[1]->type, ast->at, args[0], args[1]);
	if (node != NULL)
		node->c = args[2];
	return node;
}

/* Checks abs(x), least(x, y), greatest(x, y). */
static const struct node *of_numbers(
	struct checker *c, const struct ast *ast, check_fn *check, enum node_op op)
{
	const unsigned int need = op == N_ABS ? 1 : 2;
	const struct node *args[3];
	unsigned int n = take_args(c, ast, check, args);

	if (c->failed)
		return NULL;
	if (n != need)
		return pl_query_check_error(c, ast->at, "%s needs %s", ast->name,
			need == 1 ? "one number" : "two numbers");
	for (unsigned int i = 0; i < n; i++) {
		if (!is_number(args[i]))
			return pl_query_check_error(c, args[i]->at,
				"%s needs a number, and this is of type %s", ast->name,
				pl_query_type_name(args[i]->type));
	}
	if (op == N_ABS && args[0]->type == PL_QUERY_UNSIGNED)
		return args[0];
	if (op != N_ABS && !one_type(c, ast->at, ast->name, &args[0], &args[1]))
		return NULL;
	return pl_query_operation(c, op,
		op == N_ABS && args[0]->type == PL_QUERY_SIGNED ? PL_QUERY_UNSIGNED : args[0]->type,
		ast->at, args[0], op == N_ABS ? NULL : args[1]);
}

static bool is_call(const struct ast *ast, const char *name)
{
	return strcasecmp(ast->name, name) == 0 && !ast->star && !ast->distinct;
}

const struct node *pl_query_check_call(struct checker *c, const struct ast *ast, check_fn *check)
{
	static const char *const names[] = { "v4", "double", "coalesce", "if", "abs", "least",
		"greatest", "count", "sum", "min", "max", "avg", "stddev", "first", "last",
		"bit_or", "approx_distinct", "quantile", "topk", "hist", "ewma", "exists",
		"missing" };
	char hint[NAME_MAX_LEN + 32];
	const struct node *a;
	bool v4 = strcasecmp(ast->name, "v4") == 0;

	if (pl_query_find_agg(ast->name) >= 0)
		return pl_query_check_error(c, ast->at,
			"%s is of a group: it stands in SELECT and HAVING, and not within another",
			ast->name);
	if (is_call(ast, "coalesce"))
		return coalesce(c, ast, check);
	if (is_call(ast, "if"))
		return choice(c, ast, check);
	if (is_call(ast, "abs"))
		return of_numbers(c, ast, check, N_ABS);
	if (is_call(ast, "least") || is_call(ast, "greatest"))
		return of_numbers(c, ast, check, is_call(ast, "least") ? N_LEAST : N_GREATEST);
	if (strcasecmp(ast->name, "exists") == 0 || strcasecmp(ast->name, "missing") == 0)
		return pl_query_check_exists(c, ast, check);
	if (!v4 && strcasecmp(ast->name, "double") != 0)
		return pl_query_check_error(c, ast->at, "unknown function \"%s\"%s", ast->name,
			pl_query_did_you_mean(hint, sizeof(hint), ast->name, names,
				sizeof(names) / sizeof(names[0])));
	if (ast->list == NULL || ast->list->next != NULL || ast->distinct)
		return pl_query_check_error(c, ast->at, "%s needs one value", ast->name);
	a = check(c, ast->list);
	if (a == NULL)
		return NULL;
	if (v4 ? a->type != PL_QUERY_UNSIGNED : !is_number(a))
		return pl_query_check_error(c, a->at, "%s needs %s, and this is of type %s",
			ast->name, v4 ? "an unsigned number" : "a number",
			pl_query_type_name(a->type));
	if (!v4)
		return pl_query_convert(c, a, PL_QUERY_DOUBLE);
	return pl_query_operation(c, N_V4, PL_QUERY_ADDR, ast->at, a, NULL);
}

/* ---- all of it ---- */

static const struct node *check_binary(
	struct checker *c, const struct ast *ast, const struct node *a, const struct node *b)
{
	if (a == NULL || b == NULL)
		return NULL;
	if (ast->op == T_AND || ast->op == T_OR)
		return logic(c, ast->op == T_AND ? N_AND : N_OR, ast->at, a, b);
	if (ast->op >= T_EQ && ast->op <= T_GE)
		return comparison(c, ast->op, ast->at, a, b);
	return arithmetic(c, ast->op, ast->at, a, b);
}

/* Checks one node; the function checks its operands. */
const struct node *pl_query_check_operator(
	struct checker *c, const struct ast *ast, check_fn *check)
{
	const bool compares = ast->kind == A_BINARY && ast->op >= T_EQ && ast->op <= T_GE;
	const struct node *a, *b;

	/* The type of a quoted text follows from the other operand. */
	if (compares && ast->a->kind == A_TEXT) {
		b = check(c, ast->b);
		a = b != NULL ? pl_query_check_beside(c, ast->a, b, check) : NULL;
		return check_binary(c, ast, a, b);
	}
	a = check(c, ast->a);
	if (a == NULL)
		return NULL;
	if (compares)
		return check_binary(c, ast, a, pl_query_check_beside(c, ast->b, a, check));
	if (ast->kind == A_NEG)
		return negative(c, ast->at, a);
	if (ast->kind == A_NOT)
		return logic(c, N_NOT, ast->at, a, NULL);
	if (ast->kind == A_IN)
		return in_list(c, ast, a);
	if (ast->op == T_AMP && ast->b->kind == A_TEXT)
		return check_binary(c, ast, a, pl_query_check_beside(c, ast->b, a, check));
	return check_binary(c, ast, a, check(c, ast->b));
}

/* Checks a test that is for the hops of a path one by one: an expression over a hop. */
static const struct node *each_hop(struct checker *c, const struct ast *test, bool all, uint32_t at)
{
	const struct schema *schema = c->schema;
	const struct node *of_hop;
	struct node *node;

	if (c->stage->hops.n == 0)
		return pl_query_check_error(c, at, "these records have no hops");
	if (c->in_hop)
		return pl_query_check_error(c, at, "a hop has no hops of its own");
	c->schema = &c->stage->hops;
	c->in_hop = true;
	of_hop = pl_query_check_bool(c, pl_query_check(c, test), "a test of hops");
	c->in_hop = false;
	c->schema = schema;
	node = of_hop != NULL ? pl_query_operation(c, N_EACH_HOP, PL_QUERY_BOOL, at, of_hop, NULL)
			      : NULL;
	if (node != NULL)
		node->invert = all;
	return node;
}

const struct node *pl_query_check(struct checker *c, const struct ast *ast)
{
	if (pl_query_is_hop_test(c, ast))
		return each_hop(c, ast, false, ast->at);
	switch (ast->kind) {
	case A_NUMBER:
	case A_REAL:
	case A_BOOL:
	case A_ADDR:
		return constant(c, ast);
	case A_TEXT:
		return pl_query_check_beside(c, ast, NULL, pl_query_check);
	case A_EACH_HOP:
		return each_hop(c, ast->a, ast->star, ast->at);
	case A_PREFIX:
		return pl_query_check_error(c, ast->at, "a prefix stands behind \"in\" only");
	case A_NAME:
		return pl_query_check_name(c, ast);
	case A_CALL:
		return pl_query_check_call(c, ast, pl_query_check);
	default:
		return pl_query_check_operator(c, ast, pl_query_check);
	}
}
