/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the nodes of checked expressions, and reports their errors; properties of expressions, and
 * the fast form of their comparisons. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "lang/plan.h"

const char *pl_query_type_name(enum pl_query_type type)
{
	static const char *const names[PL_QUERY_TYPE_MAX] = { "unsigned number", "signed number",
		"double", "address", "boolean", "list", "text" };

	return names[type];
}

/* ---- errors ---- */

const struct node *pl_query_check_error(struct checker *c, uint32_t at, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	c->failed = true;
	if (c->quiet)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_query_fail(c->lx, at, "%s", text);
	return NULL;
}

const char *pl_query_did_you_mean(
	char *dst, size_t cap, const char *name, const char *const *names, size_t n)
{
	const char *nearest = pl_nearest(name, names, n);

	if (nearest == NULL)
		dst[0] = '\0';
	else
		snprintf(dst, cap, ", did you mean \"%s\"?", nearest);
	return dst;
}

/* ---- nodes ---- */

struct node *pl_query_node(struct checker *c, enum node_op op, enum pl_query_type type, uint32_t at)
{
	struct node *node = pl_query_new(c->lx, sizeof(*node));

	if (node == NULL) {
		c->failed = true;
		return NULL;
	}
	node->op = op;
	node->type = type;
	node->at = at;
	return node;
}

struct node *pl_query_constant(
	struct checker *c, enum pl_query_type type, uint64_t value, uint32_t at)
{
	struct node *node = pl_query_node(c, N_CONST, type, at);

	if (node != NULL)
		node->u = value;
	return node;
}

struct node *pl_query_operation(struct checker *c, enum node_op op, enum pl_query_type type,
	uint32_t at, const struct node *a, const struct node *b)
{
	struct node *node = pl_query_node(c, op, type, at);

	if (node != NULL) {
		node->a = a;
		node->b = b;
	}
	return node;
}

const struct node *pl_query_column_node(struct checker *c, const struct column *column, uint32_t at)
{
	struct node *node = pl_query_node(c, N_COLUMN, column->type, at);

	if (node != NULL)
		node->column = column;
	c->query->paths_of_hops = c->query->paths_of_hops || column->of_path;
	c->query->texts = c->query->texts || column->type == PL_QUERY_TEXT;
	/* A column of a stream: rows of sub-queries have no masks. */
	c->query->marks =
		c->query->marks || (column->type == PL_QUERY_BOOL && column->mask == PL_OBS_RULE &&
					   column->width == sizeof(uint16_t));
	return node;
}

const struct node *pl_query_check_bool(struct checker *c, const struct node *node, const char *what)
{
	if (node == NULL || node->type == PL_QUERY_BOOL)
		return node;
	return pl_query_check_error(c, node->at, "%s needs a condition, and this is of type %s",
		what, pl_query_type_name(node->type));
}

const struct node *pl_query_convert(
	struct checker *c, const struct node *node, enum pl_query_type type)
{
	struct node *made;

	if (node->type == type)
		return node;
	if (node->op != N_CONST)
		return pl_query_operation(c, type == PL_QUERY_DOUBLE ? N_TO_DOUBLE : N_TO_SIGNED,
			type, node->at, node, NULL);
	/* A constant is converted here. */
	if (type == PL_QUERY_SIGNED && node->u > INT64_MAX)
		return pl_query_check_error(c, node->at, "%llu does not fit a signed number",
			(unsigned long long)node->u);
	made = pl_query_constant(c, type, node->u, node->at);
	if (made != NULL && type == PL_QUERY_DOUBLE)
		made->d =
			node->type == PL_QUERY_SIGNED ? (double)(int64_t)node->u : (double)node->u;
	return made;
}

/* ---- names of aggregates ---- */

static const char *const aggregates[] = { [AGG_COUNT] = "count",
	[AGG_COUNT_DISTINCT] = "count_distinct",
	[AGG_SUM] = "sum",
	[AGG_MIN] = "min",
	[AGG_MAX] = "max",
	[AGG_AVG] = "avg",
	[AGG_STDDEV] = "stddev",
	[AGG_FIRST] = "first",
	[AGG_LAST] = "last",
	[AGG_BIT_OR] = "bit_or",
	[AGG_APPROX_DISTINCT] = "approx_distinct",
	[AGG_QUANTILE] = "quantile",
	[AGG_TOPK] = "topk",
	[AGG_HIST] = "hist",
	[AGG_EWMA] = "ewma" };

const char *pl_query_agg_name(enum agg_kind kind)
{
	return aggregates[kind];
}

int pl_query_find_agg(const char *name)
{
	for (int kind = 0; kind < AGG_FOLD; kind++) {
		if (strcasecmp(aggregates[kind], name) == 0)
			return kind;
	}
	return -1;
}

/* ---- properties ---- */

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

/* A column as it is in the record needs its own bytes only. */
uint8_t pl_query_key_width(const struct node *node)
{
	if (node->type == PL_QUERY_ADDR)
		return 16;
	if (node->op == N_COLUMN && node->type == PL_QUERY_UNSIGNED)
		return node->column->width;
	return node->type == PL_QUERY_BOOL ? 1 : 8;
}

/* Wide keys come first, so that each is aligned to its size. */
uint32_t pl_query_lay_out_keys(struct key *keys, uint32_t n)
{
	uint32_t at = 8;

	for (uint32_t width = 16; width > 0; width /= 2) {
		for (uint32_t i = 0; i < n; i++) {
			if (keys[i].width == width) {
				keys[i].offset = at;
				at += width;
			}
		}
	}
	return (at + 7) & ~7u;
}

void pl_query_describe(struct column *column, const struct node *node)
{
	column->type = node->type;
	column->width = cell_width(node->type);
	if (node->op == N_COLUMN) {
		column->unit = node->column->unit;
		column->form = node->column->form;
		column->time = pl_query_is_time(node->column);
	}
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
