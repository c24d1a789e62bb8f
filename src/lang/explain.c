/* SPDX-License-Identifier: BSD-2-Clause */
/* The plan of a query as text. */
#include <stdio.h>

#include "base/num.h"
#include "lang/plan.h"

static void put_duration(struct pl_buf *out, uint64_t ns)
{
	char text[PL_EXACT_TEXT_MAX];

	pl_format_duration_exact(text, ns);
	pl_buf_str(out, text);
}

static void put_column(struct pl_buf *out, const struct column *column)
{
	if (column->input != NULL) {
		pl_query_put_node(out, column->input);
		return;
	}
	if (column->source != NULL) {
		pl_buf_str(out, column->source);
		pl_buf_chr(out, '.');
	}
	pl_buf_str(out, column->name[0] != '\0' ? column->name : "key");
}

static void put_addr(struct pl_buf *out, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, addr);
	pl_buf_str(out, text);
}

static void put_constant(struct pl_buf *out, const struct node *node)
{
	switch (node->type) {
	case PL_QUERY_SIGNED:
		pl_buf_i64(out, (int64_t)node->u);
		break;
	case PL_QUERY_DOUBLE:
		pl_buf_double(out, node->d);
		break;
	case PL_QUERY_BOOL:
		pl_buf_str(out, node->u != 0 ? "true" : "false");
		break;
	case PL_QUERY_ADDR:
		put_addr(out, &node->addr);
		break;
	case PL_QUERY_TEXT:
		pl_buf_printf(out, "'%s'", node->text);
		break;
	default:
		pl_buf_u64(out, node->u);
		break;
	}
}

static void put_test(struct pl_buf *out, const struct node *node)
{
	put_column(out, node->column);
	if (node->mask != node->column->mask) {
		pl_buf_str(out, " & ");
		pl_buf_u64(out, node->mask);
	}
	if (node->span == 0) {
		pl_buf_str(out, node->invert ? " != " : " = ");
		pl_buf_u64(out, node->lo);
	} else if (node->lo == 0) {
		pl_buf_str(out, " <= ");
		pl_buf_u64(out, node->span);
	} else {
		pl_buf_str(out, " >= ");
		pl_buf_u64(out, node->lo);
	}
}

/* Writes the operands. */
static void put_operands(
	struct pl_buf *out, const char *begin, const struct node *node, const char *between)
{
	const struct node *const operands[] = { node->a, node->b, node->c };

	pl_buf_str(out, begin);
	for (unsigned int i = 0; i < 3 && operands[i] != NULL; i++) {
		pl_buf_str(out, i > 0 ? between : "");
		pl_query_put_node(out, operands[i]);
	}
	pl_buf_chr(out, ')');
}

void pl_query_put_node(struct pl_buf *out, const struct node *node)
{
	static const char *const functions[] = { [N_NEG] = "-(",
		[N_NOT] = "not (",
		[N_TO_SIGNED] = "signed(",
		[N_TO_DOUBLE] = "double(",
		[N_V4] = "v4(",
		[N_COALESCE] = "coalesce(",
		[N_IF] = "if(",
		[N_ABS] = "abs(",
		[N_LEAST] = "least(",
		[N_GREATEST] = "greatest(",
		[N_EXISTS] = "exists(" };
	static const char *const signs[] = { [N_ADD] = " + ",
		[N_SUB] = " - ",
		[N_MUL] = " * ",
		[N_DIV] = " / ",
		[N_MOD] = " % ",
		[N_BIT_AND] = " & ",
		[N_BIT_OR] = " | ",
		[N_AND] = " and ",
		[N_OR] = " or " };
	char sign[8];

	switch (node->op) {
	case N_CONST:
		put_constant(out, node);
		break;
	case N_COLUMN:
		put_column(out, node->column);
		break;
	case N_TEST:
		put_test(out, node);
		break;
	case N_PREFIX:
		pl_query_put_node(out, node->a);
		pl_buf_str(out, " in ");
		put_addr(out, &node->addr);
		pl_buf_printf(out, "/%d",
			pl_addr_is_v4(&node->addr) && node->bits >= 96 ? node->bits - 96
								       : node->bits);
		break;
	case N_EACH_HOP:
		put_operands(out, node->invert ? "all hops (" : "any hop (", node, "");
		break;
	case N_COMPARE:
		snprintf(sign, sizeof(sign), " %s ", pl_query_operator(node->compare));
		put_operands(out, "(", node, sign);
		break;
	default:
		if (functions[node->op] != NULL)
			put_operands(out, functions[node->op], node, ", ");
		else
			put_operands(out, "(", node, signs[node->op]);
		break;
	}
}

static void put_agg(struct pl_buf *out, const struct agg *agg)
{
	if (agg->kind == AGG_FOLD) {
		pl_buf_printf(out, "%s.%s", agg->fold->name, agg->fold->states[agg->k].name);
		return;
	}
	pl_buf_printf(out, agg->kind == AGG_COUNT_DISTINCT ? "count(distinct " : "%s(",
		pl_query_agg_name(agg->kind));
	for (uint32_t i = 0; i < agg->n_args; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		pl_query_put_node(out, agg->args[i]);
	}
	if (agg->n_args == 0)
		pl_buf_chr(out, '*');
	if (agg->kind == AGG_QUANTILE || agg->kind == AGG_EWMA) {
		pl_buf_str(out, ", ");
		pl_buf_double(out, agg->q);
	}
	if (agg->kind == AGG_TOPK)
		pl_buf_printf(out, ", %u", agg->k);
	pl_buf_chr(out, ')');
}

static void put_pairs(struct pl_buf *out, const struct pairs *pairs)
{
	static const char *const kinds[] = { "", "join", "left join", "anti join" };

	pl_buf_printf(out, "  %s records of step %u with those of step %u within ",
		kinds[pairs->kind], pairs->sides[0]->number + 1, pairs->sides[1]->number + 1);
	put_duration(out, pairs->within_ns);
	for (uint32_t k = 0; k < pairs->n_keys; k++) {
		pl_buf_str(out, k == 0 ? " on " : ", ");
		pl_query_put_node(out, pairs->keys[0][k].node);
		pl_buf_str(out, " = ");
		pl_query_put_node(out, pairs->keys[1][k].node);
	}
	if (pairs->on != NULL) {
		pl_buf_str(out, " and ");
		pl_query_put_node(out, pairs->on);
	}
	pl_buf_printf(out, " (%u bytes for each pair)\n", pairs->both.size);
}

static void put_source(struct pl_buf *out, const struct pl_query *query, const struct stage *stage)
{
	static const char *const kinds[] = { "read", "join", "left join", "anti join" };

	if (stage->n_sources > 0) {
		for (uint32_t i = 0; i < stage->n_sources; i++) {
			const struct join *join = &stage->sources[i];

			pl_buf_printf(out, "  %s rows of step %u", kinds[join->kind],
				join->stage->number + 1);
			for (uint32_t k = 0; k < join->n_keys; k++) {
				pl_buf_str(out, k == 0 ? " on " : ", ");
				put_column(out, join->keys[k].left);
				pl_buf_str(out, " = ");
				put_column(out, join->keys[k].right);
			}
			pl_buf_chr(out, '\n');
		}
		return;
	}
	if (stage->zip != NULL) {
		pl_buf_printf(out,
			"  zip rows of step %u with those of step %u that come from the same record\n",
			stage->zip->sides[0]->number + 1, stage->zip->sides[1]->number + 1);
		return;
	}
	if (stage->pairs != NULL) {
		put_pairs(out, stage->pairs);
		return;
	}
	pl_buf_printf(out, "  scan %s", pl_query_stream_name(stage->kind));
	if (query->window.kind == W_SESSION) {
		pl_buf_str(out, ", a session of a key ends with no record of it for ");
		put_duration(out, query->window.size_ns);
	} else if (query->window.kind != W_NONE) {
		pl_buf_str(out, ", windows of ");
		put_duration(out, query->window.size_ns);
	}
	if (query->window.kind == W_HOP) {
		pl_buf_str(out, " every ");
		put_duration(out, query->window.step_ns);
	}
	pl_buf_chr(out, '\n');
}

/* Writes a step. The inputs of a fold lie behind its variables and names, and are written as
 * expressions. */
static void put_step(struct pl_buf *out, const struct fold *fold, const struct fold_step *step)
{
	if (step->emit)
		pl_buf_str(out, step->node != NULL ? "emit when " : "emit");
	else
		pl_buf_printf(out, "%s = ", fold->row.columns[step->to].name);
	if (step->node != NULL)
		pl_query_put_node(out, step->node);
}

static void put_fold(struct pl_buf *out, const struct fold *fold)
{
	static const char *const merges[] = {
		[FOLD_KEEP] = "parts are merged in any order",
		[FOLD_ADD] = "parts are merged in any order",
		[FOLD_GREATEST] = "parts are merged in any order",
		[FOLD_LEAST] = "parts are merged in any order",
		[FOLD_LINEAR] =
			"linear in its variables: parts merge in the order of time only, so the records of a key stay together",
		[FOLD_NONE] = "parts are not merged: the records of a key stay together, in order",
	};

	pl_buf_printf(out, "  fold %s, for each record in order: ", fold->name);
	for (uint32_t i = 0; i < fold->n_steps; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		put_step(out, fold, &fold->steps[i]);
	}
	for (uint32_t i = 0; i < fold->n_end; i++) {
		pl_buf_str(out, i > 0 ? ", " : "; at the end: ");
		put_step(out, fold, &fold->end[i]);
	}
	pl_buf_printf(out, "; %s\n", merges[fold->merge]);
}

static void put_groups(struct pl_buf *out, const struct stage *stage)
{
	for (uint32_t i = 0; i < stage->n_keys; i++) {
		pl_buf_str(out, i == 0 ? "  group by " : ", ");
		pl_query_put_node(out, stage->keys[i].node);
	}
	if (stage->n_keys > 0)
		pl_buf_chr(out, '\n');
	for (uint32_t i = 0; i < stage->n_folds; i++)
		put_fold(out, stage->folds[i]);
	for (uint32_t i = 0; i < stage->n_aggs; i++) {
		pl_buf_str(out, i == 0 ? "  aggregate " : ", ");
		put_agg(out, &stage->aggs[i]);
	}
	if (stage->n_aggs > 0)
		pl_buf_printf(
			out, " (%u bytes for each group)\n", stage->key_bytes + stage->acc_bytes);
	if (stage->having != NULL) {
		pl_buf_str(out, "  having ");
		pl_query_put_node(out, stage->having);
		pl_buf_str(out, stage->emit_first ? ", told at once and at the end\n" : "\n");
	}
}

static void put_stage(struct pl_buf *out, const struct pl_query *query, const struct stage *stage)
{
	pl_buf_printf(out, "step %u\n", stage->number + 1);
	put_source(out, query, stage);
	for (uint32_t i = 0; i < stage->n_where; i++) {
		pl_buf_str(out, "  filter ");
		pl_query_put_node(out, stage->where[i]);
		pl_buf_chr(out, '\n');
	}
	put_groups(out, stage);
	for (uint32_t i = 0; i < stage->n_items; i++) {
		pl_buf_str(out, i == 0 ? "  result " : ", ");
		pl_query_put_node(out, stage->items[i]);
		pl_buf_printf(out, " as %s", stage->out.columns[i].name);
	}
	if (stage->n_items > 0)
		pl_buf_chr(out, '\n');
	if (stage->order >= 0)
		pl_buf_printf(out, "  order by %s%s\n", stage->out.columns[stage->order].name,
			stage->descending ? ", greatest first" : "");
	if (stage->has_limit)
		pl_buf_printf(out, "  limit %llu\n", (unsigned long long)stage->limit);
}

void pl_query_explain(const struct pl_query *query, struct pl_buf *out)
{
	for (uint32_t i = 0; i < query->n_stages; i++)
		put_stage(out, query, query->stages[i]);
	if (query->into != NULL)
		pl_buf_printf(out, "rows go to %s\n", query->into);
}
