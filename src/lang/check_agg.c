/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates: their arguments, types and accumulators; which conditions stay true. */
#include "lang/accumulator.h"

/* Bytes of an aggregate's accumulator, a multiple of 8. */
static uint32_t acc_size(enum agg_kind kind, enum pl_query_type arg, uint32_t k)
{
	switch (kind) {
	case AGG_COUNT:
	case AGG_BIT_OR:
		return 8;
	case AGG_COUNT_DISTINCT:
		return sizeof(struct acc_distinct);
	case AGG_SUM:
	case AGG_AVG:
		return arg == PL_QUERY_DOUBLE ? sizeof(struct acc_real) : sizeof(struct acc_sum);
	case AGG_MIN:
	case AGG_MAX:
		return sizeof(struct acc_extreme);
	case AGG_STDDEV:
		return sizeof(struct acc_spread);
	case AGG_FIRST:
	case AGG_LAST:
		return sizeof(struct acc_edge);
	case AGG_APPROX_DISTINCT:
		return sizeof(struct acc_approx);
	case AGG_QUANTILE:
		return sizeof(struct acc_quantile);
	case AGG_TOPK:
		return (uint32_t)(sizeof(struct acc_topk) +
				  topk_capacity(k) * sizeof(struct topk_counter));
	case AGG_HIST:
		return sizeof(struct acc_hist);
	case AGG_EWMA:
		return sizeof(struct acc_ewma);
	case AGG_FOLD: /* check_fold.c */
		break;
	}
	return 0;
}

static enum pl_query_type result_type(enum agg_kind kind, enum pl_query_type arg)
{
	switch (kind) {
	case AGG_SUM:
	case AGG_MIN:
	case AGG_MAX:
	case AGG_FIRST:
	case AGG_LAST:
		return arg;
	case AGG_AVG:
	case AGG_STDDEV:
	case AGG_EWMA:
		return PL_QUERY_DOUBLE;
	case AGG_TOPK:
	case AGG_HIST:
		return PL_QUERY_LIST;
	default:
		return PL_QUERY_UNSIGNED;
	}
}

static bool type_fits(
	struct checker *c, enum agg_kind kind, const struct node *arg, const char *name)
{
	const char *need = NULL;

	if ((kind == AGG_BIT_OR || kind == AGG_QUANTILE || kind == AGG_HIST) &&
		arg->type != PL_QUERY_UNSIGNED)
		need = "an unsigned number";
	else if (((kind >= AGG_SUM && kind <= AGG_STDDEV) || kind == AGG_EWMA) &&
		 arg->type > PL_QUERY_DOUBLE)
		need = "a number";
	else if (kind == AGG_APPROX_DISTINCT && arg->type == PL_QUERY_TEXT)
		need = "a number or an address (of texts, count(distinct x) takes no more room)";
	else if (kind != AGG_COUNT && arg->type >= PL_QUERY_BOOL && arg->type != PL_QUERY_TEXT)
		need = "a number or an address";
	if (need != NULL)
		pl_query_check_error(c, arg->at, "%s needs %s, and this is of type %s", name, need,
			pl_query_type_name(arg->type));
	return need == NULL;
}

/* The second argument of quantile, ewma and topk. */
static bool take_parameter(struct checker *c, struct agg *agg, const struct ast *ast)
{
	if (agg->kind == AGG_QUANTILE || agg->kind == AGG_EWMA) {
		if (ast != NULL && ast->kind == A_REAL && ast->d > 0 && ast->d < 1) {
			agg->q = ast->d;
			return ast->next == NULL;
		}
		return pl_query_refuse(c, ast != NULL ? ast->at : agg->at,
			agg->kind == AGG_QUANTILE
				? "quantile needs a share between 0 and 1: quantile(x, 0.99)"
				: "ewma needs the weight of the newest value, between 0 and 1: "
				  "ewma(x, 0.125)");
	}
	if (ast != NULL && ast->kind == A_NUMBER && ast->u >= 1 && ast->u <= TOPK_MAX) {
		agg->k = (uint32_t)ast->u;
		return ast->next == NULL;
	}
	return pl_query_refuse(c, ast != NULL ? ast->at : agg->at,
		"topk needs a number from 1 to %d: topk(x, 10)", TOPK_MAX);
}

static bool check_args(struct checker *c, struct agg *agg, const struct ast *ast)
{
	const bool aliases = c->aliases;
	const struct ast *x = ast->list;
	bool good = true;

	c->aliases = false;
	for (; x != NULL && good; x = x->next) {
		if (agg->n_args == DISTINCT_ARGS_MAX) {
			pl_query_check_error(c, x->at, "more than %d values", DISTINCT_ARGS_MAX);
			good = false;
			break;
		}
		agg->args[agg->n_args] = pl_query_check(c, x);
		good = agg->args[agg->n_args] != NULL &&
		       type_fits(c, agg->kind, agg->args[agg->n_args], ast->name);
		agg->n_args++;
		if (agg->kind != AGG_COUNT_DISTINCT) {
			x = x->next;
			break;
		}
	}
	c->aliases = aliases;
	if (!good)
		return false;
	if (agg->n_args == 0 && !(agg->kind == AGG_COUNT && ast->star))
		return pl_query_refuse(c, ast->at, "%s needs a value", ast->name);
	if (agg->kind == AGG_QUANTILE || agg->kind == AGG_EWMA || agg->kind == AGG_TOPK)
		return take_parameter(c, agg, x);
	if (x != NULL || (ast->star && agg->kind != AGG_COUNT))
		return pl_query_refuse(
			c, x != NULL ? x->at : ast->at, "%s needs one value", ast->name);
	return true;
}

static bool same_agg(const struct agg *a, const struct agg *b)
{
	if (a->kind != b->kind || a->fold != b->fold || a->n_args != b->n_args || a->q != b->q ||
		a->k != b->k)
		return false;
	for (uint32_t i = 0; i < a->n_args; i++) {
		if (!pl_query_same(a->args[i], b->args[i]))
			return false;
	}
	return true;
}

static bool makes_agg(struct checker *c, struct agg *agg, const struct ast *ast)
{
	*agg = (struct agg){ .kind = (enum agg_kind)pl_query_find_agg(ast->name), .at = ast->at };
	if (ast->distinct && agg->kind != AGG_COUNT)
		return pl_query_refuse(c, ast->at, "distinct is of count only: count(distinct x)");
	if (ast->distinct)
		agg->kind = AGG_COUNT_DISTINCT;
	if (!check_args(c, agg, ast))
		return c->failed = true, false;
	if ((agg->kind == AGG_FIRST || agg->kind == AGG_LAST) && c->stage->time == NULL)
		return pl_query_refuse(c, ast->at,
			"%s is of records, which have a time; rows of "
			"sub-queries have none",
			ast->name);
	return true;
}

struct column *pl_query_add_agg(struct checker *c, const struct agg *agg, const char *name)
{
	struct stage *stage = c->stage;
	struct column *column = &stage->groups.columns[stage->n_keys + stage->n_aggs];

	if (stage->n_keys + stage->n_aggs == PL_QUERY_COLUMNS_MAX) {
		pl_query_check_error(
			c, agg->at, "more than %d keys and aggregates", PL_QUERY_COLUMNS_MAX);
		return NULL;
	}
	column->name = name;
	column->type = agg->type;
	column->width = cell_width(agg->type);
	stage->aggs[stage->n_aggs++] = *agg;
	return column;
}

/* Returns the aggregate's number in the stage, the same for equal ones; -1 after an error. */
int pl_query_check_agg(struct checker *c, const struct ast *ast)
{
	struct stage *stage = c->stage;
	enum pl_query_type arg;
	struct column *column;
	struct agg agg;

	if (!makes_agg(c, &agg, ast))
		return -1;
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		if (same_agg(&stage->aggs[i], &agg))
			return (int)i;
	}
	arg = arg_type(&agg);
	agg.type = result_type(agg.kind, arg);
	agg.size = acc_size(agg.kind, arg, agg.k);
	agg.offset = stage->acc_bytes;
	stage->acc_bytes += agg.size;
	column = pl_query_add_agg(c, &agg, ast->name);
	if (column == NULL)
		return -1;
	if (agg.n_args == 1 && agg.args[0]->op == N_COLUMN && agg.kind != AGG_COUNT &&
		agg.kind != AGG_COUNT_DISTINCT && agg.kind != AGG_APPROX_DISTINCT &&
		agg.kind != AGG_BIT_OR) {
		column->unit = agg.args[0]->column->unit;
		column->time = pl_query_is_time(agg.args[0]->column);
	}
	return (int)stage->n_aggs - 1;
}

/* ---- conditions that stay true once they are ---- */

/* Returns 1 when the value only grows, -1 when it only shrinks, 0 otherwise. */
static int direction(const struct checker *c, const struct node *node)
{
	const struct stage *stage = c->stage;
	const struct agg *agg;
	ptrdiff_t i;

	if (node->op != N_COLUMN)
		return 0;
	i = node->column - stage->groups.columns - (ptrdiff_t)stage->n_keys;
	if (i < 0)
		return 0;
	agg = &stage->aggs[i];
	switch (agg->kind) {
	case AGG_COUNT:
	case AGG_COUNT_DISTINCT:
	case AGG_MAX:
	case AGG_BIT_OR:
	case AGG_APPROX_DISTINCT:
		return 1;
	case AGG_SUM:
		return agg->type == PL_QUERY_UNSIGNED ? 1 : 0;
	case AGG_MIN:
		return -1;
	default:
		return 0;
	}
}

/* True when a condition that holds for a group keeps holding, whatever records come. *ret_at: place
 * where it does not. */
bool pl_query_monotone(const struct checker *c, const struct node *node, uint32_t *ret_at)
{
	bool up = node->compare == T_GT || node->compare == T_GE;

	if (node->op == N_AND || node->op == N_OR)
		return pl_query_monotone(c, node->a, ret_at) &&
		       pl_query_monotone(c, node->b, ret_at);
	*ret_at = node->at;
	if (node->op != N_COMPARE || (!up && node->compare != T_LT && node->compare != T_LE))
		return false;
	if (node->b->op == N_CONST)
		return direction(c, node->a) == (up ? 1 : -1);
	return node->a->op == N_CONST && direction(c, node->b) == (up ? -1 : 1);
}
