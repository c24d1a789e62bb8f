/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions in SQL. An absent value is NULL there; but a comparison with NULL is NULL there
 * and false here, which counts below NOT, and as a value. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "lang/export_state.h"

/* ---- columns ---- */

/* Index of the column in its schema; false when it is of another one. */
static bool within(const struct schema *schema, const struct column *column, uint32_t *ret)
{
	if (column < schema->columns || column >= schema->columns + schema->n)
		return false;
	*ret = (uint32_t)(column - schema->columns);
	return true;
}

static void put_joined(struct exporter *e, uint32_t number)
{
	const uint32_t source = pl_query_source_of(e->stage, &number);

	pl_buf_printf(e->out, "t%u.", source + 1);
	pl_export_name(e, e->stage->sources[source].stage->out.columns[number].name);
}

/* Replaces a column of pairs by the column of its side's stream. Returns the side. */
static unsigned int side_of(const struct stage *stage, const struct column **column)
{
	const struct pairs *pairs = stage->pairs;
	const uint32_t number = (uint32_t)(*column - pairs->both.columns);
	const uint32_t n_left = pairs->sides[0]->input.n;
	const unsigned int side = number >= n_left;

	*column = &pairs->sides[side]->input.columns[number - (side == 1 ? n_left : 0)];
	return side;
}

static void put_of_pair(struct exporter *e, const struct node *node)
{
	const struct stage *stage = e->stage;
	struct node of_side = *node;
	const unsigned int side = side_of(stage, &of_side.column);
	const bool optional =
		side == 1 && stage->pairs->kind == J_LEFT && node->type == PL_QUERY_BOOL;

	pl_buf_str(e->out, optional ? "COALESCE(" : "");
	pl_export_side(e, side);
	if (node->op == N_TEST)
		pl_export_test(e, &of_side);
	else
		pl_export_stream_column(e, of_side.column, node->at);
	pl_export_whole(e, stage);
	pl_buf_str(e->out, optional ? ", FALSE)" : "");
}

static void put_column(struct exporter *e, const struct node *node)
{
	const struct stage *stage = e->stage;
	uint32_t i;

	if (stage->grouped && within(&stage->groups, node->column, &i)) {
		if (i < stage->n_keys)
			pl_export_node(e, stage->keys[i].node, false);
		else
			pl_export_agg(e, &stage->aggs[i - stage->n_keys]);
	} else if (stage->pairs != NULL) {
		put_of_pair(e, node);
	} else if (stage->n_sources == 0) {
		pl_export_stream_column(e, node->column, node->at);
	} else if (within(&stage->input, node->column, &i)) {
		/* A condition of a row that a left join left out is false. */
		if (node->type == PL_QUERY_BOOL)
			pl_buf_str(e->out, "COALESCE(");
		put_joined(e, i);
		if (node->type == PL_QUERY_BOOL)
			pl_buf_str(e->out, ", FALSE)");
	} else {
		pl_export_refuse(e, node->at, "columns of this kind do");
	}
}

static bool nullable_agg(struct exporter *e, const struct agg *agg)
{
	switch (agg->kind) {
	case AGG_COUNT:
	case AGG_COUNT_DISTINCT:
	case AGG_BIT_OR:
	case AGG_APPROX_DISTINCT:
	case AGG_TOPK:
	case AGG_HIST:
		return false;
	default: /* absent when the group has no value */
		return agg->n_args == 0 || pl_export_nullable(e, agg->args[0]);
	}
}

static bool nullable_joined(struct exporter *e, uint32_t number)
{
	const struct stage *stage = e->stage;
	const struct join *join = &stage->sources[pl_query_source_of(stage, &number)];
	bool is = join->kind == J_LEFT;

	if (!is) {
		e->stage = join->stage;
		is = pl_export_nullable(e, join->stage->items[number]);
		e->stage = stage;
	}
	return is;
}

static bool nullable_column(struct exporter *e, const struct node *node)
{
	const struct stage *stage = e->stage;
	uint32_t i;

	if (node->type == PL_QUERY_BOOL)
		return false;
	if (stage->grouped && within(&stage->groups, node->column, &i))
		return i < stage->n_keys ? pl_export_nullable(e, stage->keys[i].node)
					 : nullable_agg(e, &stage->aggs[i - stage->n_keys]);
	if (stage->pairs != NULL) {
		const struct column *column = node->column;

		return (side_of(stage, &column) == 1 && stage->pairs->kind == J_LEFT) ||
		       column->present != 0;
	}
	if (stage->n_sources == 0)
		return node->column->present != 0;
	return !within(&stage->input, node->column, &i) || nullable_joined(e, i);
}

/* A number that surely is below 2^32. */
static bool narrow(const struct node *node)
{
	if (node->op == N_CONST)
		return node->u <= UINT32_MAX;
	return node->op == N_COLUMN && node->type == PL_QUERY_UNSIGNED && node->column->width <= 4;
}

bool pl_export_nullable(struct exporter *e, const struct node *node)
{
	switch (node->op) {
	case N_CONST:
	case N_TEST:
	case N_PREFIX:
	case N_COMPARE:
	case N_AND:
	case N_OR:
	case N_NOT:
		return false;
	case N_COLUMN:
		return nullable_column(e, node);
	case N_DIV:
	case N_MOD:
		return node->b->op != N_CONST || node->b->u == 0 || pl_export_nullable(e, node->a);
	case N_V4:
		return !narrow(node->a) || pl_export_nullable(e, node->a);
	case N_COALESCE:
		return pl_export_nullable(e, node->a) && pl_export_nullable(e, node->b);
	default:
		return (node->op != N_IF && pl_export_nullable(e, node->a)) ||
		       (node->b != NULL && pl_export_nullable(e, node->b)) ||
		       (node->c != NULL && pl_export_nullable(e, node->c));
	}
}

/* ---- constants and addresses ---- */

static void put_addr(struct exporter *e, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, addr);
	pl_buf_printf(e->out, e->dialect == PL_QUERY_CLICKHOUSE ? "toIPv6('%s')" : "'%s'", text);
}

static void put_text(struct exporter *e, const struct node *node)
{
	if (strpbrk(node->text, "'\\") != NULL)
		pl_export_refuse(e, node->at, "texts with quotes or \\ do");
	pl_buf_printf(e->out, "'%s'", node->text);
}

static void put_constant(struct exporter *e, const struct node *node)
{
	switch (node->type) {
	case PL_QUERY_SIGNED:
		pl_buf_i64(e->out, (int64_t)node->u);
		break;
	case PL_QUERY_DOUBLE: /* a number with an exponent is a double in both */
		pl_buf_printf(e->out, "%.17e", node->d);
		break;
	case PL_QUERY_BOOL:
		pl_buf_str(e->out, node->u != 0 ? "TRUE" : "FALSE");
		break;
	case PL_QUERY_ADDR:
		put_addr(e, &node->addr);
		break;
	case PL_QUERY_TEXT:
		put_text(e, node);
		break;
	default:
		pl_export_number(e, node->u, node->at);
		break;
	}
}

/* The addresses of a prefix are a range. */
static void put_prefix(struct exporter *e, const struct node *node)
{
	struct pl_addr first = node->addr, last;
	uint8_t *f = (uint8_t *)&first, *l = (uint8_t *)&last;

	if (e->dialect != PL_QUERY_CLICKHOUSE) {
		pl_export_refuse(e, node->at, "prefixes of addresses do");
		return;
	}
	last = first;
	for (unsigned int bit = node->bits; bit < 128; bit++) {
		const uint8_t one = (uint8_t)(0x80 >> bit % 8);

		f[bit / 8] &= (uint8_t)~one;
		l[bit / 8] |= one;
	}
	pl_buf_chr(e->out, '(');
	pl_export_node(e, node->a, false);
	pl_buf_str(e->out, " BETWEEN ");
	put_addr(e, &first);
	pl_buf_str(e->out, " AND ");
	put_addr(e, &last);
	pl_buf_chr(e->out, ')');
}

static void put_octet(struct exporter *e, const struct node *number, const char *divisor)
{
	pl_buf_str(e->out, "CAST(MOD(");
	pl_export_node(e, number, false);
	pl_buf_printf(e->out, " %s %s, 256) AS STRING)", e->dialect == PL_QUERY_DUCKDB ? "//" : "/",
		divisor);
}

static void put_v4(struct exporter *e, const struct node *node)
{
	static const char *const divisors[] = { "16777216", "65536", "256", "1" };
	const bool wide = !narrow(node->a);

	if (wide) {
		pl_buf_str(e->out, "CASE WHEN ");
		pl_export_node(e, node->a, false);
		pl_buf_str(e->out, " <= 4294967295 THEN ");
	}
	if (e->dialect == PL_QUERY_CLICKHOUSE) {
		pl_buf_str(e->out, "IPv4ToIPv6(toIPv4(toUInt32(");
		pl_export_node(e, node->a, false);
		pl_buf_str(e->out, ")))");
	} else {
		for (unsigned int i = 0; i < 4; i++) {
			pl_buf_str(e->out, i > 0 ? " || '.' || " : "(");
			put_octet(e, node->a, divisors[i]);
		}
		pl_buf_chr(e->out, ')');
	}
	if (wide)
		pl_buf_str(e->out, " END");
}

/* ---- operators ---- */

static void put_infix(struct exporter *e, const struct node *node, const char *sign)
{
	pl_buf_chr(e->out, '(');
	pl_export_node(e, node->a, false);
	pl_buf_str(e->out, sign);
	pl_export_node(e, node->b, false);
	pl_buf_chr(e->out, ')');
}

static void put_function(struct exporter *e, const struct node *node, const char *begin)
{
	pl_buf_str(e->out, begin);
	pl_export_node(e, node->a, false);
	if (node->b != NULL) {
		pl_buf_str(e->out, ", ");
		pl_export_node(e, node->b, false);
	}
	pl_buf_chr(e->out, ')');
}

/* Writes a division; one by zero has no result. */
static void put_division(struct exporter *e, const struct node *node)
{
	const bool safe = node->b->op == N_CONST && node->b->u != 0;
	const bool whole = node->op == N_DIV && node->type != PL_QUERY_DOUBLE;
	const bool named = whole && e->dialect == PL_QUERY_CLICKHOUSE;
	const bool function = named || node->op == N_MOD;

	pl_buf_str(e->out, named ? "intDiv(" : node->op == N_MOD ? "MOD(" : "(");
	pl_export_node(e, node->a, false);
	pl_buf_str(e->out, function                                 ? ", "
			   : whole && e->dialect == PL_QUERY_DUCKDB ? " // "
								    : " / ");
	pl_buf_str(e->out, safe ? "" : "NULLIF(");
	pl_export_node(e, node->b, false);
	pl_buf_str(e->out, safe ? ")" : ", 0))");
}

static void put_arg(struct exporter *e, const void *arg)
{
	pl_export_node(e, arg, false);
}

static void put_bit_and(struct exporter *e, const struct node *node)
{
	if (e->dialect == PL_QUERY_CLICKHOUSE)
		put_function(e, node, "bitAnd(");
	else if (e->dialect == PL_QUERY_DUCKDB)
		put_infix(e, node, " & ");
	else if (node->b->op == N_CONST && node->a->type == PL_QUERY_UNSIGNED)
		pl_export_bits(e, put_arg, node->a, 0, node->b->u, UINT64_MAX, node->at);
	else
		pl_export_refuse(e, node->at, "& of other than a number with a constant does");
}

static void put_compare(struct exporter *e, const struct node *node, bool filter)
{
	const bool apart =
		!filter && (pl_export_nullable(e, node->a) || pl_export_nullable(e, node->b));
	char sign[8];

	snprintf(sign, sizeof(sign), " %s ",
		node->compare == T_NE ? "<>" : pl_query_operator(node->compare));
	pl_buf_str(e->out, apart ? "COALESCE(" : "");
	put_infix(e, node, sign);
	pl_buf_str(e->out, apart ? ", FALSE)" : "");
}

static void put_logic(struct exporter *e, const struct node *node, bool filter)
{
	pl_buf_chr(e->out, '(');
	pl_export_node(e, node->a, filter);
	pl_buf_str(e->out, node->op == N_AND ? " AND " : " OR ");
	pl_export_node(e, node->b, filter);
	pl_buf_chr(e->out, ')');
}

static void put_conversion(struct exporter *e, const struct node *node)
{
	const bool real = node->op == N_TO_DOUBLE;

	if (e->dialect == PL_QUERY_CLICKHOUSE) {
		put_function(e, node, real ? "toFloat64(" : "toInt64(");
	} else if (real) {
		pl_buf_str(e->out, "CAST(");
		pl_export_node(e, node->a, false);
		pl_buf_str(e->out, " AS DOUBLE)");
	} else { /* all numbers are signed in Flink, and in our tables of DuckDB */
		pl_export_node(e, node->a, false);
	}
}

static void put_choice(struct exporter *e, const struct node *node)
{
	pl_buf_str(e->out, "CASE WHEN ");
	pl_export_node(e, node->a, true);
	pl_buf_str(e->out, " THEN ");
	pl_export_node(e, node->b, false);
	pl_buf_str(e->out, " ELSE ");
	pl_export_node(e, node->c, false);
	pl_buf_str(e->out, " END");
}

/* Versions of the systems differ in the least of a value and NULL. */
static void put_extreme(struct exporter *e, const struct node *node)
{
	if (pl_export_nullable(e, node))
		pl_export_refuse(e, node->at, "least and greatest of values that may be absent do");
	else
		put_function(e, node, node->op == N_LEAST ? "LEAST(" : "GREATEST(");
}

void pl_export_node(struct exporter *e, const struct node *node, bool filter)
{
	static const char *const functions[] = {
		[N_NEG] = "-(", [N_NOT] = "NOT (", [N_COALESCE] = "COALESCE(", [N_ABS] = "ABS("
	};
	static const char *const signs[] = { [N_ADD] = " + ", [N_SUB] = " - ", [N_MUL] = " * " };

	switch (node->op) {
	case N_CONST:
		put_constant(e, node);
		break;
	case N_COLUMN:
		put_column(e, node);
		break;
	case N_TEST:
		if (e->stage->pairs != NULL)
			put_of_pair(e, node);
		else
			pl_export_test(e, node);
		break;
	case N_PREFIX:
		put_prefix(e, node);
		break;
	case N_NEG:
	case N_NOT:
	case N_COALESCE:
	case N_ABS:
		put_function(e, node, functions[node->op]);
		break;
	case N_ADD:
	case N_SUB:
	case N_MUL:
		put_infix(e, node, signs[node->op]);
		break;
	case N_DIV:
	case N_MOD:
		put_division(e, node);
		break;
	case N_BIT_AND:
		put_bit_and(e, node);
		break;
	case N_BIT_OR:
		if (e->dialect == PL_QUERY_CLICKHOUSE)
			put_function(e, node, "bitOr(");
		else if (e->dialect == PL_QUERY_DUCKDB)
			put_infix(e, node, " | ");
		else
			pl_export_refuse(e, node->at, "| does");
		break;
	case N_COMPARE:
		put_compare(e, node, filter);
		break;
	case N_AND:
	case N_OR:
		put_logic(e, node, filter);
		break;
	case N_TO_SIGNED:
	case N_TO_DOUBLE:
		put_conversion(e, node);
		break;
	case N_V4:
		put_v4(e, node);
		break;
	case N_IF:
		put_choice(e, node);
		break;
	case N_LEAST:
	case N_GREATEST:
		put_extreme(e, node);
		break;
	default:
		pl_export_refuse(e, node->at, "this does");
		break;
	}
}
