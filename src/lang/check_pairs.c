/* SPDX-License-Identifier: BSD-2-Clause */
/* A join of records: its two sides, the conditions of a pair, and its columns. */
#include <string.h>

#include "lang/plan.h"

/* ---- sides ---- */

/* Returns true for SELECT * FROM stream [WHERE …] without other clauses. */
static bool is_plain(const struct checker *c, const struct ast_select *select)
{
	const struct ast_source *from = select->from;

	return select->star && !select->distinct && select->group == NULL &&
	       select->having == NULL && select->order == NULL && !select->has_limit &&
	       !select->emit_told && from->next == NULL && from->sub == NULL &&
	       pl_query_find_with(c, from->stream) == NULL;
}

static const struct ast_select *query_of(const struct checker *c, const struct ast_source *source)
{
	const struct ast_with *with =
		source->sub == NULL ? pl_query_find_with(c, source->stream) : NULL;

	return with != NULL ? with->select : source->sub;
}

static const char *alias_of(const struct ast_source *source, const struct ast_select *select)
{
	if (source->alias != NULL)
		return source->alias;
	if (source->stream != NULL)
		return source->stream;
	return select != NULL ? select->from->alias : NULL;
}

static bool take_side(
	struct checker *outer, const struct ast_source *source, struct pairs *pairs, unsigned int i)
{
	const struct ast_select *select = query_of(outer, source);
	struct ast_source stream = *source;
	struct checker c = *outer;

	if (select != NULL && !is_plain(outer, select))
		return pl_query_refuse(outer, source->at,
			"a side of a join WITHIN is a stream or (SELECT * FROM stream WHERE …): its "
			"records are joined as they are");
	if (select != NULL && source->window.kind != W_NONE)
		return pl_query_refuse(outer, source->window.at,
			"a window stands behind the stream that the query reads");
	if (select != NULL)
		stream = *select->from;
	stream.alias = alias_of(source, select);
	if (stream.alias == NULL)
		return pl_query_refuse(
			outer, source->at, "a joined sub-query needs a name: (…) AS a");
	if (i == 1 && stream.window.kind == W_NONE)
		stream.window = outer->query->window;
	c.stage = pl_query_new(c.lx, sizeof(*c.stage));
	if (c.stage == NULL)
		return false;
	c.select = select;
	c.schema = &c.stage->input;
	c.stage->order = -1;
	c.stage->at = source->at;
	pairs->sides[i] = c.stage;
	return pl_query_check_stream(&c, &stream) && (select == NULL || pl_query_check_where(&c)) &&
	       pl_query_check_enter(outer, c.stage, source->at);
}

/* ---- columns ---- */

static void add_columns(struct schema *to, const struct schema *from, uint32_t base, bool optional)
{
	for (uint32_t i = 0; i < from->n; i++) {
		struct column *column = &to->columns[to->n++];

		*column = from->columns[i];
		column->offset += base;
		column->present_at += base;
		/* A record that is not there is zeros: no field of it is present. */
		if (optional && column->present == 0)
			column->absent = 1;
	}
}

static bool make_columns(struct checker *c, struct pairs *pairs)
{
	const struct schema *left = &pairs->sides[0]->input, *right = &pairs->sides[1]->input;
	struct schema *both = &pairs->both;
	struct stage *stage = c->stage;

	both->columns = pl_query_new(c->lx, (left->n + right->n) * sizeof(*both->columns));
	if (both->columns == NULL)
		return false;
	add_columns(both, left, ROW_HEAD, false);
	add_columns(both, right, ROW_HEAD + left->size, pairs->kind == J_LEFT);
	both->size = ROW_HEAD + left->size + right->size;
	both->n_plain = both->n;
	stage->kind = PL_QUERY_STREAMS;
	stage->input = *both;
	if (pairs->kind == J_ANTI) {
		stage->input.n = left->n;
		stage->input.n_plain = left->n_plain;
	}
	stage->time = &both->columns[pl_query_find_column(left, "ts", NULL) - left->columns];
	return true;
}

/* ---- conditions of a pair ---- */

static bool add_key(struct checker *c, struct pairs *pairs, const struct node *left,
	const struct node *right, uint32_t at)
{
	uint8_t width = pl_query_key_width(left);

	/* Only numbers differ in width. */
	if (width != pl_query_key_width(right))
		width = 8;
	if (pairs->n_keys == PAIR_KEYS_MAX)
		return pl_query_refuse(c, at, "more than %d keys", PAIR_KEYS_MAX);
	pairs->keys[0][pairs->n_keys] = (struct key){ .node = left, .width = width };
	pairs->keys[1][pairs->n_keys++] = (struct key){ .node = right, .width = width };
	/* A key with one name on both sides is the left one, when it is named without a source. */
	if (left->op == N_COLUMN && right->op == N_COLUMN &&
		strcmp(left->column->name, right->column->name) == 0)
		pairs->both
			.columns[pairs->sides[0]->input.n +
				 (uint32_t)(right->column - pairs->sides[1]->input.columns)]
			.qualified = true;
	return pl_query_vectors(left) <= VECTORS_MAX && pl_query_vectors(right) <= VECTORS_MAX
		       ? true
		       : pl_query_refuse(c, at, "the expression is too deep");
}

/* An equation of the left with the right; false: it is none, or there was an error. */
static bool take_equation(struct checker *c, struct pairs *pairs, const struct ast *a,
	const struct ast *b, uint32_t at)
{
	const struct node *left, *right;

	if (a != b && (pl_query_try_over(c, pairs, 2, a) == NULL ||
			      pl_query_try_over(c, pairs, 2, b) == NULL))
		return false;
	left = pl_query_try_over(c, pairs, 0, a);
	right = pl_query_try_over(c, pairs, 1, b);
	return left != NULL && right != NULL && left->type == right->type &&
	       pl_query_names_column(left) && pl_query_names_column(right) &&
	       add_key(c, pairs, left, right, at);
}

static bool add_residual(struct checker *c, struct pairs *pairs, const struct node *node)
{
	if (pairs->kind == J_INNER)
		return pl_query_check_add(c, node);
	if (pairs->on != NULL)
		node = pl_query_operation(c, N_AND, PL_QUERY_BOOL, node->at, pairs->on, node);
	if (node == NULL)
		return false;
	pairs->on = node;
	return pl_query_check_depth(c, node);
}

static bool take_on(struct checker *c, struct pairs *pairs, const struct ast *on)
{
	const struct node *node;
	struct checker over = *c;

	if (on->kind == A_BINARY && on->op == T_AND)
		return take_on(c, pairs, on->a) && take_on(c, pairs, on->b);
	if (on->kind == A_NAME && strchr(on->name, '.') == NULL) {
		if (take_equation(c, pairs, on, on, on->at))
			return true;
		if (c->lx->error < 0)
			return false;
		return pl_query_refuse(c, on->at,
			"\"%s\" is not a column of both sides: a key is a name that both have, or "
			"a.x = b.y",
			on->name);
	}
	if (on->kind == A_BINARY && on->op == T_EQ &&
		(take_equation(c, pairs, on->a, on->b, on->at) ||
			take_equation(c, pairs, on->b, on->a, on->at)))
		return true;
	over.schema = &pairs->both;
	node = c->lx->error < 0 ? NULL
				: pl_query_check_bool(&over, pl_query_check(&over, on), "ON");
	if (node == NULL)
		return false;
	if (pl_query_check_push(c, pairs, 1, on) ||
		(pairs->kind == J_INNER && pl_query_check_push(c, pairs, 0, on)))
		return true;
	return c->lx->error == 0 && add_residual(c, pairs, node);
}

static bool take_keys(struct checker *c, const struct ast_source *right, struct pairs *pairs)
{
	for (const struct ast *on = right->on; on != NULL; on = on->next) {
		if (!take_on(c, pairs, on))
			return false;
	}
	if (pairs->n_keys == 0)
		return pl_query_refuse(c, right->on != NULL ? right->on->at : right->at,
			"a join of records needs a key: ON a.x = b.y, or ON x for a name of both");
	pairs->key_bytes = pl_query_lay_out_keys(pairs->keys[0], pairs->n_keys);
	for (uint32_t i = 0; i < pairs->n_keys; i++)
		pairs->keys[1][i].offset = pairs->keys[0][i].offset;
	return true;
}

bool pl_query_check_pairs(struct checker *c)
{
	const struct ast_source *left = c->select->from, *right = left->next;
	struct pairs *pairs = pl_query_new(c->lx, sizeof(*pairs));

	if (pairs == NULL)
		return false;
	for (unsigned int i = 0; i < 2; i++) {
		pairs->keys[i] = pl_query_new(c->lx, PAIR_KEYS_MAX * sizeof(*pairs->keys[i]));
		if (pairs->keys[i] == NULL)
			return false;
	}
	if (right->next != NULL)
		return pl_query_refuse(c, right->next->at,
			"a join of records is of two streams, and nothing else");
	pairs->kind = right->join;
	pairs->within_ns = right->within_ns;
	pairs->at = right->within_at;
	if (!take_side(c, left, pairs, 0) || !take_side(c, right, pairs, 1))
		return false;
	if (strcmp(pairs->sides[0]->input.columns[0].source,
		    pairs->sides[1]->input.columns[0].source) == 0)
		return pl_query_refuse(c, right->at,
			"both sides have one name: give them two with AS, and write columns as a.src");
	if (!make_columns(c, pairs))
		return false;
	if (c->query->within_ns < pairs->within_ns)
		c->query->within_ns = pairs->within_ns;
	if (!take_keys(c, right, pairs))
		return false;
	/* The stage's input shares the columns of `both`. */
	c->stage->pairs = pairs;
	return true;
}
